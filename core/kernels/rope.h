#pragma once
// Rotary position embedding (Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", eq. 34)
// on packed queries, keys and values.
//
//   angle[t,j] = t * theta^(-2j / head_dim)                    j in [0, pairs)
//   y[j]         = x[j] * cos(angle) - x[j + pairs] * sin(angle)
//   y[j + pairs] = x[j + pairs] * cos(angle) + x[j] * sin(angle)
//
// of every query and key slice; the rest of the slice, gates and values are copied. Pairs are half-split within the
// rotated part, element j with j + pairs, as in Hugging Face's models (GPT-NeoX' convention, not the paper's
// neighbours). Frequencies are those of the whole head; GPT-NeoX, when it rotates a part, takes the part's width.
//
// B sequences, T positions. x, y, dx, dy [B, T, layout.width()]; cosines, sines [T, pairs]; 2 * pairs <= head_dim.
// Backward adds to dx, or overwrites it where `fresh`: a rotation is undone by its transpose, so the gradient is
// rotated by -angle.

#include "core/kernels/attention.h"

#include <cstdint>

namespace minillm::kernels {

/// How many pairs a head rotates: floor(fraction * head_dim / 2). fraction in [0, 1].
int64_t rope_pairs(double fraction, int64_t head_dim);

/// Fills cosines and sines [T, pairs] for positions 0 .. T-1. Angles and functions in double, rounded once.
template <class Real>
void rope_table(Real* cosines, Real* sines, int64_t T, int64_t pairs, int64_t head_dim, double theta);

template <class Real>
void rope_forward_reference(const Real* x, const Real* cosines, const Real* sines, Real* y, int64_t B, int64_t T,
                            int64_t pairs, const QkvLayout& layout);

template <class Real>
void rope_backward_reference(const Real* dy, const Real* cosines, const Real* sines, Real* dx, int64_t B, int64_t T,
                             int64_t pairs, const QkvLayout& layout);

void rope_forward(const float* x, const float* cosines, const float* sines, float* y, int64_t B, int64_t T,
                  int64_t pairs, const QkvLayout& layout);

void rope_backward(const float* dy, const float* cosines, const float* sines, float* dx, int64_t B, int64_t T,
                   int64_t pairs, const QkvLayout& layout, bool fresh);

}  // namespace minillm::kernels
