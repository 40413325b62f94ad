#pragma once
// The [model] section of a config: sizes and the name of each part.

#include <cstdint>
#include <string>

namespace minillm {

/// Words are the names in the tables of parts (nn/norm.h, nn/ffn.h, ...). A 0 marked "derived" is filled in by
/// `derive`.
struct ModelConfig {
  int64_t vocab_size = 0;  ///< derived: the data's
  int64_t d_model = 256;
  int64_t n_layers = 4;
  int64_t n_heads = 8;
  int64_t n_kv_heads = 0;  ///< derived: n_heads
  int64_t head_dim = 0;    ///< derived: d_model / n_heads
  int64_t d_ff = 688;
  int64_t max_seq_len = 0;  ///< derived: data.seq_len; positions the model can see
  bool tie_embeddings = true;
  bool bias = false;
  bool causal = true;
  double dropout = 0;

  std::string position = "rope";  ///< rope, learned, sinusoidal, none
  double rope_theta = 10000;
  double rope_fraction = 1;  ///< share of each head that is rotated, in (0, 1]

  std::string norm = "rmsnorm";
  double norm_eps = 0;                ///< derived: 1e-6, layernorm 1e-5
  std::string norm_position = "pre";  ///< pre, post, sublayer_output
  int final_norm = -1;                ///< 0, 1, or derived (-1): 1 except for post

  std::string ffn = "swiglu";
  std::string residual = "plain";
  std::string residual_out_init = "scaled";  ///< scaled, plain

  std::string attention = "full";
  bool qk_norm = false;
  std::string attention_gate = "none";  ///< none, elementwise
};

/// Fills in what is derived and checks what must fit together. `data_vocab_size` and `seq_len` come from the data (0
/// when there is none). Throws an Error that lists every problem, each with its key.
void derive(ModelConfig& config, int64_t data_vocab_size, int64_t seq_len);

}  // namespace minillm
