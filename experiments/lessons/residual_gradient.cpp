// R06: through y = x + F(x) the gradient is dL/dy (I + dF/dx). "Plus 1" promises too much: F(x) = -x leaves nothing.

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

constexpr int64_t d = 3;

struct Check {
  std::vector<double> gradient;    ///< dL/dx of the tape, through x + F(x)
  std::vector<double> formula;     ///< dL/dy (I + J), J built from F's gradients alone
  double against_differences = 0;  ///< gradcheck's worst error
};

/// L = dL_dy . y; J's row i is the gradient of F(x)_i.
template <class Function>
Check check_gradient(Function F) {
  const Buffer x = values({d}, {0.3, -0.7, 1.1});
  const Buffer upstream = values({d}, {1, 2, -1});
  Check found;
  {
    Tape tape;
    Var in = tape.variable(x.tensor());
    tape.backward(sum_all(mul(add(in, F(in)), tape.constant(upstream.tensor()))));
    found.gradient = numbers_of(in.grad());
  }
  found.formula = numbers_of(upstream.tensor());
  for (int64_t i = 0; i < d; ++i) {
    Tape tape;
    Var in = tape.variable(x.tensor());
    tape.backward(sum_all(slice(F(in), 0, i, i + 1)));
    for (int64_t j = 0; j < d; ++j) {
      found.formula[static_cast<size_t>(j)] += upstream.tensor().at(i) * in.grad().at(j);
    }
  }
  found.against_differences = worst_error(
      gradcheck_op([&](Tape&, const std::vector<Var>& inputs) { return add(inputs[0], F(inputs[0])); }, {x.tensor()}));
  return found;
}

std::string vector_text(const std::vector<double>& numbers) {
  return fmt::format("({:.4f})", fmt::join(numbers, ", "));
}

}  // namespace

Numbers residual_gradient(Page& page) {
  page.say(
      {"Question: what does `x +` do to the gradient? One reads dL/dx = dL/dF + 1. The chain rule says\n\n"
       "  y = x + F(x)    dL/dx = dL/dy (I + dF/dx)\n\n"
       "With dL/dy = (1, 2, -1), at x = (0.3, -0.7, 1.1):\n",
       "问题：「x +」对梯度做了什么？有人写成 dL/dx = dL/dF + 1。链式法则说的是\n\n"
       "  y = x + F(x)    dL/dx = dL/dy (I + dF/dx)\n\n"
       "取 dL/dy = (1, 2, -1)，x = (0.3, -0.7, 1.1)：\n"});
  const auto zero = [](Var x) { return scale(x, 0); };
  const auto curved = [](Var x) { return tanh(scale(x, 0.5)); };
  const auto minus = [](Var x) { return scale(x, -1); };
  const Check at_zero = check_gradient(zero);
  const Check at_curved = check_gradient(curved);
  const Check at_minus = check_gradient(minus);

  Table table({"F", page.in({"dL/dx of the tape", "计算图给出的 dL/dx"}), "dL/dy (I + dF/dx)",
               page.in({"error of differences", "与差分的误差"})});
  const auto row = [&](const char* name, const Check& check) {
    table.add_row({name, vector_text(check.gradient), vector_text(check.formula),
                   fmt::format("{:.0e}", check.against_differences)});
  };
  row("F(x) = 0", at_zero);
  row("F(x) = tanh(x/2)", at_curved);
  row("F(x) = -x", at_minus);
  page.show(table);
  page.say(
      {"Where F does nothing the gradient passes unchanged: at the start of training, when writes are small, the\n"
       "path is open. It is no guarantee: F(x) = -x takes the stream away and the gradient with it, exactly 0.\n"
       "What the connection gives is a default, \"do nothing\", from which each layer learns its difference.\n"
       "Next: how large does a stream become that every layer adds to? See stream-growth.",
       "F 什么也不做时，梯度原样通过：训练之初写入很小，路是通的。但这不是保证：F(x) = -x 把流减没了，\n"
       "梯度也跟着没了，恰好是 0。残差给的是一个默认选项「什么都不做」，每层在它之上学一个增量。\n"
       "下一步：每层都往里加，流会变多大？见 stream-growth。"});
  return {{"identity", at_zero.gradient},
          {"tape", at_curved.gradient},
          {"formula", at_curved.formula},
          {"counterexample", at_minus.gradient},
          {"gradcheck", {at_zero.against_differences, at_curved.against_differences, at_minus.against_differences}}};
}

}  // namespace minillm
