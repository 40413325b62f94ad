// N21: weight decay pulls a norm's gain to 0, unless the gain is stored as its distance from 1.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"
#include "optim/adamw.h"

#include <cmath>

namespace minillm {

namespace {

constexpr int64_t decay_steps = 10000;
constexpr int64_t every = 2500;
constexpr double lr = 1e-3;
constexpr double weight_decay = 0.1;

}  // namespace

Numbers gain_decay(Page& page) {
  page.say({"Question: a gain that no gradient moves. Where does AdamW's weight decay take it in {} steps?\n"
            "Decoupled decay multiplies by 1 - lr * decay = 1 - {} * {} a step. Three gains: stored as it is, with\n"
            "decay; stored as gain - 1 (zero-centered), with decay; stored as it is, left out of the decay.\n",
            "问题：一个没有梯度的增益，AdamW 的权重衰减 {} 步之后会把它带到哪里？\n"
            "解耦的衰减每步乘 1 - lr * decay = 1 - {} * {}。三种增益：照原样存，参与衰减；\n"
            "存 gain - 1（零中心），参与衰减；照原样存，不参与衰减。\n"},
           decay_steps, lr, weight_decay);
  ParameterStore store;
  const Parameter& standard = store.declare_decayed("standard", {1}, Init::constant(1), true);
  const Parameter& centered = store.declare_decayed("zero_centered", {1}, Init::constant(0), true);
  const Parameter& excluded = store.declare_decayed("excluded", {1}, Init::constant(1), false);
  store.allocate(DType::float64);
  store.initialize(1);
  AdamW optimizer(store, {.weight_decay = weight_decay});

  Numbers numbers;
  Table table({page.in({"step", "步"}), page.in({"standard", "照原样"}), page.in({"zero-centered", "零中心"}),
               page.in({"left out", "不衰减"}), "(1 - lr * decay)^t"});
  std::vector<Series> series = {{page.in({"standard", "照原样"}), {}, {}},
                                {page.in({"zero-centered", "零中心"}), {}, {}}};
  for (int64_t step = 0; step <= decay_steps; ++step) {
    const double gains[] = {standard.value.at(0), 1 + centered.value.at(0), excluded.value.at(0)};
    if (step % 100 == 0) {
      for (size_t i = 0; i < series.size(); ++i) {
        series[i].x.push_back(static_cast<double>(step));
        series[i].y.push_back(gains[i]);
      }
    }
    if (step % every == 0) {
      const double formula = std::pow(1 - lr * weight_decay, static_cast<double>(step));
      table.add_row({std::to_string(step), fmt::format("{:.4f}", gains[0]), fmt::format("{:.4f}", gains[1]),
                     fmt::format("{:.4f}", gains[2]), fmt::format("{:.4f}", formula)});
      numbers["standard"].push_back(gains[0]);
      numbers["zero_centered"].push_back(gains[1]);
      numbers["excluded"].push_back(gains[2]);
    }
    store.zero_gradients();
    store.finish_gradients();  // all of them 0
    optimizer.step(lr);
  }
  page.show(table);
  page.draw(line_picture(page.in({"a gain under weight decay", "权重衰减下的增益"}), page.in({"step", "步"}),
                         page.in({"gain", "增益"}), series));
  page.say(
      {"The standard gain is pressed out, to {:.4f}, near 1/e: the layer behind it is switched off by a rule that\n"
       "was meant to keep matrices small. (In a real run gradients push back; and a matrix that follows the norm can\n"
       "make up for part of it.) Stored as its distance from 1 the same decay pulls it to 1. minillm leaves gains\n"
       "out unless optim.decay_norms says otherwise.\n"
       "Next: the part that multiplies by what it reads. See gate-plane.",
       "照原样存的增益被压到 {:.4f}，约 1/e：本来只想让矩阵别太大的规则，关掉了它后面那一层。\n"
       "（真实训练里梯度会顶回来，归一化后面的矩阵也能补上一部分。）存成与 1 的距离，同样的衰减就把它拉向 1。\n"
       "minillm 默认不让增益参与衰减，除非设了 optim.decay_norms。\n"
       "下一步：用读到的东西去乘的部件，见 gate-plane。"},
      numbers["standard"].back());
  return numbers;
}

}  // namespace minillm
