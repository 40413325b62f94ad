#include "core/kernels/sum_of_squares.h"

namespace minillm::kernels {

template <class T>
double sum_of_squares_reference(const T* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x_i = static_cast<double>(x[i]);
    sum += x_i * x_i;
  }
  return sum;
}

template double sum_of_squares_reference(const float*, int64_t);
template double sum_of_squares_reference(const double*, int64_t);

}  // namespace minillm::kernels
