#pragma once
// The whole model: embedding, blocks, final norm, head.

#include "core/batch.h"
#include "nn/block.h"
#include "nn/position.h"

#include <memory>
#include <span>
#include <vector>

namespace minillm {

/// What a forward pass is looked at by.
struct Trace {
  std::vector<Var> streams;  ///< what the stream's end reads in front of the first layer and behind each [B, T, d],
                             ///< n_layers + 1 times: how the final state grows
  std::vector<Var> states;  ///< what flows there: [B, T, d], of a widened stream [B, T, n, d]; no Var where layers read
                            ///< earlier writes one by one
  Var hidden;               ///< what the head reads [B, T, d]
};

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

  /// ids [B, T] -> the way to the head, layer by layer. For a tape that retains its values.
  Trace trace(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;

  /// The loss of what the head reads, x [B, T, d]: mean nats per counted token, a float64 scalar. `targets` [B * T],
  /// negative = not counted.
  Var loss(Var x, std::span<const int32_t> targets) const;

  /// The output matrix [V, d]: the embedding table where they are tied.
  Parameter& head() const { return lm_head_ != nullptr ? *lm_head_ : embed_tokens_; }

  const ModelConfig& config() const { return config_; }
  ParameterStore& parameters() { return *store_; }
  const ParameterStore& parameters() const { return *store_; }

 private:
  Transformer(const ModelConfig& config, std::unique_ptr<ParameterStore> store);

  /// ids [B, T] -> what the first block reads
  Stream enter(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;
  /// ids [B, T] -> what the head reads [B, T, d]
  Var hidden(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const;
  /// The stream's end [B, T, d] -> what the head reads
  Var final_norm(Var x) const { return norm_ != nullptr ? norm_->forward(x) : x; }

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
