#pragma once
// What tests of ops share: inputs, a run of an op with its gradients, comparisons that name the first wrong element.

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "core/rng.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace minillm::testing {

using Op = std::function<Var(Tape&, const std::vector<Var>&)>;

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
inline Buffer random(const Shape& shape, double low, double high, uint64_t seed, DType dtype = DType::float64) {
  Buffer buffer(shape, dtype);
  RandomStream stream(random_key(seed, "test input"));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    set(buffer.tensor(), i, low + (high - low) * stream.uniform());
  }
  return buffer;
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values.push_back(tensor.at(i));
  }
  return values;
}

/// |got - want| <= tolerance * max(1, |want|), element by element.
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

struct Outcome {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;
};

/// Runs an op on inputs converted to `dtype` and takes the gradients of sum(projection * result), with a projection
/// that is the same for every path.
inline Outcome run(const Op& op, const std::vector<Tensor>& inputs, DType dtype, TapeOptions options = {}) {
  Tape tape(options);
  std::vector<Buffer> storage;
  std::vector<Var> variables;
  for (const Tensor& input : inputs) {
    storage.emplace_back(input.shape, dtype);
    copy_values(input, storage.back().tensor());
    variables.push_back(tape.variable(storage.back().tensor()));
  }
  const Var y = op(tape, variables);
  const Buffer projection = random(y.shape(), -1, 1, 99, dtype);
  tape.backward(sum_all(mul(y, tape.constant(projection.tensor()))));
  Outcome outcome = {values_of(y.value()), {}};
  for (Var variable : variables) {
    outcome.gradients.push_back(values_of(variable.grad()));
  }
  return outcome;
}

inline void check_close(const Outcome& got, const Outcome& want, double tolerance) {
  check_close(got.value, want.value, tolerance);
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    CAPTURE(i);
    check_close(got.gradients[i], want.gradients[i], tolerance);
  }
}

inline std::vector<Tensor> tensors_of(const std::vector<Buffer>& buffers) {
  std::vector<Tensor> tensors;
  for (const Buffer& buffer : buffers) {
    tensors.push_back(buffer.tensor());
  }
  return tensors;
}

/// Gradcheck of an op in double must stay below 1e-6.
inline void check_gradients(const Op& op, const std::vector<Buffer>& inputs, TapeOptions options = {}) {
  std::vector<Tensor> tensors = tensors_of(inputs);
  for (const GradcheckResult& result : gradcheck_op(op, tensors, options)) {
    CAPTURE(result.name);
    CAPTURE(result.index);
    CAPTURE(result.analytic);
    CAPTURE(result.numeric);
    CHECK(result.error < 1e-6);
  }
}

template <class... Buffers>
std::vector<Buffer> list(Buffers&&... buffers) {
  std::vector<Buffer> all;
  (all.push_back(std::move(buffers)), ...);
  return all;
}

/// The message of the Error that `body` throws; empty when it throws none.
template <class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace minillm::testing
