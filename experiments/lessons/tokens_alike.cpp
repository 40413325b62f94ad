// D05: in a deep stack of attention without a residual connection all tokens become the same vector.

#include "core/text.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"
#include "experiments/lessons/values.h"
#include "generate/layer_statistics.h"

#include <cmath>

namespace minillm {

namespace {

constexpr int64_t layers = 12;
constexpr int64_t T = 5;  // 小明 把 苹果 给了 小王

struct Alike {
  std::vector<double> cosine;  ///< of two tokens, over all pairs, behind each layer
  std::vector<double> ratio;   ///< |X - mean| / |X|: what still tells tokens apart
};

/// |X - 1 mean(X)| / |X| (Frobenius) of stream [1, T, d]
double distinct_share(const Tensor& stream) {
  const int64_t d = stream.shape[2];
  std::vector<double> rest = numbers_of(stream);
  const double whole = norm_of(rest);
  for (int64_t i = 0; i < d; ++i) {
    double mean = 0;
    for (int64_t t = 0; t < T; ++t) {
      mean += stream.at(t * d + i) / T;
    }
    for (int64_t t = 0; t < T; ++t) {
      rest[static_cast<size_t>(t * d + i)] -= mean;
    }
  }
  return norm_of(rest) / whole;
}

Alike look(const std::string& ffn, const std::string& residual) {
  ModelConfig config;
  config.vocab_size = T;
  config.d_model = 64;
  config.n_layers = layers;
  config.n_heads = 4;
  config.d_ff = 176;
  config.ffn = ffn;
  config.residual = residual;
  derive(config, 0, T);
  Transformer model(config);
  model.allocate(DType::float32, 1, false);
  const std::vector<int32_t> sentence = {0, 1, 2, 3, 4};

  Alike alike;
  for (const LayerStatistics& layer : layer_statistics(model, sentence, 1)) {
    alike.cosine.push_back(layer.token_cosine);
  }
  Tape tape({.record = false, .training = false, .retain = true});
  for (const Var& stream : model.trace(tape, sentence, 1).streams) {
    alike.ratio.push_back(distinct_share(stream.value()));
  }
  return alike;
}

}  // namespace

Numbers tokens_alike(Page& page) {
  page.say({"Question: 小明 / 把 / 苹果 / 给了 / 小王 are five different vectors. Are they still, {} layers on?\n"
            "Attention averages. Measured behind each layer of a model before training, causal, d {}:\n"
            "the cosine of two tokens, over all pairs; and |X - mean| / |X|, what is left to tell tokens apart.\n",
            "问题：小明 / 把 / 苹果 / 给了 / 小王 是五个不同的向量，过了 {} 层还不同吗？\n"
            "注意力是在取平均。模型未经训练，因果，d = {}，在每层之后测：\n"
            "两两之间的余弦；以及 |X - 均值| / |X|，即还剩多少能区分各个 token。\n"},
           layers, 64);
  const Alike attention = look("none", "none");
  const Alike with_ffn = look("swiglu", "none");
  const Alike attention_on = look("none", "plain");
  const Alike both_on = look("swiglu", "plain");

  const std::string off = page.in({"residual off", "残差关"});
  const std::string on = page.in({"residual on", "残差开"});
  Table table({page.in({"layer", "层"}), page.in({"attention, ", "注意力，"}) + off, page.in({"ratio", "比值"}),
               page.in({"with FFN, ", "加 FFN，"}) + off, page.in({"ratio ", "比值 "}),
               page.in({"attention, ", "注意力，"}) + on, page.in({"with FFN, ", "加 FFN，"}) + on});
  for (size_t layer = 0; layer < layers; layer += layer < 3 ? 1 : 2) {
    const auto cell = [&](double value) { return fmt::format("{:.4f}", value); };
    table.add_row({std::to_string(layer + 1), cell(attention.cosine[layer]), cell(attention.ratio[layer + 1]),
                   cell(with_ffn.cosine[layer]), cell(with_ffn.ratio[layer + 1]), cell(attention_on.cosine[layer]),
                   cell(both_on.cosine[layer])});
  }
  page.show(table);
  const std::vector<Series> series = {
      over_layers(page.in({"attention, ", "注意力，"}) + off, attention.ratio, 0),
      over_layers(page.in({"with FFN, ", "加 FFN，"}) + off, with_ffn.ratio, 0),
      over_layers(page.in({"attention, ", "注意力，"}) + on, attention_on.ratio, 0),
      over_layers(page.in({"with FFN, ", "加 FFN，"}) + on, both_on.ratio, 0),
  };
  page.draw(line_picture(page.in({"what still tells tokens apart", "还剩多少能区分 token"}), page.in({"layer", "层"}),
                         "|X - mean| / |X|", series));
  page.say({"Without the residual connection cosines go to 1 ({:.4f}) and the ratio to 0 ({:.4f}): five copies of one\n"
            "vector, and no later layer can tell 苹果 from 小王. A feed-forward network alone does not stop it\n"
            "({:.4f}). With `x +` each token keeps its own embedding: {:.4f} with attention alone, {:.4f} with both.\n"
            "Next: what `x +` does to the gradient. See residual-on.",
            "没有残差，余弦趋于 1（{:.4f}），比值趋于 0（{:.4f}）：五份一样的向量，后面的层再也分不清 苹果 和 小王。\n"
            "光加 FFN 也挡不住（{:.4f}）。有了「x +」，每个 token 都留着自己的嵌入：只有注意力时 {:.4f}，两者都有时 "
            "{:.4f}。\n"
            "下一步：「x +」对梯度做了什么，见 residual-on。"},
           attention.cosine.back(), attention.ratio.back(), with_ffn.cosine.back(), attention_on.cosine.back(),
           both_on.cosine.back());
  return {{"cosine_attention", attention.cosine},
          {"ratio_attention", attention.ratio},
          {"cosine_ffn", with_ffn.cosine},
          {"ratio_ffn", with_ffn.ratio},
          {"cosine_attention_residual", attention_on.cosine},
          {"cosine_ffn_residual", both_on.cosine},
          {"ratio_attention_residual", attention_on.ratio},
          {"ratio_ffn_residual", both_on.ratio}};
}

}  // namespace minillm
