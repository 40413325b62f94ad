#pragma once
// A model's matrices in the form that decoding reads fastest. A Tape that is given them (TapeOptions::decoding)
// multiplies few rows by them.

#include "autograd/parameter.h"
#include "core/kernels/decoding_matrix.h"

#include <unordered_map>

namespace minillm {

class DecodingWeights {
 public:
  /// Of every float32 matrix that `linear` multiplies by: parameters of two axes, and each row of one of three, as
  /// experts have them. Their values are copied: what changes in the store later does not reach them.
  DecodingWeights(const ParameterStore& store, kernels::DecodingType type);

  /// That of a parameter's value or row, [rows, columns]; null: it has no such form.
  const kernels::DecodingMatrix* find(const Tensor& matrix) const;

  /// Gives the store the numbers that these weights hold, so that passes over many rows compute with the same.
  void round(ParameterStore& store) const;

  size_t bytes() const;
  /// Of a parameter's matrices; 0: it has none.
  size_t bytes_of(const Parameter& parameter) const;

 private:
  std::unordered_map<const void*, kernels::DecodingMatrix> matrices_;  // by where the values lie
};

}  // namespace minillm
