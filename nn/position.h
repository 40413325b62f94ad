#pragma once
// Where a token stands: rotary angles applied inside attention, or a vector added to the embeddings.

#include "nn/model_config.h"
#include "nn/module.h"

namespace minillm {

/// Cosines and sines of rotary embeddings (Su et al. 2021), [max_seq_len, pairs] each; made once, in double, rounded
/// once.
class RopeTable {
 public:
  explicit RopeTable(const ModelConfig& config);

  /// Takes the memory; called when the model's parameters take theirs.
  void allocate(DType dtype);

  /// Rotates queries and keys of T = qkv.shape()[1] positions from the tape's first; qkv itself when the config has no
  /// rope.
  Var rotate(Var qkv, QkvLayout layout) const;

 private:
  template <class T>
  void fill();

  int64_t positions_;
  int64_t head_dim_;
  int64_t pairs_;  // 0: not rotary
  double theta_;
  Buffer cosines_;
  Buffer sines_;
};

/// Adds learned (Radford et al. 2018) or sinusoidal (Vaswani et al. 2017, section 3.5) vectors to the embeddings.
class PositionEmbedding final : public Module {
 public:
  /// Declares <scope>.weight [max_seq_len, d_model] when learned.
  PositionEmbedding(const ModelConfig& config, const Scope& scope);

  void allocate(DType dtype);

  /// x [B, T, d] -> x + positions [T, d], from the tape's first; x itself for rope and none.
  Var add_to(Var x) const;

 private:
  int64_t positions_;
  int64_t width_;
  bool sinusoidal_;
  Parameter* learned_ = nullptr;  // null: not learned
  Buffer waves_;                  // [max_seq_len, d_model] when sinusoidal
};

}  // namespace minillm
