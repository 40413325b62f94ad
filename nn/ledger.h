#pragma once
// The ledger: where a model's parameters are. A walk over the registered shapes; no number is typed, no memory is
// taken.

#include "nn/transformer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// One line: a kind of part, counted.
struct LedgerGroup {
  std::string_view name;   ///< embed_tokens, embed_positions, full_attention, linear_attention, ffn, residual, norms,
                           ///< lm_head
  int64_t parameters = 0;  ///< per_unit * units + beside
  int64_t per_unit = 0;    ///< one layer's count
  int64_t units = 0;       ///< layers that have it, or 1
  int64_t beside = 0;      ///< in no layer: the final norm, the ends of the residual stream
  double share = 0;        ///< parameters / the ledger's total
  std::string derivation;  ///< per unit, from the shapes: "4*256*256", "2*256*688 + 688*256"
};

struct Ledger {
  std::vector<LedgerGroup> groups;  ///< in the order of the data flow; empty groups are left out
  int64_t parameters = 0;           ///< all of them; tied weights once
  int64_t active_parameters = 0;    ///< those that work on one token: of a mixture the chosen experts'
  int64_t classic_estimate = 0;     ///< 12 L d^2 + V d: four d x d projections, a 4d two-matrix FFN, one table
  int64_t flops_per_token = 0;      ///< forward and backward at a context of max_seq_len, causal, multiply-add = 2
  /// Context at which attention's scores and weighted sums cost as much as the FFN when decoding; 0: one of the two is
  /// not there.
  double crossover_context = 0;
  int64_t kv_values_per_token = 0;  ///< numbers a decoder keeps per past token, in all layers
  int64_t state_values = 0;         ///< elements of the states of linear layers, which stand for the whole past

  int64_t gap() const { return parameters - classic_estimate; }
};

/// The denominator of every share in a Ledger.
inline constexpr std::string_view ledger_denominator = "all parameters";

Ledger make_ledger(const Transformer& model);

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
