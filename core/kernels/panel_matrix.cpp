#include "core/kernels/panel_matrix.h"

#include "core/kernels/gemm_panels.h"
#include "core/parallel.h"

#include <algorithm>
#include <type_traits>

namespace minillm::kernels {

namespace {

constexpr int64_t bytes_per_task = 64 << 10;  // of the matrix, at least: work enough to wake a thread for
constexpr int64_t tasks_per_thread = 2;       // at most; no sum is cut, so their size may depend on the threads

float widened(float value) {
  return value;
}

float widened(uint16_t bits) {
  return bfloat16_to_float(bits);
}

template <class Element>
Element narrowed(float value) {
  if constexpr (std::is_same_v<Element, float>) {
    return value;
  } else {
    return float_to_bfloat16(value);
  }
}

void multiply_row(const PanelKernel& kernel, const float* x, const float* panels, int64_t columns, int64_t K, float* y,
                  bool add) {
  kernel.multiply_row(x, panels, columns, K, y, add);
}

void multiply_row(const PanelKernel& kernel, const float* x, const uint16_t* panels, int64_t columns, int64_t K,
                  float* y, bool add) {
  kernel.multiply_row_bf16(x, panels, columns, K, y, add);
}

}  // namespace

template <class Element>
PanelMatrix<Element>::PanelMatrix(const float* values, int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      width_(widest_panels() != nullptr ? widest_panels()->columns : 1),
      memory_(allocate_aligned(bytes())) {
  parallel_for(panels(), 1, [=, this](int64_t panel, int64_t) {
    Element* to = static_cast<Element*>(memory_.get()) + offset(panel * width_, 0);
    const int64_t there = std::min(width_, rows_ - panel * width_);
    const float* from = values + panel * width_ * columns_;
    for (int64_t k = 0; k < columns_; ++k) {
      for (int64_t r = 0; r < width_; ++r) {
        to[k * width_ + r] = r < there ? narrowed<Element>(from[r * columns_ + k]) : Element{0};
      }
    }
  });
}

template <class Element>
size_t PanelMatrix<Element>::bytes() const {
  return static_cast<size_t>(panels() * width_ * columns_) * sizeof(Element);
}

template <class Element>
void PanelMatrix<Element>::multiply(const float* x, int64_t count, float* y, bool add) const {
  const PanelKernel* kernel = widest_panels();
  const int64_t panel_bytes = std::max<int64_t>(1, width_ * columns_ * static_cast<int64_t>(sizeof(Element)));
  const int64_t chunk = std::max(bytes_per_task / panel_bytes, panels() / (tasks_per_thread * num_threads()));
  parallel_for(panels(), std::max<int64_t>(1, chunk), [=, this](int64_t begin, int64_t end) {
    const int64_t first = begin * width_;
    const int64_t there = std::min(rows_, end * width_) - first;
    const Element* part = elements() + offset(first, 0);
    for (int64_t i = 0; i < count; ++i) {
      const float* row = x + i * columns_;
      float* to = y + i * rows_ + first;
      if (kernel != nullptr) {
        multiply_row(*kernel, row, part, there, columns_, to, add);
        continue;
      }
      for (int64_t r = 0; r < there; ++r) {
        float sum = add ? to[r] : 0.0F;
        for (int64_t k = 0; k < columns_; ++k) {
          sum += row[k] * widened(part[r * columns_ + k]);
        }
        to[r] = sum;
      }
    }
  });
}

template <class Element>
void PanelMatrix<Element>::expand(float* values) const {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t k = 0; k < columns_; ++k) {
      values[r * columns_ + k] = widened(elements()[offset(r, k)]);
    }
  }
}

template class PanelMatrix<float>;
template class PanelMatrix<uint16_t>;

}  // namespace minillm::kernels
