#include "nn/stages.h"

#include <fmt/format.h>

#include <string_view>

namespace minillm {

namespace {

std::string shape_text(std::string_view width) {
  return fmt::format("[T, {}]", width);
}

std::string shape_text(int64_t width) {
  return shape_text(std::to_string(width));
}

/// Elements of the parameters under a scope of the tree of names.
int64_t parameters_under(const Transformer& model, std::string_view scope) {
  int64_t count = 0;
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    count += !tensor.is_buffer && tensor.name.starts_with(scope) ? tensor.value.shape.numel() : 0;
  }
  return count;
}

/// What the residual stream is for a token.
std::string stream_text(const ModelConfig& config) {
  const int64_t streams = stream_count(config);
  return streams == 1 ? shape_text(config.d_model) : shape_text(fmt::format("{}, {}", streams, config.d_model));
}

std::string norm_text(const ModelConfig& config) {
  return config.norm == "batchnorm" ? "over all tokens of the batch" : "each token by itself";
}

std::string position_text(const ModelConfig& config) {
  if (config.position == "none") {
    return "none: model.position = \"none\"";
  }
  if (config.position == "rope") {
    return "nothing here: layers with scores rotate queries and keys";
  }
  return config.position == "learned" ? "a learned row a position is added" : "sines and cosines are added";
}

/// One sublayer of a layer with its norm and its way into the residual stream.
struct Half {
  std::string norm;  ///< scopes in the tree of names
  std::string sublayer;
  std::string residual;
  std::string name;  ///< of the sublayer
  std::string what;
};

void add_half(const Transformer& model, const Half& half, std::vector<Stage>& steps) {
  const ModelConfig& config = model.config();
  const NormPosition position = norm_position_of(config);
  const ResidualKind& residual = residual_kind_of(config);
  const std::string row = shape_text(config.d_model);
  const std::string stream = stream_text(config);
  const std::string normed = position == NormPosition::post ? stream : row;
  const Stage norm = {"norm", normed, normed, parameters_under(model, half.norm), norm_text(config)};
  const Stage sublayer = {half.name, row, row, parameters_under(model, half.sublayer), half.what};
  const int64_t of_residual = parameters_under(model, half.residual);
  const int64_t of_write = residual.write_scope.empty()
                               ? 0
                               : parameters_under(model, fmt::format("{}{}", half.residual, residual.write_scope));
  const bool reads = !residual.read.empty();
  const Stage read = {"read", stream, row, of_residual - of_write, std::string(residual.read)};
  const Stage join = {std::string(residual.join), reads ? row : stream, stream, of_write, std::string(residual.write)};
  const bool has_norm = has_sublayer_norms(config);
  if (reads) {
    steps.push_back(read);
  }
  if (has_norm && position == NormPosition::pre) {
    steps.push_back(norm);
  }
  steps.push_back(sublayer);
  if (has_norm && position == NormPosition::sublayer_output) {
    steps.push_back(norm);
  }
  steps.push_back(join);
  if (has_norm && position == NormPosition::post) {
    steps.push_back(norm);
  }
}

}  // namespace

std::vector<Stage> model_stages(const Transformer& model) {
  const ModelConfig& config = model.config();
  const std::string row = shape_text(config.d_model);
  const std::string logits = shape_text(config.vocab_size);
  std::vector<Stage> stages;
  stages.push_back({"embed_tokens", "[T] ids", row, parameters_under(model, "model.embed_tokens."), "a row a token"});
  stages.push_back({"positions", row, row, parameters_under(model, "model.embed_positions."), position_text(config)});
  const int64_t ends = parameters_under(model, "model.stream.");
  if (stream_count(config) > 1 || ends > 0) {
    stages.push_back({"residual stream", row, stream_text(config), ends, "its two ends"});
  }
  stages.push_back({fmt::format("{} layers", config.n_layers), stream_text(config), stream_text(config),
                    parameters_under(model, "model.layers."),
                    fmt::format("{} sublayers write", residual_writes(config))});
  const int64_t norm = parameters_under(model, "model.norm.");
  stages.push_back(
      {"final norm", row, row, norm, config.final_norm == 1 && config.norm != "none" ? norm_text(config) : "none"});
  stages.push_back({"lm_head", row, logits, parameters_under(model, "lm_head."),
                    config.tie_embeddings ? "the table of embed_tokens once more" : "a table of its own"});
  return stages;
}

std::vector<Stage> layer_steps(const Transformer& model, int64_t layer) {
  const ModelConfig& config = model.config();
  const std::string stream = stream_text(config);
  const std::string scope = fmt::format("model.layers.{}.", layer);
  const MixerCost cost = mixer_cost(config, layer);
  const bool is_full = cost.score_width > 0;
  std::vector<Stage> steps;
  steps.push_back({"input", stream, stream, 0, "what the layers before wrote"});
  add_half(model,
           {.norm = scope + "input_layernorm.",
            .sublayer = scope + (is_full ? "self_attn." : "linear_attn."),
            .residual = scope + "attention_residual.",
            .name = is_full ? "token mixer: attention" : "token mixer: linear attention",
            .what = is_full ? "each token sees " + std::string(config.causal ? "itself and those before it" : "all")
                            : "a state of fixed size stands for the past"},
           steps);
  if (config.ffn != "none") {
    add_half(model,
             {.norm = scope + "post_attention_layernorm.",
              .sublayer = scope + "mlp.",
              .residual = scope + "mlp_residual.",
              .name = "FFN",
              .what = "each token by itself"},
             steps);
  }
  return steps;
}

int64_t residual_writes(const ModelConfig& config) {
  return (config.ffn == "none" ? 1 : 2) * config.n_layers;
}

}  // namespace minillm
