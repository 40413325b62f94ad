#pragma once
// What tests of ops share: inputs, a run of an op with its gradients, and comparisons of its versions.

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "tests/support/message_of.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace minillm::test {

using Op = std::function<Var(Tape&, const std::vector<Var>&)>;

inline constexpr TapeOptions composed_ops = {.ops = Ops::composed};
inline constexpr TapeOptions reference_kernels = {.kernels = Kernels::reference};

// --- inputs ----------------------------------------------------------------------------------------------------------

inline void set(const Tensor& tensor, int64_t i, double value) {
  if (tensor.dtype == DType::float64) {
    tensor.as<double>()[i] = value;
  } else {
    tensor.as<float>()[i] = static_cast<float>(value);
  }
}

inline Buffer of(const Shape& shape, const std::vector<double>& values, DType dtype = DType::float64) {
  Buffer buffer(shape, dtype);
  REQUIRE(shape.numel() == static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    set(buffer.tensor(), i, values[static_cast<size_t>(i)]);
  }
  return buffer;
}

/// Uniform in [low, high).
inline Buffer uniform_values(const Shape& shape, double low, double high, uint64_t seed, DType dtype = DType::float64) {
  Buffer buffer(shape, dtype);
  RandomStream stream(random_key(seed, "test input"));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    set(buffer.tensor(), i, low + (high - low) * stream.uniform());
  }
  return buffer;
}

/// Normal values, rounded to float so that both dtypes start from the same numbers; float64.
inline Buffer normal_values(const Shape& shape, uint64_t seed, double spread = 1) {
  Buffer buffer(shape, DType::float64);
  RandomStream stream(random_key(seed, "test"));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    set(buffer.tensor(), i, static_cast<double>(static_cast<float>(spread * stream.normal())));
  }
  return buffer;
}

template <class... Buffers>
std::vector<Buffer> list(Buffers&&... buffers) {
  std::vector<Buffer> all;
  (all.push_back(std::move(buffers)), ...);
  return all;
}

inline std::vector<Tensor> tensors_of(const std::vector<Buffer>& buffers) {
  std::vector<Tensor> tensors;
  for (const Buffer& buffer : buffers) {
    tensors.push_back(buffer.tensor());
  }
  return tensors;
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

// --- a run -----------------------------------------------------------------------------------------------------------

/// The weights that `project` gives the elements of its operand number k: uniform in [-1, 1).
inline std::vector<double> projection_weights(size_t k, int64_t count) {
  RandomStream stream(random_key(k, "projection"));
  std::vector<double> weights;
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(2 * stream.uniform() - 1);
  }
  return weights;
}

/// sum over operands of <operand, its weights>: reaches every element of a gradient with another factor.
struct ProjectionNode final : Node {
  void backward(Tape& tape) override {
    const double dloss = *grad.as<double>();
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Tensor dx = tape.gradient(inputs[k]);
      const std::vector<double> weights = projection_weights(k, dx ? dx.numel() : 0);
      for (size_t i = 0; i < weights.size(); ++i) {
        const int64_t element = static_cast<int64_t>(i);
        set(dx, element, dx.at(element) + dloss * weights[i]);
      }
    }
  }
};

inline Var project(const std::vector<Var>& operands) {
  Tape& tape = operands[0].tape();
  auto& node = tape.make_n<ProjectionNode>("projection", operands, {}, DType::float64, {});
  double sum = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    const std::vector<double> weights = projection_weights(k, operands[k].value().numel());
    for (size_t i = 0; i < weights.size(); ++i) {
      sum += operands[k].value().at(static_cast<int64_t>(i)) * weights[i];
    }
  }
  *node.value.as<double>() = sum;
  return tape.var(node);
}

struct Outcome {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;  // one an input
  size_t bytes_in_use = 0;
};

/// The op's value on inputs converted to `dtype`, and the gradients of a projection of its result. With `uses` 2 it is
/// applied twice to the same inputs, so that its backward meets gradients it must add to.
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
  Outcome outcome = {.value = values_of(results[0].value()), .gradients = {}, .bytes_in_use = tape.bytes_in_use()};
  const Var loss = project(results);
  tape.release_unsaved(0, loss);  // backward must do with what the op saved
  tape.backward(loss);
  for (const Var& variable : variables) {
    outcome.gradients.push_back(values_of(variable.grad()));
  }
  return outcome;
}

// --- comparisons -----------------------------------------------------------------------------------------------------

/// |got - want| <= tolerance * max(1, |want|), element by element; names the first that is not.
inline void check_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool close = std::abs(got[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i]));
    if (!close) {
      CAPTURE(i);
      CAPTURE(got[i]);
      CAPTURE(want[i]);
      CHECK(close);
      return;
    }
  }
}

inline void check_close(const Outcome& got, const Outcome& want, double tolerance) {
  check_close(got.value, want.value, tolerance);
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    CAPTURE(i);
    check_close(got.gradients[i], want.gradients[i], tolerance);
  }
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

/// Gradcheck of an op in double must stay below 1e-6.
inline void check_gradients(const Op& op, const std::vector<Buffer>& inputs, TapeOptions options = {}) {
  for (const GradcheckResult& result : gradcheck_op(op, tensors_of(inputs), options)) {
    CAPTURE(result.name);
    CAPTURE(result.index);
    CAPTURE(result.analytic);
    CAPTURE(result.numeric);
    CHECK(result.error < 1e-6);
  }
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

}  // namespace minillm::test
