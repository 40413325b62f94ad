#pragma once
// A model's matrices in fewer bytes, for decoding. A Tape that is given them (TapeOptions::compact) multiplies single
// rows by them.

#include "autograd/parameter.h"
#include "core/kernels/compact_matrix.h"

#include <map>

namespace minillm {

class CompactWeights {
 public:
  /// Of every float32 matrix that `linear` multiplies by: parameters of two axes. The store's values are rounded to
  /// what the compact ones are, so that passes over many rows compute with the same numbers.
  CompactWeights(ParameterStore& store, kernels::CompactType type);

  /// Null: the parameter has no compact form.
  const kernels::CompactMatrix* find(const Parameter& parameter) const;

  size_t bytes() const;

 private:
  std::map<const Parameter*, kernels::CompactMatrix> matrices_;
};

}  // namespace minillm
