#pragma once
// Gradients against central differences, in double.

#include "autograd/tape.h"

#include <functional>
#include <string>
#include <vector>

namespace minillm {

/// A tensor to differentiate with respect to: its values and the analytic gradient of the loss.
struct GradcheckTensor {
  std::string name;
  Tensor value;     ///< float64; perturbed and restored
  Tensor analytic;  ///< float64, same shape
};

/// The worst entry or direction of one tensor.
struct GradcheckResult {
  std::string name;
  /// |a - n| / max(1e-3 * scale, |a|, |n|), scale = the tensor's largest |gradient|. n is the best of a central
  /// difference at h and, where that is more than 1e-8 away, of five-point formulas at h, 10 h and 100 h. At 100 h, and
  /// only there, what rounding of the loss does to n is taken off |a - n|. 0 for a tensor whose gradient and
  /// differences are all smaller than what rounding does to a central difference at h.
  double error = 0;
  double analytic = 0;
  double numeric = 0;
  int64_t index = -1;  ///< the element, or -1 for a random direction
};

struct GradcheckOptions {
  double step = 1e-5;  ///< h = step * max(1, |x|)
  int directions = 3;  ///< random directions a tensor
  int entries = 8;     ///< single elements a tensor
  uint64_t seed = 1;
};

/// Compares each tensor's analytic gradient with central differences of `loss`, which recomputes the loss from the
/// tensors' current values. Keep inputs 10 h away from kinks (relu at 0): there the two sides differ rightly.
std::vector<GradcheckResult> gradcheck(const std::vector<GradcheckTensor>& tensors, const std::function<double()>& loss,
                                       const GradcheckOptions& options = {});

/// For ops: runs `op` on float64 variables, projects its result on a fixed random tensor (never a plain sum: that is
/// constant for a softmax), and checks the gradient of each input. The inputs' values are moved and restored; the
/// tape's options choose fused or composed.
std::vector<GradcheckResult> gradcheck_op(const std::function<Var(Tape&, const std::vector<Var>&)>& op,
                                          const std::vector<Tensor>& inputs, TapeOptions tape_options = {},
                                          const GradcheckOptions& options = {});

double worst_error(const std::vector<GradcheckResult>& results);

}  // namespace minillm
