#pragma once
// Doubly stochastic matrices: every row and every column adds up to one.

#include "autograd/ops.h"

namespace minillm {

/// exp(logits) with columns and rows divided by their sums in turn, twenty times (Sinkhorn and Knopp 1967):
/// logits [.., n, n] -> [.., n, n]. Columns are last; rows add up to one within 1e-3 for normal logits of spread 1.
/// `eps` is added to every element once and to every sum.
Var sinkhorn(Var logits, double eps);

}  // namespace minillm
