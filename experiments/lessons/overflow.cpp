// F18: at which g = u does SiLU(g) * u leave the range of a number type?

#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/values.h"
#include "nn/ffn.h"

#include <cmath>
#include <limits>

namespace minillm {

namespace {

/// a(g) u with g = u = x
double unit(const GatedUnit& formula, double x) {
  const Buffer gate_up = values({1, 2}, {x, x});
  Tape tape({.record = false});
  return gated(tape.constant(gate_up.tensor()), formula).item();
}

/// The smallest g = u whose unit exceeds `largest`, by halving an interval.
double first_above(const GatedUnit& formula, double largest) {
  double low = 0;
  double high = 1;
  while (unit(formula, high) <= largest) {
    high *= 2;
  }
  while (std::nextafter(low, high) < high) {
    const double middle = (low + high) / 2;
    (unit(formula, middle) > largest ? high : low) = middle;
  }
  return high;
}

struct NumberType {
  const char* name;
  double largest;
  int digits;  ///< binary, the leading 1 among them
};

// Largest finite values of IEEE 754 and of Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
constexpr NumberType types[] = {{"fp8 e4m3", 448, 4},
                                {"fp16", 65504, 11},
                                {"bf16", 3.3895313892515355e38, 8},
                                {"float32", std::numeric_limits<float>::max(), 24}};

/// From a value of this size to the next that the type holds.
double spacing(double value, int digits) {
  return std::ldexp(1.0, std::ilogb(value) - digits + 1);
}

GatedUnit unit_of(const std::string& ffn) {
  ModelConfig config;
  config.vocab_size = 2;
  config.ffn = ffn;
  derive(config, 0, 1);
  return gated_unit(config);
}

}  // namespace

Numbers overflow(Page& page) {
  const GatedUnit swiglu = unit_of("swiglu");
  const double at_ten = unit(swiglu, 10);
  page.say({"Question: SiLU(g) * u has no bound. From which g = u on does a low-precision number not hold it?\n"
            "At g = u = 10 it is {:.3f}, which every type here holds; the point is how it goes on.\n",
            "问题：SiLU(g) * u 没有上界。g = u 从多大起，低精度数就装不下了？\n"
            "g = u = 10 时是 {:.3f}，这里每种类型都装得下；要看的是往后怎么涨。\n"},
           at_ten);
  Numbers numbers = {{"at_ten", {at_ten}}};
  Table table({page.in({"type", "类型"}), page.in({"largest", "最大值"}),
               page.in({"exceeded at g = u", "超出于 g = u"}), page.in({"steps near 100", "100 附近的间隔"})});
  for (const NumberType& type : types) {
    const double first = first_above(swiglu, type.largest);
    const double step = spacing(at_ten, type.digits);
    table.add_row(
        {type.name, fmt::format("{:.6g}", type.largest), fmt::format("{:.6g}", first), fmt::format("{:.6g}", step)});
    numbers["first_above"].push_back(first);
    numbers["spacing"].push_back(step);
  }
  page.show(table);
  page.say(
      {"bf16 has float32's range and does not overflow here; it loses resolution instead: near 100 its steps are {}.\n"
       "(fp8 is meant without the scale that libraries keep beside a tensor.) Newer models bound the unit:\n",
       "bf16 的范围与 float32 相同，这里不会溢出，丢的是分辨率：100 附近的间隔是 {}。\n"
       "（fp8 指不带缩放因子的；实际的库会给每个张量配一个。）较新的模型给单元加了界：\n"},
      numbers["spacing"][2]);
  Table bounded({page.in({"unit", "单元"}), "g = u = 1", "10", "100", "1000"});
  for (const char* name : {"swiglu", "swiglu_clamp", "swiglu_oai", "situ_glu"}) {
    std::vector<std::string> cells = {name};
    for (const double x : {1.0, 10.0, 100.0, 1000.0}) {
      const double value = unit(unit_of(name), x);
      numbers[name].push_back(value);
      cells.push_back(fmt::format("{:.5g}", value));
    }
    bounded.add_row(cells);
  }
  page.show(bounded);
  page.say({"Next: how wide must a gated network be to cost what a plain one does? See ffn-width.",
            "下一步：门控网络要多宽，才和普通的一样贵？见 ffn-width。"});
  return numbers;
}

}  // namespace minillm
