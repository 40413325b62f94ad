// One column a row: y[r] = x[r, index[r]].

#include "autograd/op_support.h"

#include <algorithm>

namespace minillm {

namespace {

template <class T>
struct GatherNode final : Node {
  NodeId x;
  Tensor index;  // [R] int32, saved for backward

  void backward(Tape& tape) override;
};

template <class T>
Var gather_of(Var x, std::span<const int32_t> index, Here here) {
  Tape& tape = x.tape();
  const int64_t R = x.shape()[0];
  const int64_t V = x.shape()[1];
  auto& node = tape.make<GatherNode<T>>("gather", {x}, {R}, x.dtype(), here);
  node.x = x.id();
  if (node.needs_grad) {
    node.index = tape.allocate({R}, DType::int32);
    std::copy(index.begin(), index.end(), node.index.template as<int32_t>());
  }
  const T* x_values = x.value().as<T>();
  T* y = node.value.template as<T>();
  for (int64_t r = 0; r < R; ++r) {
    y[r] = x_values[r * V + index[static_cast<size_t>(r)]];
  }
  return tape.var(node);
}

template <class T>
void GatherNode<T>::backward(Tape& tape) {
  const Tensor dx_sum = tape.gradient(x);
  const int64_t V = dx_sum.shape[1];
  const T* dy = grad.as<T>();
  const int32_t* columns = index.as<int32_t>();
  T* dx = dx_sum.as<T>();
  for (int64_t r = 0; r < value.numel(); ++r) {
    dx[r * V + columns[r]] += dy[r];
  }
}

}  // namespace

Var gather(Var x, std::span<const int32_t> index, Here here) {
  Tape& tape = x.tape();
  check_op(x.shape().rank() == 2 && x.shape()[0] == static_cast<int64_t>(index.size()), "gather", tape, here,
           "one index for each row of a matrix is needed; found {} indices, shape {}", index.size(), x.shape());
  for (size_t r = 0; r < index.size(); ++r) {
    check_op(index[r] >= 0 && index[r] < x.shape()[1], "gather", tape, here, "index {} of row {} is outside shape {}",
             index[r], r, x.shape());
  }
  return x.dtype() == DType::float64 ? gather_of<double>(x, index, here) : gather_of<float>(x, index, here);
}

}  // namespace minillm
