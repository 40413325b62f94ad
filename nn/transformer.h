#pragma once
// The whole model: embedding, blocks, final norm, head.

#include "core/batch.h"
#include "nn/block.h"
#include "nn/position.h"

#include <memory>
#include <span>
#include <vector>

namespace minillm {

class Transformer final : public Module {
 public:
  /// Builds the parts and declares their parameters; takes no memory yet. `config` has been through derive().
  explicit Transformer(const ModelConfig& config);

  /// Takes the memory for weights (and gradients) and fills the weights from `seed`.
  void allocate(DType dtype, uint64_t seed, bool with_gradients = true);

  /// Mean loss of the batch in nats per counted token, a float64 scalar.
  Var forward(Tape& tape, const Batch& batch) const;

  /// ids [B, T] row-major -> logits [B, T, V]
  Var logits(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;

  /// ids [B, T] -> the logits that follow each sequence's last [B, V]; the head runs for those positions alone.
  Var next_logits(Tape& tape, std::span<const int32_t> ids, int64_t batch_size = 1) const;

  /// ids [B, T] -> what the stream's end reads in front of the first layer and behind each [B, T, d], n_layers + 1
  /// times: how the final state grows. For a tape that retains its values.
  std::vector<Var> streams(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;

  const ModelConfig& config() const { return config_; }
  ParameterStore& parameters() { return *store_; }
  const ParameterStore& parameters() const { return *store_; }

 private:
  Transformer(const ModelConfig& config, std::unique_ptr<ParameterStore> store);

  /// ids [B, T] -> what the first block reads
  Stream enter(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;
  /// ids [B, T] -> what the head reads [B, T, d]
  Var hidden(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;
  Var head_weight(Tape& tape) const;

  ModelConfig config_;
  std::unique_ptr<ParameterStore> store_;
  Parameter& embed_tokens_;  // [V, d]
  PositionEmbedding embed_positions_;
  RopeTable rope_;
  std::unique_ptr<StreamEnds> ends_;
  std::vector<std::unique_ptr<Block>> layers_;
  std::unique_ptr<Norm> norm_;    // null: no final norm
  Parameter* lm_head_ = nullptr;  // [V, d]; null: tied to embed_tokens
};

}  // namespace minillm
