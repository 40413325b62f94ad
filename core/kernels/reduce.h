#pragma once
// Sums over rows and the broadcast of one row: Y [R, N]; row [N]. A task owns a stripe of columns and adds rows in
// order, so the bits do not depend on the number of threads.

#include <cstdint>

namespace minillm::kernels {

/// Y[r, :] = row
template <class T>
void copy_row_to_all(const T* row, T* Y, int64_t R, int64_t N);

/// row += sum over r of Y[r, :]
template <class T>
void add_rows_to_one(const T* Y, T* row, int64_t R, int64_t N);

/// The sum of x[0 .. count), in double over a fixed number of lanes, on the calling thread.
template <class T>
double sum_values(const T* x, int64_t count);

}  // namespace minillm::kernels
