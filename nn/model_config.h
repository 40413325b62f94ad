#pragma once
// The [model] section of a config: sizes and the name of each part.

#include "core/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

inline constexpr int64_t most_layers = 10000;    ///< each is built as objects, also by `minillm check`
inline constexpr int64_t most_experts = 4096;    ///< of a feed-forward network
inline constexpr int64_t most_streams = 64;      ///< of a residual connection: its mixing matrix is their square
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

  std::string ffn = "swiglu";  ///< a row of the table in nn/ffn.cpp
  double ffn_limit = 0;        ///< swiglu_clamp, swiglu_oai: bound on gate and up; derived: 10 and 7
  double ffn_alpha = 1.702;    ///< swiglu_oai: slope of the gate's sigmoid
  double ffn_gate_bound = 4;   ///< situ_glu: bound on the gate
  double ffn_up_bound = 25;    ///< situ_glu: bound on up

  int64_t moe_experts = 8;          ///< moe: experts of width d_ff
  int64_t moe_top_k = 2;            ///< moe: experts that work on a token
  std::string moe_unit = "swiglu";  ///< moe: what its experts are, any gated row of the table in nn/ffn.cpp
  int64_t moe_shared_d_ff = 0;      ///< moe: width of the expert that works on every token; 0: none
  bool moe_shared_gate = false;     ///< moe: a sigmoid of the token multiplies what that expert writes

  std::string residual = "plain";  ///< a row of the table in nn/residual.cpp; none: F(x) instead of x + F(x)
  int64_t residual_streams = 4;    ///< mhc, gated: vectors of the stream a token
  int64_t residual_rank = 0;       ///< gated: inner width of the read gate; derived: d_model / 8
  int64_t residual_block = 0;      ///< attnres: sublayers whose outputs are summed to one source; 0: each is its own
  std::string residual_out_init = "scaled";  ///< std of o_proj and down_proj, 0.02 / sqrt(2 n_layers) or 0.02:
                                             ///< scaled, plain

  std::string attention = "full";       ///< a row of the table in nn/attention.cpp
  int64_t full_attention_every = 4;     ///< hybrid: every so manieth layer has full attention, the others gdn
  bool qk_norm = false;                 ///< RMSNorm of every query and key before rotation
  bool qkv_norm = false;                ///< the same, and of every value
  std::string qk_norm_over = "head";    ///< what one of these norms runs over: head, width (all heads at once)
  double qk_clip = 0;                   ///< full and mla: above this score an update scales a head's q and k; 0: off
  std::string attention_gate = "none";  ///< a factor made of the token: none, elementwise, headwise
  std::string attention_gate_activation = "sigmoid";  ///< of that factor: sigmoid, silu
  std::string attention_gate_position = "attended";   ///< what it multiplies: attended (before o_proj), q, k, v, output

  int64_t mla_q_rank = 0;   ///< mla: width of the latent that queries come from; 0: they come from x itself
  int64_t mla_kv_rank = 0;  ///< mla: width of the latent that keys and values come from; derived: d_model / 4

  int64_t gdn_key_heads = 0;         ///< gdn: heads of queries and keys; derived: n_heads / 2, all if odd
  int64_t gdn_value_heads = 0;       ///< gdn: heads of values and states, a multiple of them; derived: n_heads
  int64_t gdn_key_dim = 0;           ///< gdn: width of a query or key; derived: head_dim
  int64_t gdn_value_dim = 0;         ///< gdn: width of a value; derived: head_dim
  std::string gdn_gate = "silu";     ///< gdn: activation of the output gate: silu, sigmoid
  std::string gdn_form = "chunked";  ///< gdn: how it is computed: chunked, recurrent (a position at a time)
};

/// Whether some layer's mixer is full attention; is a Gated DeltaNet.
bool has_full_attention(const ModelConfig& config);
bool has_linear_attention(const ModelConfig& config);

/// Fills in what is derived and checks what must fit together: every problem, with its key ("model.n_heads") as
/// `where`. `data_vocab_size` and `seq_len` come from the data (0 when there is none).
std::vector<Problem> derive_and_check(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len);

/// The same; throws an Error that lists the problems.
void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len);

}  // namespace minillm
