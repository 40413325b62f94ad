#pragma once
// Runs an op forward and backward on given values: how tests compare one way of computing it with another.

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "tests/core/qkv_support.h"

#include <functional>
#include <string>
#include <vector>

namespace minillm {

struct OpInput {
  Shape shape;
  std::vector<double> values;
};

inline OpInput random_input(const Shape& shape, const char* name, double scale = 1) {
  return {shape, rounded(random_values(shape.numel(), name, scale))};
}

using Op = std::function<Var(Tape&, const std::vector<Var>&)>;

struct OpRun {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;  ///< of each input
  size_t arena_bytes = 0;
};

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

/// The loss is sum(projection * y) with fixed random weights, so the gradient that reaches y is the projection.
inline OpRun run_op(const Op& op, const std::vector<OpInput>& inputs, DType dtype, TapeOptions options = {}) {
  Tape tape(options);
  std::vector<Buffer> buffers;
  std::vector<Var> variables;
  for (const OpInput& input : inputs) {
    buffers.emplace_back(input.shape, dtype);
    Tensor source = {const_cast<double*>(input.values.data()), input.shape, DType::float64};
    copy_values(source, buffers.back().tensor());
    variables.push_back(tape.variable(buffers.back().tensor()));
  }
  Var y = op(tape, variables);
  OpInput projection = random_input(y.shape(), "projection");
  Buffer projection_buffer(y.shape(), dtype);
  copy_values({projection.values.data(), y.shape(), DType::float64}, projection_buffer.tensor());
  tape.backward(sum_all(mul(y, tape.constant(projection_buffer.tensor()))));
  OpRun run;
  run.value = values_of(y.value());
  for (const Var& variable : variables) {
    run.gradients.push_back(values_of(variable.grad()));
  }
  run.arena_bytes = tape.arena_bytes();
  return run;
}

/// The largest relative_error of the value and of each gradient.
inline double worst_difference(const OpRun& found, const OpRun& expected) {
  double worst = relative_error(found.value, expected.value);
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    worst = std::max(worst, relative_error(found.gradients[i], expected.gradients[i]));
  }
  return worst;
}

/// gradcheck_op on copies of the inputs' values; the worst error.
inline double worst_gradcheck(const Op& op, const std::vector<OpInput>& inputs, TapeOptions options = {}) {
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors;
  for (const OpInput& input : inputs) {
    buffers.emplace_back(input.shape, DType::float64);
    copy_values({const_cast<double*>(input.values.data()), input.shape, DType::float64}, buffers.back().tensor());
    tensors.push_back(buffers.back().tensor());
  }
  return worst_error(gradcheck_op(op, tensors, options));
}

}  // namespace minillm
