// D03: W2 (W1 x) = (W2 W1) x. Without an activation two layers are one.

#include "autograd/ops.h"
#include "core/text.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/values.h"

#include <cmath>

namespace minillm {

namespace {

// The course's sizes: 512 -> 2048 -> 512.
constexpr int64_t d = 512;
constexpr int64_t f = 2048;
constexpr int64_t rows = 4;

struct Difference {
  double merged = 0;       ///< max |W2 (W1 x) - (W2 W1) x|
  double oddness = 0;      ///< max |f(x) + f(-x)|, 0 for every linear f
  double with_relu = 0;    ///< the same with a ReLU between the layers
  double output_size = 0;  ///< RMS of W2 (W1 x)
};

Difference compare(DType dtype) {
  const Buffer x = normal_values({rows, d}, dtype, "x");
  const Buffer up = normal_values({f, d}, dtype, "up");
  const Buffer down = normal_values({d, f}, dtype, "down");
  Tape tape({.record = false});
  Var in = tape.constant(x.tensor());
  // Divided by the root of what is summed, so that values stay near 1.
  Var w1 = scale(tape.constant(up.tensor()), 1 / std::sqrt(static_cast<double>(d)));
  Var w2 = scale(tape.constant(down.tensor()), 1 / std::sqrt(static_cast<double>(f)));
  Var stacked = linear(linear(in, w1), w2);
  Var merged = linear(in, matmul(w2, w1));
  const auto network = [&](Var input, Activation kind) { return linear(activate(linear(input, w1), kind), w2); };
  const auto oddness = [&](Activation kind) {
    return largest_of(numbers_of(add(network(in, kind), network(scale(in, -1), kind)).value()));
  };
  return {.merged = largest_difference(stacked.value(), merged.value()),
          .oddness = oddness(Activation::identity),
          .with_relu = oddness(Activation::relu),
          .output_size = rms_of(numbers_of(stacked.value()))};
}

}  // namespace

Numbers linear_collapse(Page& page) {
  page.say({"Question: what do two linear layers of {} -> {} -> {} say that one does not?\n"
            "Two layers multiply by W1, then by W2. One layer multiplies by the matrix W2 W1, made beforehand.\n",
            "问题：{} -> {} -> {} 的两层线性，比一层多说了什么？\n"
            "两层：先乘 W1 再乘 W2。一层：事先算好 W2 W1，只乘一次。\n"},
           d, f, d);
  const Difference single = compare(DType::float32);
  const Difference twice = compare(DType::float64);
  Table table({"", "float32", "float64"});
  const auto row = [&](const Text& name, double Difference::*value) {
    table.add_row({page.in(name), fmt::format("{:.2g}", single.*value), fmt::format("{:.2g}", twice.*value)});
  };
  row({"max |W2 (W1 x) - (W2 W1) x|", "max |W2 (W1 x) - (W2 W1) x|"}, &Difference::merged);
  row({"max |F(x) + F(-x)|, without activation", "max |F(x) + F(-x)|，没有激活"}, &Difference::oddness);
  row({"max |F(x) + F(-x)|, with ReLU", "max |F(x) + F(-x)|，有 ReLU"}, &Difference::with_relu);
  row({"RMS of the output, to compare with", "输出的均方根，作对照"}, &Difference::output_size);
  page.show(table);
  page.say({"Nothing: the two agree up to rounding, although one has {} parameters and the other {}.\n"
            "A linear F has F(-x) = -F(x). With a ReLU between the layers that no longer holds, so no single matrix\n"
            "can stand for them: what makes a network more than one layer is the activation.\n"
            "Next: stack many layers, and watch the gradient. See vanishing-gradient.",
            "什么也没有：两者只差舍入误差，尽管一个有 {} 个参数，另一个只有 {} 个。\n"
            "线性的 F 满足 F(-x) = -F(x)。中间放了 ReLU 就不再成立，任何一个矩阵都替代不了：\n"
            "让网络不止一层的，是激活函数。\n"
            "下一步：把许多层叠起来，看梯度。见 vanishing-gradient。"},
           thousands(2 * d * f), thousands(d * d));
  return {{"difference", {single.merged, twice.merged}},
          {"oddness", {single.oddness, twice.oddness}},
          {"oddness_with_relu", {single.with_relu, twice.with_relu}}};
}

}  // namespace minillm
