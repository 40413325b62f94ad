#include "optim/finite.h"

#include <cmath>

namespace minillm {

namespace {

template <class T>
int64_t find_non_finite_in(const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) {
      return i;
    }
  }
  return -1;
}

}  // namespace

int64_t find_non_finite(const Tensor& tensor) {
  return tensor.dtype == DType::float64 ? find_non_finite_in(tensor.as<double>(), tensor.numel())
                                        : find_non_finite_in(tensor.as<float>(), tensor.numel());
}

namespace {

std::optional<NonFinite> first_non_finite(const ParameterStore& store, Tensor NamedTensor::*which) {
  for (const NamedTensor& named : store.named_tensors()) {
    const Tensor& tensor = named.*which;
    if (!tensor) {
      continue;
    }
    const int64_t i = find_non_finite(tensor);
    if (i >= 0) {
      return NonFinite{std::string(named.name), i, tensor.at(i)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<NonFinite> first_non_finite_gradient(const ParameterStore& store) {
  return first_non_finite(store, &NamedTensor::grad);
}

std::optional<NonFinite> first_non_finite_weight(const ParameterStore& store) {
  return first_non_finite(store, &NamedTensor::value);
}

Problem refused_update(const ParameterStore& store, int64_t step, double loss, double norm, double lr,
                       double grad_clip) {
  const std::optional<NonFinite> gradient = first_non_finite_gradient(store);
  const std::optional<NonFinite> weight = first_non_finite_weight(store);
  std::string what = "the loss is not finite";
  if (gradient) {
    what = fmt::format("the gradient of {} is not finite ({} at element {})", gradient->tensor, gradient->value,
                       gradient->index);
  } else if (std::isfinite(loss)) {
    what = "the gradient norm overflows though every gradient is finite";
  }
  const std::string weights = weight ? fmt::format("{} was not finite before this step ({} at element {})",
                                                   weight->tensor, weight->value, weight->index)
                                     : "all weights are finite and were left as they are";
  return {.where = fmt::format("step {}", step),
          .what = what,
          .found = fmt::format("loss {}, gradient norm {}, lr {}; {}", loss, norm, lr, weights),
          .expected = "finite values",
          .hint = fmt::format("try a smaller optim.lr, a longer optim.warmup_steps or {}",
                              grad_clip == 0 ? "clipping: optim.grad_clip = 1" : "a smaller optim.grad_clip")};
}

}  // namespace minillm
