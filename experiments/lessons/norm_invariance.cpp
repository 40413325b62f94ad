// D09: what LayerNorm and RMSNorm take away: shift and scale, or scale alone.

#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

constexpr double no_eps = 0;  // so that invariance is exact

std::vector<double> layer_normalised(const std::vector<double>& x) {
  const auto d = static_cast<int64_t>(x.size());
  const Buffer in = values({d}, x);
  Tape tape({.record = false});
  Var gain = tape.filled({d}, 1, DType::float64);
  Var bias = tape.filled({d}, 0, DType::float64);
  return numbers_of(layernorm(tape.constant(in.tensor()), gain, bias, no_eps).value());
}

std::vector<double> rms_normalised(const std::vector<double>& x) {
  const Buffer in = values({static_cast<int64_t>(x.size())}, x);
  Tape tape({.record = false});
  return numbers_of(rmsnorm(tape.constant(in.tensor()), no_eps).value());
}

std::string vector_text(const std::vector<double>& numbers) {
  return fmt::format("({:.4f})", fmt::join(numbers, ", "));
}

}  // namespace

Numbers norm_invariance(Page& page) {
  page.say(
      {"Question: which changes of a token's vector does a norm not see?\n\n"
       "  LayerNorm  (x - mean) / sqrt(var)      RMSNorm  x / sqrt(mean of x^2)      eps = 0\n",
       "问题：向量怎样变，归一化看不出来？\n\n"
       "  LayerNorm  (x - 均值) / sqrt(方差)      RMSNorm  x / sqrt(x^2 的均值)      eps = 0\n"});
  struct Row {
    const char* key;
    Text name;
    std::vector<double> x;
  };
  const Row rows[] = {{"x", {"x = (1, 2, 3, 4)", "x = (1, 2, 3, 4)"}, {1, 2, 3, 4}},
                      {"shifted", {"x + 10", "x + 10"}, {11, 12, 13, 14}},
                      {"scaled", {"100 x", "100 x"}, {100, 200, 300, 400}},
                      {"flipped", {"-x", "-x"}, {-1, -2, -3, -4}}};
  Numbers numbers;
  Table table({"", "LayerNorm", "RMSNorm"});
  for (const Row& row : rows) {
    const std::vector<double> layer = layer_normalised(row.x);
    const std::vector<double> rms = rms_normalised(row.x);
    table.add_row({page.in(row.name), vector_text(layer), vector_text(rms)});
    numbers[std::string("layernorm_") + row.key] = layer;
    numbers[std::string("rmsnorm_") + row.key] = rms;
  }
  page.show(table);
  page.say(
      {"LayerNorm(a x + b) = LayerNorm(x) for every a > 0 and b; RMSNorm(a x) = RMSNorm(x), but a shift shows: it\n"
       "makes the channels alike. RMSNorm leaves out the mean and its bias, and gives up no more than that.\n"
       "Next: whole tokens of very different sizes, norm-scale; is the mean near 0 anyway? zero-mean.",
       "对任意 a > 0 和 b，LayerNorm(a x + b) = LayerNorm(x)；RMSNorm(a x) = RMSNorm(x)，但平移看得出来：\n"
       "各通道变得相近了。RMSNorm 省掉了减均值和偏置，放弃的也只有这一点。\n"
       "下一步：大小悬殊的 token，见 norm-scale；均值本来就接近 0 吗？见 zero-mean。"});
  return numbers;
}

}  // namespace minillm
