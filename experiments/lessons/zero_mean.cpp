// N18: is the mean of a token's features near 0, so that RMSNorm may leave it out?

#include "experiments/lessons/forward_pass.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/subject.h"
#include "generate/layer_statistics.h"

#include <algorithm>

namespace minillm {

namespace {

std::vector<double> shares_of(const Transformer& model, const std::vector<int32_t>& ids, int64_t batch_size) {
  Tape tape(to_look_at);
  model.logits(tape, ids, batch_size);
  std::vector<double> shares;
  for (const Node* norm : stream_norms(tape)) {
    const Tensor& stream = tape.node(norm->inputs[0]).value;
    shares.push_back(mean_share(numbers_of(stream), stream.shape[-1]));
  }
  return shares;
}

}  // namespace

Numbers zero_mean(Page& page) {
  page.say(
      {"Question: one hears that features of text have a mean near 0, so that subtracting it is wasted work.\n"
       "Measured: mean^2 / mean(x^2) of each token, averaged, at what every norm of a model reads.\n",
       "问题：据说文本特征的均值本来就接近 0，减均值是白费工夫。\n"
       "实测：每个 token 的 均值^2 / (x^2 的均值)，取平均，在模型每个归一化的输入处。\n"});
  const Subject subject = subject_of(page);
  const int64_t T = std::min<int64_t>(32, subject.config.data.seq_len);
  const std::vector<int32_t> ids = subject.validation(8, T);
  const int64_t batch_size = static_cast<int64_t>(ids.size()) / T;
  const std::vector<double> at_start = shares_of(*subject.untrained(), ids, batch_size);
  const std::vector<double> trained = shares_of(*subject.model, ids, batch_size);
  if (trained.empty()) {
    fail_input({.where = page.run(), .what = "has no norm on its stream", .found = subject.config.model.norm});
  }

  Table table({page.in({"norm", "归一化"}), page.in({"before training", "训练前"}), page.in({"trained", "训练后"})});
  for (size_t i = 0; i < trained.size(); ++i) {
    table.add_row({std::to_string(i), fmt::format("{:.4f}", at_start[i]), fmt::format("{:.4f}", trained[i])});
  }
  page.show(table);
  const double by_chance = 1 / static_cast<double>(subject.config.model.d_model);
  const double largest = *std::max_element(trained.begin(), trained.end());
  page.say({"A direction drawn at random has 1/d = {:.4f} of its square in the mean. This model's largest share is\n"
            "{:.4f}: here a LayerNorm would subtract {:.1f} % of a token at most. That is this model; nothing in a\n"
            "Transformer with RMSNorm keeps the mean at 0, so measure your own.\n"
            "Next: what weight decay does to gains. See gain-decay.",
            "随机方向的平方有 1/d = {:.4f} 落在均值上。这个模型最大的一处是 {:.4f}：\n"
            "换成 LayerNorm，至多减掉一个 token 的 {:.1f} %。这只是这一个模型；用 RMSNorm 的 Transformer\n"
            "并没有什么把均值按在 0 上，自己的模型要自己测。\n"
            "下一步：权重衰减对增益做了什么，见 gain-decay。"},
           by_chance, largest, 100 * largest);
  return {{"start", at_start}, {"trained", trained}, {"by_chance", {by_chance}}};
}

}  // namespace minillm
