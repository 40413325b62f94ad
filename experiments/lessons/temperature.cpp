// I17: a temperature divides the logits before the softmax.

#include "experiments/lessons/lesson.h"
#include "generate/sampler.h"

#include <cmath>

namespace minillm {

namespace {

constexpr double logits[] = {2, 1, 0};

double entropy(const std::vector<double>& probabilities) {
  double nats = 0;
  for (const double p : probabilities) {
    nats -= p > 0 ? p * std::log(p) : 0;
  }
  return nats;
}

}  // namespace

Numbers temperature(Page& page) {
  page.say({"Question: the model gives three tokens the logits ({}). How often is each drawn at temperature T?\n"
            "p = softmax(logits / T), entropy in nats; ln 3 = {:.4f} would be a fair die.\n",
            "问题：模型给三个 token 的 logit 是 ({})，温度为 T 时各自被抽到的概率是多少？\n"
            "p = softmax(logits / T)，熵以 nat 计；公平的三面骰子是 ln 3 = {:.4f}。\n"},
           fmt::join(logits, ", "), std::log(3.0));
  struct Row {
    const char* key;
    double temperature;
  };
  Numbers numbers;
  Table table({"T", "p1", "p2", "p3", page.in({"entropy", "熵"})});
  for (const Row& row : {Row{"T0", 0}, Row{"T0.5", 0.5}, Row{"T1", 1}, Row{"T2", 2}, Row{"T100", 100}}) {
    Sampler sampler({.temperature = row.temperature, .top_p = 1}, /*seed=*/1);
    const std::vector<double> p = sampler.probabilities(logits, 3);
    table.add_row({fmt::format("{}", row.temperature), fmt::format("{:.4f}", p[0]), fmt::format("{:.4f}", p[1]),
                   fmt::format("{:.4f}", p[2]), fmt::format("{:.4f}", entropy(p))});
    numbers[row.key] = p;
    numbers["entropy"].push_back(entropy(p));
  }
  page.show(table);
  page.say(
      {"Higher is flatter, lower is sharper, 0 always takes the largest (ties: the lowest id). The order of tokens\n"
       "never changes, only how much the first is preferred: p1/p2 = e^(1/T).\n"
       "Try it on text: minillm generate RUN --temperature 0.5",
       "温度越高越平，越低越尖，0 就总取最大的（并列取编号小的）。token 的先后从不变，\n"
       "变的只是对第一名偏爱多少：p1/p2 = e^(1/T)。\n"
       "在文本上试试：minillm generate RUN --temperature 0.5"});
  return numbers;
}

}  // namespace minillm
