#include "core/kernels/past_attention.h"

#include "core/kernels/elementwise.h"
#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/workspace.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

/// scores[u] = scale * q . keys[u]
MINILLM_SIMD void past_scores(const float* q, const float* keys, int64_t row, int64_t width, float scale, int64_t seen,
                              float* scores) {
  for (int64_t u = 0; u < seen; ++u) {
    const float* key = keys + u * row;
    scores[u] = scale * sum_in_lanes(width, [=](int64_t j) { return q[j] * key[j]; });
  }
}

/// out = sum_u weights[u] values[u], the positions in turn.
MINILLM_SIMD void weighted_sum(const float* weights, const float* values, int64_t row, int64_t width, int64_t seen,
                               float* out) {
  constexpr int64_t together = 2 * lanes;  // columns whose sums stay in registers
  int64_t first = 0;
  for (; first + together <= width; first += together) {
    float sums[together] = {};
    for (int64_t u = 0; u < seen; ++u) {
      const float* value = values + u * row + first;
      for (int64_t j = 0; j < together; ++j) {
        sums[j] += weights[u] * value[j];
      }
    }
    std::copy_n(sums, together, out + first);
  }
  for (; first < width; ++first) {
    float sum = 0;
    for (int64_t u = 0; u < seen; ++u) {
      sum += weights[u] * values[u * row + first];
    }
    out[first] = sum;
  }
}

}  // namespace

void past_attention(const float* q, const float* keys, const float* values, float* out, const PastShape& shape) {
  const int64_t group = shape.heads / shape.key_heads;
  const int64_t work = group * (shape.past + shape.count) * (shape.key_width + shape.value_width);
  const int64_t tasks = shape.count * shape.key_heads;
  const int64_t chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, work));
  parallel_for(tasks, chunk, [=](int64_t begin, int64_t end) {
    thread_local Workspace memory;
    float* scores = memory.take(shape.capacity);  // not what is seen now, which grows with every token
    for (int64_t task = begin; task < end; ++task) {
      const int64_t t = task / shape.key_heads;
      const int64_t g = task % shape.key_heads;
      const int64_t seen = shape.past + t + 1;
      const float* head_keys = keys + g * shape.capacity * shape.key_row;
      const float* head_values = values + g * shape.capacity * shape.value_row;
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t row = t * shape.heads + h;
        float* head_out = out + row * shape.value_width;
        past_scores(q + row * shape.key_width, head_keys, shape.key_row, shape.key_width,
                    static_cast<float>(shape.scale), seen, scores);
        const float sum = exp_shifted(scores, scores, largest_of(scores, seen), seen);
        weighted_sum(scores, head_values, shape.value_row, shape.value_width, seen, head_out);
        scale_row(head_out, 1.0F / sum, shape.value_width);
      }
    }
  });
}

}  // namespace minillm::kernels
