#pragma once
// Runs an op in its several versions on the same numbers and compares values and gradients.

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace minillm::compare {

using Op = std::function<Var(Tape&, const std::vector<Var>&)>;

/// Normal values, rounded to float so that both dtypes start from the same numbers; float64.
inline Buffer random_values(const Shape& shape, uint64_t seed, double spread = 1) {
  Buffer buffer(shape, DType::float64);
  RandomStream stream(random_key(seed, "test"));
  double* values = buffer.tensor().as<double>();
  for (int64_t i = 0; i < buffer.tensor().numel(); ++i) {
    values[i] = static_cast<double>(static_cast<float>(spread * stream.normal()));
  }
  return buffer;
}

template <class... Buffers>
std::vector<Buffer> list(Buffers&&... buffers) {
  std::vector<Buffer> all;
  (all.push_back(std::move(buffers)), ...);
  return all;
}

/// sum over operands of <operand, its fixed random weights>: reaches every element of a gradient with another factor.
struct ProjectionNode final : Node {
  void backward(Tape& tape) override {
    const double dloss = *grad.as<double>();
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Tensor dx = tape.gradient(inputs[k]);
      RandomStream stream(random_key(k, "projection"));
      for (int64_t i = 0; dx && i < dx.numel(); ++i) {
        const double weight = stream.normal();
        if (dx.dtype == DType::float64) {
          dx.as<double>()[i] += dloss * weight;
        } else {
          dx.as<float>()[i] += static_cast<float>(dloss * weight);
        }
      }
    }
  }
};

inline Var project(const std::vector<Var>& operands) {
  Tape& tape = operands[0].tape();
  auto& node = tape.make_n<ProjectionNode>("projection", operands, {}, DType::float64, {});
  double sum = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    RandomStream stream(random_key(k, "projection"));
    for (int64_t i = 0; i < operands[k].value().numel(); ++i) {
      sum += operands[k].value().at(i) * stream.normal();
    }
  }
  *node.value.as<double>() = sum;
  return tape.var(node);
}

struct Outcome {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;  // one an input
  size_t arena_bytes = 0;
};

inline std::vector<double> to_vector(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.at(static_cast<int64_t>(i));
  }
  return values;
}

/// The op's value, and the gradients of a projection of its result. With `uses` 2 it is applied twice to the same
/// inputs, so that its backward meets gradients it must add to.
inline Outcome run(const Op& op, const std::vector<Buffer>& inputs, DType dtype, TapeOptions options = {},
                   int uses = 1) {
  Tape tape(options);
  tape.set_random_key(7);
  std::vector<Buffer> converted;
  std::vector<Var> variables;
  for (const Buffer& input : inputs) {
    converted.emplace_back(input.tensor().shape, dtype);
    copy_values(input.tensor(), converted.back().tensor());
    variables.push_back(tape.variable(converted.back().tensor()));
  }
  std::vector<Var> results;
  for (int use = 0; use < uses; ++use) {
    results.push_back(op(tape, variables));
  }
  tape.backward(project(results));
  Outcome outcome;
  outcome.value = to_vector(results[0].value());
  for (const Var& variable : variables) {
    outcome.gradients.push_back(to_vector(variable.grad()));
  }
  outcome.arena_bytes = tape.arena_bytes();
  return outcome;
}

/// The largest |a - b| as a share of the largest |b|.
inline double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  double scale = 1e-300;
  for (size_t i = 0; i < b.size(); ++i) {
    const double gap = std::abs(a[i] - b[i]);
    largest = gap >= largest || std::isnan(gap) ? gap : largest;
    scale = std::max(scale, std::abs(b[i]));
  }
  return a.size() == b.size() ? largest / scale : HUGE_VAL;
}

/// The largest difference among value and gradients.
inline double difference(const Outcome& a, const Outcome& b) {
  double largest = difference(a.value, b.value);
  for (size_t k = 0; k < b.gradients.size(); ++k) {
    const double gap = difference(a.gradients[k], b.gradients[k]);
    largest = gap >= largest || std::isnan(gap) ? gap : largest;
  }
  return largest;
}

inline constexpr TapeOptions composed_ops = {.ops = Ops::composed};
inline constexpr TapeOptions reference_kernels = {.kernels = Kernels::reference};

/// Fused against composed in float64, value and gradients, with one use of the inputs and with two.
inline double fused_against_composed(const Op& op, const std::vector<Buffer>& inputs) {
  double worst = 0;
  for (const int uses : {1, 2}) {
    worst = std::max(worst, difference(run(op, inputs, DType::float64, {}, uses),
                                       run(op, inputs, DType::float64, composed_ops, uses)));
  }
  return worst;
}

/// The fast float kernels, or the reference ones in float, against the reference in double.
inline double float_against_double(const Op& op, const std::vector<Buffer>& inputs, TapeOptions options = {}) {
  double worst = 0;
  for (const int uses : {1, 2}) {
    const double gap =
        difference(run(op, inputs, DType::float32, options, uses), run(op, inputs, DType::float64, {}, uses));
    worst = gap >= worst || std::isnan(gap) ? gap : worst;
  }
  return worst;
}

/// The worst error of gradcheck_op on the inputs.
inline double worst_gradcheck(const Op& op, const std::vector<Buffer>& inputs, TapeOptions options = {}) {
  std::vector<Tensor> tensors;
  for (const Buffer& input : inputs) {
    tensors.push_back(input.tensor());
  }
  return worst_error(gradcheck_op(op, tensors, options));
}

/// Whether 1, 2, 3 and 4 threads give the same bits.
inline bool same_bits_for_all_threads(const Op& op, const std::vector<Buffer>& inputs) {
  const int before = num_threads();
  std::vector<Outcome> outcomes;
  for (const int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    outcomes.push_back(run(op, inputs, DType::float32));
  }
  set_num_threads(before);
  return std::all_of(outcomes.begin(), outcomes.end(), [&](const Outcome& outcome) {
    return outcome.value == outcomes[0].value && outcome.gradients == outcomes[0].gradients;
  });
}

}  // namespace minillm::compare
