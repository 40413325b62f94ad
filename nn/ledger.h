#pragma once
// The ledger: where a model's parameters are, and what they cost. A walk over the registered shapes; no number is
// typed, no memory is taken.

#include "nn/release.h"
#include "nn/tensor_count.h"
#include "nn/transformer.h"

#include <cstdint>

namespace minillm {

struct Ledger : TensorCount {
  int64_t active_parameters = 0;  ///< of the text model, those that work on one token: of a mixture the chosen experts'
  int64_t flops_per_token = 0;    ///< forward and backward at a context of max_seq_len, causal, multiply-add = 2
  int64_t ffn_flops_per_token = 0;   ///< forward alone: the matrices of the chosen experts, or of the one there is
  int64_t score_flops_per_past = 0;  ///< forward alone, in all layers, when decoding: MixerCost::flops_per_past
  int64_t score_flops_per_pair = 0;  ///< the same over a whole sequence, where latents are multiplied out
  int64_t kv_values_per_token = 0;   ///< numbers a decoder keeps per past token, in all layers
  int64_t state_values = 0;          ///< elements of the states of linear layers, which stand for the whole past
  int64_t gate_parameters = 0;       ///< of the gate of a layer with full attention
  int64_t query_rows = 0;            ///< of that layer's q_proj; half of them are the gate's where it stands inside
  int64_t recent_values = 0;         ///< numbers that linear layers keep of the last tokens: their convolutions' inputs

  /// Context at which attention's scores and weighted sums cost as much as the FFN when decoding; 0: one of the two is
  /// not there.
  double crossover_context() const;
  double sequence_crossover() const;  ///< the length of a whole sequence, a token of which sees half of it on average
};

/// The model's own parameters, and those that `release` adds to its files.
Ledger make_ledger(const Transformer& model, const ReleaseConfig& release = {});

/// Of one token, forward and backward, at a context of T positions; a multiply-add counts 2, and no work that is done
/// twice counts twice. Matrices: 6 for each element that a token is multiplied with, the head included, tables that are
/// only looked up and experts that are not chosen not. Attention: (T + 1) / 2 keys and as many values on average, T of
/// each where it is not causal; 18 for each element of a linear layer's state.
struct TrainingFlops {
  int64_t matrices = 0;
  int64_t attention = 0;

  int64_t total() const { return matrices + attention; }
};
TrainingFlops training_flops(const Transformer& model, int64_t context);

}  // namespace minillm
