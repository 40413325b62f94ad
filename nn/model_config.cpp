#include "nn/model_config.h"

#include "core/error.h"
#include "core/kernels/rope.h"
#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/part_table.h"
#include "nn/residual.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

namespace minillm {

namespace {

using Problems = std::vector<Problem>;

void expect(Problems& problems, bool ok, Problem otherwise) {
  if (!ok) {
    problems.push_back(std::move(otherwise));
  }
}

template <class Row>
void expect_word(Problems& problems, std::span<const Row> table, std::string_view key, std::string_view word) {
  expect(problems, find_part(table, word) != nullptr, unknown_part(table, key, word));
}

void expect_size(Problems& problems, int64_t least, std::string_view key, int64_t value, std::string hint = {},
                 int64_t most = most_size) {
  expect(problems, value >= least,
         {.where = std::string(key),
          .what = "is too small",
          .found = std::to_string(value),
          .expected = fmt::format("at least {}", least),
          .hint = std::move(hint)});
  expect(problems, value <= most,
         {.where = std::string(key),
          .what = "is too large",
          .found = std::to_string(value),
          .expected = fmt::format("at most {}", most)});
}

/// Where values are floats, less is flushed to 0, and more is infinite.
void expect_positive_float(Problems& problems, std::string_view key, double value, std::string_view example) {
  constexpr double smallest = static_cast<double>(std::numeric_limits<float>::min());
  constexpr double largest = static_cast<double>(std::numeric_limits<float>::max());
  expect(problems, value >= smallest && value <= largest,
         {.where = std::string(key),
          .what = "is not a positive number that a float holds",
          .found = fmt::format("{}", value),
          .expected = fmt::format("{:.3g} to {:.3g}, {} for example", smallest, largest, example)});
}

/// Words that stand for no part with a factory of its own.
struct Word {
  std::string_view name;
};
constexpr Word position_words[] = {{"rope"}, {"learned"}, {"sinusoidal"}, {"none"}};
constexpr Word gates[] = {{"none"}, {"elementwise"}, {"headwise"}};
constexpr Word gate_activations[] = {{"sigmoid"}, {"silu"}};
constexpr Word norm_spans[] = {{"head"}, {"width"}};
constexpr Word gdn_gates[] = {{"silu"}, {"sigmoid"}};
constexpr Word gdn_forms[] = {{"chunked"}, {"recurrent"}};
constexpr Word out_inits[] = {{"scaled"}, {"plain"}};

/// Whether a positive factor for each head stands before an RMSNorm of that head, which does not depend on its size.
bool normalises_gate_away(const ModelConfig& config) {
  const std::string& position = config.attention_gate_position;
  const bool is_query = position == "q";
  const bool is_key_or_value = position == "k" || position == "v";
  const bool is_normalised = config.qkv_norm || (config.qk_norm && position != "v");
  const bool by_head = config.qk_norm_over == "head" || (is_query ? config.n_heads : config.n_kv_heads) == 1;
  return has_full_attention(config) && config.attention_gate == "headwise" &&
         config.attention_gate_activation == "sigmoid" && (is_query || is_key_or_value) && is_normalised && by_head;
}

/// Words that do not go together.
void check_pairs(Problems& problems, const ModelConfig& config) {
  const ResidualKind* residual = find_part(residual_kinds(), config.residual);
  expect(problems, residual == nullptr || residual->has_post || config.norm_position != "post",
         {.where = "model.norm_position",
          .what = fmt::format("residual = \"{}\" has no sum behind which a norm could stand", config.residual),
          .found = "\"post\"",
          .expected = "\"pre\" or \"sublayer_output\""});
  expect(
      problems, config.causal || !has_linear_attention(config),
      {.where = "model.causal",
       .what = fmt::format("linear layers read from left to right, and attention = \"{}\" has some", config.attention),
       .found = "false",
       .expected = "true"});
  expect(
      problems, !normalises_gate_away(config),
      {.where = "model.attention_gate_position",
       .what = fmt::format("{} divides a factor of a whole head out again", config.qkv_norm ? "qkv_norm" : "qk_norm"),
       .found = fmt::format("\"{}\"", config.attention_gate_position),
       .expected = "\"attended\" or \"output\"",
       .hint = "or model.attention_gate = \"elementwise\""});
}

void check_words(Problems& problems, const ModelConfig& config) {
  expect_word(problems, norm_kinds(), "model.norm", config.norm);
  expect_word(problems, ffn_kinds(), "model.ffn", config.ffn);
  expect_word(problems, residual_kinds(), "model.residual", config.residual);
  std::vector<FfnKind> gated;
  std::copy_if(ffn_kinds().begin(), ffn_kinds().end(), std::back_inserter(gated),
               [](const FfnKind& kind) { return kind.unit != nullptr; });
  expect_word(problems, std::span<const FfnKind>(gated), "model.moe_unit", config.moe_unit);
  expect_word(problems, mixer_kinds(), "model.attention", config.attention);
  expect_word(problems, std::span<const Word>(position_words), "model.position", config.position);
  expect_word(problems, norm_position_kinds(), "model.norm_position", config.norm_position);
  expect_word(problems, std::span<const Word>(gates), "model.attention_gate", config.attention_gate);
  expect_word(problems, std::span<const Word>(gate_activations), "model.attention_gate_activation",
              config.attention_gate_activation);
  expect_word(problems, gate_positions(), "model.attention_gate_position", config.attention_gate_position);
  expect_word(problems, std::span<const Word>(norm_spans), "model.qk_norm_over", config.qk_norm_over);
  expect_word(problems, std::span<const Word>(gdn_gates), "model.gdn_gate", config.gdn_gate);
  expect_word(problems, std::span<const Word>(gdn_forms), "model.gdn_form", config.gdn_form);
  expect_word(problems, std::span<const Word>(out_inits), "model.residual_out_init", config.residual_out_init);
}

void check_numbers(Problems& problems, const ModelConfig& config) {
  expect(problems, config.vocab_size != 0,
         {.where = "model.vocab_size",
          .what = "is not set, and there is no data to take it from",
          .hint = "set it, or data.path to a file of `minillm prepare`"});
  const int64_t set_vocab = config.vocab_size == 0 ? 2 : config.vocab_size;  // one problem, not two
  expect_size(problems, 2, "model.vocab_size", set_vocab, "leave it out to take the data's");
  expect_size(problems, 1, "model.d_model", config.d_model);
  expect_size(problems, 1, "model.n_layers", config.n_layers, "", most_layers);
  expect_size(problems, 1, "model.n_heads", config.n_heads);
  expect_size(problems, 1, "model.max_seq_len", config.max_seq_len);
  expect_size(problems, 1, "model.full_attention_every", config.full_attention_every);
  expect_size(problems, 1, "model.moe_experts", config.moe_experts, "", most_experts);
  expect_size(problems, 1, "model.moe_top_k", config.moe_top_k, "", std::max<int64_t>(1, config.moe_experts));
  expect_size(problems, 0, "model.moe_shared_d_ff", config.moe_shared_d_ff);
  expect_size(problems, 0, "model.mla_q_rank", config.mla_q_rank);
  expect_size(problems, 1, "model.residual_streams", config.residual_streams, "", most_streams);
  expect_size(problems, 0, "model.residual_block", config.residual_block);
  expect_size(problems, 1, "model.d_ff", config.ffn == "none" ? 1 : config.d_ff);
  // Written so that NaN, which fails every comparison, is refused.
  expect(problems, config.dropout >= 0 && config.dropout < 1,
         {.where = "model.dropout",
          .what = "is not a probability below 1",
          .found = fmt::format("{}", config.dropout),
          .expected = "0 <= dropout < 1"});
  expect_positive_float(problems, "model.norm_eps", config.norm_eps, "1e-6");
  expect_positive_float(problems, "model.ffn_alpha", config.ffn_alpha, "1.702");
  expect_positive_float(problems, "model.ffn_gate_bound", config.ffn_gate_bound, "4");
  expect_positive_float(problems, "model.ffn_up_bound", config.ffn_up_bound, "25");
  expect(problems, config.rope_theta > 0 && std::isfinite(config.rope_theta),
         {.where = "model.rope_theta",
          .what = "is not a positive number",
          .found = fmt::format("{}", config.rope_theta),
          .expected = "e.g. 10000"});
  expect(problems, config.rope_fraction > 0 && config.rope_fraction <= 1,
         {.where = "model.rope_fraction",
          .what = "is not a share of the head",
          .found = fmt::format("{}", config.rope_fraction),
          .expected = "0 < rope_fraction <= 1"});
}

/// The divisors of `whole` next below and above `near`: "4 or 8".
std::string nearest_divisors(int64_t whole, int64_t near) {
  int64_t below = 0;
  int64_t above = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor <= near && divisor > below) {
      below = divisor;
    }
    if (divisor > near && (above == 0 || divisor < above)) {
      above = divisor;
    }
  };
  for (int64_t candidate = 1; candidate <= whole / candidate; ++candidate) {
    if (whole % candidate == 0) {
      consider(candidate);
      consider(whole / candidate);
    }
  }
  return below == 0 || above == 0 ? std::to_string(below + above) : fmt::format("{} or {}", below, above);
}

void check_heads(Problems& problems, const ModelConfig& config) {
  if (config.n_heads < 1 || config.d_model < 1) {
    return;  // reported already
  }
  expect_size(problems, 0, "model.head_dim", config.head_dim);
  expect(problems, config.head_dim != 0,
         {.where = "model.n_heads",
          .what = fmt::format("d_model {} is not a multiple of the number of heads", config.d_model),
          .found = std::to_string(config.n_heads),
          .expected = nearest_divisors(config.d_model, config.n_heads),
          .hint = "or set model.head_dim"});
  expect(problems, config.n_kv_heads >= 1 && config.n_heads % config.n_kv_heads == 0,
         {.where = "model.n_kv_heads",
          .what = fmt::format("does not divide n_heads {}", config.n_heads),
          .found = std::to_string(config.n_kv_heads),
          .expected = nearest_divisors(config.n_heads, config.n_kv_heads)});
  const bool whole_head_rotates = config.position == "rope" && config.rope_fraction == 1;
  expect(problems, config.head_dim < 1 || !whole_head_rotates || config.head_dim % 2 == 0,
         {.where = "model.head_dim",
          .what = "rotary positions turn pairs, so a head needs an even width",
          .found = std::to_string(config.head_dim),
          .expected = config.head_dim == 1 ? "2" : fmt::format("{} or {}", config.head_dim - 1, config.head_dim + 1),
          .hint = "or another model.position, or model.rope_fraction below 1"});
  const bool a_part_rotates = config.position == "rope" && config.rope_fraction > 0 && config.rope_fraction < 1;
  expect(problems,
         config.head_dim < 2 || !a_part_rotates || kernels::rope_pairs(config.rope_fraction, config.head_dim) >= 1,
         {.where = "model.rope_fraction",
          .what = fmt::format("rotates no pair of a head of {}, so positions would not show", config.head_dim),
          .found = fmt::format("{}", config.rope_fraction),
          .expected = fmt::format("at least {:.6g}", 2.0 / static_cast<double>(config.head_dim)),
          .hint = "or model.position = \"none\""});
}

/// Sizes that are absent where no part asks for them.
void check_parts(Problems& problems, const ModelConfig& config) {
  const FfnKind* unit = unit_kind(config);
  if (unit != nullptr && unit->default_limit > 0) {
    expect_positive_float(problems, "model.ffn_limit", config.ffn_limit, "10");
  }
  if (config.residual == "gated") {
    expect_size(problems, 1, "model.residual_rank", config.residual_rank);
  }
  if (config.attention == "mla") {
    expect_size(problems, 1, "model.mla_kv_rank", config.mla_kv_rank);
  }
  if (!has_linear_attention(config)) {
    return;
  }
  expect_size(problems, 1, "model.gdn_key_heads", config.gdn_key_heads);
  expect_size(problems, 1, "model.gdn_key_dim", config.gdn_key_dim);
  expect_size(problems, 1, "model.gdn_value_dim", config.gdn_value_dim);
  const bool divides = config.gdn_key_heads >= 1 && config.gdn_value_heads % config.gdn_key_heads == 0;
  expect(problems, config.gdn_key_heads < 1 || (config.gdn_value_heads >= 1 && divides),
         {.where = "model.gdn_value_heads",
          .what = fmt::format("is not a multiple of gdn_key_heads {}", config.gdn_key_heads),
          .found = std::to_string(config.gdn_value_heads),
          .expected = fmt::format("{} for example", 2 * config.gdn_key_heads)});
}

void check_against_data(Problems& problems, const ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  expect(problems, config.vocab_size < 2 || config.vocab_size >= data_vocab_size,
         {.where = "model.vocab_size",
          .what = "is smaller than the data's vocabulary",
          .found = std::to_string(config.vocab_size),
          .expected = fmt::format("at least {}", data_vocab_size),
          .hint = "leave it out to take the data's"});
  expect(problems, config.max_seq_len < 1 || config.max_seq_len >= seq_len,
         {.where = "model.max_seq_len",
          .what = "is smaller than data.seq_len",
          .found = std::to_string(config.max_seq_len),
          .expected = fmt::format("at least {}", seq_len)});
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
  expect(problems, parameters <= most_parameters && context <= most_parameters,
         {.where = "model.d_model",
          .what = "the model is too large to be counted",
          .found = fmt::format("about {:.1e} parameters, {:.1e} values a context", parameters, context),
          .expected = fmt::format("at most {:.0e} of each", most_parameters)});
}

/// What only some parts have stays absent where no part asks for it.
void fill_in_parts(ModelConfig& config) {
  const auto set_if_absent = [](auto& value, auto derived) { value = value == 0 ? derived : value; };
  if (const FfnKind* unit = unit_kind(config)) {
    set_if_absent(config.ffn_limit, unit->default_limit);
  }
  if (config.residual == "gated") {
    set_if_absent(config.residual_rank, std::max<int64_t>(1, config.d_model / 8));
  }
  if (config.attention == "mla") {
    set_if_absent(config.mla_kv_rank, std::max<int64_t>(1, config.d_model / 4));
  }
  if (has_linear_attention(config)) {
    set_if_absent(config.gdn_key_heads, config.n_heads % 2 == 0 ? config.n_heads / 2 : config.n_heads);
    set_if_absent(config.gdn_value_heads, config.n_heads);
    set_if_absent(config.gdn_key_dim, config.head_dim);
    set_if_absent(config.gdn_value_dim, config.head_dim);
  }
}

void fill_in(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  if (config.norm_eps == 0) {
    const NormKind* norm = find_part(norm_kinds(), config.norm);
    config.norm_eps = norm != nullptr ? norm->default_eps : 1e-6;  // an unknown word is one problem, not two
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
  const bool divides = config.n_heads >= 1 && config.d_model % config.n_heads == 0;
  if (config.head_dim == 0 && divides) {
    config.head_dim = config.d_model / config.n_heads;
  }
  fill_in_parts(config);
}

}  // namespace

bool has_full_attention(const ModelConfig& config) {
  return config.attention == "full" || config.attention == "hybrid";
}

bool has_linear_attention(const ModelConfig& config) {
  return config.attention == "gdn" || config.attention == "hybrid";
}

void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  fail_if_any(derive_and_check(config, data_vocab_size, seq_len));
}

std::vector<Problem> derive_and_check(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len) {
  fill_in(config, data_vocab_size, seq_len);
  Problems problems;
  check_words(problems, config);
  check_pairs(problems, config);
  check_numbers(problems, config);
  check_heads(problems, config);
  check_parts(problems, config);
  check_countable(problems, config);
  check_against_data(problems, config, data_vocab_size, seq_len);
  return problems;
}

}  // namespace minillm
