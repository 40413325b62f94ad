#pragma once
// The refusal to update on a non-finite loss or gradient: which tensor, and what to try.

#include "autograd/parameter.h"
#include "core/error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace minillm {

/// A tensor with a value that is NaN or infinite.
struct NonFinite {
  std::string tensor;  ///< "model.layers.0.mlp.down_proj.weight"
  int64_t index = 0;   ///< of the first such element, row-major within the tensor
  double value = 0;
};

/// Where the first element that is not finite stands, row-major; -1: all are finite.
int64_t find_non_finite(const Tensor& tensor);

/// The first named tensor, in order of declaration, whose gradient (or value) is not finite.
std::optional<NonFinite> first_non_finite_gradient(const ParameterStore& store);
std::optional<NonFinite> first_non_finite_weight(const ParameterStore& store);

/// The message for a step whose loss or gradient norm is not finite: the step, the tensor, whether the weights are
/// still finite, the learning rate, what to try (grad_clip 0: no clipping yet). For fail_work, after the last finite
/// state is saved.
Problem refused_update(const ParameterStore& store, int64_t step, double loss, double norm, double lr,
                       double grad_clip);

}  // namespace minillm
