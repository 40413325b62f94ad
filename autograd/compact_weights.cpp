#include "autograd/compact_weights.h"

namespace minillm {

CompactWeights::CompactWeights(ParameterStore& store, kernels::CompactType type) {
  for (const Parameter& parameter : store.parameters()) {
    const Tensor& value = parameter.value;
    if (value.shape.rank() != 2 || value.dtype != DType::float32) {
      continue;
    }
    const auto added =
        matrices_.emplace(&parameter, kernels::CompactMatrix(type, value.as<float>(), value.shape[0], value.shape[1]));
    added.first->second.expand(value.as<float>());
  }
}

const kernels::CompactMatrix* CompactWeights::find(const Parameter& parameter) const {
  const auto found = matrices_.find(&parameter);
  return found == matrices_.end() ? nullptr : &found->second;
}

size_t CompactWeights::bytes() const {
  size_t bytes = 0;
  for (const auto& [parameter, matrix] : matrices_) {
    bytes += matrix.bytes();
  }
  return bytes;
}

}  // namespace minillm
