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
  std::string_view name;   ///< embed_tokens, embed_positions, full_attention, ffn, norms, lm_head
  int64_t parameters = 0;  ///< per_unit * units, plus the final norm for "norms"
  int64_t per_unit = 0;    ///< one layer's count
  int64_t units = 0;       ///< layers, or 1
  double share = 0;        ///< parameters / the ledger's total
  std::string derivation;  ///< per unit, from the shapes: "4*256*256", "2*256*688 + 688*256"
};

struct Ledger {
  std::vector<LedgerGroup> groups;  ///< in the order of the data flow; empty groups are left out
  int64_t parameters = 0;           ///< all of them; tied weights once
  int64_t final_norm = 0;           ///< part of the group "norms"
  int64_t classic_estimate = 0;     ///< 12 L d^2 + V d: four d x d projections, a 4d two-matrix FFN, one table
  int64_t flops_per_token = 0;      ///< forward and backward at a context of max_seq_len, causal, multiply-add = 2
  double crossover_context = 0;  ///< context at which attention scores cost as much as the FFN when decoding; 0: no FFN
  int64_t kv_values_per_token = 0;  ///< numbers a decoder keeps per past token: keys and values of all layers

  int64_t gap() const { return parameters - classic_estimate; }
};

/// The denominator of every share in a Ledger.
inline constexpr std::string_view ledger_denominator = "all parameters";

Ledger make_ledger(const Transformer& model);

/// Of one token, forward and backward, at a context of T positions; a multiply-add counts 2, and no work that is done
/// twice counts twice. Matrices: 6 for each element that a token is multiplied with, the head included, tables that are
/// only looked up not. Attention: causal, (T + 1) / 2 keys and as many values on average.
struct TrainingFlops {
  int64_t matrices = 0;
  int64_t attention = 0;

  int64_t total() const { return matrices + attention; }
};
TrainingFlops training_flops(const Transformer& model, int64_t context);

}  // namespace minillm
