#pragma once
// Loops over one row of floats that several fast kernels share, on the calling thread. Sums go in lanes (simd.h).

#include <cstdint>

namespace minillm::kernels {

/// The largest of x[0 .. count), -infinity when there is none. NaN is passed over.
float largest_of(const float* x, int64_t count);

/// The sum of x[0 .. count).
float sum_of(const float* x, int64_t count);

/// e[j] = exp(x[j] - shift); returns their sum. e may be x.
float exp_shifted(const float* x, float* e, float shift, int64_t count);

/// x[j] *= factor
void scale_row(float* x, float factor, int64_t count);

/// to[j] += from[j]
void add_row(const float* from, float* to, int64_t count);

}  // namespace minillm::kernels
