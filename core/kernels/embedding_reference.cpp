#include "core/kernels/embedding.h"

namespace minillm::kernels {

template <class T>
void embedding_forward_reference(const T* table, const int32_t* ids, T* y, int64_t R, int64_t d) {
  for (int64_t r = 0; r < R; ++r) {
    const T* row = table + ids[r] * d;
    T* y_r = y + r * d;
    for (int64_t j = 0; j < d; ++j) {
      y_r[j] = row[j];
    }
  }
}

template <class T>
void embedding_backward_reference(const T* dy, const int32_t* ids, T* dtable, int64_t R, int64_t d) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * d;
    T* drow = dtable + ids[r] * d;
    for (int64_t j = 0; j < d; ++j) {
      drow[j] += dy_r[j];
    }
  }
}

template void embedding_forward_reference(const float*, const int32_t*, float*, int64_t, int64_t);
template void embedding_forward_reference(const double*, const int32_t*, double*, int64_t, int64_t);
template void embedding_backward_reference(const float*, const int32_t*, float*, int64_t, int64_t);
template void embedding_backward_reference(const double*, const int32_t*, double*, int64_t, int64_t);

}  // namespace minillm::kernels
