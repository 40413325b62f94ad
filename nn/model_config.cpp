#include "nn/model_config.h"

#include "core/text.h"
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
void check_word(Problems& problems, std::string key, const std::string& word, const Words& accepted) {
  const std::vector<std::string> words(std::begin(accepted), std::end(accepted));
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    problems.push_back({.where = std::move(key),
                        .what = "unknown word",
                        .found = "\"" + word + "\"",
                        .expected = words.size() == 1 ? words.front() : "one of " + join(words),
                        .hint = did_you_mean(word, words)});
  }
}

template <class Row>
void check_part(Problems& problems, std::string key, const std::string& word, std::span<const Row> table) {
  std::vector<std::string_view> names;
  for (const Row& row : table) {
    names.push_back(row.name);
  }
  check_word(problems, std::move(key), word, names);
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
  for (int64_t small = 1; small * small <= whole; ++small) {
    for (const int64_t divisor : {small, whole / small}) {
      const bool divides = whole % divisor == 0;
      below = divides && divisor <= near ? std::max(below, divisor) : below;
      above = divides && divisor > near && (above == 0 || divisor < above) ? divisor : above;
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
  if (config.vocab_size == 0) {
    problems.push_back({.where = "model.vocab_size",
                        .what = "is not set, and there is no data to take it from",
                        .hint = "set it, or data.path to a file of `minillm prepare`"});
  } else if (config.vocab_size < 2) {
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
  const bool norm_is_known = find_part(norm_kinds(), config.norm) != nullptr;  // else there is no default to speak of
  if (norm_is_known && (!(config.norm_eps > 0) || !std::isfinite(config.norm_eps))) {
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

/// Sizes are 31-bit numbers each, but their products are counted in 64 bits: parameters, and values of a context.
void check_countable(Problems& problems, const ModelConfig& config) {
  constexpr double most_parameters = 1e15;
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  const double d = real(config.d_model);
  const double heads = 2.0 * (real(config.n_heads) + real(config.n_kv_heads)) * real(config.head_dim);
  const double layer = d * (2.0 * heads + 3.0 * real(config.d_ff));
  const double tables = d * (2.0 * real(config.vocab_size) + real(config.max_seq_len));
  const double parameters = tables + real(config.n_layers) * layer;
  const double context = real(config.n_layers) * (heads + d) * real(config.max_seq_len);
  if (parameters > most_parameters || context > most_parameters) {
    problems.push_back({.where = "model.d_model",
                        .what = "the model is too large to be counted",
                        .found = fmt::format("about {:.1e} parameters, {:.1e} values a context", parameters, context),
                        .expected = fmt::format("at most {:.0e} of each", most_parameters)});
  }
}

}  // namespace

void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  fail_if_any(derive_and_check(config, data_vocab_size, seq_len));
}

std::vector<Problem> derive_and_check(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
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
  check_countable(problems, config);
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
  return problems;
}

}  // namespace minillm
