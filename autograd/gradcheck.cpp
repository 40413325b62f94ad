#include "autograd/gradcheck.h"

#include "core/rng.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm {

namespace {

/// The line x + t * direction through a tensor's values, along which the loss is differentiated.
struct Line {
  int64_t index = -1;             // the element that moves alone; -1: all move, in a random direction
  std::vector<double> direction;  // dx_i / dt
};

std::vector<double> values_of(const Tensor& tensor) {
  const double* data = tensor.as<double>();
  return {data, data + tensor.numel()};
}

/// A random unit vector, so that the step does not grow with the tensor, times max(1, |x_i|) in element i.
Line random_line(const std::vector<double>& x, RandomStream& stream) {
  Line line;
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    line.direction.push_back(stream.normal());
    squares += line.direction[i] * line.direction[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    line.direction[i] *= std::max(1.0, std::abs(x[i])) / std::sqrt(squares);
  }
  return line;
}

Line element_line(const std::vector<double>& x, int64_t index) {
  Line line;
  line.index = index;
  line.direction.assign(x.size(), 0.0);
  line.direction[static_cast<size_t>(index)] = 1.0;
  return line;
}

/// The loss on a line, and its derivative by differences.
class Probe {
 public:
  Probe(const Tensor& tensor, const std::function<double()>& loss)
      : values_(tensor.as<double>()), origin_(values_of(tensor)), loss_(loss) {}
  ~Probe() { std::copy(origin_.begin(), origin_.end(), values_); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  const std::vector<double>& origin() const { return origin_; }

  /// (L(h) - L(-h)) / 2h
  double central(const Line& line, double h) { return (at(line, h) - at(line, -h)) / (2 * h); }

  /// The five-point formula, error of order h^4: exact enough at a step where rounding no longer counts.
  double five_point(const Line& line, double h) { return (4 * central(line, h) - central(line, 2 * h)) / 3; }

  double largest_loss() const { return largest_loss_; }

 private:
  double at(const Line& line, double t) {
    for (size_t i = 0; i < origin_.size(); ++i) {
      values_[i] = origin_[i] + t * line.direction[i];
    }
    const double value = loss_();
    largest_loss_ = std::max(largest_loss_, std::abs(value));
    return value;
  }

  double* values_;
  std::vector<double> origin_;
  const std::function<double()>& loss_;
  double largest_loss_ = 0;
};

double along(const std::vector<double>& gradient, const Line& line) {
  double sum = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    sum += gradient[i] * line.direction[i];
  }
  return sum;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) {
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : std::numeric_limits<double>::infinity();
    if (!std::isfinite(largest)) {
      break;
    }
  }
  return largest;
}

/// `rounding` of the difference says nothing about either side.
double error_of(double a, double n, double scale, double rounding = 0) {
  if (!std::isfinite(a) || !std::isfinite(n)) {
    return std::numeric_limits<double>::infinity();
  }
  const double denominator = std::max({1e-3 * scale, std::abs(a), std::abs(n)});
  return denominator == 0 ? 0.0 : std::max(0.0, std::abs(a - n) - rounding) / denominator;
}

std::vector<Line> lines_through(const std::vector<double>& x, const GradcheckOptions& options, RandomStream& stream) {
  std::vector<Line> lines;
  lines.reserve(static_cast<size_t>(options.directions) + static_cast<size_t>(options.entries));
  for (int i = 0; i < options.directions; ++i) {
    lines.push_back(random_line(x, stream));
  }
  const int64_t elements = static_cast<int64_t>(x.size());
  if (elements <= options.entries) {
    for (int64_t i = 0; i < elements; ++i) {
      lines.push_back(element_line(x, i));
    }
    return lines;
  }
  for (int i = 0; i < options.entries; ++i) {
    lines.push_back(element_line(x, static_cast<int64_t>(stream.below(static_cast<uint64_t>(elements)))));
  }
  return lines;
}

double step_of(const std::vector<double>& x, const Line& line, double step) {
  return line.index < 0 ? step : step * std::max(1.0, std::abs(x[static_cast<size_t>(line.index)]));
}

struct Difference {
  double error;
  double numeric;
};

/// Rounding, curvature or a wrong gradient? A formula of higher order has less of curvature's error, a longer step less
/// of rounding's, and a wrong gradient stays wrong. The best of them counts: across a kink all are worse.
/// `rounding` is what a central difference at `step` may be off by, 64 epsilon / step times the loss. At the longest
/// step a hundredth of that is left, and of the 64 only 8 are used: close to the weights of five_point, 3/2 in all.
Difference refine(Probe& probe, const Line& line, double step, double a, double scale, double rounding,
                  Difference best) {
  constexpr double longest = 100;
  for (const double factor : {1.0, 10.0, longest}) {
    const double numeric = probe.five_point(line, factor * step);
    // Taken off where it is smallest only: at a shorter step it would hide faults.
    const double error = error_of(a, numeric, scale, factor == longest ? rounding / (8 * factor) : 0);
    best = error < best.error ? Difference{error, numeric} : best;
  }
  return best;
}

/// `magnitude`: the size of what the loss is computed from, when the loss itself is smaller.
GradcheckResult check_tensor(const GradcheckTensor& tensor, const std::function<double()>& loss, double magnitude,
                             const GradcheckOptions& options) {
  check(tensor.value.shape == tensor.analytic.shape, "gradcheck of {}: the gradient has shape {}, the values {}",
        tensor.name, tensor.analytic.shape, tensor.value.shape);
  Probe probe(tensor.value, loss);
  RandomStream stream(random_key(options.seed, "gradcheck", tensor.name));
  const std::vector<double> gradient = values_of(tensor.analytic);
  const std::vector<Line> lines = lines_through(probe.origin(), options, stream);
  std::vector<double> numeric;
  numeric.reserve(lines.size());
  double largest = largest_of(gradient);
  for (const Line& line : lines) {
    numeric.push_back(probe.central(line, step_of(probe.origin(), line, options.step)));
  }
  largest = std::max(largest, largest_of(numeric));
  // What rounding alone does to a difference of two losses. A tensor whose gradient is smaller throughout has none (the
  // bias of a key projection, which softmax cancels): a ratio of two roundings would say nothing.
  const double size = std::max(magnitude, probe.largest_loss());
  const double rounding = 64 * std::numeric_limits<double>::epsilon() * size / options.step;
  GradcheckResult worst = {.name = tensor.name};
  if (largest <= rounding) {
    return worst;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const double a = along(gradient, lines[i]);
    Difference difference = {error_of(a, numeric[i], largest), numeric[i]};
    if (difference.error > 1e-8 && std::isfinite(difference.error)) {
      const double step = step_of(probe.origin(), lines[i], options.step);
      difference = refine(probe, lines[i], step, a, largest, rounding, difference);
    }
    if (difference.error >= worst.error) {
      worst = {.name = tensor.name,
               .error = difference.error,
               .analytic = a,
               .numeric = difference.numeric,
               .index = lines[i].index};
    }
  }
  return worst;
}

/// sum of projection * y in double: the loss of an op's check, made without the ops under test.
struct ProjectionNode final : Node {
  NodeId y;
  const double* projection;

  void backward(Tape& tape) override {
    const Tensor dy = tape.gradient(y);
    double* d = dy.as<double>();
    for (int64_t i = 0; i < dy.numel(); ++i) {
      d[i] += *grad.as<double>() * projection[i];
    }
  }
};

Var project(Var y, const std::vector<double>& projection) {
  Tape& tape = y.tape();
  auto& node = tape.make<ProjectionNode>("projection", {y}, {}, DType::float64, {});
  node.y = y.id();
  node.projection = projection.data();
  *node.value.as<double>() = 0;
  return tape.var(node);
}

/// Runs the op on variables that share storage with `inputs`.
std::vector<Var> variables_of(Tape& tape, const std::vector<Tensor>& inputs) {
  std::vector<Var> variables;
  variables.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    variables.push_back(tape.variable(input));
  }
  return variables;
}

}  // namespace

std::vector<GradcheckResult> gradcheck(const std::vector<GradcheckTensor>& tensors, const std::function<double()>& loss,
                                       const GradcheckOptions& options) {
  std::vector<GradcheckResult> results;
  results.reserve(tensors.size());
  for (const GradcheckTensor& tensor : tensors) {
    results.push_back(check_tensor(tensor, loss, 0.0, options));
  }
  return results;
}

std::vector<GradcheckResult> gradcheck_op(const std::function<Var(Tape&, const std::vector<Var>&)>& op,
                                          const std::vector<Tensor>& inputs, TapeOptions tape_options,
                                          const GradcheckOptions& options) {
  Tape tape(tape_options);
  const std::vector<Var> variables = variables_of(tape, inputs);
  const Var y = op(tape, variables);
  const std::vector<double> y_start = values_of(y.value());
  RandomStream stream(random_key(options.seed, "gradcheck projection"));
  std::vector<double> projection(y_start.size());
  double magnitude = 0;
  for (size_t i = 0; i < projection.size(); ++i) {
    projection[i] = stream.normal();
    magnitude += std::abs(projection[i] * y_start[i]);
  }
  tape.backward(project(y, projection));

  std::vector<Buffer> analytic;
  std::vector<GradcheckTensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& gradient = variables[i].node().grad;
    analytic.emplace_back(inputs[i].shape, DType::float64);
    if (gradient) {
      copy_values(gradient, analytic[i].tensor());
    }
    tensors.push_back({fmt::format("input {}", i), inputs[i], analytic[i].tensor()});
  }

  tape_options.record = false;
  Tape forward_tape(tape_options);
  // The projection of what changed, not of y: the same derivative, and far less rounding.
  const auto loss = [&]() {
    forward_tape.clear();
    const Var moved = op(forward_tape, variables_of(forward_tape, inputs));
    const double* y_moved = moved.value().as<double>();
    double sum = 0;
    for (size_t i = 0; i < projection.size(); ++i) {
      sum += projection[i] * (y_moved[i] - y_start[i]);
    }
    return sum;
  };
  std::vector<GradcheckResult> results;
  results.reserve(tensors.size());
  for (const GradcheckTensor& tensor : tensors) {
    results.push_back(check_tensor(tensor, loss, magnitude, options));
  }
  return results;
}

double worst_error(const std::vector<GradcheckResult>& results) {
  double worst = 0;
  for (const GradcheckResult& result : results) {
    worst = std::max(worst, result.error);
  }
  return worst;
}

}  // namespace minillm
