// D04: without a residual connection the gradient shrinks or grows by a factor a layer.

#include "experiments/lessons/deep_stack.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"

#include <cmath>

namespace minillm {

namespace {

constexpr double layer_gains[] = {0.8, 0.9, 1.0, 1.1, 1.25};

Series logarithms(const std::string& name, const std::vector<double>& norms) {
  Series series{name, {}, {}};
  for (size_t l = 0; l < norms.size(); ++l) {
    series.x.push_back(static_cast<double>(l));
    series.y.push_back(std::log10(norms[l]));
  }
  return series;
}

}  // namespace

Numbers vanishing_gradient(Page& page) {
  page.say({"Question: layers are stacked {} deep, x <- F(x). How much of the gradient reaches the first?\n"
            "F(x) = W ReLU(x), and weights of one seed: only their size changes, so that a layer multiplies lengths\n"
            "by about `gain`. Below: |gradient| in front of a layer / |gradient| at the end.\n",
            "问题：{} 层叠起来，x <- F(x)，还有多少梯度能到第一层？\n"
            "F(x) = W ReLU(x)，权重出自同一个种子，只改大小：每层大约把长度乘上 gain。\n"
            "下表：某层之前的梯度长度 / 末端的梯度长度。\n"},
           stack_depth);
  Table table({page.in({"gain", "gain"}), page.in({"in front of layer 0", "第 0 层前"}), "25", "50", "75",
               page.in({"gain^100", "gain^100"}), page.in({"factor a layer", "平均每层的倍数"})});
  Numbers numbers;
  std::vector<Series> series;
  for (const double gain : layer_gains) {
    const std::vector<double> norms = gradient_norms(Around::nothing, gain);
    const double per_layer = std::pow(norms[0], 1.0 / stack_depth);
    table.add_row({fmt::format("{}", gain), fmt::format("{:.1e}", norms[0]), fmt::format("{:.1e}", norms[25]),
                   fmt::format("{:.1e}", norms[50]), fmt::format("{:.1e}", norms[75]),
                   fmt::format("{:.1e}", std::pow(gain, stack_depth)), fmt::format("{:.3f}", per_layer)});
    numbers["gains"].push_back(gain);
    numbers["first"].push_back(norms[0]);
    numbers["factor"].push_back(per_layer);
    series.push_back(logarithms(fmt::format("gain {}", gain), norms));
  }
  page.show(table);
  page.show(series, {"layer", "层"}, {"log10 of the gradient", "梯度的 log10"});
  page.draw(line_picture(page.in({"the gradient without a residual connection", "没有残差时的梯度"}),
                         page.in({"layer", "层"}), page.in({"log10 |gradient|", "log10 |梯度|"}), series));
  page.say(
      {"Straight lines on a logarithmic scale: the gradient is geometric in depth. A gain a tenth off 1 makes\n"
       "orders of magnitude, and no step size suits the first and the last layer at once. (In float32, which ends\n"
       "near 1e-45, a gain of 0.35 would leave exactly nothing.) No gain is safe: at exactly 1 it wanders.\n"
       "Next: a path that no weight multiplies. See residual-on; first, what else goes wrong: tokens-alike.",
       "对数坐标下是直线：梯度随深度按几何级数变。gain 偏离 1 十分之一，就差出好几个数量级，\n"
       "没有哪个学习率能同时适合第一层和最后一层。（float32 到 1e-45 附近为止，gain 为 0.35 时什么都不剩。）\n"
       "也没有安全的 gain：正好取 1 也会漂。\n"
       "下一步：给梯度一条不乘权重的路，见 residual-on。先看另一个毛病：tokens-alike。"});
  return numbers;
}

}  // namespace minillm
