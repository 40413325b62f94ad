#pragma once
// sum_i x[i]^2 in double, whatever the type of x: the global gradient norm.
//
// x [count]. The fast form cuts x into chunks made from `count` alone and adds their sums in order.

#include <cstdint>

namespace minillm::kernels {

template <class T>
double sum_of_squares_reference(const T* x, int64_t count);

/// The same bits for any number of threads.
template <class T>
double sum_of_squares(const T* x, int64_t count);

}  // namespace minillm::kernels
