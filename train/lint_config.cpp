// Lints of settings and of counts: what can be told before anything runs.

#include "core/kernels/rope.h"
#include "core/text.h"
#include "nn/init.h"
#include "nn/part_table.h"
#include "nn/stages.h"
#include "train/lint.h"

#include <cmath>
#include <cstdlib>

namespace minillm {

namespace {

using Findings = std::vector<Finding>;

constexpr double high_lr = 3e-3;        // from here on Post-LN stalls with warm-up too
constexpr double ordinary_lr = 1e-3;    // from here on it stalls without
constexpr int64_t enough_warmup = 100;  // steps
constexpr int64_t deep_for_post = 12;   // layers; an essay's numbers, docs/lints.md
constexpr int64_t very_deep_for_post = 24;
constexpr int64_t deep_without_ffn = 4;  // layers
constexpr int64_t many_writes = 8;       // to the residual stream
constexpr int64_t large_model_width = 4096;
constexpr double stated_margin = 0.10;
constexpr double gap_margin = 0.01;

bool is_gated(const ModelConfig& model) {
  return get_part(ffn_kinds(), "model.ffn", model.ffn).unit != nullptr;
}

bool is_zero_centered(const ModelConfig& model) {
  return get_part(norm_kinds(), "model.norm", model.norm).gain_offset != 0;
}

/// Whether a gain of the model's norms, queries' and keys' among them, is stored as it is and not as its distance
/// from 1.
bool has_plain_gains(const ModelConfig& model) {
  const bool normalises_heads = has_full_attention(model) && (model.qk_norm || model.qkv_norm);
  const bool has_norms = model.norm != "none" && (has_sublayer_norms(model) || model.final_norm == 1);
  return (has_norms || normalises_heads) && !is_zero_centered(model);
}

bool is_post(const ModelConfig& model) {
  return norm_position_of(model) == NormPosition::post;
}

void lint_residual(const ModelConfig& model, Findings& findings) {
  if (model.residual == "none" && model.n_layers > 1) {
    findings.push_back(make_finding("E01", fmt::format("{} layers are stacked without x + F(x)", model.n_layers),
                                    "deep stacks lose their gradient and make all tokens alike: "
                                    "model.residual = \"plain\""));
  }
  const int64_t writes = residual_writes(model);
  ModelConfig scaled = model;
  scaled.residual_out_init = "scaled";
  const bool adds_raw_writes = model.residual == "plain" && norm_position_of(model) == NormPosition::pre;
  if (model.residual_out_init == "plain" && adds_raw_writes && writes >= many_writes) {
    findings.push_back(
        make_finding("E20",
                     fmt::format("{} writes of equal size let the residual stream grow to {:.2f} times its start",
                                 writes, std::sqrt(1.0 + static_cast<double>(writes))),
                     fmt::format("model.residual_out_init = \"scaled\" starts o_proj and down_proj at {:.5f}",
                                 residual_out_init(scaled).value)));
  }
}

void lint_norm(const Config& config, Findings& findings) {
  const ModelConfig& model = config.model;
  const double lr = config.optim.lr;
  const int64_t warmup = config.optim.warmup_steps;
  if (model.norm == "batchnorm") {
    findings.push_back(make_finding("E04",
                                    "a token's output depends on the other sentences of its batch, and one token "
                                    "normalised by itself is 0",
                                    "model.norm = \"rmsnorm\" or \"layernorm\""));
  }
  if (is_post(model) && (lr >= high_lr || (lr >= ordinary_lr && warmup < enough_warmup))) {
    findings.push_back(make_finding(
        "E06",
        fmt::format("optim.lr is {} after {} steps of warm-up: such runs tend to stall at the unigram loss", lr,
                    warmup),
        "model.norm_position = \"pre\", or optim.lr below 0.003 and optim.warmup_steps = 100"));
  }
  const bool is_very_deep = model.n_layers > very_deep_for_post;
  if (is_post(model) && model.n_layers > deep_for_post) {
    findings.push_back(make_finding("E35",
                                    fmt::format("{} layers, {}more than {}: gradients at the start differ more from "
                                                "layer to layer the deeper it is (thresholds not verified here)",
                                                model.n_layers, is_very_deep ? "far " : "", deep_for_post),
                                    "model.norm_position = \"pre\" or \"sublayer_output\""));
  }
  const bool grows = model.residual != "none" && model.residual != "gated" && model.norm != "none";
  if (norm_position_of(model) == NormPosition::pre && model.final_norm == 0 && grows) {
    findings.push_back(make_finding("E19", "what the head reads grows with every layer", "model.final_norm = true"));
  }
  const bool in_linear_layers = has_linear_attention(model);
  const bool decays = config.optim.weight_decay > 0 && config.optim.decay_norms;
  if (decays && (has_plain_gains(model) || in_linear_layers)) {
    findings.push_back(make_finding("E13",
                                    fmt::format("weight decay {} pulls gains to 0{}", config.optim.weight_decay,
                                                in_linear_layers ? ", those of linear layers too" : ""),
                                    in_linear_layers ? "optim.decay_norms = false"
                                                     : "optim.decay_norms = false, or model.norm = "
                                                       "\"zero_centered_rmsnorm\", whose gains it pulls to 1"));
  }
}

void lint_mixer(const ModelConfig& model, Findings& findings) {
  const bool rotates_all = 2 * kernels::rope_pairs(model.rope_fraction, model.head_dim) == model.head_dim;
  if (model.attention == "mla" && model.position == "rope" && rotates_all) {
    findings.push_back(make_finding("E42",
                                    "all of each head is rotated, so all heads share one key and the latent gives "
                                    "values alone",
                                    "model.rope_fraction = 0.5"));
  }
}

void lint_ffn(const ModelConfig& model, Findings& findings) {
  if (model.ffn == "none") {
    if (model.n_layers > deep_without_ffn) {
      findings.push_back(make_finding("E32",
                                      fmt::format("{} layers of attention alone: each averages tokens and none "
                                                  "works on one of them",
                                                  model.n_layers),
                                      "compare the similarity of tokens, which minillm lint RUN reports"));
    }
    return;
  }
  const int64_t step = model.d_model >= large_model_width ? 256 : 16;
  if (is_gated(model) && model.d_ff == 4 * model.d_model) {
    findings.push_back(
        make_finding("E11", fmt::format("three matrices of width 4 d have half as many parameters more than two"),
                     fmt::format("model.d_ff = {}, 8 d / 3 rounded up to {}", gated_width(model.d_model, step), step)));
  }
  if (model.d_ff % step != 0) {
    findings.push_back(make_finding("E12", fmt::format("model.d_ff = {} is no multiple of {}", model.d_ff, step),
                                    fmt::format("model.d_ff = {}", (model.d_ff + step - 1) / step * step)));
  }
}

/// What the classic estimate, made for GPT-2, knows nothing of.
std::vector<std::string> modern_parts(const ModelConfig& model) {
  std::vector<std::string> parts;
  if (unit_kind(model) != nullptr) {  // of a mixture: its experts
    parts.emplace_back("gated FFN");
  }
  if (model.ffn == "moe") {
    parts.emplace_back("mixture");
  }
  if (has_full_attention(model) && model.n_kv_heads < model.n_heads) {
    parts.emplace_back("shared keys and values");
  }
  if (model.attention == "mla") {
    parts.emplace_back("latent");
  }
  if (model.attention_gate != "none") {
    parts.emplace_back("gate on attention");
  }
  if (stream_count(model) > 1) {
    parts.emplace_back("widened stream");
  }
  if (!model.tie_embeddings) {
    parts.emplace_back("second table");
  }
  if (has_linear_attention(model)) {
    parts.emplace_back("linear layer");
  }
  return parts;
}

/// Whether a stated size must be compared with a counted one.
bool is_size_stated(const Config& config) {
  return config.release.stated_parameters > 0;
}

void lint_stated(const Config& config, const TensorCount& ledger, Findings& findings) {
  const double stated = config.release.stated_parameters;
  const auto counted = static_cast<double>(ledger.parameters);
  if (is_size_stated(config) && std::abs(counted / stated - 1) > stated_margin) {
    findings.push_back(
        make_finding("E30",
                     fmt::format("release.stated_parameters is {}, the sizes give {}, {:.3g} times that",
                                 thousands(std::llround(stated)), thousands(std::llround(counted)), counted / stated),
                     "count a plan before it is written down: minillm check"));
  }
}

}  // namespace

Findings lint_config(const Config& config) {
  Findings findings;
  lint_residual(config.model, findings);
  lint_norm(config, findings);
  lint_mixer(config.model, findings);
  lint_ffn(config.model, findings);
  if (is_size_stated(config)) {  // else nothing has to be counted
    lint_stated(config, make_ledger(Transformer(config.model), config.release), findings);
  }
  return findings;
}

Findings lint_count(const TensorCount& count) {
  Findings findings;
  if (count.buffers > 0) {
    findings.push_back(make_finding("E25",
                                    fmt::format("{} elements of the file were never trained", thousands(count.buffers)),
                                    fmt::format("{} - {} = {} parameters", thousands(count.file_elements()),
                                                thousands(count.buffers), thousands(count.parameters))));
  }
  return findings;
}

Findings lint_ledger(const Config& config, const Ledger& ledger, int64_t context) {
  const ModelConfig& model = config.model;
  Findings findings = lint_count(ledger);
  lint_stated(config, ledger, findings);
  const auto parameters = static_cast<double>(ledger.parameters);
  const double gap = static_cast<double>(ledger.gap()) / parameters;
  const std::vector<std::string> modern = modern_parts(model);
  if (ledger.classic_estimate > 0 && (std::abs(gap) > gap_margin || !modern.empty())) {
    const std::string off = std::abs(gap) > gap_margin ? fmt::format("{:.2f} % of {} too {}", 100 * std::abs(gap),
                                                                     of_all, gap > 0 ? "low" : "high")
                                                       : "near by chance";
    findings.push_back(make_finding(
        "E26", fmt::format("12 L d^2 + V d is {}{}{}", off, modern.empty() ? "" : "; it knows no ", join(modern, ", ")),
        "the items of the gap add up to it"));
  }
  const double crossover = ledger.crossover_context();
  if (crossover > 0 && static_cast<double>(context) > crossover) {
    findings.push_back(
        make_finding("E27",
                     fmt::format("behind {} tokens attention's scores cost {:.3g} times the FFN's matrices",
                                 thousands(context), static_cast<double>(context) / crossover),
                     fmt::format("they are equal at {:.6g} tokens", crossover)));
  }
  if (const TensorGroup* ffn = ledger.find("ffn")) {
    findings.push_back(make_finding("E28", fmt::format("the FFN has {:.2f} % of {}", 100 * ffn->share, of_all),
                                    fmt::format("{:.2f} % of {}", 100 * ffn->text_share, of_text)));
  }
  if (ledger.active_parameters < ledger.text_parameters) {
    findings.push_back(make_finding("E29",
                                    fmt::format("{} parameters, of which {} work on a token",
                                                thousands(ledger.text_parameters), thousands(ledger.active_parameters)),
                                    "name both"));
  }
  findings.push_back(make_finding("E31",
                                  model.tie_embeddings ? "input and output share one table, counted once"
                                                       : "input and output have a table each, both counted",
                                  ""));
  return findings;
}

}  // namespace minillm
