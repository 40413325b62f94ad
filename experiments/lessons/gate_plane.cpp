// D10: SiLU(g) * u over the plane of gate and value.

#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

/// SwiGLU's unit at one point.
double unit(double gate, double up) {
  const Buffer gate_up = values({1, 2}, {gate, up});
  Tape tape({.record = false});
  return gated_activation(tape.constant(gate_up.tensor()), Activation::silu).item();
}

/// One character a value: its sign and rough size.
char mark(double value) {
  if (value < -10) {
    return 'M';
  }
  if (value < -1) {
    return 'm';
  }
  if (value < -0.1) {
    return '-';
  }
  if (value <= 0.1) {
    return '.';
  }
  return value <= 1 ? '+' : value <= 10 ? 'p' : 'P';
}

}  // namespace

Numbers gate_plane(Page& page) {
  page.say(
      {"Question: a gated unit multiplies two projections of the same token, SiLU(g) * u. What does it look like?\n"
       "g from -10 to 10 along the lines, u from 10 down to -10 down the page.\n"
       "P above 10, p above 1, + above 0.1, . within 0.1 of 0, - below -0.1, m below -1, M below -10\n",
       "问题：门控单元把同一个 token 的两个投影相乘，SiLU(g) * u。长什么样？\n"
       "横向 g 从 -10 到 10，纵向 u 从上面的 10 到下面的 -10。\n"
       "P 大于 10，p 大于 1，+ 大于 0.1，. 离 0 不到 0.1，- 小于 -0.1，m 小于 -1，M 小于 -10\n"});
  for (int row = 0; row <= 10; ++row) {
    const double up = 10 - 2 * row;
    std::string line = fmt::format("  {:>3} |", up);
    for (double gate = -10; gate <= 10; gate += 0.5) {
      line += mark(unit(gate, up));
    }
    page.say({"{}", "{}"}, line);
  }
  page.draw(plane_picture("SiLU(g) u", "g", "u", 10, unit));
  const double far = unit(10, 10);
  const double negative = unit(-1, 1);
  const double farther = unit(100, 100);
  page.say(
      {"\n  SiLU(10) * 10    = {:.3f}\n  SiLU(100) * 100  = {:.0f}\n  SiLU(-1) * 1     = {:.4f}\n\n"
       "On the left the gate is nearly shut, whatever u says: near 0, with a shallow strip of the other sign about\n"
       "g = -1. On the right the unit is g * u, a product without a bound: for g = u it grows as the square.\n"
       "Next: is the gate a switch between 0 and 1? silu-gate. How far does the product go? overflow.",
       "\n  SiLU(10) * 10    = {:.3f}\n  SiLU(100) * 100  = {:.0f}\n  SiLU(-1) * 1     = {:.4f}\n\n"
       "左边门几乎关着，u 是多少都接近 0，只在 g = -1 附近有一条反号的浅带。\n"
       "右边就是 g * u，一个没有上界的乘积：g = u 时按平方增长。\n"
       "下一步：门是 0 到 1 的开关吗？silu-gate。乘积能大到哪里？overflow。"},
      far, farther, negative);
  return {{"unit_10_10", {far}}, {"unit_100_100", {farther}}, {"unit_-1_1", {negative}}};
}

}  // namespace minillm
