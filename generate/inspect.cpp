#include "generate/inspect.h"

#include "generate/layer_nodes.h"
#include "generate/residual_sum.h"
#include "nn/tensor_count.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

constexpr int64_t most_map_tokens = 256;
constexpr int64_t most_map_weights = 8'000'000;

double squares_of(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    sum += tensor.at(i) * tensor.at(i);
  }
  return sum;
}

/// |dL/dx|; NaN where backward did not reach the node, or there is none.
double gradient_length(Var state) {
  return state && state.node().grad ? std::sqrt(squares_of(state.node().grad)) : not_there;
}

/// Mean over the rows [T] of -sum p ln p.
double mean_entropy(std::span<const double> probabilities, int64_t T) {
  double sum = 0;
  for (const double p : probabilities) {
    sum -= p > 0 ? p * std::log(p) : 0;
  }
  return sum / static_cast<double>(T);
}

/// The same where every key that a query sees gets as much.
double largest_entropy(bool causal, int64_t T) {
  double sum = 0;
  for (int64_t t = 0; t < T; ++t) {
    sum += std::log(static_cast<double>(causal ? t + 1 : T));
  }
  return sum / static_cast<double>(T);
}

/// What the softmax of a layer [1, H, T, T] says: each head's numbers, and its weights of the first N tokens.
void add_attention(const Tensor& probabilities, int64_t N, LayerInspection& layer) {
  const int64_t H = probabilities.shape[1];
  const int64_t T = probabilities.shape[2];
  const std::vector<double> all = numbers_of(probabilities);
  for (int64_t h = 0; h < H; ++h) {
    const std::span<const double> head(all.data() + h * T * T, static_cast<size_t>(T * T));
    layer.heads.push_back({.entropy = mean_entropy(head, T), .first_token_share = first_token_share(head, T)});
    for (int64_t t = 0; t < N; ++t) {
      const auto row = head.begin() + t * T;
      std::transform(row, row + N, std::back_inserter(layer.weights), [](double p) { return static_cast<float>(p); });
    }
  }
}

/// Of every layer's parameters, and of all.
void add_parameter_gradients(const ParameterStore& parameters, Inspection& inspection) {
  std::vector<double> of_layers(inspection.layers.size(), 0.0);
  double all = 0;
  for (const Parameter& parameter : parameters.parameters()) {
    const double squares = squares_of(parameter.grad);
    const int64_t layer = layer_of(parameter.name);
    all += squares;
    if (layer >= 0) {
      of_layers[static_cast<size_t>(layer)] += squares;
    }
  }
  inspection.gradient_norm = std::sqrt(all);
  for (size_t layer = 0; layer < of_layers.size(); ++layer) {
    inspection.layers[layer].parameter_gradient = std::sqrt(of_layers[layer]);
  }
}

/// The loss of the next tokens, with the gradients that it leaves in the tape and in the parameters.
void run_backward(Transformer& model, const Trace& trace, std::span<const int32_t> ids, Inspection& inspection) {
  std::vector<int32_t> next(ids.begin() + 1, ids.end());
  next.push_back(-1);  // what comes behind the text is not known
  Var loss = model.loss(trace.hidden, next);
  inspection.loss = loss.item();
  model.parameters().zero_gradients();
  loss.tape().backward(loss);
  model.parameters().finish_gradients();
  add_parameter_gradients(model.parameters(), inspection);
  inspection.embedding_gradient = gradient_length(trace.states.front());
  for (size_t layer = 0; layer < inspection.layers.size(); ++layer) {
    inspection.layers[layer].stream_gradient = gradient_length(trace.states[layer + 1]);
  }
}

/// `logit`: null where no next token is predicted.
StreamWrite write_of(const Tensor& values, const NextTokenLogit* logit) {
  return {.rms = moments(numbers_of(values)).rms, .logit = logit == nullptr ? not_there : logit->of(values)};
}

void add_writes(const Trace& trace, const ModelConfig& config, const NextTokenLogit* logit, Inspection& inspection) {
  const std::vector<StreamAddition> additions = stream_additions(trace);
  if (additions.empty()) {
    inspection.sum.reason = why_no_sum(config);
    return;
  }
  inspection.sum = residual_sum(trace, additions);
  inspection.embedding_write = write_of(trace.streams.front().value(), logit);
  for (const StreamAddition& addition : additions) {
    LayerInspection& layer = inspection.layers[static_cast<size_t>(addition.layer)];
    (addition.is_ffn ? layer.ffn : layer.mixer) = write_of(addition.write->value, logit);
  }
}

std::string why_no_loss(const ModelConfig& config, int64_t T) {
  if (!config.causal) {
    return "model.causal = false: every position sees the token that it would have to predict";
  }
  return T < 2 ? "a single token has no next one" : "";
}

}  // namespace

Inspection inspect(Transformer& model, std::span<const int32_t> ids, int64_t map_tokens) {
  const ModelConfig& config = model.config();
  Inspection inspection;
  inspection.tokens = static_cast<int64_t>(ids.size());
  inspection.map_tokens = std::min(map_tokens, inspection.tokens);
  inspection.largest_entropy = largest_entropy(config.causal, inspection.tokens);
  inspection.no_loss = why_no_loss(config, inspection.tokens);
  const bool predicts = inspection.no_loss.empty();
  if (predicts) {
    model.parameters().allocate_gradients();
  }
  Tape tape({.ops = Ops::composed, .record = predicts, .training = false, .retain = true});
  const Trace trace = model.trace(tape, ids, 1);
  const std::vector<LayerNodes> nodes = find_layer_nodes(tape, config);
  const std::vector<LayerStatistics> statistics = statistics_of_pass(model, trace, nodes);
  inspection.embedding = moments(numbers_of(trace.streams.front().value()));
  for (size_t l = 0; l < nodes.size(); ++l) {
    LayerInspection layer{.statistics = statistics[l]};
    layer.stream = moments(numbers_of(trace.streams[l + 1].value()));
    if (nodes[l].probabilities != nullptr) {
      add_attention(nodes[l].probabilities->value, inspection.map_tokens, layer);
    }
    inspection.layers.push_back(std::move(layer));
  }
  if (!predicts) {
    add_writes(trace, config, nullptr, inspection);
    return inspection;
  }
  const NextTokenLogit logit(model, trace, ids);
  inspection.next_token_logit = logit.whole();
  add_writes(trace, config, &logit, inspection);
  run_backward(model, trace, ids, inspection);
  return inspection;
}

int64_t tokens_for_maps(const ModelConfig& config, int64_t T) {
  const double of_a_head =
      static_cast<double>(most_map_weights) / static_cast<double>(config.n_layers * config.n_heads);
  const auto fitting = static_cast<int64_t>(std::sqrt(of_a_head));
  return std::min({T, most_map_tokens, std::max<int64_t>(1, fitting)});
}

}  // namespace minillm
