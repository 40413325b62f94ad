#include "autograd/decoding_weights.h"

namespace minillm {

namespace {

/// Calls visit(values, rows, columns) for each matrix of a parameter. A convolution's [channels, 1, width] is none.
template <class Visit>
void for_each_matrix(const Parameter& parameter, Visit visit) {
  const Tensor& value = parameter.value;
  const int rank = value.shape.rank();
  const bool has_matrices = rank == 2 || (rank == 3 && value.shape[1] > 1);
  if (!has_matrices || value.dtype != DType::float32) {
    return;
  }
  const int64_t rows = value.shape[-2];
  const int64_t columns = value.shape[-1];
  for (int64_t first = 0; first < value.numel(); first += rows * columns) {
    visit(value.as<float>() + first, rows, columns);
  }
}

}  // namespace

DecodingWeights::DecodingWeights(const ParameterStore& store, kernels::DecodingType type) {
  for (const Parameter& parameter : store.parameters()) {
    for_each_matrix(parameter, [&](const float* values, int64_t rows, int64_t columns) {
      matrices_.try_emplace(values, type, values, rows, columns);
    });
  }
}

const kernels::DecodingMatrix* DecodingWeights::find(const Tensor& matrix) const {
  const auto found = matrices_.find(matrix.data);
  const bool fits = found != matrices_.end() && matrix.shape == Shape{found->second.rows(), found->second.columns()};
  return fits ? &found->second : nullptr;
}

void DecodingWeights::round(ParameterStore& store) const {
  for (const Parameter& parameter : store.parameters()) {
    for_each_matrix(parameter,
                    [&](float* values, int64_t /*rows*/, int64_t /*columns*/) { matrices_.at(values).expand(values); });
  }
}

size_t DecodingWeights::bytes() const {
  size_t bytes = 0;
  for (const auto& [values, matrix] : matrices_) {
    bytes += matrix.bytes();
  }
  return bytes;
}

size_t DecodingWeights::bytes_of(const Parameter& parameter) const {
  size_t bytes = 0;
  for_each_matrix(parameter, [&](const float* values, int64_t /*rows*/, int64_t /*columns*/) {
    bytes += matrices_.at(values).bytes();
  });
  return bytes;
}

}  // namespace minillm
