#include "train/trainer.h"

#include "core/phase.h"
#include "optim/clip.h"
#include "optim/finite.h"
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace minillm {

TapeOptions tape_options(const TrainConfig& config) {
  return {.kernels = config.kernels == "reference" ? Kernels::reference : Kernels::fast,
          .ops = config.ops == "composed" ? Ops::composed : Ops::fused};
}

DType model_dtype(const TrainConfig& config) {
  return config.dtype == "float64" ? DType::float64 : DType::float32;
}

Trainer::Trainer(const Config& config, Transformer& model, const Loader& data)
    : config_(config),
      model_(model),
      data_(data),
      optimizer_(model.parameters(), config.optim, config.train.kernels == "reference"),
      tape_(tape_options(config.train)) {}

StepResult Trainer::step() {
  const int64_t step = steps_done();
  const double lr = learning_rate(config_.optim, step, config_.train.steps);
  const double loss = forward_backward();
  const InPhase part(Phase::optimizer);
  const double norm = gradient_norm(model_.parameters().gradients());
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    fail_work(refused_update(model_.parameters(), step, loss, norm, lr, config_.optim.grad_clip));
  }
  optimizer_.step(lr, clip_factor(norm, config_.optim.grad_clip));
  return {step, loss, norm, lr};
}

/// Leaves the gradient of the step's mean loss in the flat buffer. Each micro-batch is weighted by its share of the
/// counted tokens, so however a step is split it is the same mean.
double Trainer::forward_backward() {
  const int64_t batch_size = config_.train.batch_size;
  const int64_t micro_batch_size = config_.train.micro_batch_size;
  const int64_t first_sample = steps_done() * batch_size;
  const RandomKey dropout_key = random_key(config_.train.seed, "dropout");
  ParameterStore& parameters = model_.parameters();

  int64_t counted = 0;
  for (int64_t first = 0; first < batch_size; first += micro_batch_size) {
    data_.batch(first_sample + first, micro_batch_size, batch_);
    counted += batch_.counted();
  }
  double loss = 0;
  for (int64_t first = 0; first < batch_size; first += micro_batch_size) {
    data_.batch(first_sample + first, micro_batch_size, batch_);
    const double share = static_cast<double>(batch_.counted()) / static_cast<double>(std::max<int64_t>(1, counted));
    tape_.clear();
    tape_.set_random_key(random_key(dropout_key, static_cast<uint64_t>(first_sample + first)));
    parameters.zero_gradients();
    Var micro_loss = model_.forward(tape_, batch_);
    tape_.backward(micro_loss, share);
    parameters.finish_gradients();
    loss += micro_loss.item() * share;
    if (micro_batch_size < batch_size) {
      tree_.add(parameters.gradients());
    }
  }
  if (micro_batch_size < batch_size) {
    tree_.finish(parameters.gradients());
  }
  return loss;
}

Var replay(const TrainConfig& config, Transformer& model, const Loader& data, int64_t first_sample, Batch& batch,
           Tape& tape) {
  data.batch(static_cast<uint64_t>(first_sample), config.micro_batch_size, batch);
  tape.clear();
  tape.set_random_key(random_key(random_key(config.seed, "dropout"), static_cast<uint64_t>(first_sample)));
  model.parameters().zero_gradients();
  return model.forward(tape, batch);
}

std::optional<Birthplace> Trainer::trace_non_finite() {
  TapeOptions options = tape_options(config_.train);
  options.retain = true;
  Tape tape(options);
  const int64_t micro_batch_size = config_.train.micro_batch_size;
  const int64_t end = (steps_done() + 1) * config_.train.batch_size;
  for (int64_t first = end - config_.train.batch_size; first < end; first += micro_batch_size) {
    Var loss = replay(config_.train, model_, data_, first, batch_, tape);
    if (std::optional<Birthplace> place = value_birthplace(tape, loss)) {
      return place;
    }
    tape.backward(loss);
    if (std::optional<Birthplace> place = gradient_birthplace(tape)) {
      return place;
    }
  }
  return std::nullopt;
}

}  // namespace minillm
