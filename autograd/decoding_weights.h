#pragma once
// A model's matrices in the form that decoding reads fastest. A Tape that is given them (TapeOptions::decoding)
// multiplies few rows by them.

#include "autograd/parameter.h"
#include "core/kernels/decoding_matrix.h"

#include <map>

namespace minillm {

class DecodingWeights {
 public:
  /// Of every float32 matrix that `linear` multiplies by: parameters of two axes. Their values are copied: what changes
  /// in the store later does not reach them.
  DecodingWeights(const ParameterStore& store, kernels::DecodingType type);

  /// Null: the parameter has no such form.
  const kernels::DecodingMatrix* find(const Parameter& parameter) const;

  /// Gives the store the numbers that these weights hold, so that passes over many rows compute with the same.
  void round(ParameterStore& store) const;

  size_t bytes() const;

 private:
  std::map<const Parameter*, kernels::DecodingMatrix> matrices_;
};

}  // namespace minillm
