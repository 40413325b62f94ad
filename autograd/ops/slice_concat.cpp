// slice cuts a range out of one axis, concat joins along one: each is the other's backward.

#include "autograd/op_support.h"
#include "core/kernels/permute.h"

namespace minillm {

namespace {

/// A tensor seen as [outer, extent of the axis, inner]: along the axis a range of n is a block of n * inner elements.
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

AxisView view_along(const Shape& shape, int axis) {
  AxisView view;
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t& part = i < axis ? view.outer : i > axis ? view.inner : view.extent;
    part *= shape[i];
  }
  return view;
}

// --- slice ---

template <class T>
struct SliceNode final : Node {
  NodeId x;
  int axis;
  int64_t begin;

  void backward(Tape& tape) override;
};

template <class T>
Var slice_of(Var x, int axis, int64_t begin, int64_t end, Here here) {
  Tape& tape = x.tape();
  Shape shape = x.shape();
  shape.set(axis, end - begin);
  auto& node = tape.make<SliceNode<T>>("slice", {x}, shape, x.dtype(), here);
  node.x = x.id();
  node.axis = axis;
  node.begin = begin;
  const AxisView view = view_along(x.shape(), axis);
  const int64_t block = (end - begin) * view.inner;
  kernels::copy_blocks(x.value().as<T>() + begin * view.inner, view.extent * view.inner, node.value.template as<T>(),
                       block, block, view.outer);
  return tape.var(node);
}

template <class T>
void SliceNode<T>::backward(Tape& tape) {
  const Tensor dx = tape.gradient(x);
  const AxisView view = view_along(dx.shape, axis);
  const int64_t block = value.shape[axis] * view.inner;
  kernels::add_blocks(grad.as<T>(), block, dx.as<T>() + begin * view.inner, view.extent * view.inner, block,
                      view.outer);
}

// --- concat ---

template <class T>
struct ConcatNode final : Node {
  int axis;  // the parts are `inputs`, in order

  void backward(Tape& tape) override;
};

template <class T>
Var concat_of(std::span<const Var> parts, int axis, const Shape& shape, Here here) {
  Tape& tape = parts[0].tape();
  auto& node = tape.make_n<ConcatNode<T>>("concat", parts, shape, parts[0].dtype(), here);
  node.axis = axis;
  const AxisView view = view_along(shape, axis);
  T* y = node.value.template as<T>();
  for (const Var& part : parts) {
    const int64_t block = part.shape()[axis] * view.inner;
    kernels::copy_blocks(part.value().as<T>(), block, y, view.extent * view.inner, block, view.outer);
    y += block;
  }
  return tape.var(node);
}

template <class T>
void ConcatNode<T>::backward(Tape& tape) {
  const AxisView view = view_along(value.shape, axis);
  const T* dy = grad.as<T>();
  for (NodeId part : inputs) {
    const int64_t block = tape.shape(part)[axis] * view.inner;
    if (const Tensor d_part = tape.gradient(part)) {
      kernels::add_blocks(dy, view.extent * view.inner, d_part.as<T>(), block, block, view.outer);
    }
    dy += block;
  }
}

/// The first part's shape with the extents along `axis` added up.
Shape joined_shape(std::span<const Var> parts, int axis, Here here) {
  const Var first = parts[0];
  Shape joined = first.shape();
  joined.set(axis, 0);
  for (const Var& part : parts) {
    Shape without_axis = part.shape();
    const bool same_rank = without_axis.rank() == joined.rank();
    if (same_rank) {
      without_axis.set(axis, joined[axis]);
    }
    check_op(same_rank && without_axis == joined && part.dtype() == first.dtype(), "concat", first.tape(), here,
             "parts may differ along axis {} alone; found {} {} beside {} {}", axis, part.dtype(), part.shape(),
             first.dtype(), first.shape());
    joined.set(axis, joined[axis] + part.shape()[axis]);
  }
  return joined;
}

}  // namespace

Var slice(Var x, int axis, int64_t begin, int64_t end, Here here) {
  const int from_front = axis_of("slice", x, axis, here);
  check_op(0 <= begin && begin <= end && end <= x.shape()[from_front], "slice", x.tape(), here,
           "[{}, {}) is outside axis {} of shape {}", begin, end, axis, x.shape());
  return x.dtype() == DType::float64 ? slice_of<double>(x, from_front, begin, end, here)
                                     : slice_of<float>(x, from_front, begin, end, here);
}

Var concat(std::span<const Var> parts, int axis, Here here) {
  check(!parts.empty(), "[concat] needs at least one part ({})", here);
  const int from_front = axis_of("concat", parts[0], axis, here);
  const Shape shape = joined_shape(parts, from_front, here);
  return parts[0].dtype() == DType::float64 ? concat_of<double>(parts, from_front, shape, here)
                                            : concat_of<float>(parts, from_front, shape, here);
}

}  // namespace minillm
