// y = x, along one axis n times.

#include "autograd/op_support.h"
#include "autograd/ops.h"

namespace minillm {

// A product with ones: broadcasting repeats the values, and its backward adds their gradients up.
Var expand(Var x, int axis, int64_t n, Here here) {
  Tape& tape = x.tape();
  const int at = axis_of("expand", x, axis, here);
  check_op(x.shape()[at] == 1, "expand", tape, here, "axis {} must have extent 1; found x {}", axis, x.shape());
  Shape repeated = x.shape();
  for (int i = 0; i < repeated.rank(); ++i) {
    repeated.set(i, i == at ? n : 1);
  }
  return mul(x, tape.filled(repeated, 1, x.dtype()), here);
}

}  // namespace minillm
