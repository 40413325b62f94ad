// D11: a SiLU gate is not a switch between 0 and 1.

#include "autograd/ops.h"
#include "experiments/lessons/forward_pass.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/subject.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

double activated(double x, Activation kind) {
  const Buffer in = values({1}, {x});
  Tape tape({.record = false});
  return activate(tape.constant(in.tensor()), kind).item();
}

/// Where SiLU is smallest, by ever shorter steps to the lower neighbour.
double lowest_point() {
  double x = 0;
  for (double step = 1; step > 1e-9; step /= 2) {
    for (const double towards : {-step, step}) {
      while (activated(x + towards, Activation::silu) < activated(x, Activation::silu)) {
        x += towards;
      }
    }
  }
  return x;
}

/// Over all tokens and units of a layer.
struct Gates {
  double low = HUGE_VAL;  ///< of g
  double high = -HUGE_VAL;
  double negative = 0;   ///< share of SiLU(g) below 0
  double above_one = 0;  ///< and above 1
};

/// gate_up [.., 2f], gate first
Gates gates_of(const Tensor& gate_up) {
  const int64_t f = gate_up.shape[-1] / 2;
  Gates gates;
  double count = 0;
  for (int64_t i = 0; i < gate_up.numel(); ++i) {
    if (i % (2 * f) < f) {
      const double g = gate_up.at(i);
      gates.low = std::min(gates.low, g);
      gates.high = std::max(gates.high, g);
      gates.negative += g < 0 ? 1 : 0;
      gates.above_one += activated(g, Activation::silu) > 1 ? 1 : 0;
      ++count;
    }
  }
  gates.negative /= count;
  gates.above_one /= count;
  return gates;
}

}  // namespace

Numbers silu_gate(Page& page) {
  const double x = lowest_point();
  const double lowest = activated(x, Activation::silu);
  const double at_four = activated(4, Activation::silu);
  page.say({"Question: in SwiGLU the gate is SiLU(g) = g * sigmoid(g). Is it open at 1 and shut at 0?\n",
            "问题：SwiGLU 的门是 SiLU(g) = g * sigmoid(g)。它是 1 开、0 关吗？\n"});
  Table table({"g", "sigmoid(g)", "SiLU(g)"});
  for (const double g : {-8.0, -4.0, x, -1.0, 0.0, 1.0, 4.0, 8.0}) {
    table.add_row({fmt::format("{:.4f}", g), fmt::format("{:.4f}", activated(g, Activation::sigmoid)),
                   fmt::format("{:.4f}", activated(g, Activation::silu))});
  }
  page.show(table);
  page.say({"A sigmoid stays between 0 and 1. SiLU goes down to {:.4f}, at g = {:.4f}, and up without a bound:\n"
            "SiLU(4) = {:.4f}. It multiplies by negative numbers too, and amplifies.\n",
            "sigmoid 总在 0 与 1 之间。SiLU 最低到 {:.4f}（g = {:.4f} 处），往上没有界：\n"
            "SiLU(4) = {:.4f}。它也会乘上负数，也会放大。\n"},
           lowest, x, at_four);

  const Subject subject = subject_of(page);
  Tape tape(to_look_at);
  const int64_t T = std::min<int64_t>(32, subject.config.data.seq_len);
  const std::vector<int32_t> ids = subject.validation(4, T);
  subject.model->logits(tape, ids, static_cast<int64_t>(ids.size()) / T);
  Table seen(
      {page.in({"layer", "层"}), page.in({"g from", "g 从"}), page.in({"to", "到"}), "SiLU(g) < 0", "SiLU(g) > 1"});
  Numbers numbers = {{"lowest", {x, lowest}}, {"silu_4", {at_four}}};
  for (int64_t layer = 0; layer < subject.config.model.n_layers; ++layer) {
    const Node& units = ffn_units(tape, layer);
    if (std::string_view(units.op) != "swiglu") {
      fail_input({.where = page.run(),
                  .what = "its feed-forward networks have no SiLU gate",
                  .found = subject.config.model.ffn,
                  .expected = "swiglu"});
    }
    const Gates gates = gates_of(tape.node(units.inputs[0]).value);
    seen.add_row({std::to_string(layer), fmt::format("{:.2f}", gates.low), fmt::format("{:.2f}", gates.high),
                  fmt::format("{:.1f} %", 100 * gates.negative), fmt::format("{:.1f} %", 100 * gates.above_one)});
    numbers["negative"].push_back(gates.negative);
    numbers["above_one"].push_back(gates.above_one);
  }
  page.show(seen);
  page.say(
      {"Reading SiLU gates as \"how far open\" would be wrong for most of these. (A sigmoid gate, model.ffn = \"glu\" "
       "or\n"
       "an attention gate, may be read so.)\n"
       "Next: amplification without a bound. See overflow.",
       "把 SiLU 门读成「开了几成」，对其中大多数都不对。（sigmoid 门，即 model.ffn = \"glu\" "
       "或注意力的门，才能这样读。）\n"
       "下一步：没有上界的放大，见 overflow。"});
  return numbers;
}

}  // namespace minillm
