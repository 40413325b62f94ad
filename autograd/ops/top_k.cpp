// The k largest values of each row, with their places.

#include "autograd/op_support.h"

#include <algorithm>
#include <numeric>

namespace minillm {

namespace {

template <class T>
struct TopKNode final : Node {
  NodeId x;
  Tensor index;  // [R, k] int32: the columns; saved for backward

  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

/// The columns of row `x` by falling value, as far as the first k are concerned. A NaN counts as larger than all.
template <class T>
void order_columns(const T* x, std::span<int32_t> columns, int64_t k) {
  std::iota(columns.begin(), columns.end(), 0);
  const auto before = [x](int32_t a, int32_t b) {
    const bool a_nan = std::isnan(x[a]);
    const bool b_nan = std::isnan(x[b]);
    if (a_nan != b_nan) {
      return a_nan;
    }
    return a_nan || x[a] == x[b] ? a < b : x[a] > x[b];
  };
  std::partial_sort(columns.begin(), columns.begin() + k, columns.end(), before);
}

template <class T>
Var top_k_of(Var x, int64_t k, std::span<int32_t> index, Here here) {
  Tape& tape = x.tape();
  const int64_t R = x.shape()[0];
  const int64_t N = x.shape()[1];
  auto& node = tape.make<TopKNode<T>>("top_k", {x}, {R, k}, x.dtype(), here);
  node.x = tape.save(x);
  node.index = tape.allocate({R, k}, DType::int32);
  const Tensor order = tape.allocate({N}, DType::int32);
  const std::span<int32_t> columns(order.as<int32_t>(), static_cast<size_t>(N));
  const T* values = x.value().as<T>();
  for (int64_t r = 0; r < R; ++r) {
    order_columns(values + r * N, columns, k);
    for (int64_t j = 0; j < k; ++j) {
      const int32_t column = columns[static_cast<size_t>(j)];
      node.value.template as<T>()[r * k + j] = values[r * N + column];
      node.index.template as<int32_t>()[r * k + j] = column;
      index[static_cast<size_t>(r * k + j)] = column;
    }
  }
  return tape.var(node);
}

template <class T>
void TopKNode<T>::backward(Tape& tape) {
  const Tensor dx_sum = tape.gradient(x);
  const int64_t N = dx_sum.shape[1];
  const int64_t k = value.shape[1];
  const T* dy = grad.as<T>();
  const int32_t* columns = index.as<int32_t>();
  T* dx = dx_sum.as<T>();
  for (int64_t i = 0; i < value.numel(); ++i) {
    dx[i / k * N + columns[i]] += dy[i];
  }
}

/// Half the gap between the last that is in and the first that is out.
template <class T>
double TopKNode<T>::distance_to_kink(Tape& tape) const {
  const Tensor& scores = tape.value(x);
  const int64_t R = value.shape[0];
  const int64_t k = value.shape[1];
  const int64_t N = scores.shape[1];
  double nearest = Node::distance_to_kink(tape);
  for (int64_t r = 0; r < R; ++r) {
    const int32_t* in = index.as<int32_t>() + r * k;
    for (int64_t column = 0; column < N; ++column) {
      if (std::find(in, in + k, column) == in + k) {
        nearest = std::min(nearest, (value.at(r * k + k - 1) - scores.at(r * N + column)) / 2);
      }
    }
  }
  return nearest;
}

}  // namespace

Var top_k(Var x, int64_t k, std::span<int32_t> index, Here here) {
  Tape& tape = x.tape();
  check_op(x.shape().rank() == 2 && k >= 1 && k <= x.shape()[1], "top_k", tape, here,
           "a matrix with at least {} columns is needed; found {}", k, x.shape());
  check_op(static_cast<int64_t>(index.size()) == x.shape()[0] * k, "top_k", tape, here,
           "room for {} columns is needed; found {}", x.shape()[0] * k, index.size());
  return x.dtype() == DType::float64 ? top_k_of<double>(x, k, index, here) : top_k_of<float>(x, k, index, here);
}

}  // namespace minillm
