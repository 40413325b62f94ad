#pragma once
// The Trainer: one optimizer step, and the state that a checkpoint keeps.

#include "autograd/tape.h"
#include "data/loader.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "train/gradient_tree.h"
#include "train/nan_trace.h"
#include "train/train_config.h"

#include <cstdint>
#include <optional>

namespace minillm {

/// What one step did; docs/numbers.md defines each number.
struct StepResult {
  int64_t step = 0;      ///< from 0: the loss is the one before update step + 1
  double loss = 0;       ///< mean nats per counted token over the whole step
  double grad_norm = 0;  ///< global, before clipping
  double lr = 0;
};

class Trainer {
 public:
  /// `model` and `data` outlive the trainer. The config's micro_batch_size divides batch_size.
  Trainer(const Config& config, Transformer& model, const Loader& data);

  /// One optimizer update. When the loss or the gradient norm is not finite nothing is updated and a work Error names
  /// the step, the tensor and what to try.
  StepResult step();

  /// After a step that was refused: its passes once more, with every value kept, up to the one where something was not
  /// finite. Nothing when all is finite. The gradients are not the step's afterwards.
  std::optional<Birthplace> trace_non_finite();

  /// Updates done. Everything else a step depends on follows from it and the config: the data's position, the random
  /// streams, the learning rate.
  int64_t steps_done() const { return optimizer_.steps(); }

  /// The most that the tape and the gradients under way held.
  size_t arena_bytes() const { return tape_.bytes_reserved(); }

  AdamW& optimizer() { return optimizer_; }
  const AdamW& optimizer() const { return optimizer_; }

 private:
  double forward_backward();

  const Config& config_;
  Transformer& model_;
  const Loader& data_;
  AdamW optimizer_;
  Batch batch_;  // of one micro-batch
  Tape tape_;
  GradientTree tree_;
};

/// The loss of the micro-batch that begins at a sample, on the cleared tape, as Trainer::step computes it: once more,
/// to look at. Marks the model's gradients as not yet written.
Var replay(const TrainConfig& config, Transformer& model, const Loader& data, int64_t first_sample, Batch& batch,
           Tape& tape);

/// The tape options that a config's train section asks for.
TapeOptions tape_options(const TrainConfig& config);

/// The element type of weights, gradients and activations.
DType model_dtype(const TrainConfig& config);

}  // namespace minillm
