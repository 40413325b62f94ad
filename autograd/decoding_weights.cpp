#include "autograd/decoding_weights.h"

namespace minillm {

DecodingWeights::DecodingWeights(const ParameterStore& store, kernels::DecodingType type) {
  for (const Parameter& parameter : store.parameters()) {
    const Tensor& value = parameter.value;
    if (value.shape.rank() == 2 && value.dtype == DType::float32) {
      matrices_.try_emplace(&parameter, type, value.as<float>(), value.shape[0], value.shape[1]);
    }
  }
}

const kernels::DecodingMatrix* DecodingWeights::find(const Parameter& parameter) const {
  const auto found = matrices_.find(&parameter);
  return found == matrices_.end() ? nullptr : &found->second;
}

void DecodingWeights::round(ParameterStore& store) const {
  for (const Parameter& parameter : store.parameters()) {
    if (const kernels::DecodingMatrix* matrix = find(parameter)) {
      matrix->expand(parameter.value.as<float>());
    }
  }
}

size_t DecodingWeights::bytes() const {
  size_t bytes = 0;
  for (const auto& [parameter, matrix] : matrices_) {
    bytes += matrix.bytes();
  }
  return bytes;
}

}  // namespace minillm
