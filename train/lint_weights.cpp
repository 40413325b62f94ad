// Lints of a trained model, by looking into one forward pass.

#include "generate/layer_statistics.h"
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
Extreme largest(const ModelStatistics& statistics, Value value) {
  Extreme found;
  for (size_t layer = 0; layer < statistics.layers.size(); ++layer) {
    const double here = value(statistics.layers[layer]);
    if (!(here <= found.value) && !std::isnan(here)) {
      found = {here, static_cast<int64_t>(layer)};
    }
  }
  return found;
}

void lint_tokens(const ModelStatistics& statistics, Findings& findings) {
  const double last = statistics.layers.back().token_cosine;
  if (last > alike) {
    findings.push_back(make_finding(
        "E02", fmt::format("behind the last layer two tokens of a sequence have a cosine of {:.4f} on average", last),
        "the residual connection and the FFN keep tokens apart"));
  }
}

void lint_stream(const ModelStatistics& statistics, Findings& findings) {
  const double ratio = statistics.layers.back().stream_rms / statistics.layers.front().stream_rms;
  if (ratio > growth) {
    std::vector<std::string> per_layer;
    for (const LayerStatistics& layer : statistics.layers) {
      per_layer.push_back(fmt::format("{:.3g}", layer.stream_rms));
    }
    findings.push_back(make_finding(
        "E21", fmt::format("{:.1f} times from the first layer to the last; RMS {}", ratio, fmt::join(per_layer, ", ")),
        "model.residual_out_init = \"scaled\" and a final norm bound it"));
  }
}

void lint_ffn(const ModelStatistics& statistics, Findings& findings) {
  const Extreme value = largest(statistics, [](const LayerStatistics& layer) { return layer.ffn_largest; });
  for (const NumberFormat& format : narrow_formats) {
    if (value.value > format.largest) {
      findings.push_back(make_finding(
          "E22",
          fmt::format("layer {} reaches {:.4g}, {} ends at {}", value.layer, value.value, format.name, format.largest),
          "model.ffn = \"swiglu_clamp\" or \"situ_glu\" bounds it"));
    }
  }
  const Extreme dead = largest(statistics, [](const LayerStatistics& layer) { return layer.ffn_dead; });
  if (dead.value > most_dead) {
    findings.push_back(make_finding(
        "E33",
        fmt::format("{:.1f} % of the units of layer {} are 0 for every token looked at", 100 * dead.value, dead.layer),
        "a smooth activation: model.ffn = \"gelu\" or \"swiglu\""));
  }
}

void lint_attention(const ModelStatistics& statistics, Findings& findings) {
  const Extreme share = largest(statistics, [](const LayerStatistics& layer) { return layer.first_token_share; });
  if (share.value > sink_share) {
    findings.push_back(make_finding(
        "E23",
        fmt::format("layer {} gives {:.1f} % of its attention to the first token", share.layer, 100 * share.value),
        "model.attention_gate = \"elementwise\" lets a head say nothing"));
  }
}

void lint_experts(const ModelStatistics& statistics, Findings& findings) {
  Extreme busiest;
  for (size_t layer = 0; layer < statistics.layers.size(); ++layer) {
    for (const double share : statistics.layers[layer].expert_shares) {
      const double times = share * static_cast<double>(statistics.layers[layer].expert_shares.size());
      if (!(times <= busiest.value)) {
        busiest = {times, static_cast<int64_t>(layer)};
      }
    }
  }
  if (busiest.value > uneven) {
    const std::vector<double>& shares = statistics.layers[static_cast<size_t>(busiest.layer)].expert_shares;
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    findings.push_back(
        make_finding("E41",
                     fmt::format("in layer {} one of {} experts gets {:.1f} % of the choices, another {:.1f} %",
                                 busiest.layer, shares.size(), 100 * *most, 100 * *least),
                     "what an expert is not chosen for it does not learn"));
  }
}

/// Gains below half of where they start. Zero-centered ones hold gain - 1.
void lint_gains(const Transformer& model, Findings& findings) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    const bool is_gain = tensor.name.ends_with("norm.weight") && tensor.value.shape.rank() == 1;
    if (!is_gain) {
      continue;
    }
    double mean = 0;
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      mean += tensor.value.at(i) / static_cast<double>(tensor.value.numel());
    }
    const bool zero_centered = model.config().norm == "zero_centered_rmsnorm";
    const bool scale = model.config().norm == "scalenorm" && tensor.value.numel() == 1;
    const double start = scale ? std::sqrt(static_cast<double>(model.config().d_model)) : 1;
    const double gain = zero_centered ? 1 + mean : mean;
    if (gain < pressed_out * start) {
      findings.push_back(
          make_finding("E14", fmt::format("{} has a mean gain of {:.3g}, it began at {:.3g}", tensor.name, gain, start),
                       "optim.decay_norms = false"));
    }
  }
}

/// The logits of the first sequence must not depend on what else is in its batch.
void lint_batch(const Transformer& model, const Sample& sample, Findings& findings) {
  if (sample.count < 2) {
    return;
  }
  Tape together({.record = false, .training = false});
  Tape alone({.record = false, .training = false});
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
    findings.push_back(
        make_finding("E05",
                     fmt::format("logits of one sequence differ by {:.3g} when three others stand beside it, "
                                 "the largest being {:.3g}",
                                 difference, scale),
                     "a norm over tokens or over each token instead of over the batch"));
  }
}

}  // namespace

Findings lint_weights(const Transformer& model, const Loader& validation) {
  Findings findings;
  const Sample sample = sample_of(validation);
  const ModelStatistics statistics = layer_statistics(model, sample.ids, sample.count);
  lint_tokens(statistics, findings);
  lint_batch(model, sample, findings);
  lint_gains(model, findings);
  lint_stream(statistics, findings);
  lint_ffn(statistics, findings);
  lint_attention(statistics, findings);
  lint_experts(statistics, findings);
  return findings;
}

}  // namespace minillm
