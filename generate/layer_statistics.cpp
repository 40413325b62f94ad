#include "generate/layer_statistics.h"

#include "generate/layer_nodes.h"
#include "nn/tensor_count.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace minillm {

namespace {

/// Mean cosine over all pairs of the T vectors of each of B sequences: with unit vectors u_t,
/// (|sum_t u_t|^2 - T) / (T (T - 1)).
double mean_cosine(const std::vector<double>& values, int64_t B, int64_t T) {
  if (T < 2) {
    return not_there;
  }
  const auto width = static_cast<int64_t>(values.size()) / (B * T);
  double total = 0;
  for (int64_t b = 0; b < B; ++b) {
    std::vector<double> sum(static_cast<size_t>(width), 0.0);
    for (int64_t t = 0; t < T; ++t) {
      const double* vector = values.data() + (b * T + t) * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) {
        squares += vector[i] * vector[i];
      }
      const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
      for (int64_t i = 0; i < width; ++i) {
        sum[static_cast<size_t>(i)] += scale * vector[i];
      }
    }
    double length = 0;
    for (const double component : sum) {
      length += component * component;
    }
    total += (length - static_cast<double>(T)) / static_cast<double>(T * (T - 1));
  }
  return total / static_cast<double>(B);
}

/// How many of the last axis' positions are 0 in every row.
int64_t dead_units(const std::vector<double>& hidden, int64_t width) {
  int64_t dead = 0;
  for (int64_t unit = 0; unit < width; ++unit) {
    bool alive = false;
    for (size_t i = static_cast<size_t>(unit); i < hidden.size() && !alive; i += static_cast<size_t>(width)) {
      alive = hidden[i] != 0;
    }
    dead += alive ? 0 : 1;
  }
  return dead;
}

/// How the k choices of each row of scores [R, E] fall on the E experts.
std::vector<double> choices(const Tensor& scores, int64_t k) {
  const int64_t experts = scores.shape[1];
  std::vector<int32_t> chosen(static_cast<size_t>(scores.shape[0] * k));
  Tape tape({.record = false});
  top_k(tape.constant(scores), k, chosen);
  std::vector<double> shares(static_cast<size_t>(experts), 0.0);
  for (const int32_t expert : chosen) {
    shares[static_cast<size_t>(expert)] += 1 / static_cast<double>(chosen.size());
  }
  return shares;
}

/// RMS over the elements of all of them; NaN of none.
double rms_of(const std::vector<const Node*>& nodes) {
  std::vector<double> values;
  for (const Node* node : nodes) {
    const std::vector<double> own = numbers_of(node->value);
    values.insert(values.end(), own.begin(), own.end());
  }
  return values.empty() ? not_there : moments(values).rms;
}

/// Of the values of several gates as of one.
GateStatistics gate_statistics(const std::vector<const Node*>& gates) {
  double sum = 0;
  int64_t count = 0;
  int64_t below_0 = 0;
  int64_t above_1 = 0;
  for (const Node* gate : gates) {
    for (const double value : numbers_of(gate->value)) {
      sum += value;
      count += 1;
      below_0 += value < 0 ? 1 : 0;
      above_1 += value > 1 ? 1 : 0;
    }
  }
  const auto share = [count](int64_t part) { return static_cast<double>(part) / static_cast<double>(count); };
  return {.mean = sum / static_cast<double>(count), .below_0 = share(below_0), .above_1 = share(above_1)};
}

/// Of a feed-forward network, or of all experts that worked.
void add_hidden(const std::vector<const Node*>& networks, LayerStatistics& statistics) {
  double largest = 0;
  int64_t units = 0;
  int64_t dead = 0;
  for (const Node* node : networks) {
    const std::vector<double> hidden = numbers_of(node->value);
    const auto [low, high] = std::minmax_element(hidden.begin(), hidden.end());
    largest = std::max({largest, -*low, *high});
    units += node->value.shape[-1];
    dead += dead_units(hidden, node->value.shape[-1]);
  }
  statistics.ffn_largest = largest;
  statistics.ffn_dead = static_cast<double>(dead) / static_cast<double>(units);
}

LayerStatistics statistics_of(const LayerNodes& nodes, Var stream, const ModelConfig& config) {
  Tape& tape = stream.tape();
  const Shape& shape = stream.shape();  // [B, T, d]
  LayerStatistics statistics;
  const std::vector<double> values = numbers_of(stream.value());
  statistics.stream_rms = moments(values).rms;
  statistics.mean_share = mean_share(values, shape[2]);
  statistics.token_cosine = mean_cosine(values, shape[0], shape[1]);
  if (nodes.probabilities != nullptr) {
    const std::vector<double> scores = numbers_of(nodes.scores->value);
    statistics.largest_score = *std::max_element(scores.begin(), scores.end());
    statistics.first_token_share = first_token_share(numbers_of(nodes.probabilities->value), shape[1]);
  }
  if (nodes.router != nullptr) {
    statistics.expert_shares = choices(nodes.router->value, config.moe_top_k);
  }
  statistics.norm_output = rms_of(nodes.norms);
  if (nodes.mixer_gate != nullptr) {
    statistics.mixer_gate = gate_statistics({nodes.mixer_gate});
  }
  if (!nodes.hidden.empty()) {
    add_hidden(nodes.hidden, statistics);
  }
  if (!nodes.hidden.empty() && unit_kind(config) != nullptr) {
    std::vector<const Node*> gates;
    for (const Node* hidden : nodes.hidden) {
      gates.push_back(&tape.node(hidden->inputs[0]));  // a(gate) b(up)
    }
    statistics.ffn_gate = gate_statistics(gates);
  }
  return statistics;
}

/// The mean of mean / start over the norms of every layer.
void add_gains(const ParameterStore& parameters, std::vector<LayerStatistics>& layers) {
  std::vector<std::vector<double>> gains(layers.size());
  for (const Parameter& parameter : parameters.parameters()) {
    const int64_t layer = layer_of(parameter.name);
    if (const std::optional<NormGain> gain = norm_gain(parameter); gain && layer >= 0) {
      gains[static_cast<size_t>(layer)].push_back(gain->mean / gain->start);
    }
  }
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const std::vector<double>& own = gains[layer];
    const double sum = std::accumulate(own.begin(), own.end(), 0.0);
    layers[layer].norm_gain = own.empty() ? not_there : sum / static_cast<double>(own.size());
  }
}

}  // namespace

Moments moments(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  Moments found{.mean = sum / count, .rms = std::sqrt(squares / count)};
  double deviations = 0;
  for (const double value : values) {
    deviations += (value - found.mean) * (value - found.mean);
  }
  found.std = std::sqrt(deviations / count);
  return found;
}

double first_token_share(std::span<const double> probabilities, int64_t T) {
  const auto rows = static_cast<int64_t>(probabilities.size()) / T;
  double sum = 0;
  int64_t counted = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (row % T != 0) {
      sum += probabilities[static_cast<size_t>(row * T)];
      ++counted;
    }
  }
  return counted == 0 ? not_there : sum / static_cast<double>(counted);
}

double mean_share(const std::vector<double>& values, int64_t width) {
  double total = 0;
  const auto size = static_cast<size_t>(width);
  for (size_t begin = 0; begin < values.size(); begin += size) {
    double sum = 0;
    double squares = 0;
    for (size_t i = begin; i < begin + size; ++i) {
      sum += values[i];
      squares += values[i] * values[i];
    }
    total += squares > 0 ? sum * sum / (squares * static_cast<double>(width)) : 0;
  }
  return total * static_cast<double>(width) / static_cast<double>(values.size());
}

std::optional<NormGain> norm_gain(const Parameter& parameter) {
  if (!parameter.name.ends_with("norm.weight") || parameter.shape.rank() != 1) {
    return std::nullopt;
  }
  NormGain gain;
  for (int64_t i = 0; i < parameter.numel(); ++i) {
    gain.mean += parameter.value.at(i) / static_cast<double>(parameter.numel());
  }
  const double stored_start = parameter.slices.front().init.value;
  const double offset = stored_start == 0 ? 1 : 0;
  return NormGain{gain.mean + offset, stored_start + offset};
}

std::vector<LayerStatistics> layer_statistics(const Transformer& model, std::span<const int32_t> ids,
                                              int64_t batch_size) {
  Tape tape({.ops = Ops::composed, .record = false, .training = false, .retain = true});
  const Trace trace = model.trace(tape, ids, batch_size);
  return statistics_of_pass(model, trace, find_layer_nodes(tape, model.config()));
}

std::vector<LayerStatistics> statistics_of_pass(const Transformer& model, const Trace& trace,
                                                std::span<const LayerNodes> layers) {
  std::vector<LayerStatistics> statistics;
  for (const LayerNodes& nodes : layers) {
    statistics.push_back(statistics_of(nodes, trace.streams[statistics.size() + 1], model.config()));
  }
  add_gains(model.parameters(), statistics);
  return statistics;
}

JsonObject to_json(size_t layer, const LayerStatistics& statistics) {
  JsonObject json;
  json.add("layer", static_cast<int64_t>(layer));
  json.add("stream_rms", statistics.stream_rms);
  json.add("mean_share", statistics.mean_share);
  json.add("token_cosine", statistics.token_cosine);
  json.add("first_token_share", statistics.first_token_share);
  json.add("largest_score", statistics.largest_score);
  json.add("ffn_largest", statistics.ffn_largest);
  json.add("ffn_dead", statistics.ffn_dead);
  json.add("norm_gain", statistics.norm_gain);
  json.add("norm_output", statistics.norm_output);
  for (const auto& [name, gate] :
       {std::pair("ffn_gate", statistics.ffn_gate), std::pair("mixer_gate", statistics.mixer_gate)}) {
    json.add(fmt::format("{}_mean", name), gate.mean);
    json.add(fmt::format("{}_below_0", name), gate.below_0);
    json.add(fmt::format("{}_above_1", name), gate.above_1);
  }
  json.add("expert_shares", statistics.expert_shares);
  return json;
}

}  // namespace minillm
