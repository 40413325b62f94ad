#include "nn/kept_rows.h"

#include <algorithm>

namespace minillm {

namespace {

template <class Real>
void copy_rows(const Tensor& x, const Tensor& kept, int64_t past) {
  const int64_t count = x.shape[1];
  const int64_t groups = x.shape[2];
  const int64_t width = x.shape[3];
  const int64_t capacity = kept.shape[1];
  const Real* from = x.as<Real>();
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t g = 0; g < groups; ++g) {
      std::copy_n(from + (t * groups + g) * width, width, kept.as<Real>() + (g * capacity + past + t) * width);
    }
  }
}

}  // namespace

void keep_rows(Var x, const Tensor& kept, int64_t past) {
  const Shape& shape = x.shape();
  check(shape.rank() == 4 && shape[0] == 1 && kept.shape[0] == shape[2] && kept.shape[2] == shape[3] &&
            past + shape[1] <= kept.shape[1],
        "rows {} do not fit behind {} positions of {}", shape, past, kept.shape);
  if (x.dtype() == DType::float64) {
    copy_rows<double>(x.value(), kept, past);
  } else {
    copy_rows<float>(x.value(), kept, past);
  }
}

}  // namespace minillm
