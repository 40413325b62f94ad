// D24: parts added one at a time, attention alone, then FFN, residual and norm, and the validation loss each time.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/picture.h"
#include "experiments/lessons/subject.h"

#include <cmath>

namespace minillm {

namespace {

struct Rung {
  const char* key;
  Text name;
  std::vector<std::string> settings;
};

// ReLU, because a gated unit is of second order in what it reads, and without a norm that is small.
const Rung rungs[] = {
    {"attention", {"attention alone", "只有注意力"}, {"model.ffn=none", "model.residual=none", "model.norm=none"}},
    {"ffn", {"+ FFN", "+ FFN"}, {"model.ffn=relu", "model.residual=none", "model.norm=none"}},
    {"residual", {"+ residual", "+ 残差"}, {"model.ffn=relu", "model.norm=none"}},
    {"norm", {"+ norm", "+ 归一化"}, {"model.ffn=relu"}},
};
constexpr int64_t rung_steps = 480;

}  // namespace

Numbers ladder(Page& page) {
  page.say(
      {"Question: which of a Transformer's parts does the learning? Four models of four layers, each with one part\n"
       "more, trained alike on the built-in corpus, whose entropy is known.\n",
       "问题：Transformer 的哪个部件让它学得动？四个四层的模型，每个多一个部件，\n"
       "在内置语料上同样训练；这份语料的熵是已知的。\n"});
  Numbers numbers;
  std::vector<Series> series;
  Table table({page.in({"val loss of", "验证损失"}), page.in({"parameters", "参数"}), page.in({"step 0", "第 0 步"}),
               std::to_string(rung_steps / 4), std::to_string(rung_steps / 2), std::to_string(3 * rung_steps / 4),
               std::to_string(rung_steps)});
  double entropy_rate = 0;
  double unigram = 0;
  int64_t vocabulary = 0;
  for (const Rung& rung : rungs) {
    std::vector<std::string> overrides = rung.settings;
    overrides.push_back(fmt::format("train.steps={}", rung_steps));
    const SmallTraining trained = train_small(overrides, true);
    entropy_rate = trained.entropy_rate;
    vocabulary = trained.subject.config.model.vocab_size;
    unigram = trained.subject.data.unigram_loss.value_or(0);
    std::vector<std::string> cells = {page.in(rung.name), std::to_string(trained.subject.model->parameters().count())};
    series.push_back({page.in(rung.name), {}, trained.val_loss});
    for (size_t quarter = 0; quarter < trained.val_loss.size(); ++quarter) {
      cells.push_back(fmt::format("{:.4f}", trained.val_loss[quarter]));
      series.back().x.push_back(static_cast<double>(rung_steps) / 4 * static_cast<double>(quarter));
    }
    table.add_row(cells);
    numbers[rung.key] = trained.val_loss;
  }
  numbers["unigram"] = {unigram};
  numbers["entropy"] = {entropy_rate};
  page.show(table);
  page.show(series, {"step", "步"}, {"val loss", "验证损失"});
  page.draw(line_picture(page.in({"one part more each time", "每次多一个部件"}), page.in({"step", "步"}),
                         page.in({"val loss, nats", "验证损失，nat"}), series));
  page.say(
      {"Marks to read it by: {:.4f} = ln V is where a model begins that knows nothing, {:.4f} is what the\n"
       "frequencies of words are worth (unigram), {:.4f} is the entropy of the corpus, below which nothing goes.\n"
       "After a quarter of the steps the two rungs without a residual connection know frequencies at most, the two\n"
       "with it have long been using context: the stream is what makes depth trainable. The FFN pays off as soon as\n"
       "something is learned. The norm's step, {:.4f} at the end, is too small at four layers for one seed to rank.\n"
       "(Matrices start at 1/sqrt(width), not at minillm's 0.02, with which attention alone would not move at all;\n"
       "parameters differ by the FFN's.)\n"
       "Next: from a model's logits to a word. See temperature.",
       "几条参照线：{:.4f} = ln V，一无所知的模型从这里起步；{:.4f}，只知道词频的水平（unigram）；\n"
       "{:.4f}，语料的熵，谁也低不过它。走完四分之一，没有残差的两级至多学到词频，有残差的两级早已用上了上下文：\n"
       "让深度训练得动的，是残差流。FFN 从学得动的那一刻起就有用。\n"
       "归一化这一步到最后只差 {:.4f}，四层时一个种子排不出高下。\n"
       "（矩阵起始标准差是 1/sqrt(宽度)，不是 minillm 默认的 0.02，否则只有注意力的那级根本不动；参数量差在 FFN。）\n"
       "下一步：从模型的 logit 到一个词，见 temperature。"},
      std::log(static_cast<double>(vocabulary)), unigram, entropy_rate,
      numbers["residual"].back() - numbers["norm"].back());
  return numbers;
}

}  // namespace minillm
