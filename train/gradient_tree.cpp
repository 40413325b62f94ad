#include "train/gradient_tree.h"

#include "core/parallel.h"

namespace minillm {

namespace {

constexpr int64_t chunk = 1 << 14;

template <class T>
void add_values(const T* left, T* right, int64_t count) {
  parallel_for(count, chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      right[i] = left[i] + right[i];
    }
  });
}

/// right = left + right
void add_left(const Tensor& left, const Tensor& right) {
  if (right.dtype == DType::float64) {
    add_values(left.as<double>(), right.as<double>(), right.numel());
  } else {
    add_values(left.as<float>(), right.as<float>(), right.numel());
  }
}

}  // namespace

void GradientTree::add(const Tensor& gradient) {
  size_t level = 0;
  for (uint64_t bits = count_; (bits & 1) != 0; bits >>= 1) {
    add_left(partials_[level].tensor(), gradient);
    ++level;
  }
  if (level == partials_.size()) {
    partials_.emplace_back(gradient.shape, gradient.dtype);
  }
  copy_values(gradient, partials_[level].tensor());
  ++count_;
}

void GradientTree::finish(const Tensor& gradient) {
  bool empty = true;
  for (size_t level = 0; level < partials_.size(); ++level) {
    if ((count_ >> level & 1) == 0) {
      continue;
    }
    if (empty) {
      copy_values(partials_[level].tensor(), gradient);
      empty = false;
    } else {
      add_left(partials_[level].tensor(), gradient);
    }
  }
  count_ = 0;
}

}  // namespace minillm
