// D21: N independent writes of variance 1 make a stream of standard deviation sqrt(1 + N).

#include "autograd/ops.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"
#include "experiments/lessons/values.h"
#include "generate/layer_statistics.h"

#include <cmath>

namespace minillm {

namespace {

constexpr int64_t samples = 50000;
constexpr int64_t counts[] = {8, 24, 128};  // writes of 4, 12 and 64 layers

struct Deviation {
  double plain = 0;   ///< sd of x0 + sum of N writes
  double scaled = 0;  ///< the same with writes divided by sqrt(N)
};

Deviation deviations(int64_t N) {
  RandomStream random(random_key(1, "lesson", "stream-growth"));
  double plain = 0;
  double scaled = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const double x0 = random.normal();
    double writes = 0;
    for (int64_t n = 0; n < N; ++n) {
      writes += random.normal();
    }
    const double shrunk = x0 + writes / std::sqrt(static_cast<double>(N));
    plain += (x0 + writes) * (x0 + writes);
    scaled += shrunk * shrunk;
  }
  return {std::sqrt(plain / samples), std::sqrt(scaled / samples)};
}

/// RMS of a real model's stream behind each layer, before any training.
std::vector<double> model_stream(const std::string& residual_out_init) {
  ModelConfig config;
  config.vocab_size = 512;
  config.n_layers = 12;
  config.residual_out_init = residual_out_init;
  derive(config, 0, 32);
  Transformer model(config);
  model.allocate(DType::float32, 1, false);
  std::vector<int32_t> ids(32);
  for (size_t t = 0; t < ids.size(); ++t) {
    ids[t] = static_cast<int32_t>(t * 7);
  }
  std::vector<double> rms;
  for (const LayerStatistics& layer : layer_statistics(model, ids, 1)) {
    rms.push_back(layer.stream_rms);
  }
  return rms;
}

}  // namespace

Numbers stream_growth(Page& page) {
  page.say(
      {"Question: every sublayer adds to the residual stream. How large does it become?\n"
       "x0 and N writes, independent, each of variance 1: variances add up, so sd = sqrt(1 + N). Drawn {} times:\n",
       "问题：每个子层都往残差流里加，流会变多大？\n"
       "x0 与 N 次写入相互独立，方差各为 1：方差相加，标准差 = sqrt(1 + N)。抽 {} 次：\n"},
      samples);
  Numbers numbers;
  Table table({page.in({"layers", "层数"}), page.in({"writes N", "写入次数 N"}), "sqrt(1 + N)",
               page.in({"drawn", "抽样"}), page.in({"drawn, writes / sqrt(N)", "抽样，写入 / sqrt(N)"})});
  for (const int64_t N : counts) {
    const Deviation found = deviations(N);
    const double formula = std::sqrt(1.0 + static_cast<double>(N));
    table.add_row({std::to_string(N / 2), std::to_string(N), fmt::format("{:.2f}", formula),
                   fmt::format("{:.2f}", found.plain), fmt::format("{:.3f}", found.scaled)});
    numbers["formula"].push_back(formula);
    numbers["drawn"].push_back(found.plain);
    numbers["scaled"].push_back(found.scaled);
  }
  page.show(table);

  numbers["model_plain"] = model_stream("plain");
  numbers["model_scaled"] = model_stream("scaled");
  const std::vector<double>& plain = numbers["model_plain"];
  const std::vector<double>& scaled = numbers["model_scaled"];
  page.say({"A real model of {} layers before training, RMS of its stream behind the first and the last:\n\n"
            "  residual_out_init = \"plain\"   {:.3f} to {:.3f}, {:.2f} times\n"
            "  residual_out_init = \"scaled\"  {:.3f} to {:.3f}, {:.2f} times\n",
            "一个真模型，{} 层，还没训练，第一层与最后一层之后流的均方根：\n\n"
            "  residual_out_init = \"plain\"   {:.3f} 到 {:.3f}，{:.2f} 倍\n"
            "  residual_out_init = \"scaled\"  {:.3f} 到 {:.3f}，{:.2f} 倍\n"},
           plain.size(), plain.front(), plain.back(), plain.back() / plain.front(), scaled.front(), scaled.back(),
           scaled.back() / scaled.front());
  const std::vector<Series> series = {over_layers("plain", plain, 1), over_layers("scaled", scaled, 1)};
  page.show(series, {"layer", "层"}, {"RMS of the stream", "流的均方根"});
  page.draw(line_picture(page.in({"the residual stream before training", "训练之前的残差流"}), page.in({"layer", "层"}),
                         page.in({"RMS", "均方根"}), series));
  page.say({"At the end the first is {:.2f} times as large as the second; sqrt(N) = {:.2f}. (Both grow: the embedding\n"
            "starts at an RMS of 0.02, below a single write.)\n",
            "到末端，前者是后者的 {:.2f} 倍；sqrt(N) = {:.2f}。（两者都在涨：嵌入的均方根起始只有 "
            "0.02，比一次写入还小。）\n"},
           plain.back() / scaled.back(), std::sqrt(2.0 * static_cast<double>(plain.size())));
  page.say(
      {"Growth is the price of adding. Output matrices that start 1/sqrt(N) as large leave sqrt(2), however deep\n"
       "(GPT-2's rule). sqrt(1 + N) is for independent writes; those of a trained model are correlated, and only\n"
       "measuring tells.\n"
       "Next: what exactly is in the stream? See stream-sum. And what a sublayer reads must not depend on its size: "
       "the\n"
       "first idea for that is batchnorm-zeros.",
       "有加就有涨。输出矩阵起始缩小到 1/sqrt(N)，再深也只剩 sqrt(2)（GPT-2 的规则）。\n"
       "sqrt(1 + N) 说的是独立的写入；训练过的模型里写入彼此相关，只能实测。\n"
       "下一步：流里到底有什么？见 stream-sum。子层读到的东西也不该随流的大小变，头一个办法见 batchnorm-zeros。"});
  return numbers;
}

}  // namespace minillm
