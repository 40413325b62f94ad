#pragma once
// Doubly stochastic matrices: every row and every column adds up to one.

#include "autograd/ops.h"

namespace minillm {

/// exp(logits) with columns and rows divided by their sums in turn, twenty times (Sinkhorn and Knopp 1967):
/// logits [.., n, n] -> [.., n, n]. Columns are last; rows add up to one within 1e-3 for normal logits of spread 1.
/// `eps` is added to every element once and to every sum.
Var sinkhorn(Var logits, double eps);

/// sinkhorn(logits + I): how n streams are mixed, each favouring itself. Where the logits are 0 a stream keeps
/// e / (e + n - 1) of itself. A larger constant would need many more rounds: with 4 on the diagonal most rows are off
/// by more than 1e-3 after twenty.
Var mixing_matrix(Var logits, double eps);

}  // namespace minillm
