#pragma once
// The types that matrices are written in: float32, and the smaller ones of GGUF. Vectors (gains, biases) stay float32.

#include "nn/transformer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct WeightType {
  std::string_view name;    ///< "q8_0"
  uint32_t gguf_type;       ///< of a tensor there
  uint32_t gguf_file_type;  ///< of a file with such matrices
  int64_t block;            ///< a row is a multiple of so many values
  uint64_t block_bytes;     ///< that they take
  /// The bytes of whole blocks. f16: the nearest binary16. q8_0: of 32 values s = the largest magnitude / 127 as
  /// binary16, then round(value / s) as int8.
  std::string (*encode)(std::span<const float> values);
  /// What encoded values are read as, in place.
  void (*round)(std::span<float> values);
};

/// Throws an input Error about --weights that lists all.
const WeightType& weight_type(const std::string& name);
std::vector<std::string> weight_type_names();

/// Rounds every matrix of the model, and no vector. Throws an input Error where a value is too large for the type or a
/// row is no multiple of its block.
void round_matrices(const Transformer& model, const WeightType& type);

}  // namespace minillm
