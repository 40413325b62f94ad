#pragma once
// 小明把苹果给了小王, the course's sentence of five tokens, as vectors: what a model's embedding would make of it.

#include "experiments/lessons/page.h"
#include "experiments/lessons/values.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace minillm {

inline constexpr std::array<std::string_view, 5> sentence_tokens = {"小明", "把", "苹果", "给了", "小王"};
inline constexpr int64_t sentence_length = sentence_tokens.size();
inline constexpr int64_t apple = 2;  ///< the place of 苹果

/// [5, d], a row a token: independent draws, the same for the same words
inline Buffer sentence_vectors(int64_t d, DType dtype = DType::float64) {
  Buffer rows({sentence_length, d}, dtype);
  for (int64_t t = 0; t < sentence_length; ++t) {
    copy_values(normal_values({1, d}, dtype, sentence_tokens[static_cast<size_t>(t)]).tensor(),
                rows.tensor().rows(t, 1));
  }
  return rows;
}

}  // namespace minillm
