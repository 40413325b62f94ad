#pragma once
// AdamW over a ParameterStore's flat buffers. The formula stands in core/kernels/adamw.h.

#include "autograd/parameter.h"
#include "optim/optim_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

/// Parameters that are updated alike. Matrices (rank >= 2) decay, gains with decay_norms, other vectors never.
struct ParameterGroup {
  std::string name;        ///< "matrices", "gains", "biases", "other vectors", "matrices without decay"
  int64_t tensors = 0;     ///< as files name them: q, k and v are three
  int64_t parameters = 0;  ///< elements
  double decay = 0;        ///< the weight decay that applies
};

/// One line a group, for the start of a run: "matrices: 29 tensors, 3,686,400 parameters, weight decay 0.1".
std::string to_string(const ParameterGroup& group);

/// Holds the two moments, laid out as the store's weights, and the number of updates. The store outlives it.
class AdamW {
 public:
  /// `use_reference` runs the plain loops for float32 too (train.kernels = "reference"); the bits are the same.
  AdamW(ParameterStore& store, const OptimConfig& config, bool use_reference = false);

  /// One update of all weights from the store's gradients times `gradient_scale` (the clip factor). Gradients must be
  /// complete (ParameterStore::finish_gradients) and finite. The bits do not depend on the number of threads.
  void step(double lr, double gradient_scale = 1);

  /// Updates done so far: `t` of the next one is steps() + 1.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);

  /// The moments, flat as ParameterStore::weights(): `store.views(optimizer.m())` gives them by name.
  const Tensor& m() const { return m_.tensor(); }
  const Tensor& v() const { return v_.tensor(); }

  /// Every parameter is in exactly one group.
  const std::vector<ParameterGroup>& groups() const { return groups_; }

 private:
  /// A range of the flat buffers with one decay; at most chunk_elements long, one task's work.
  struct Chunk {
    int64_t begin = 0;
    int64_t end = 0;
    double decay = 0;
  };

  void make_groups();
  void make_chunks();
  double decay_of(const Parameter& parameter) const;

  ParameterStore& store_;
  OptimConfig config_;
  bool use_reference_;
  Buffer m_;
  Buffer v_;
  int64_t steps_ = 0;
  std::vector<ParameterGroup> groups_;
  std::vector<Chunk> chunks_;
};

}  // namespace minillm
