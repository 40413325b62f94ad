#include "train/config_keys.h"

#include "core/text.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

constexpr double at_least_one = 1;
// What derive_and_check takes for norm_eps and the bounds of units in either type.
constexpr double least_float = static_cast<double>(std::numeric_limits<float>::min());
constexpr double most_float = static_cast<double>(std::numeric_limits<float>::max());
constexpr double most_exact = 9007199254740992.0;  // 2^53: integers a double holds exactly

// Rows of [model]; of another section once that is set.
ConfigKey size_key(const char* name, ConfigField (*field)(Config&), double most = most_size) {
  return ConfigKey{.section = "model", .name = name, .field = field, .low = at_least_one, .high = most};
}

ConfigKey count_key(const char* name, ConfigField (*field)(Config&)) {
  return ConfigKey{.section = "model", .name = name, .field = field, .low = 0, .high = most_size};
}

ConfigKey plain_key(const char* name, ConfigField (*field)(Config&), std::vector<std::string> words = {}) {
  return ConfigKey{.section = "model", .name = name, .field = field, .words = std::move(words)};
}

ConfigKey number_key(const char* name, ConfigField (*field)(Config&), double low, double high, bool low_open,
                     bool high_open) {
  return ConfigKey{.section = "model",
                   .name = name,
                   .field = field,
                   .low = low,
                   .high = high,
                   .low_open = low_open,
                   .high_open = high_open};
}

ConfigKey positive_float_key(const char* name, ConfigField (*field)(Config&)) {
  return ConfigKey{.section = "model", .name = name, .field = field, .low = least_float, .high = most_float};
}

std::vector<ConfigKey> model_keys() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  ConfigKey vocab_size = size_key("vocab_size", [](Config& c) -> ConfigField { return &c.model.vocab_size; });
  vocab_size.low = 2;  // one token leaves nothing to predict
  return {
      vocab_size,
      size_key("d_model", [](Config& c) -> ConfigField { return &c.model.d_model; }),
      size_key(
          "n_layers", [](Config& c) -> ConfigField { return &c.model.n_layers; }, most_layers),
      size_key("n_heads", [](Config& c) -> ConfigField { return &c.model.n_heads; }),
      size_key("n_kv_heads", [](Config& c) -> ConfigField { return &c.model.n_kv_heads; }),
      size_key("head_dim", [](Config& c) -> ConfigField { return &c.model.head_dim; }),
      size_key("d_ff", [](Config& c) -> ConfigField { return &c.model.d_ff; }),
      size_key("max_seq_len", [](Config& c) -> ConfigField { return &c.model.max_seq_len; }),
      plain_key("tie_embeddings", [](Config& c) -> ConfigField { return &c.model.tie_embeddings; }),
      plain_key("bias", [](Config& c) -> ConfigField { return &c.model.bias; }),
      plain_key("causal", [](Config& c) -> ConfigField { return &c.model.causal; }),
      number_key(
          "dropout", [](Config& c) -> ConfigField { return &c.model.dropout; }, 0, 1, false, true),
      plain_key("position", [](Config& c) -> ConfigField { return &c.model.position; },
                {"rope", "learned", "sinusoidal", "none"}),
      number_key(
          "rope_theta", [](Config& c) -> ConfigField { return &c.model.rope_theta; }, 0, infinity, true, true),
      number_key(
          "rope_fraction", [](Config& c) -> ConfigField { return &c.model.rope_fraction; }, 0, 1, true, false),
      plain_key("norm", [](Config& c) -> ConfigField { return &c.model.norm; }),
      positive_float_key("norm_eps", [](Config& c) -> ConfigField { return &c.model.norm_eps; }),
      plain_key("norm_position", [](Config& c) -> ConfigField { return &c.model.norm_position; },
                {"pre", "post", "sublayer_output"}),
      plain_key("final_norm", [](Config& c) -> ConfigField { return OptionalBool{&c.model.final_norm}; }),
      plain_key("ffn", [](Config& c) -> ConfigField { return &c.model.ffn; }),
      positive_float_key("ffn_limit", [](Config& c) -> ConfigField { return &c.model.ffn_limit; }),
      positive_float_key("ffn_alpha", [](Config& c) -> ConfigField { return &c.model.ffn_alpha; }),
      positive_float_key("ffn_gate_bound", [](Config& c) -> ConfigField { return &c.model.ffn_gate_bound; }),
      positive_float_key("ffn_up_bound", [](Config& c) -> ConfigField { return &c.model.ffn_up_bound; }),
      size_key(
          "moe_experts", [](Config& c) -> ConfigField { return &c.model.moe_experts; }, most_experts),
      size_key(
          "moe_top_k", [](Config& c) -> ConfigField { return &c.model.moe_top_k; }, most_experts),
      plain_key("moe_unit", [](Config& c) -> ConfigField { return &c.model.moe_unit; }),
      count_key("moe_shared_d_ff", [](Config& c) -> ConfigField { return &c.model.moe_shared_d_ff; }),
      plain_key("moe_shared_gate", [](Config& c) -> ConfigField { return &c.model.moe_shared_gate; }),
  };
}

std::vector<ConfigKey> residual_and_mixer_keys() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {
      plain_key("residual", [](Config& c) -> ConfigField { return &c.model.residual; }),
      size_key(
          "residual_streams", [](Config& c) -> ConfigField { return &c.model.residual_streams; }, most_streams),
      size_key("residual_rank", [](Config& c) -> ConfigField { return &c.model.residual_rank; }),
      count_key("residual_block", [](Config& c) -> ConfigField { return &c.model.residual_block; }),
      plain_key("residual_out_init", [](Config& c) -> ConfigField { return &c.model.residual_out_init; },
                {"scaled", "plain"}),
      plain_key("attention", [](Config& c) -> ConfigField { return &c.model.attention; }),
      size_key("full_attention_every", [](Config& c) -> ConfigField { return &c.model.full_attention_every; }),
      plain_key("qk_norm", [](Config& c) -> ConfigField { return &c.model.qk_norm; }),
      plain_key("qkv_norm", [](Config& c) -> ConfigField { return &c.model.qkv_norm; }),
      plain_key("qk_norm_over", [](Config& c) -> ConfigField { return &c.model.qk_norm_over; }, {"head", "width"}),
      number_key(
          "qk_clip", [](Config& c) -> ConfigField { return &c.model.qk_clip; }, 0, infinity, false, true),
      plain_key("attention_gate", [](Config& c) -> ConfigField { return &c.model.attention_gate; }),
      plain_key("attention_gate_activation",
                [](Config& c) -> ConfigField { return &c.model.attention_gate_activation; }, {"sigmoid", "silu"}),
      plain_key("attention_gate_position", [](Config& c) -> ConfigField { return &c.model.attention_gate_position; },
                {"attended", "q", "k", "v", "output"}),
      count_key("mla_q_rank", [](Config& c) -> ConfigField { return &c.model.mla_q_rank; }),
      size_key("mla_kv_rank", [](Config& c) -> ConfigField { return &c.model.mla_kv_rank; }),
      size_key("gdn_key_heads", [](Config& c) -> ConfigField { return &c.model.gdn_key_heads; }),
      size_key("gdn_value_heads", [](Config& c) -> ConfigField { return &c.model.gdn_value_heads; }),
      size_key("gdn_key_dim", [](Config& c) -> ConfigField { return &c.model.gdn_key_dim; }),
      size_key("gdn_value_dim", [](Config& c) -> ConfigField { return &c.model.gdn_value_dim; }),
      plain_key("gdn_gate", [](Config& c) -> ConfigField { return &c.model.gdn_gate; }, {"silu", "sigmoid"}),
      plain_key("gdn_form", [](Config& c) -> ConfigField { return &c.model.gdn_form; }, {"chunked", "recurrent"}),
  };
}

// The ranges of [optim] are those of problems_of(OptimConfig), which also compares keys with each other.
std::vector<ConfigKey> data_and_optim_keys() {
  return {
      {"data", "path", [](Config& c) -> ConfigField { return &c.data.path; }},
      {"data", "seq_len", [](Config& c) -> ConfigField { return &c.data.seq_len; }, at_least_one, most_size},
      {.section = "data",
       .name = "order",
       .field = [](Config& c) -> ConfigField { return &c.data.order; },
       .words = {"shuffled", "sequential"}},
      {.section = "data",
       .name = "objective",
       .field = [](Config& c) -> ConfigField { return &c.data.objective; },
       .words = {"next", "masked"}},
      {"optim", "lr", [](Config& c) -> ConfigField { return &c.optim.lr; }},
      {"optim", "min_lr_ratio", [](Config& c) -> ConfigField { return &c.optim.min_lr_ratio; }},
      {"optim", "warmup_steps", [](Config& c) -> ConfigField { return &c.optim.warmup_steps; }},
      {.section = "optim",
       .name = "schedule",
       .field = [](Config& c) -> ConfigField { return &c.optim.schedule; },
       .words = {"cosine", "linear", "constant", "wsd"}},
      {"optim", "decay_fraction", [](Config& c) -> ConfigField { return &c.optim.decay_fraction; }},
      {"optim", "weight_decay", [](Config& c) -> ConfigField { return &c.optim.weight_decay; }},
      {"optim", "decay_norms", [](Config& c) -> ConfigField { return &c.optim.decay_norms; }},
      {"optim", "beta1", [](Config& c) -> ConfigField { return &c.optim.beta1; }},
      {"optim", "beta2", [](Config& c) -> ConfigField { return &c.optim.beta2; }},
      {"optim", "eps", [](Config& c) -> ConfigField { return &c.optim.eps; }},
      {"optim", "grad_clip", [](Config& c) -> ConfigField { return &c.optim.grad_clip; }},
  };
}

std::vector<ConfigKey> train_and_run_keys() {
  const auto word = [](const char* name, ConfigField (*field)(Config&), std::vector<std::string> words) {
    return ConfigKey{.section = "train", .name = name, .field = field, .words = std::move(words)};
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {
      {"train", "steps", [](Config& c) -> ConfigField { return &c.train.steps; }, 0, most_exact},
      {"train", "batch_size", [](Config& c) -> ConfigField { return &c.train.batch_size; }, at_least_one, most_size},
      {"train", "micro_batch_size", [](Config& c) -> ConfigField { return &c.train.micro_batch_size; }, at_least_one,
       most_size},
      {"train", "seed", [](Config& c) -> ConfigField { return &c.train.seed; }, 0},
      {"train", "eval_every", [](Config& c) -> ConfigField { return &c.train.eval_every; }, 0},
      {"train", "eval_tokens", [](Config& c) -> ConfigField { return &c.train.eval_tokens; }, at_least_one},
      {"train", "checkpoint_every", [](Config& c) -> ConfigField { return &c.train.checkpoint_every; }, 0},
      {"train", "keep_checkpoints", [](Config& c) -> ConfigField { return &c.train.keep_checkpoints; }, at_least_one},
      {"train", "sample_every", [](Config& c) -> ConfigField { return &c.train.sample_every; }, 0},
      {"train", "max_minutes", [](Config& c) -> ConfigField { return &c.train.max_minutes; }, 0, infinity, false, true},
      {"train", "threads", [](Config& c) -> ConfigField { return &c.train.threads; }, 0, most_threads},
      word("dtype", [](Config& c) -> ConfigField { return &c.train.dtype; }, {"float32", "float64"}),
      word("kernels", [](Config& c) -> ConfigField { return &c.train.kernels; }, {"fast", "reference"}),
      word("ops", [](Config& c) -> ConfigField { return &c.train.ops; }, {"fused", "composed"}),
      word("recompute", [](Config& c) -> ConfigField { return &c.train.recompute; }, {"none"}),
      {"run", "name", [](Config& c) -> ConfigField { return &c.run.name; }},
      {"run", "out", [](Config& c) -> ConfigField { return &c.run.out; }},
      {"run", "silence", [](Config& c) -> ConfigField { return &c.run.silence; }},
  };
}

// What sizes may be is said by problems_of(ReleaseConfig), which a config.json of another tool meets too.
std::vector<ConfigKey> release_keys() {
  std::vector<std::string> types;
  for (const StoredType& type : stored_types()) {
    types.emplace_back(type.name);
  }
  std::vector<ConfigKey> keys = {
      plain_key(
          "dtype", [](Config& c) -> ConfigField { return &c.release.dtype; }, std::move(types)),
      number_key(
          "stated_parameters", [](Config& c) -> ConfigField { return &c.release.stated_parameters; }, 0, 1e18, false,
          false),
      plain_key("causal_masks", [](Config& c) -> ConfigField { return &c.release.causal_masks; }),
      plain_key("qkv_bias", [](Config& c) -> ConfigField { return &c.release.qkv_bias; }),
      plain_key("attention_sinks", [](Config& c) -> ConfigField { return &c.release.attention_sinks; }),
      plain_key("router_bias", [](Config& c) -> ConfigField { return &c.release.router_bias; }),
      count_key("mtp_layers", [](Config& c) -> ConfigField { return &c.release.mtp_layers; }),
      count_key("vision_layers", [](Config& c) -> ConfigField { return &c.release.vision_layers; }),
      count_key("vision_d_model", [](Config& c) -> ConfigField { return &c.release.vision_d_model; }),
      count_key("vision_d_ff", [](Config& c) -> ConfigField { return &c.release.vision_d_ff; }),
      count_key("vision_positions", [](Config& c) -> ConfigField { return &c.release.vision_positions; }),
      count_key("vision_patch", [](Config& c) -> ConfigField { return &c.release.vision_patch; }),
      count_key("vision_frames", [](Config& c) -> ConfigField { return &c.release.vision_frames; }),
      count_key("vision_merge", [](Config& c) -> ConfigField { return &c.release.vision_merge; }),
  };
  for (ConfigKey& key : keys) {
    key.section = "release";
  }
  return keys;
}

std::vector<ConfigKey> all_keys() {
  std::vector<ConfigKey> keys = model_keys();
  for (std::vector<ConfigKey> more :
       {residual_and_mixer_keys(), data_and_optim_keys(), train_and_run_keys(), release_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

/// Other programs' names for our keys: no edit distance leads from n_embd to d_model.
struct Alias {
  std::string_view theirs;
  std::string_view ours;
};

constexpr Alias aliases[] = {
    {"learning_rate", "lr"},
    {"max_lr", "lr"},
    {"min_lr", "min_lr_ratio"},
    {"wd", "weight_decay"},
    {"clip", "grad_clip"},
    {"max_grad_norm", "grad_clip"},
    {"betas", "beta1"},
    {"n_embd", "d_model"},
    {"hidden_size", "d_model"},
    {"dim", "d_model"},
    {"n_layer", "n_layers"},
    {"num_layers", "n_layers"},
    {"num_hidden_layers", "n_layers"},
    {"n_head", "n_heads"},
    {"num_attention_heads", "n_heads"},
    {"num_key_value_heads", "n_kv_heads"},
    {"intermediate_size", "d_ff"},
    {"hidden_dim", "d_ff"},
    {"tied", "tie_embeddings"},
    {"tie_word_embeddings", "tie_embeddings"},
    {"rms_norm_eps", "norm_eps"},
    {"block_size", "seq_len"},
    {"context_length", "seq_len"},
    {"max_position_embeddings", "max_seq_len"},
    {"max_iters", "steps"},
    {"max_steps", "steps"},
    {"iters", "steps"},
    {"precision", "dtype"},
    {"device_batch_size", "micro_batch_size"},
    {"gradient_accumulation_steps", "micro_batch_size"},
};

std::string our_name(std::string_view name) {
  for (const Alias& alias : aliases) {
    if (edit_distance(alias.theirs, name) <= alias.theirs.size() / 8) {
      return std::string(alias.ours);
    }
  }
  return {};
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> keys = all_keys();
  return keys;
}

const ConfigKey* find_key(std::string_view section, std::string_view name) {
  for (const ConfigKey& key : config_keys()) {
    if (key.section == section && key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

const ConfigKey* find_key_elsewhere(std::string_view except, std::string_view name) {
  for (const ConfigKey& key : config_keys()) {
    if (key.section != except && key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

std::vector<std::string> section_names() {
  return {"model", "data", "optim", "train", "run", "release"};
}

std::vector<std::string> key_names(std::string_view section) {
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    if (key.section == section) {
      names.push_back(key.name);
    }
  }
  return names;
}

std::string advice_for_unknown_key(std::string_view section, std::string_view name) {
  if (const ConfigKey* key = find_key_elsewhere(section, name)) {
    return fmt::format("that key belongs to [{}]", key->section);
  }
  std::string likely = our_name(name);
  if (likely.empty()) {
    likely = nearest(name, key_names(section));
  }
  for (const std::string& other : section_names()) {
    if (likely.empty()) {
      likely = nearest(name, key_names(other));
    }
  }
  if (likely.empty()) {
    return fmt::format("the keys of [{}] are {}", section, join(key_names(section)));
  }
  if (find_key(section, likely) != nullptr) {
    return fmt::format("did you mean {}?", likely);
  }
  return fmt::format("did you mean {} of [{}]?", likely, find_key_elsewhere(section, likely)->section);
}

}  // namespace minillm
