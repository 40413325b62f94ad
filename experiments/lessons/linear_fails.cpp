// D01: the best that any linear scheme makes of 好吃, 不好吃, 难吃, 不难吃.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/taste.h"

#include <cmath>

namespace minillm {

namespace {

constexpr int64_t fit_steps = 600;
constexpr double fit_rate = 0.05;

struct Fitted {
  std::vector<double> outputs;
  double loss = 0;
};

/// y = x W^T + b, or with `hidden` > 0 a second linear layer behind the first; least squares.
Fitted least_squares(int64_t hidden) {
  const Buffer inputs = taste_inputs();
  const Buffer targets = taste_targets();
  ParameterStore store;
  Parameter& first = store.declare("first.weight", {hidden > 0 ? hidden : 1, 2}, Init::normal(0.5));
  Parameter& bias = store.declare("first.bias", {first.shape[0]}, Init::constant(0));
  Parameter* second = hidden > 0 ? &store.declare("second.weight", {1, hidden}, Init::normal(0.5)) : nullptr;
  store.allocate(DType::float64);
  store.initialize(1);

  const auto outputs = [&](Tape& tape) {
    Var y = linear(tape.constant(inputs.tensor()), tape.parameter(first), tape.parameter(bias));
    return second == nullptr ? y : linear(y, tape.parameter(*second));
  };
  Fitted fitted;
  fitted.loss = fit(
      store, [&](Tape& tape) { return squared_error(outputs(tape), tape.constant(targets.tensor())); }, fit_steps,
      fit_rate);
  Tape tape;
  fitted.outputs = numbers_of(outputs(tape).value());
  return fitted;
}

/// The same with a language model's loss: two logits, cross-entropy; the outputs are probabilities of "good".
Fitted logistic() {
  const Buffer inputs = taste_inputs();
  const int32_t targets[] = {1, 0, 0, 1};
  ParameterStore store;
  Parameter& weight = store.declare("weight", {2, 2}, Init::normal(0.5));
  Parameter& bias = store.declare("bias", {2}, Init::constant(0));
  store.allocate(DType::float64);
  store.initialize(1);

  const auto logits = [&](Tape& tape) {
    return linear(tape.constant(inputs.tensor()), tape.parameter(weight), tape.parameter(bias));
  };
  Fitted fitted;
  fitted.loss = fit(
      store, [&](Tape& tape) { return cross_entropy(logits(tape), targets); }, fit_steps, fit_rate);
  Tape tape;
  fitted.outputs = numbers_of(slice(softmax(logits(tape)), 1, 1, 2).value());
  return fitted;
}

}  // namespace

Numbers linear_fails(Page& page) {
  page.say(
      {"Question: which of the four phrases mean that something tastes good?\n"
       "x1 is 1 for 好 and 0 for 难, x2 is 1 where 不 stands before it. Can w1 x1 + w2 x2 + b say it?\n",
       "问题：四个短语里，哪些是在说味道好？\n"
       "x1：好 为 1，难 为 0；x2：前面有 不 为 1。w1 x1 + w2 x2 + b 说得出来吗？\n"});
  const Fitted one = least_squares(0);
  const Fitted two = least_squares(8);
  const Fitted odds = logistic();

  const std::vector<double> targets = numbers_of(taste_targets().tensor());
  Table table({page.in({"phrase", "短语"}), page.in({"wanted", "目标"}), page.in({"linear", "一层线性"}),
               page.in({"two linear layers", "两层线性"}), page.in({"logistic", "逻辑回归"})});
  for (size_t i = 0; i < 4; ++i) {
    table.add_row({page.in(taste_names[i]), fmt::format("{:.0f}", targets[i]), fmt::format("{:.3f}", one.outputs[i]),
                   fmt::format("{:.3f}", two.outputs[i]), fmt::format("{:.3f}", odds.outputs[i])});
  }
  table.add_rule();
  table.add_row({page.in({"loss", "损失"}), "", fmt::format("{:.4f}", one.loss), fmt::format("{:.4f}", two.loss),
                 fmt::format("{:.4f}", odds.loss)});
  page.show(table);
  page.say(
      {"Every scheme answers one half, whatever it is asked: the squared error stays at {:.4f}, and the\n"
       "cross-entropy at {:.4f} = ln 2, a coin's.\n"
       "Why: 好吃 + 不难吃 and 不好吃 + 难吃 add up to the same inputs, (1,1), so a linear scheme gives both\n"
       "pairs the same sum; but one pair should sum to 2, the other to 0. The best compromise is 1, one half each.\n"
       "Next: something between two linear layers that is not linear. See two-neurons.",
       "不管问哪个短语，都答二分之一：平方误差停在 {:.4f}，交叉熵停在 {:.4f} = ln 2，跟抛硬币一样。\n"
       "原因：好吃 + 不难吃 与 不好吃 + 难吃 的输入加起来都是 (1,1)，线性方案只能给这两对同样的和；\n"
       "可一对该得 2，另一对该得 0。折中是 1，每个分到二分之一。\n"
       "下一步：两层线性之间要有不线性的东西，见 two-neurons。"},
      one.loss, odds.loss);
  return {{"linear", one.outputs},     {"linear_mse", {one.loss}},      {"stacked", two.outputs},
          {"stacked_mse", {two.loss}}, {"probabilities", odds.outputs}, {"cross_entropy", {odds.loss}}};
}

}  // namespace minillm
