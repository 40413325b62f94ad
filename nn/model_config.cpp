#include "nn/model_config.h"

#include "core/error.h"
#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/part_table.h"
#include "nn/residual.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace minillm {

namespace {

using Problems = std::vector<Problem>;

constexpr std::array<std::string_view, 4> position_words = {"rope", "learned", "sinusoidal", "none"};
constexpr std::array<std::string_view, 2> gate_words = {"none", "elementwise"};
constexpr std::array<std::string_view, 2> out_init_words = {"scaled", "plain"};

template <class Words>
std::string join(const Words& words) {
  std::string text;
  for (std::string_view word : words) {
    text += text.empty() ? "" : ", ";
    text += word;
  }
  return text;
}

template <class Words>
void check_word(Problems& problems, std::string key, const std::string& word, const Words& accepted) {
  if (std::find(std::begin(accepted), std::end(accepted), word) == std::end(accepted)) {
    problems.push_back({.where = std::move(key),
                        .what = "unknown word",
                        .found = "\"" + word + "\"",
                        .expected = "one of " + join(accepted)});
  }
}

template <class Row>
void check_part(Problems& problems, std::string key, const std::string& word, std::span<const Row> table) {
  if (find_part(table, word) == nullptr) {
    problems.push_back({.where = std::move(key),
                        .what = "unknown word",
                        .found = "\"" + word + "\"",
                        .expected = "one of " + part_names(table)});
  }
}

void check_words(Problems& problems, const ModelConfig& config) {
  check_part(problems, "model.norm", config.norm, norm_kinds());
  check_part(problems, "model.ffn", config.ffn, ffn_kinds());
  check_part(problems, "model.residual", config.residual, residual_kinds());
  check_part(problems, "model.attention", config.attention, mixer_kinds());
  check_word(problems, "model.position", config.position, position_words);
  check_word(problems, "model.norm_position", config.norm_position, norm_positions);
  check_word(problems, "model.attention_gate", config.attention_gate, gate_words);
  check_word(problems, "model.residual_out_init", config.residual_out_init, out_init_words);
}

/// The divisors of `whole` next below and above `near`: "4 or 8".
std::string nearest_divisors(int64_t whole, int64_t near) {
  int64_t below = 0;
  int64_t above = 0;
  for (int64_t candidate = 1; candidate <= whole; ++candidate) {
    if (whole % candidate == 0) {
      below = candidate <= near ? candidate : below;
      above = above == 0 && candidate > near ? candidate : above;
    }
  }
  if (below == 0 || above == 0) {
    return std::to_string(std::max(below, above));
  }
  return fmt::format("{} or {}", below, above);
}

void check_at_least_one(Problems& problems, std::string_view key, int64_t value) {
  if (value < 1) {
    problems.push_back(
        {.where = std::string(key), .what = "is too small", .found = std::to_string(value), .expected = "at least 1"});
  }
}

void check_heads(Problems& problems, ModelConfig& config) {
  if (config.n_heads < 1 || config.d_model < 1) {
    return;  // reported already
  }
  if (config.head_dim == 0) {
    if (config.d_model % config.n_heads != 0) {
      problems.push_back({.where = "model.n_heads",
                          .what = fmt::format("d_model {} is not a multiple of the number of heads", config.d_model),
                          .found = std::to_string(config.n_heads),
                          .expected = nearest_divisors(config.d_model, config.n_heads),
                          .hint = "or set model.head_dim"});
      return;
    }
    config.head_dim = config.d_model / config.n_heads;
  }
  if (config.n_kv_heads < 1 || config.n_heads % config.n_kv_heads != 0) {
    problems.push_back({.where = "model.n_kv_heads",
                        .what = fmt::format("does not divide n_heads {}", config.n_heads),
                        .found = std::to_string(config.n_kv_heads),
                        .expected = nearest_divisors(config.n_heads, config.n_kv_heads)});
  }
  const bool whole_head_rotates = config.rope_fraction == 1;
  if (config.position == "rope" && whole_head_rotates && config.head_dim % 2 != 0) {
    problems.push_back({.where = "model.head_dim",
                        .what = "rotary positions turn pairs, so a head needs an even width",
                        .found = std::to_string(config.head_dim),
                        .expected = fmt::format("{} or {}", config.head_dim - 1, config.head_dim + 1),
                        .hint = "or another model.position, or model.rope_fraction below 1"});
  }
}

void check_numbers(Problems& problems, const ModelConfig& config) {
  if (config.vocab_size < 2) {
    problems.push_back({.where = "model.vocab_size",
                        .what = "is too small",
                        .found = std::to_string(config.vocab_size),
                        .expected = "at least 2",
                        .hint = "leave it out to take the data's"});
  }
  check_at_least_one(problems, "model.d_model", config.d_model);
  check_at_least_one(problems, "model.n_layers", config.n_layers);
  check_at_least_one(problems, "model.n_heads", config.n_heads);
  check_at_least_one(problems, "model.max_seq_len", config.max_seq_len);
  if (config.ffn != "none") {
    check_at_least_one(problems, "model.d_ff", config.d_ff);
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    problems.push_back({.where = "model.dropout",
                        .what = "is not a probability below 1",
                        .found = fmt::format("{}", config.dropout),
                        .expected = "0 <= dropout < 1"});
  }
  if (!(config.norm_eps > 0) || !std::isfinite(config.norm_eps)) {
    problems.push_back({.where = "model.norm_eps",
                        .what = "is not a positive number",
                        .found = fmt::format("{}", config.norm_eps),
                        .expected = "e.g. 1e-6"});
  }
  if (!(config.rope_theta > 0) || !std::isfinite(config.rope_theta)) {
    problems.push_back({.where = "model.rope_theta",
                        .what = "is not a positive number",
                        .found = fmt::format("{}", config.rope_theta),
                        .expected = "e.g. 10000"});
  }
  if (!(config.rope_fraction > 0 && config.rope_fraction <= 1)) {
    problems.push_back({.where = "model.rope_fraction",
                        .what = "is not a share of the head",
                        .found = fmt::format("{}", config.rope_fraction),
                        .expected = "0 < rope_fraction <= 1"});
  }
}

}  // namespace

void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  Problems problems;
  check_words(problems, config);
  if (const NormKind* norm = find_part(norm_kinds(), config.norm); norm != nullptr && config.norm_eps == 0) {
    config.norm_eps = norm->default_eps;
  }
  if (config.final_norm < 0) {
    config.final_norm = config.norm_position == "post" ? 0 : 1;
  }
  if (config.vocab_size == 0) {
    config.vocab_size = data_vocab_size;
  }
  if (config.max_seq_len == 0) {
    config.max_seq_len = seq_len;
  }
  if (config.n_kv_heads == 0) {
    config.n_kv_heads = config.n_heads;
  }
  check_numbers(problems, config);
  check_heads(problems, config);
  if (config.vocab_size >= 2 && config.vocab_size < data_vocab_size) {
    problems.push_back({.where = "model.vocab_size",
                        .what = "is smaller than the data's vocabulary",
                        .found = std::to_string(config.vocab_size),
                        .expected = fmt::format("at least {}", data_vocab_size),
                        .hint = "leave it out to take the data's"});
  }
  if (config.max_seq_len >= 1 && config.max_seq_len < seq_len) {
    problems.push_back({.where = "model.max_seq_len",
                        .what = "is smaller than data.seq_len",
                        .found = std::to_string(config.max_seq_len),
                        .expected = fmt::format("at least {}", seq_len)});
  }
  if (!config.causal) {
    problems.push_back({.where = "model.causal",
                        .what = "a model that sees the next token cannot learn to predict it",
                        .found = "false",
                        .expected = "true with data.objective = \"next\""});
  }
  fail_if_any(problems);
}

}  // namespace minillm
