// D02: two neurons with a ReLU between two linear layers tell the four phrases apart, exactly.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/taste.h"

namespace minillm {

namespace {

constexpr int64_t search_steps = 2000;
constexpr double search_rate = 0.05;
constexpr int seeds = 50;
constexpr double solved = 0.01;  // a squared error below it rounds to the right four answers

/// y = ReLU(x1 - x2) + ReLU(x2 - x1)
std::vector<double> by_hand() {
  const Buffer inputs = taste_inputs();
  const Buffer asks = values({2, 2}, {1, -1, -1, 1});
  const Buffer writes = values({1, 2}, {1, 1});
  Tape tape;
  Var hidden = activate(linear(tape.constant(inputs.tensor()), tape.constant(asks.tensor())), Activation::relu);
  Var y = linear(hidden, tape.constant(writes.tensor()));
  return numbers_of(y.value());
}

/// Whether training finds a solution with so many neurons from a seed's weights.
bool finds_it(int64_t neurons, uint64_t seed) {
  const Buffer inputs = taste_inputs();
  const Buffer targets = taste_targets();
  ParameterStore store;
  Parameter& up = store.declare("up.weight", {neurons, 2}, Init::normal(1));
  Parameter& up_bias = store.declare("up.bias", {neurons}, Init::constant(0));
  Parameter& down = store.declare("down.weight", {1, neurons}, Init::normal(1));
  Parameter& down_bias = store.declare("down.bias", {1}, Init::constant(0));
  store.allocate(DType::float64);
  store.initialize(seed);
  const auto loss = [&](Tape& tape) {
    Var x = tape.constant(inputs.tensor());
    Var hidden = activate(linear(x, tape.parameter(up), tape.parameter(up_bias)), Activation::relu);
    Var y = linear(hidden, tape.parameter(down), tape.parameter(down_bias));
    return squared_error(y, tape.constant(targets.tensor()));
  };
  return fit(store, loss, search_steps, search_rate) < solved;
}

}  // namespace

Numbers two_neurons(Page& page) {
  page.say(
      {"Question: what must stand between two linear layers, so that they get 好吃, 不好吃, 难吃, 不难吃 right?\n"
       "ReLU(z) = max(0, z), and two neurons: one asks \"好 without 不?\", the other \"不 without 好?\".\n\n"
       "  y = ReLU(x1 - x2) + ReLU(x2 - x1)\n",
       "问题：两层线性之间放什么，才答得对 好吃、不好吃、难吃、不难吃？\n"
       "放 ReLU(z) = max(0, z)，两个神经元：一个问「有好没有不？」，一个问「有不没有好？」。\n\n"
       "  y = ReLU(x1 - x2) + ReLU(x2 - x1)\n"});
  const std::vector<double> outputs = by_hand();
  const std::vector<double> targets = numbers_of(taste_targets().tensor());
  Table answers({page.in({"phrase", "短语"}), page.in({"wanted", "目标"}), "y"});
  for (size_t i = 0; i < 4; ++i) {
    answers.add_row({page.in(taste_names[i]), fmt::format("{:.0f}", targets[i]), fmt::format("{:.3f}", outputs[i])});
  }
  page.show(answers);

  page.say({"Exact. Does training find such weights by itself? AdamW, {} steps, from {} seeds each:\n",
            "分毫不差。训练自己找得到这样的权重吗？AdamW，{} 步，每种宽度试 {} 个种子：\n"},
           search_steps, seeds);
  Numbers numbers = {{"outputs", outputs}, {"seeds", {seeds}}};
  Table table({page.in({"neurons", "神经元"}), page.in({"seeds that solve it", "解出来的种子"})});
  for (const int64_t neurons : {2, 4, 8}) {
    int found = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      found += finds_it(neurons, seed) ? 1 : 0;
    }
    table.add_row({std::to_string(neurons), fmt::format("{} / {}", found, seeds)});
    numbers["found"].push_back(found);
  }
  page.show(table);
  page.say(
      {"Two neurons are enough to be right and too few to be found easily: a neuron that starts on the wrong\n"
       "side of its kink gets no gradient. Width is not needed for the answer but for the search.\n"
       "Next: is it the activation, or only the second layer? See linear-collapse.",
       "两个神经元足够答对，却不够好找：一开始落在折点错误一侧的神经元没有梯度。\n"
       "多出来的宽度不是为了答案，而是为了搜索。\n"
       "下一步：起作用的是激活函数，还是多出来的那一层？见 linear-collapse。"});
  return numbers;
}

}  // namespace minillm
