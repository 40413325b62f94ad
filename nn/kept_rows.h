#pragma once
// Rows that attention keeps of the positions it has read, and sequences that read on at positions of their own.

#include "autograd/ops.h"

#include <vector>

namespace minillm {

/// Copies what the new positions have, x [1, T, G, width], behind the `past` positions of kept [G, capacity, width].
void keep_rows(Var x, const Tensor& kept, int64_t past);

/// Sequences that stand behind pasts have positions of their own: f of each one's part of x [B, ...], one below the
/// other.
template <class Function>
Var for_each_sequence(Var x, Function f) {
  Tape& tape = x.tape();
  const size_t count = tape.options().pasts.size();
  if (count == 1) {
    return f(x);
  }
  std::vector<Var> parts;
  for (size_t i = 0; i < count; ++i) {
    const Tape::OneSequence here(tape, i);
    const auto row = static_cast<int64_t>(i);
    parts.push_back(f(slice(x, 0, row, row + 1)));
  }
  return concat(parts, 0);
}

}  // namespace minillm
