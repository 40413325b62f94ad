#include "optim/adamw.h"

#include "core/kernels/adamw.h"
#include "core/parallel.h"
#include "core/text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace minillm {

namespace {

constexpr int64_t chunk_elements = 16384;

enum class Kind { matrix, gain, bias, vector };

/// Gains are those of norms. Biases, decay rates and other vectors never decay.
Kind kind_of(const Parameter& parameter) {
  if (parameter.shape.rank() >= 2) {
    return Kind::matrix;
  }
  const std::string_view name = parameter.name;
  return name.ends_with("norm.weight") ? Kind::gain : (name.ends_with(".bias") ? Kind::bias : Kind::vector);
}

std::string group_name(Kind kind, bool matrix_decays) {
  switch (kind) {
    case Kind::matrix: return matrix_decays ? "matrices" : "matrices without decay";
    case Kind::gain: return "gains";
    case Kind::bias: return "biases";
    case Kind::vector: return "other vectors";
  }
  return {};
}

void update(const ParameterStore& store, const Tensor& m, const Tensor& v, int64_t begin, int64_t count,
            const kernels::AdamWFactors& factors, bool use_reference) {
  if (store.dtype() == DType::float64) {
    kernels::adamw_reference(store.weights().as<double>() + begin, m.as<double>() + begin, v.as<double>() + begin,
                             store.gradients().as<double>() + begin, count, factors);
    return;
  }
  float* weights = store.weights().as<float>() + begin;
  const float* gradients = store.gradients().as<float>() + begin;
  if (use_reference) {
    kernels::adamw_reference(weights, m.as<float>() + begin, v.as<float>() + begin, gradients, count, factors);
  } else {
    kernels::adamw(weights, m.as<float>() + begin, v.as<float>() + begin, gradients, count, factors);
  }
}

}  // namespace

std::string to_string(const ParameterGroup& group) {
  return fmt::format("{}: {}, {} parameters, weight decay {}", group.name, counted(group.tensors, "tensor"),
                     thousands(group.parameters), group.decay);
}

AdamW::AdamW(ParameterStore& store, const OptimConfig& config, bool use_reference)
    : store_(store), config_(config), use_reference_(use_reference) {
  check(store.allocated() && store.gradients(), "AdamW needs a parameter store with weights and gradients");
  const Shape flat = store.weights().shape;
  m_ = Buffer(flat, store.dtype());
  v_ = Buffer(flat, store.dtype());
  make_groups();
  make_chunks();
}

void AdamW::set_steps(int64_t steps) {
  check(steps >= 0, "the number of updates is at least 0, found {}", steps);
  steps_ = steps;
}

double AdamW::decay_of(const Parameter& parameter) const {
  if (parameter.is_buffer) {
    return 0;
  }
  const Kind kind = kind_of(parameter);
  const bool decays = parameter.decay || (kind == Kind::gain && config_.decay_norms);
  return decays ? config_.weight_decay : 0;
}

void AdamW::make_groups() {
  for (const Parameter& parameter : store_.parameters()) {
    if (parameter.is_buffer) {
      continue;  // without a gradient, decay and moments the update leaves it as it is
    }
    const std::string name = group_name(kind_of(parameter), parameter.decay);
    const double decay = decay_of(parameter);
    auto group = std::find_if(groups_.begin(), groups_.end(),
                              [&](const ParameterGroup& known) { return known.name == name && known.decay == decay; });
    if (group == groups_.end()) {
      group = groups_.insert(groups_.end(), {.name = name, .decay = decay});
    }
    group->tensors += static_cast<int64_t>(parameter.slices.size());
    group->parameters += parameter.numel();
  }
}

// Neighbours with the same decay are joined first, so that many small vectors cost one task; padding belongs to the
// parameter before it and stays zero.
void AdamW::make_chunks() {
  std::vector<const Parameter*> by_offset;
  for (const Parameter& parameter : store_.parameters()) {
    by_offset.push_back(&parameter);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
  std::vector<Chunk> ranges;
  for (const Parameter* parameter : by_offset) {
    const double decay = decay_of(*parameter);
    if (ranges.empty() || ranges.back().decay != decay) {
      ranges.push_back({.begin = parameter->offset, .decay = decay});
    }
    ranges.back().end = parameter->offset + parameter->numel();
  }
  for (const Chunk& range : ranges) {
    for (int64_t begin = range.begin; begin < range.end; begin += chunk_elements) {
      chunks_.push_back({begin, std::min(range.end, begin + chunk_elements), range.decay});
    }
  }
}

void AdamW::step(double lr, double gradient_scale) {
  ++steps_;
  const double t = static_cast<double>(steps_);
  kernels::AdamWFactors shared;
  shared.gradient_scale = gradient_scale;
  shared.beta1 = config_.beta1;
  shared.beta2 = config_.beta2;
  shared.eps = config_.eps;
  shared.step_size = lr / (1 - std::pow(config_.beta1, t));
  shared.v_correction = std::sqrt(1 - std::pow(config_.beta2, t));
  parallel_for(static_cast<int64_t>(chunks_.size()), 1, [this, shared, lr](int64_t i, int64_t) {
    const Chunk& chunk = chunks_[static_cast<size_t>(i)];
    kernels::AdamWFactors factors = shared;
    factors.shrink = 1 - lr * chunk.decay;
    update(store_, m_.tensor(), v_.tensor(), chunk.begin, chunk.end - chunk.begin, factors, use_reference_);
  });
  store_.updated();
}

}  // namespace minillm
