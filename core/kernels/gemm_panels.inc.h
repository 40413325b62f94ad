// The loops of gemm_panels.h for one instruction set. Included by gemm_avx2.cpp and gemm_avx512.cpp, which define
//
//   TARGET                     the attribute that lets a function use the instruction set
//   tile_rows, lanes           rows of a register tile; floats of a vector. A tile is two vectors wide
//   spread_prefetch            whether a tile's lines of C are fetched one after the other
//   Vector, zero(), load(p), store(p, v), broadcast(p), fma(a, b, c), add(a, b)
//
// inside an anonymous namespace: nothing here may be shared between files that are compiled for different processors.

constexpr int64_t tile_columns = 2 * lanes;
constexpr int64_t floats_per_line = 16;
constexpr int64_t steps_per_row = 16;

TARGET inline void prefetch_row(const float* c) {
  for (int64_t j = 0; j < tile_columns; j += floats_per_line) {
    __builtin_prefetch(c + j, 1, 3);
  }
}

/// One register tile over `depth` steps: c[i][j] = (add ? c[i][j] : 0) + sum over k of A(i, k) * b[k][j].
/// A(i, k) = a[i * row_step + k * step].
template <int rows>
TARGET inline void multiply_tile(const float* a, int64_t row_step, int64_t step, const float* b, int64_t depth,
                                 float* c, int64_t c_ld, bool add_to_c) {
  Vector left[rows];
  Vector right[rows];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    left[i] = zero();
    right[i] = zero();
  }
  if (!spread_prefetch) {
    for (int i = 0; i < rows; ++i) {
      prefetch_row(c + i * c_ld);
    }
  }
  // Three rows a pointer: fourteen pointers would not fit the registers.
  const float* row[(rows + 2) / 3];
#pragma GCC unroll 16
  for (int g = 0; g < (rows + 2) / 3; ++g) {
    row[g] = a + 3 * g * row_step;
  }
  for (int64_t k = 0; k < depth; ++k) {
    // C arrives while the sums are made. All lines of a large tile at once would hold up those of A and B.
    if (spread_prefetch && k % steps_per_row == 0 && k < rows * steps_per_row) {
      prefetch_row(c + k / steps_per_row * c_ld);
    }
    const Vector b_left = load(b);
    const Vector b_right = load(b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vector value = broadcast(row[i / 3] + (i % 3) * row_step);
      left[i] = fma(value, b_left, left[i]);
      right[i] = fma(value, b_right, right[i]);
    }
#pragma GCC unroll 16
    for (int g = 0; g < (rows + 2) / 3; ++g) {
      row[g] += step;
    }
    b += tile_columns;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* to = c + i * c_ld;
    if (add_to_c) {
      left[i] = add(load_any(to), left[i]);
      right[i] = add(load_any(to + lanes), right[i]);
    }
    store_any(to, left[i]);
    store_any(to + lanes, right[i]);
  }
}

/// The same for a number of rows that is known when it runs.
template <int most>
TARGET void multiply_rows(int64_t rows, const float* a, int64_t row_step, int64_t step, const float* b, int64_t depth,
                          float* c, int64_t c_ld, bool add_to_c) {
  if (rows == most) {
    multiply_tile<most>(a, row_step, step, b, depth, c, c_ld, add_to_c);
  } else if constexpr (most > 1) {
    multiply_rows<most - 1>(rows, a, row_step, step, b, depth, c, c_ld, add_to_c);
  }
}

TARGET void multiply(const PanelBlock& block) {
  const bool packed = block.a_ld == 0;
  const int64_t row_step = packed ? 1 : block.a_ld;
  const int64_t step = packed ? tile_rows : 1;
  for (int64_t j = 0; j < block.columns; j += tile_columns) {
    const float* b = block.b + j * block.depth;
    const int64_t columns = block.columns - j < tile_columns ? block.columns - j : tile_columns;
    for (int64_t i = 0; i < block.rows; i += tile_rows) {
      const float* a = packed ? block.a + i * block.depth : block.a + i * block.a_ld;
      const int64_t rows = block.rows - i < tile_rows ? block.rows - i : tile_rows;
      float* c = block.c + i * block.c_ld + j;
      if (columns == tile_columns) {
        multiply_rows<tile_rows>(rows, a, row_step, step, b, block.depth, c, block.c_ld, block.add);
        continue;
      }
      // The last columns: a whole tile beside C, of which the part inside is taken over.
      alignas(64) float tile[tile_rows * tile_columns];
      multiply_rows<tile_rows>(rows, a, row_step, step, b, block.depth, tile, tile_columns, false);
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
          const float sum = tile[y * tile_columns + x];
          c[y * block.c_ld + x] = block.add ? c[y * block.c_ld + x] + sum : sum;
        }
      }
    }
  }
}

/// One step of a panel: `width` floats, copied by whole vectors. What the last one writes too much belongs to the next
/// step or panel, which is written later, or is room that the caller keeps behind the last one.
template <int64_t width>
TARGET inline void copy_step(const float* from, float* to) {
#pragma GCC unroll 2
  for (int64_t w = 0; w < width; w += lanes) {
    store_any(to + w, load_any(from + w));
  }
}

/// Panels of `width` from values whose width lies side by side: element (k, w) = from[k * ld + w].
template <int64_t width>
TARGET void pack_side_by_side(const float* from, int64_t ld, int64_t count, int64_t depth, float* to) {
  constexpr int64_t read = (width + lanes - 1) / lanes * lanes;
  for (int64_t first = 0; first < count; first += width) {
    const int64_t there = count - first < width ? count - first : width;
    if (first + read <= count) {
      for (int64_t k = 0; k < depth; ++k) {
        copy_step<width>(from + k * ld + first, to + k * width);
      }
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t w = 0; w < width; ++w) {
          to[k * width + w] = w < there ? from[k * ld + first + w] : 0.0F;
        }
      }
    }
    to += width * depth;
  }
}

/// Panels of `width` from values whose depth lies side by side: element (k, w) = from[w * ld + k]. In blocks of 8 x 8,
/// which the compiler transposes in registers or the first-level cache.
template <int64_t width>
TARGET void pack_transposed(const float* from, int64_t ld, int64_t count, int64_t depth, float* to) {
  constexpr int64_t block = 8;
  for (int64_t first = 0; first < count; first += width) {
    const int64_t there = count - first < width ? count - first : width;
    for (int64_t k = 0; k < depth; k += block) {
      const int64_t steps = depth - k < block ? depth - k : block;
      for (int64_t w = 0; w < width; w += block) {
        if (steps == block && w + block <= there) {
          transpose8(from + (first + w) * ld + k, ld, to + k * width + w, width);
          continue;
        }
        for (int64_t s = 0; s < steps; ++s) {
          for (int64_t x = w; x < w + block && x < width; ++x) {
            to[(k + s) * width + x] = x < there ? from[(first + x) * ld + k + s] : 0.0F;
          }
        }
      }
    }
    to += width * depth;
  }
}

TARGET void pack_rows(const Operand<float>& A, int64_t m, int64_t rows, int64_t k, int64_t depth, float* to) {
  pack_side_by_side<tile_rows>(A.data + k * A.ld + m, A.ld, rows, depth, to);
}

TARGET void pack_columns(const Operand<float>& B, int64_t n, int64_t columns, int64_t k, int64_t depth, float* to) {
  if (B.transposed) {
    pack_transposed<tile_columns>(B.data + n * B.ld + k, B.ld, columns, depth, to);
  } else {
    pack_side_by_side<tile_columns>(B.data + k * B.ld + n, B.ld, columns, depth, to);
  }
}
