// Lints of a trained model, by looking into one forward pass.

#include "core/atomic_file.h"
#include "nn/attention.h"
#include "nn/ffn.h"
#include "train/lint.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

using Findings = std::vector<Finding>;

constexpr int64_t sequences = 4;
constexpr int64_t most_positions = 128;  // what is looked at grows with their square
constexpr double alike = 0.98;
constexpr double batch_tolerance = 1e-3;  // of the largest logit; kernels round otherwise for other shapes
constexpr double pressed_out = 0.5;
constexpr double growth = 4;
constexpr double sink_share = 0.30;
constexpr double most_dead = 0.10;
constexpr double uneven = 2;  // times an even share
constexpr double choices_per_expert = 10;

struct NumberFormat {
  const char* name;
  double largest;
};

constexpr NumberFormat narrow_formats[] = {{"fp16", 65504}, {"fp8 e4m3, unscaled,", 448}};

/// The first windows of the data, cut to most_positions.
struct Sample {
  std::vector<int32_t> ids = {};  // [sequences, T]
  int64_t count = 0;
  int64_t T = 0;
};

Sample sample_of(const Loader& validation) {
  Sample sample{.count = std::min(sequences, validation.windows())};
  const Batch batch = validation.batch(0, sample.count);
  sample.T = std::min(batch.seq_len, most_positions);
  for (int64_t b = 0; b < sample.count; ++b) {
    const auto start = batch.inputs.begin() + b * batch.seq_len;
    sample.ids.insert(sample.ids.end(), start, start + sample.T);
  }
  return sample;
}

/// A layer and what was found there, for a message.
struct Extreme {
  double value = std::numeric_limits<double>::quiet_NaN();
  int64_t layer = 0;
};

template <class Value>
Extreme largest(const std::vector<LayerStatistics>& layers, Value value) {
  Extreme found;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const double here = value(layers[layer]);
    if (!(here <= found.value) && !std::isnan(here)) {
      found = {here, static_cast<int64_t>(layer)};
    }
  }
  return found;
}

void lint_tokens(const std::vector<LayerStatistics>& layers, Findings& findings) {
  const double last = layers.back().token_cosine;
  if (last > alike) {
    findings.push_back(make_finding(
        "E02", fmt::format("behind the last layer two tokens of a sequence have a cosine of {:.4f} on average", last),
        "the residual connection and the FFN keep tokens apart"));
  }
}

void lint_stream(const ModelConfig& config, const std::vector<LayerStatistics>& layers, Findings& findings) {
  if (config.residual == "none") {
    return;  // there is none
  }
  const double ratio = layers.back().stream_rms / layers.front().stream_rms;
  if (ratio > growth) {
    std::vector<std::string> per_layer;
    per_layer.reserve(layers.size());
    for (const LayerStatistics& layer : layers) {
      per_layer.push_back(fmt::format("{:.3g}", layer.stream_rms));
    }
    findings.push_back(make_finding(
        "E21", fmt::format("{:.1f} times from the first layer to the last; RMS {}", ratio, fmt::join(per_layer, ", ")),
        "model.residual_out_init = \"scaled\" and a final norm bound it"));
  }
}

void lint_ffn(const std::vector<LayerStatistics>& layers, Findings& findings) {
  const Extreme value = largest(layers, [](const LayerStatistics& layer) { return layer.ffn_largest; });
  for (const NumberFormat& format : narrow_formats) {  // the widest that it exceeds says it all
    if (value.value > format.largest) {
      findings.push_back(make_finding(
          "E22",
          fmt::format("layer {} reaches {:.4g}, {} ends at {}", value.layer, value.value, format.name, format.largest),
          "model.ffn = \"swiglu_clamp\" or \"situ_glu\" bounds it"));
      break;
    }
  }
  const Extreme dead = largest(layers, [](const LayerStatistics& layer) { return layer.ffn_dead; });
  if (dead.value > most_dead) {
    findings.push_back(make_finding(
        "E33",
        fmt::format("{:.1f} % of the units of layer {} are 0 for every token looked at", 100 * dead.value, dead.layer),
        "a lower optim.lr, or an activation that is nowhere flat"));
  }
}

/// What a token behind the first gives it when it attends evenly to what it sees, of T tokens on average.
double even_share(int64_t T) {
  double sum = 0;
  for (int64_t t = 1; t < T; ++t) {
    sum += 1 / static_cast<double>(t + 1);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, T - 1));
}

void lint_attention(const std::vector<LayerStatistics>& layers, int64_t T, Findings& findings) {
  const Extreme share = largest(layers, [](const LayerStatistics& layer) { return layer.first_token_share; });
  if (share.value > std::max(sink_share, 2 * even_share(T))) {
    findings.push_back(make_finding(
        "E23",
        fmt::format("layer {} gives {:.1f} % of its attention to the first token", share.layer, 100 * share.value),
        "model.attention_gate = \"elementwise\" lets a head say nothing"));
  }
}

void lint_experts(const std::vector<LayerStatistics>& layers, int64_t choices, Findings& findings) {
  if (static_cast<double>(choices) < choices_per_expert * static_cast<double>(layers.front().expert_shares.size())) {
    return;  // too few to tell chance from habit
  }
  const Extreme busiest = largest(layers, [](const LayerStatistics& layer) {
    const std::vector<double>& shares = layer.expert_shares;
    return shares.empty() ? std::numeric_limits<double>::quiet_NaN()
                          : *std::max_element(shares.begin(), shares.end()) * static_cast<double>(shares.size());
  });
  if (busiest.value > uneven) {
    const std::vector<double>& shares = layers[static_cast<size_t>(busiest.layer)].expert_shares;
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    findings.push_back(
        make_finding("E41",
                     fmt::format("in layer {} one of {} experts gets {:.1f} % of the choices, another {:.1f} %",
                                 busiest.layer, shares.size(), 100 * *most, 100 * *least),
                     "what an expert is not chosen for it does not learn"));
  }
}

/// Gains below half of where they start. One that starts at 0 is stored as its distance from 1.
void lint_gains(const Transformer& model, Findings& findings) {
  for (const Parameter& parameter : model.parameters().parameters()) {
    const std::optional<NormGain> gain = norm_gain(parameter);
    if (gain && gain->mean < pressed_out * gain->start) {
      findings.push_back(make_finding(
          "E14",
          fmt::format("{} has a mean gain of {:.3g}, it began at {:.3g}", parameter.name, gain->mean, gain->start),
          "optim.decay_norms = false"));
    }
  }
}

/// SiLU or a bounded form of it.
bool has_silu_unit(const ModelConfig& config) {
  const FfnKind* kind = unit_kind(config);
  return kind != nullptr &&
         (kind->activation == Activation::silu || std::holds_alternative<BoundedGlu>(gated_unit(config)));
}

bool has_silu_mixer_gate(const ModelConfig& config, int64_t layer) {
  const bool is_linear = mixer_cost(config, layer).score_width == 0;
  return (is_linear ? config.gdn_gate : config.attention_gate_activation) == "silu";
}

/// Of gates by SiLU the one that is outside of (0, 1) most; layers without one have none.
template <class Gate>
void lint_gate(std::string_view name, const std::vector<LayerStatistics>& layers, Gate gate, Findings& findings) {
  const Extreme outside =
      largest(layers, [&](const LayerStatistics& layer) { return gate(layer).below_0 + gate(layer).above_1; });
  if (std::isnan(outside.value)) {
    return;
  }
  const GateStatistics worst = gate(layers[static_cast<size_t>(outside.layer)]);
  findings.push_back(make_finding(
      "E15",
      fmt::format(
          "in layer {} {} is below 0 for {:.1f} % of its values and above 1 for {:.1f} %, with a mean of {:.3g}",
          outside.layer, name, 100 * worst.below_0, 100 * worst.above_1, worst.mean),
      "only a sigmoid's values lie in (0, 1) and tell how open it is"));
}

/// The logits of the first sequence must not depend on what else is in its batch, in training as well; with dropout
/// they differ there anyway.
void lint_batch(const Transformer& model, const Sample& sample, Findings& findings) {
  if (sample.count < 2) {
    return;
  }
  const TapeOptions options = {.record = false, .training = model.config().dropout == 0};
  Tape together(options);
  Tape alone(options);
  const std::span<const int32_t> ids = sample.ids;
  Var in_batch = model.logits(together, ids, sample.count);
  Var by_itself = model.logits(alone, ids.first(static_cast<size_t>(sample.T)), 1);
  double difference = 0;
  double scale = 0;
  for (int64_t i = 0; i < by_itself.value().numel(); ++i) {
    const double expected = by_itself.value().at(i);
    difference = std::max(difference, std::abs(in_batch.value().at(i) - expected));
    scale = std::max(scale, std::abs(expected));
  }
  if (difference > batch_tolerance * scale) {
    findings.push_back(make_finding("E05",
                                    fmt::format("logits of one sequence differ by {:.3g} when {} more stand beside it, "
                                                "the largest being {:.3g}",
                                                difference, sample.count - 1, scale),
                                    "a norm over tokens or over each token instead of over the batch"));
  }
}

}  // namespace

std::vector<Finding> lint_gates(const ModelConfig& config, const std::vector<LayerStatistics>& layers) {
  std::vector<Finding> findings;
  if (has_silu_unit(config)) {
    lint_gate(
        "the FFN's gate", layers, [](const LayerStatistics& layer) { return layer.ffn_gate; }, findings);
  }
  const auto mixer_gate = [&](const LayerStatistics& layer) {
    return has_silu_mixer_gate(config, &layer - layers.data()) ? layer.mixer_gate : GateStatistics();
  };
  lint_gate("the mixer's gate", layers, mixer_gate, findings);
  return findings;
}

LintReport lint_weights(const Transformer& model, const Loader& validation) {
  const Sample sample = sample_of(validation);
  LintReport report{.layers = layer_statistics(model, sample.ids, sample.count)};
  const std::vector<LayerStatistics>& layers = report.layers;
  Findings& findings = report.findings;
  lint_tokens(layers, findings);
  lint_batch(model, sample, findings);
  lint_gains(model, findings);
  lint_stream(model.config(), layers, findings);
  lint_ffn(layers, findings);
  lint_attention(layers, sample.T, findings);
  lint_experts(layers, sample.count * sample.T * model.config().moe_top_k, findings);
  return report;
}

void write_layers(const std::string& path, const std::vector<LayerStatistics>& layers) {
  std::vector<JsonObject> objects;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    objects.push_back(to_json(layer, layers[layer]));
  }
  JsonObject json;
  json.add("layers", objects);
  write_file_atomically(path, json.text() + "\n");
}

}  // namespace minillm
