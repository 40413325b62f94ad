#include "core/kernels/embedding.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;
constexpr int64_t columns_per_stripe = 32;  // two cache lines, so that stripes do not share one

MINILLM_SIMD void scatter_stripe(const float* dy, const int32_t* ids, float* dtable, int64_t R, int64_t d,
                                 int64_t begin, int64_t end) {
  for (int64_t r = 0; r < R; ++r) {
    const float* dy_r = dy + r * d;
    float* drow = dtable + ids[r] * d;
    for (int64_t j = begin; j < end; ++j) {
      drow[j] += dy_r[j];
    }
  }
}

}  // namespace

void embedding_forward(const float* table, const int32_t* ids, float* y, int64_t R, int64_t d) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(y + r * d, table + ids[r] * d, sizeof(float) * static_cast<size_t>(d));
    }
  });
}

// Two rows of dy may go to one row of the table, so tasks share columns, not rows: each owns a stripe of columns and adds
// all rows in order.
void embedding_backward(const float* dy, const int32_t* ids, float* dtable, int64_t R, int64_t d) {
  parallel_for(d, columns_per_stripe, [=](int64_t begin, int64_t end) {
    scatter_stripe(dy, ids, dtable, R, d, begin, end);
  });
}

}  // namespace minillm::kernels
