// N17: features between 0 and 1 beside features between 100 and 200.

#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

constexpr int64_t d = 5;
constexpr double eps = 1e-6;

struct Sizes {
  double before = 0;     ///< RMS of the token
  double layernorm = 0;  ///< RMS behind it
  double rmsnorm = 0;
  double rms_spread = 0;  ///< largest less smallest channel behind RMSNorm
};

Sizes sizes(const std::vector<double>& x) {
  const Buffer in = values({d}, x);
  Tape tape({.record = false});
  Var token = tape.constant(in.tensor());
  Var layer = layernorm(token, tape.filled({d}, 1, DType::float64), tape.filled({d}, 0, DType::float64), eps);
  const std::vector<double> rms = numbers_of(rmsnorm(token, eps).value());
  const auto [low, high] = std::minmax_element(rms.begin(), rms.end());
  return {rms_of(x), rms_of(numbers_of(layer.value())), rms_of(rms), *high - *low};
}

}  // namespace

Numbers norm_scale(Page& page) {
  page.say({"Question: one token's features lie between 0 and 1, another's between 100 and 200. Does the next layer\n"
            "see two different sizes? RMS of a token of {} channels before and behind the norm, eps = {}:\n",
            "问题：一个 token 的特征在 0 到 1 之间，另一个在 100 到 200 之间，下一层看到的大小不同吗？\n"
            "{} 个通道的 token，归一化前后的均方根，eps = {}：\n"},
           d, eps);
  struct Row {
    const char* key;
    Text name;
    std::vector<double> x;
  };
  const Row rows[] = {{"small", {"0 to 1", "0 到 1"}, {0, 0.25, 0.5, 0.75, 1}},
                      {"times_200", {"the same times 200", "同上，乘 200"}, {0, 50, 100, 150, 200}},
                      {"shifted", {"100 to 200", "100 到 200"}, {100, 125, 150, 175, 200}},
                      {"tiny", {"0 to 0.001, near eps", "0 到 0.001，接近 eps"}, {0, 0.00025, 0.0005, 0.00075, 0.001}}};
  Numbers numbers;
  Table table({page.in({"features", "特征"}), page.in({"before", "之前"}), "LayerNorm", "RMSNorm",
               page.in({"spread behind RMSNorm", "RMSNorm 之后的跨度"})});
  for (const Row& row : rows) {
    const Sizes found = sizes(row.x);
    table.add_row({page.in(row.name), fmt::format("{:.4g}", found.before), fmt::format("{:.4f}", found.layernorm),
                   fmt::format("{:.4f}", found.rmsnorm), fmt::format("{:.4f}", found.rms_spread)});
    numbers[row.key] = {found.before, found.layernorm, found.rmsnorm, found.rms_spread};
  }
  page.show(table);
  page.say(
      {"Behind either norm both have size 1: what is left of a token is its direction, not its volume. The spread\n"
       "tells the two apart: 100 to 200 is not 0 to 1 in large but mostly a constant, which RMSNorm keeps and\n"
       "LayerNorm subtracts. And sizes near sqrt(eps) = {} are not brought to 1: eps is the floor.\n"
       "Next: is it so in every layer of a model? See norm-per-layer.",
       "不管哪种归一化，之后大小都是 1：token 留下的是方向，不是音量。差别在跨度：\n"
       "100 到 200 并不是放大了的 0 到 1，主要成分是一个常数，RMSNorm 留着，LayerNorm 减掉。\n"
       "大小接近 sqrt(eps) = {} 的不会被拉到 1：eps 是下限。\n"
       "下一步：模型的每一层都这样吗？见 norm-per-layer。"},
      std::sqrt(eps));
  return numbers;
}

}  // namespace minillm
