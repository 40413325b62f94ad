// D07: BatchNorm makes a single token, 苹果, all zeros.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/sentence.h"
#include "nn/norm.h"

namespace minillm {

namespace {

constexpr int64_t d = 6;

/// What a norm of the model's table makes of x [B, T, d], fresh parameters.
std::vector<double> normalised(const char* name, const Tensor& x, bool training) {
  ModelConfig config;
  config.norm = name;
  config.norm_eps = 1e-5;
  ParameterStore store;
  const auto norm = make_norm(config, Scope(store, "norm"), d);
  store.allocate(x.dtype);
  store.initialize(1);
  Tape tape({.record = false, .training = training});
  return numbers_of(norm->forward(tape.constant(x)).value());
}

}  // namespace

Numbers batchnorm_zeros(Page& page) {
  page.say(
      {"Question: a model is asked to go on from one token, 苹果. What does its norm make of it?\n"
       "A batch of 1 sequence of 1 token, {} channels. BatchNorm takes mean and variance of each channel over the\n"
       "batch: the mean of one number is the number, its variance 0. (x - x) / sqrt(0 + eps) = 0.\n",
       "问题：让模型从一个 token「苹果」往下写，归一化会把它变成什么？\n"
       "一批只有 1 句，1 个 token，{} 个通道。BatchNorm 对每个通道在整批上求均值和方差：\n"
       "一个数的均值就是它自己，方差是 0。(x - x) / sqrt(0 + eps) = 0。\n"},
      d);
  const Buffer sentence = sentence_vectors(d);
  const Tensor x = sentence.tensor().rows(apple, 1).reshape({1, 1, d});
  const std::vector<double> training = normalised("batchnorm", x, true);
  const std::vector<double> running = normalised("batchnorm", x, false);
  const std::vector<double> layer = normalised("layernorm", x, true);
  const std::vector<double> rms = normalised("rmsnorm", x, true);

  std::vector<std::string> headings = {page.in({"channel", "通道"})};
  for (int64_t i = 0; i < d; ++i) {
    headings.push_back(std::to_string(i));
  }
  Table table(headings);
  const auto row = [&](const std::string& name, const std::vector<double>& numbers) {
    std::vector<std::string> cells = {name};
    for (const double number : numbers) {
      cells.push_back(fmt::format("{:.4f}", number));
    }
    table.add_row(cells);
  };
  row(page.in({"x of 苹果", "苹果 的 x"}), numbers_of(x));
  row(page.in({"BatchNorm, this batch's statistics", "BatchNorm，用本批统计量"}), training);
  row(page.in({"BatchNorm, running averages (0 and 1 here)", "BatchNorm，用滑动平均（这里是 0 和 1）"}), running);
  row("LayerNorm", layer);
  row("RMSNorm", rms);
  page.show(table);
  page.say(
      {"苹果, or any other word: all zeros (beta, once that is learned). Everything the token said is gone.\n"
       "Running averages avoid the zeros and are another function than the one the model was trained with.\n"
       "LayerNorm and RMSNorm take their statistics over the channels of the one token, and never miss a batch.\n"
       "Next: with other sentences in the batch there is a variance. Does that help? See batchnorm-neighbours.",
       "不管是 苹果 还是别的词，一律全零（学到 beta 之后是 beta）：token 说的一切都没了。\n"
       "用滑动平均可以避开零，但那已不是训练时的那个函数。\n"
       "LayerNorm 和 RMSNorm 的统计量取自这一个 token 的各个通道，批里有没有别人都一样。\n"
       "下一步：批里有别的句子，就有方差了。那样行吗？见 batchnorm-neighbours。"});
  return {{"batchnorm", training}, {"running", running}, {"layernorm", layer}, {"rmsnorm", rms}, {"x", numbers_of(x)}};
}

}  // namespace minillm
