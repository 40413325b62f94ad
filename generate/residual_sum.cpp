#include "generate/residual_sum.h"

#include "nn/residual.h"
#include "nn/tensor_count.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace minillm {

namespace {

double largest_size(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

/// x + F(x) of a plain residual connection, the stream first.
bool is_stream_addition(const Node& node) {
  return std::string_view(node.op) == "add" && std::string_view(node.scope).ends_with("_residual");
}

/// Whether `node` is made of the stream by products alone, the stream's side first.
bool multiplies(Tape& tape, const Node* node, NodeId stream) {
  while (node->id != stream && std::string_view(node->op) == "mul") {
    node = &tape.node(node->inputs[0]);
  }
  return node->id == stream;
}

/// Row of the matrix less the mean of its rows, for each prediction: matrix [V, d] -> [T - 1, d]
std::vector<double> centred_rows(const Tensor& matrix, std::span<const int32_t> next) {
  const int64_t V = matrix.shape[0];
  const int64_t d = matrix.shape[1];
  std::vector<double> mean(static_cast<size_t>(d), 0.0);
  for (int64_t i = 0; i < V * d; ++i) {
    mean[static_cast<size_t>(i % d)] += matrix.at(i) / static_cast<double>(V);
  }
  std::vector<double> rows;
  for (const int32_t id : next) {
    for (int64_t i = 0; i < d; ++i) {
      rows.push_back(matrix.at(id * d + i) - mean[static_cast<size_t>(i)]);
    }
  }
  return rows;
}

}  // namespace

std::vector<StreamAddition> stream_additions(const Trace& trace) {
  Tape& tape = trace.streams.back().tape();
  const NodeId embedding = trace.streams.front().id();
  std::vector<StreamAddition> additions;
  for (const Node* node = &trace.streams.back().node(); node->id != embedding; node = &tape.node(node->inputs[0])) {
    if (!is_stream_addition(*node)) {
      return {};
    }
    const std::string_view scope = node->scope;
    additions.push_back({layer_of(scope), scope.ends_with(".mlp_residual"), &tape.node(node->inputs[1])});
  }
  std::reverse(additions.begin(), additions.end());
  return additions;
}

std::string why_no_sum(const ModelConfig& config) {
  if (config.residual != "plain") {
    return fmt::format("model.residual = \"{}\": {}", config.residual, residual_kind_of(config).write);
  }
  return fmt::format("model.norm_position = \"{}\": a norm stands behind each addition", config.norm_position);
}

ResidualSum residual_sum(const Trace& trace, std::span<const StreamAddition> additions) {
  std::vector<double> sum = numbers_of(trace.streams.front().value());
  for (const StreamAddition& addition : additions) {
    const std::vector<double> write = numbers_of(addition.write->value);
    std::transform(sum.begin(), sum.end(), write.begin(), sum.begin(), std::plus<>());
  }
  const std::vector<double> last = numbers_of(trace.streams.back().value());
  std::transform(sum.begin(), sum.end(), last.begin(), sum.begin(), std::minus<>());
  return {.difference = largest_size(sum), .largest = largest_size(last)};
}

NextTokenLogit::NextTokenLogit(const Transformer& model, const Trace& trace, std::span<const int32_t> ids)
    : predictions_(static_cast<int64_t>(ids.size()) - 1),
      hidden_(numbers_of(trace.hidden.value())),
      readout_(centred_rows(model.head().value, ids.subspan(1))) {
  const Var stream = trace.streams.back();
  if (!multiplies(stream.tape(), &trace.hidden.node(), stream.id())) {
    return;
  }
  factors_ = numbers_of(stream.value());
  std::transform(hidden_.begin(), hidden_.end(), factors_.begin(), factors_.begin(),
                 [](double out, double in) { return in == 0 ? 0 : out / in; });
}

double NextTokenLogit::whole() const {
  return sum(hidden_, std::vector<double>(readout_.size(), 1.0));
}

double NextTokenLogit::of(const Tensor& values) const {
  return factors_.empty() ? not_there : sum(numbers_of(values), factors_);
}

double NextTokenLogit::sum(const std::vector<double>& values, const std::vector<double>& factors) const {
  double total = 0;
  for (size_t i = 0; i < readout_.size(); ++i) {
    total += values[i] * factors[i] * readout_[i];
  }
  return total / static_cast<double>(predictions_);
}

}  // namespace minillm
