// The mean over counted rows of -log softmax(logits)[target], a float64 scalar.

#include "core/kernels/cross_entropy.h"

#include "autograd/op_support.h"
#include "autograd/targets.h"

namespace minillm {

namespace {

template <class T>
struct CrossEntropyNode final : Node {
  NodeId logits;
  Tensor targets;   // [R], a copy: the caller's may be gone when backward runs
  Tensor row_max;   // [R], saved by forward
  Tensor row_sum;   // [R], of exp(logits - row_max), saved by forward
  int64_t counted;  // rows with a target

  void backward(Tape& tape) override;
};

template <class T>
Var cross_entropy_fused(Var logits, std::span<const int32_t> targets, Here here) {
  Tape& tape = logits.tape();
  const int64_t R = logits.shape()[0];
  const int64_t V = logits.shape()[1];
  auto& node = tape.make<CrossEntropyNode<T>>("cross_entropy", {logits}, {}, DType::float64, here);
  node.logits = tape.save(logits);
  node.targets = save_targets(tape, targets);
  node.row_max = tape.allocate({R}, logits.dtype());
  node.row_sum = tape.allocate({R}, logits.dtype());
  node.counted = count_targets(targets);
  const T* x = logits.value().as<T>();
  const int32_t* saved_targets = node.targets.template as<int32_t>();
  T* row_max = node.row_max.template as<T>();
  T* row_sum = node.row_sum.template as<T>();
  double loss = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch row_loss = tape.scratch({R}, DType::float64);
      double* losses = row_loss.tensor().as<double>();
      loss = kernels::cross_entropy_forward(x, saved_targets, row_max, row_sum, losses, R, V);
      *node.value.template as<double>() = mean_over(loss, node.counted);
      return tape.var(node);
    }
  }
  loss = kernels::cross_entropy_forward_reference(x, saved_targets, row_max, row_sum, R, V);
  *node.value.template as<double>() = mean_over(loss, node.counted);
  return tape.var(node);
}

// dlogits = dloss / counted * (softmax - onehot), 0 in rows that are not counted
template <class T>
void CrossEntropyNode<T>::backward(Tape& tape) {
  const int64_t R = tape.shape(logits)[0];
  const int64_t V = tape.shape(logits)[1];
  const double unit = mean_over(*grad.as<double>(), counted);
  const T* x = tape.value(logits).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget dx = tape.gradient_target(logits);
      kernels::cross_entropy_backward(x, targets.as<int32_t>(), row_max.as<T>(), row_sum.as<T>(), dx.tensor.as<float>(),
                                      R, V, unit, dx.fresh);
      return;
    }
  }
  kernels::cross_entropy_backward_reference(x, targets.as<int32_t>(), row_max.as<T>(), row_sum.as<T>(),
                                            tape.gradient(logits).as<T>(), R, V, unit);
}

// --- the last step of the composed form: no primitive changes the dtype or skips rows ---

template <class T>
struct NegativeMeanNode final : Node {
  NodeId log_probability;  // [R], of each row's target
  Tensor targets;          // [R]
  int64_t counted;

  void backward(Tape& tape) override;
};

template <class T>
Var negative_mean(Var log_probability, std::span<const int32_t> targets, Here here) {
  Tape& tape = log_probability.tape();
  auto& node = tape.make<NegativeMeanNode<T>>("negative_mean", {log_probability}, {}, DType::float64, here);
  node.log_probability = log_probability.id();
  node.targets = save_targets(tape, targets);
  node.counted = count_targets(targets);
  const T* values = log_probability.value().as<T>();
  double sum = 0;
  for (size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] >= 0) {
      sum -= static_cast<double>(values[r]);
    }
  }
  *node.value.template as<double>() = mean_over(sum, node.counted);
  return tape.var(node);
}

template <class T>
void NegativeMeanNode<T>::backward(Tape& tape) {
  const T unit = static_cast<T>(mean_over(*grad.as<double>(), counted));
  const int32_t* target = targets.as<int32_t>();
  T* d_log_probability = tape.gradient(log_probability).as<T>();
  for (int64_t r = 0; r < targets.numel(); ++r) {
    if (target[r] >= 0) {
      d_log_probability[r] -= unit;
    }
  }
}

Var cross_entropy_composed(Var logits, std::span<const int32_t> targets, Here here) {
  Tape& tape = logits.tape();
  const Tensor columns = save_targets(tape, targets);
  int32_t* column = columns.as<int32_t>();
  for (int64_t r = 0; r < columns.numel(); ++r) {
    column[r] = std::max(column[r], 0);  // any column does where the row is not counted
  }
  Var picked = gather(log_softmax(logits), {column, targets.size()});
  return logits.dtype() == DType::float64 ? negative_mean<double>(picked, targets, here)
                                          : negative_mean<float>(picked, targets, here);
}

}  // namespace

Var cross_entropy(Var logits, std::span<const int32_t> targets, Here here) {
  Tape& tape = logits.tape();
  check_op(logits.shape().rank() == 2 && logits.shape()[1] >= 1, "cross_entropy", tape, here,
           "logits must be [R, V]; found {}", logits.shape());
  check_targets("cross_entropy", tape, targets, logits.shape()[0], logits.shape()[1], here);
  if (tape.composed()) {
    return cross_entropy_composed(logits, targets, here);
  }
  return logits.dtype() == DType::float64 ? cross_entropy_fused<double>(logits, targets, here)
                                          : cross_entropy_fused<float>(logits, targets, here);
}

}  // namespace minillm
