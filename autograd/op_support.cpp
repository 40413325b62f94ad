#include "autograd/op_support.h"

#include "core/kernels/broadcast.h"

namespace minillm {

void add_reduced(const Tensor& from, const Tensor& to) {
  const kernels::Broadcast axes = kernels::merge_axes(from.shape, to.shape);
  if (from.dtype == DType::float64) {
    kernels::add_reduced(axes, from.as<double>(), to.as<double>());
  } else {
    kernels::add_reduced(axes, from.as<float>(), to.as<float>());
  }
}

void add_to_gradient(Tape& tape, NodeId id, const Tensor& contribution) {
  const GradientTarget target = tape.gradient_target(id);
  if (!target) {
    return;
  }
  if (target.fresh && target.tensor.numel() == contribution.numel()) {
    copy_values(contribution, target.tensor);
    return;
  }
  if (target.fresh) {
    fill_zero(target.tensor);
  }
  add_reduced(contribution, target.tensor);
}

Shape broadcast_operands(const char* op, Var a, Var b, Here here) {
  check_op(a.dtype() == b.dtype(), op, a.tape(), here, "operands must share a dtype; found {} and {}", a.dtype(),
           b.dtype());
  check_op(can_broadcast(a.shape(), b.shape()), op, a.tape(), here, "shapes {} and {} do not broadcast", a.shape(),
           b.shape());
  return broadcast_shapes(a.shape(), b.shape());
}

void check_gain_and_bias(const char* op, Var x, Var gain, Var bias, Here here) {
  Tape& tape = x.tape();
  check_op(x.shape().rank() >= 1 && gain.shape() == Shape{x.shape()[-1]} && bias.shape() == gain.shape(), op, tape,
           here, "the shapes of gain and bias must be the last axis of x; found x {}, gain {}, bias {}", x.shape(),
           gain.shape(), bias.shape());
  check_op(gain.dtype() == x.dtype() && bias.dtype() == x.dtype(), op, tape, here,
           "operands must share a dtype; found x {}, gain {}, bias {}", x.dtype(), gain.dtype(), bias.dtype());
}

int axis_of(const char* op, Var x, int axis, Here here) {
  const int rank = x.shape().rank();
  check_op(axis >= -rank && axis < rank, op, x.tape(), here, "axis {} is out of range for shape {}", axis, x.shape());
  return x.shape().normalize_axis(axis);
}

}  // namespace minillm
