#include "core/kernels/int8_matrix.h"

#include "core/kernels/instruction_set.h"
#include "core/kernels/simd.h"
#include "core/kernels/vectors.h"
#include "core/parallel.h"
#include "core/workspace.h"

#include <algorithm>
#include <cmath>

namespace minillm::kernels {

namespace {

constexpr int64_t together = int8_group / lanes;  // products that become one of a group's sums
constexpr int64_t bytes_per_task = 64 << 10;      // of the matrix: work enough to wake a thread for

void sum_codes(const int8_t* codes, int64_t groups, int32_t* starts) {
  for (int64_t i = 0; i < groups * lanes; ++i) {
    int32_t sum = 0;
    for (int64_t k = 0; k < together; ++k) {
      sum += codes[i * together + k];
    }
    starts[i] = -128 * sum;
  }
}

/// The rows of x, rounded, in memory of the calling thread.
class Int8Rows {
 public:
  Int8Rows(const float* x, int64_t count, int64_t columns) : groups_(int8_groups(columns)) {
    thread_local Workspace memory;
    const int64_t row_floats = groups_ * (lanes + int8_group / 4 + 1);
    float* floats = memory.take(count * row_floats);
    starts_ = reinterpret_cast<int32_t*>(floats);
    codes_ = reinterpret_cast<int8_t*>(starts_ + count * groups_ * lanes);
    scales_ = reinterpret_cast<float*>(codes_ + count * groups_ * int8_group);
    for (int64_t i = 0; i < count; ++i) {
      int8_t* codes = codes_ + i * groups_ * int8_group;
      round_to_int8(x + i * columns, columns, codes, scales_ + i * groups_);
      sum_codes(codes, groups_, starts_ + i * groups_ * lanes);
    }
  }

  Int8Row operator[](int64_t i) const {
    return {codes_ + i * groups_ * int8_group, scales_ + i * groups_, starts_ + i * groups_ * lanes, groups_};
  }

 private:
  int64_t groups_;
  int32_t* starts_;
  int8_t* codes_;
  float* scales_;
};

}  // namespace

namespace {

constexpr float least_largest = 0x1p-100F;  // a group of smaller numbers counts as zeros

/// One group, of which the values behind `there` count as 0. Returns the factor; NaN where a value is not finite.
MINILLM_SIMD float round_group(const float* values, int64_t there, int8_t* codes) {
  // Adding 1.5 * 2^23 leaves no bits for a fraction: what is kept is the nearest whole number, the even one of two.
  constexpr float no_fraction = 0x1.8p23F;
  float group[int8_group] = {};
  for (int64_t k = 0; k < there; ++k) {
    group[k] = values[k];
  }
  float largest_of_lane[lanes] = {};
  float zero_of_lane[lanes] = {};
  for (int64_t k = 0; k < int8_group; k += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      const float size = std::abs(group[k + lane]);
      largest_of_lane[lane] = size > largest_of_lane[lane] ? size : largest_of_lane[lane];
      zero_of_lane[lane] += 0 * size;
    }
  }
  float largest = 0;
  float zero = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    largest = std::max(largest, largest_of_lane[lane]);
    zero += zero_of_lane[lane];
  }
  const bool has_codes = zero == 0 && largest >= least_largest;
  const float steps = has_codes ? 127 / largest : 0;
  for (int64_t k = 0; k < int8_group; ++k) {
    const float step = has_codes ? group[k] * steps : 0;
    codes[k] = static_cast<int8_t>(static_cast<int32_t>((step + no_fraction) - no_fraction));
  }
  return has_codes ? largest / 127 : zero;
}

}  // namespace

void round_to_int8(const float* values, int64_t count, int8_t* codes, float* scales) {
  for (int64_t first = 0; first < count; first += int8_group) {
    scales[first / int8_group] = round_group(values + first, std::min(int8_group, count - first), codes + first);
  }
}

Int8Matrix::Int8Matrix(const float* values, int64_t rows, int64_t columns)
    : rows_(rows), columns_(columns), memory_(allocate_aligned(bytes())) {
  parallel_for(rows, 1 + bytes_per_task / std::max<int64_t>(1, columns), [=, this](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      uint8_t* shifted = shifted_row(r);
      auto* codes = reinterpret_cast<int8_t*>(shifted);
      round_to_int8(values + r * columns_, columns_, codes, scales_of_row(r));
      for (int64_t i = 0; i < groups() * int8_group; ++i) {
        shifted[i] = static_cast<uint8_t>(codes[i] + 128);
      }
    }
  });
}

size_t Int8Matrix::bytes() const {
  return static_cast<size_t>(rows_ * groups()) * (int8_group + sizeof(float));
}

void Int8Matrix::multiply(const float* x, int64_t count, float* y, bool add) const {
  const Int8Rows rounded(x, count, columns_);
  const int64_t chunk = std::max<int64_t>(8, bytes_per_task / std::max<int64_t>(1, groups() * int8_group));
  parallel_for(rows_, chunk, [&, this](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      int8_products(shifted_row(begin), scales_of_row(begin), end - begin, rounded[i], y + i * rows_ + begin, add);
    }
  });
}

void Int8Matrix::expand(float* values) const {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t k = 0; k < columns_; ++k) {
      values[r * columns_ + k] = scales_of_row(r)[k / int8_group] * static_cast<float>(shifted_row(r)[k] - 128);
    }
  }
}

MINILLM_SIMD void int8_products_portable(const uint8_t* shifted, const float* scales, int64_t rows, const Int8Row& x,
                                         float* y, bool add) {
  for (int64_t r = 0; r < rows; ++r) {
    float sum[lanes] = {};
    for (int64_t g = 0; g < x.groups; ++g) {
      const uint8_t* w = shifted + (r * x.groups + g) * int8_group;
      const int8_t* codes = x.codes + g * int8_group;
      const float scale = scales[r * x.groups + g] * x.scales[g];
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int32_t whole = x.starts[g * lanes + lane];
        for (int64_t k = lane * together; k < (lane + 1) * together; ++k) {
          whole += static_cast<int32_t>(w[k]) * codes[k];
        }
        sum[lane] += scale * static_cast<float>(whole);
      }
    }
    const float total = sum_lanes(sum);
    y[r] = add ? y[r] + total : total;
  }
}

#if defined(__x86_64__) && !defined(MINILLM_NO_SIMD)

namespace {

/// `count` rows at a time: x is loaded once for all, and no sum waits for itself.
template <int count>
MINILLM_AVX512_VNNI inline void vnni_rows(const uint8_t* shifted, const float* scales, const Int8Row& x, float* y,
                                          bool add) {
  using Isa = Avx512Vnni;
  Isa::Vector sum[count];
#pragma GCC unroll 4
  for (int r = 0; r < count; ++r) {
    sum[r] = Isa::zero();
  }
  for (int64_t g = 0; g < x.groups; ++g) {
    const Isa::Bytes codes = Isa::load(x.codes + g * int8_group);
    const Isa::Bytes start = Isa::load(x.starts + g * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < count; ++r) {
      const int64_t at = r * x.groups + g;
      const Isa::Vector whole = Isa::dot4(start, Isa::load(shifted + at * int8_group), codes);
      sum[r] = Isa::add_scaled(sum[r], scales[at] * x.scales[g], whole);
    }
  }
  for (int r = 0; r < count; ++r) {
    float lane_sums[lanes];
    Isa::store(lane_sums, sum[r]);
    const float total = sum_lanes(lane_sums);
    y[r] = add ? y[r] + total : total;
  }
}

MINILLM_AVX512_VNNI void int8_products_vnni(const uint8_t* shifted, const float* scales, int64_t rows, const Int8Row& x,
                                            float* y, bool add) {
  constexpr int rows_together = 4;
  int64_t r = 0;
  for (; r + rows_together <= rows; r += rows_together) {
    vnni_rows<rows_together>(shifted + r * x.groups * int8_group, scales + r * x.groups, x, y + r, add);
  }
  for (; r < rows; ++r) {
    vnni_rows<1>(shifted + r * x.groups * int8_group, scales + r * x.groups, x, y + r, add);
  }
}

}  // namespace

#endif

namespace {

using Products = decltype(&int8_products);

Products products_of_processor() {
#if defined(__x86_64__) && !defined(MINILLM_NO_SIMD)
  if (widest_instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512vnni") != 0) {
    return int8_products_vnni;
  }
#endif
  return int8_products_portable;
}

}  // namespace

void int8_products(const uint8_t* shifted, const float* scales, int64_t rows, const Int8Row& x, float* y, bool add) {
  static const Products products = products_of_processor();
  products(shifted, scales, rows, x, y, add);
}

}  // namespace minillm::kernels
