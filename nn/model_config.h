#pragma once
// The [model] section of a config: sizes and the name of each part.

#include "core/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

inline constexpr int64_t most_layers = 10000;    ///< each is built as objects, also by `minillm check`
inline constexpr int64_t most_size = INT32_MAX;  ///< of any other extent: their products stay within 64 bits

/// Words are the names in the tables of parts (nn/norm.h, nn/ffn.h, ...). A 0 marked "derived" is filled in by
/// `derive`.
struct ModelConfig {
  int64_t vocab_size = 0;      ///< token ids are below it; derived: the data's
  int64_t d_model = 256;       ///< width of the residual stream
  int64_t n_layers = 4;        ///< blocks
  int64_t n_heads = 8;         ///< heads of queries
  int64_t n_kv_heads = 0;      ///< heads of keys and values, a divisor of n_heads; derived: n_heads
  int64_t head_dim = 0;        ///< width of a head; derived: d_model / n_heads
  int64_t d_ff = 688;          ///< inner width of the feed-forward network
  int64_t max_seq_len = 0;     ///< positions the model can see; derived: data.seq_len
  bool tie_embeddings = true;  ///< the output matrix is the embedding table
  bool bias = false;           ///< on every projection of attention and the feed-forward network
  bool causal = true;  ///< a position sees itself and those before it; nothing else can learn to predict the next
  double dropout = 0;  ///< on the sum of embeddings and on the output of each sublayer

  std::string position = "rope";  ///< how order enters: rope, learned, sinusoidal, none
  double rope_theta = 10000;      ///< pair j of a head turns by position * rope_theta^(-2j/head_dim)
  double rope_fraction = 1;       ///< share of each head that is rotated

  std::string norm = "rmsnorm";       ///< a row of the table in nn/norm.cpp
  double norm_eps = 0;                ///< added under the root; derived: 1e-6, layernorm 1e-5
  std::string norm_position = "pre";  ///< where it stands in a block: pre, post, sublayer_output
  int final_norm = -1;                ///< a norm before the output matrix; derived (-1): true except for post

  std::string ffn = "swiglu";                ///< a row of the table in nn/ffn.cpp
  std::string residual = "plain";            ///< a row of the table in nn/residual.cpp; none: F(x) instead of x + F(x)
  std::string residual_out_init = "scaled";  ///< std of o_proj and down_proj, 0.02 / sqrt(2 n_layers) or 0.02:
                                             ///< scaled, plain

  std::string attention = "full";       ///< a row of the table in nn/attention.cpp
  bool qk_norm = false;                 ///< RMSNorm of every query and key before rotation
  std::string attention_gate = "none";  ///< a sigmoid on the output of attention: none, elementwise
};

/// Fills in what is derived and checks what must fit together: every problem, with its key ("model.n_heads") as
/// `where`. `data_vocab_size` and `seq_len` come from the data (0 when there is none).
std::vector<Problem> derive_and_check(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len);

/// The same; throws an Error that lists the problems.
void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len);

}  // namespace minillm
