#pragma once
// A model that reads sequences in pieces, each token once.

#include "autograd/decoding_weights.h"
#include "nn/transformer.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace minillm {

/// Throws an input Error when the model sees the tokens behind a position, so that it cannot write the next one.
void check_writes_text(const Transformer& model);

/// Keeps of the tokens it has read what the next ones need (autograd/past.h), so that a token costs the same however
/// many stand before it, but for attention's look at them. Keeps the matrices of a model in float32 a second time, in
/// the order in which a token reads them, unless the options bring DecodingWeights: the model must stay as it is.
class Decoder {
 public:
  /// For sequences that are added. The model is checked as by check_writes_text.
  Decoder(const Transformer& model, TapeOptions options);
  /// For one, sequence 0, with room for `capacity` positions.
  Decoder(const Transformer& model, int64_t capacity, TapeOptions options);

  const Transformer& model() const { return model_; }

  /// Room for `capacity` positions, at most the model's. Returns the sequence's number, 0 for the first.
  size_t add_sequence(int64_t capacity);

  int64_t positions(size_t sequence = 0) const { return pasts_[sequence].positions(); }  ///< read so far
  int64_t room(size_t sequence = 0) const;                                               ///< for so many more

  /// Reads `ids`, at least one and at most room(), behind all before, in one pass. Returns the logits [1, V] of the
  /// token behind the last; they are good until the next call.
  Tensor read(std::span<const int32_t> ids, size_t sequence = 0);

  /// Reads one token of each of several sequences in one pass, as weights are read once for all of them. Returns their
  /// logits [B, V].
  Tensor read_one_each(std::span<const size_t> sequences, std::span<const int32_t> ids);

  /// Back to the start of every sequence.
  void clear();

 private:
  const Transformer& model_;
  std::optional<DecodingWeights> weights_;  // where the caller gives none
  std::deque<Past> pasts_;
  std::vector<Past*> reading_;  // of this pass
  Tape tape_;
};

}  // namespace minillm
