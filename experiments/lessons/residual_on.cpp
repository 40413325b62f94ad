// D06: the residual connection turned on, over the weights of vanishing-gradient.

#include "experiments/lessons/deep_stack.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"

#include <cmath>

namespace minillm {

namespace {

struct Choice {
  Around around;
  const char* key;
  Text name;
};

constexpr Choice choices[] = {
    {Around::nothing, "nothing", {"x <- F(x)", "x <- F(x)"}},
    {Around::residual, "residual", {"x <- x + F(x)", "x <- x + F(x)"}},
    {Around::scaled_residual, "scaled", {"x <- x + F(x)/sqrt(N)", "x <- x + F(x)/sqrt(N)"}},
    {Around::pre_norm, "pre_norm", {"x <- x + F(norm(x))", "x <- x + F(norm(x))"}},
};
constexpr double gains[] = {0.5, 0.8, 1.0, 1.25};

}  // namespace

Numbers residual_on(Page& page) {
  page.say({"Question: the same {0} layers with the same weights as in vanishing-gradient. What does `x +` change?\n"
            "Below: |gradient| in front of the first layer / |gradient| at the end, N = {0}.\n",
            "问题：与 vanishing-gradient 同样的 {0} 层、同样的权重，加上「x +」会怎样？\n"
            "下表：第一层之前的梯度长度 / 末端的梯度长度，N = {0}。\n"},
           stack_depth);
  std::vector<std::string> headings = {""};
  for (const double gain : gains) {
    headings.push_back(fmt::format("gain {}", gain));
  }
  Table table(headings);
  Numbers numbers;
  std::vector<Series> series;
  for (const Choice& choice : choices) {
    std::vector<std::string> cells = {page.in(choice.name)};
    for (const double gain : gains) {
      const std::vector<double> norms = gradient_norms(choice.around, gain);
      cells.push_back(fmt::format("{:.2e}", norms[0]));
      numbers[choice.key].push_back(norms[0]);
      if (gain == 0.8) {
        series.push_back({page.in(choice.name), {}, {}});
        for (size_t l = 0; l < norms.size(); ++l) {
          series.back().x.push_back(static_cast<double>(l));
          series.back().y.push_back(std::log10(norms[l]));
        }
      }
    }
    table.add_row(cells);
  }
  page.show(table);
  page.show(series, {"layer, gain 0.8", "层，gain 0.8"}, {"log10 of the gradient", "梯度的 log10"});
  page.draw(line_picture(page.in({"the gradient, gain 0.8", "梯度，gain 0.8"}), page.in({"layer", "层"}),
                         page.in({"log10 |gradient|", "log10 |梯度|"}), series));
  page.say(
      {"`x +` alone keeps the gradient from vanishing: the identity passes all of it on. But each branch adds its\n"
       "own gradient on top, about sqrt(1 + gain^2) a layer: one geometric law is exchanged for another. Two things\n"
       "bound it. Branches scaled by 1/sqrt(N) cost about e^(gain^2/2), whatever the depth. A norm in front of F\n"
       "makes each write small beside a stream that has grown: about sqrt(1 + N gain^2), {:.1f} for gain 1.\n"
       "Next: is \"+1\" in the gradient the right formula? See residual-gradient.",
       "单有「x +」，梯度就不会消失：恒等的那条路原样放行。可每条支路还要加上自己的梯度，\n"
       "每层大约 sqrt(1 + gain^2) 倍，不过是换了一种几何级数。管住它的办法有两个：\n"
       "支路乘 1/sqrt(N)，不论多深，总共约 e^(gain^2/2) 倍；\n"
       "或在 F 前放归一化，流越长，每次写入就越显得小，总共约 sqrt(1 + N gain^2) 倍，gain 为 1 时是 {:.1f}。\n"
       "下一步：梯度公式里写「+1」对吗？见 residual-gradient。"},
      std::sqrt(1.0 + stack_depth));
  return numbers;
}

}  // namespace minillm
