// D08: BatchNorm's output for a sentence depends on which other sentences stand in the batch.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/sentence.h"
#include "nn/norm.h"

namespace minillm {

namespace {

constexpr int64_t d = 16;

/// [2, 5, d]: the sentence, then other words, named for their draws and so much larger.
Buffer batch_with(std::string_view neighbour, double size) {
  Buffer batch({2, sentence_length, d}, DType::float64);
  const Tensor rows = batch.tensor().reshape({2 * sentence_length, d});
  copy_values(sentence_vectors(d).tensor(), rows.rows(0, sentence_length));
  const Buffer others = normal_values({sentence_length, d}, DType::float64, neighbour);
  for (int64_t i = 0; i < others.tensor().numel(); ++i) {
    rows.set(sentence_length * d + i, size * others.tensor().at(i));
  }
  return batch;
}

/// What the norm makes of the first sentence of a batch.
std::vector<double> first_sentence(const Norm& norm, const Tensor& batch) {
  Tape tape({.record = false});
  return numbers_of(slice(norm.forward(tape.constant(batch)), 0, 0, 1).value());
}

/// max |change| of the sentence's activations from one batch to the other.
double change(const char* name, const Tensor& one, const Tensor& other) {
  ModelConfig config;
  config.norm = name;
  config.norm_eps = 1e-5;
  ParameterStore store;
  const auto norm = make_norm(config, Scope(store, "norm"), d);
  store.allocate(DType::float64);
  store.initialize(1);
  std::vector<double> difference = first_sentence(*norm, one);
  const std::vector<double> beside_other = first_sentence(*norm, other);
  for (size_t i = 0; i < difference.size(); ++i) {
    difference[i] -= beside_other[i];
  }
  return largest_of(difference);
}

}  // namespace

Numbers batchnorm_neighbours(Page& page) {
  page.say({"Question: 小明把苹果给了小王 stands in a batch beside another sentence. Does it matter which?\n"
            "The same five vectors of {} channels, in batches of two; in the second batch the neighbour is another\n"
            "sentence, once of the same size and once three times as large. Largest change of the five vectors:\n",
            "问题：小明把苹果给了小王 和另一句话同在一批，旁边是哪一句有关系吗？\n"
            "同样的五个向量，{} 个通道，两句一批；第二批换了邻句，一次大小相仿，一次大到三倍。\n"
            "这五个向量变化最大的一处：\n"},
           d);
  const Buffer first = batch_with("a neighbour", 1);
  const Buffer alike = batch_with("another neighbour", 1);
  const Buffer large = batch_with("another neighbour", 3);
  Numbers numbers;
  Table table({page.in({"norm", "归一化"}), page.in({"another neighbour", "换邻句"}),
               page.in({"a neighbour three times as large", "换三倍大的邻句"})});
  for (const char* name : {"batchnorm", "layernorm", "rmsnorm"}) {
    numbers[name] = {change(name, first.tensor(), alike.tensor()), change(name, first.tensor(), large.tensor())};
    table.add_row({name, fmt::format("{:.4f}", numbers[name][0]), fmt::format("{:.4f}", numbers[name][1])});
  }
  page.show(table);
  page.say(
      {"Under BatchNorm a sentence's values move by its neighbours', whoever else is served at that moment; under\n"
       "LayerNorm and RMSNorm by nothing at all. Causality breaks as well: statistics run over all positions, so a\n"
       "token's value depends on those behind it.\n"
       "Next: statistics of a token's own channels. Which? See norm-invariance.",
       "用 BatchNorm，一句话的数值会被邻句带着走，同一时刻还在服务谁都有影响；\n"
       "用 LayerNorm 和 RMSNorm，一点不变。因果性也破了：统计量横跨所有位置，前面的 token 会受后面的影响。\n"
       "下一步：改用 token 自己各通道的统计量。用哪些？见 norm-invariance。"});
  return numbers;
}

}  // namespace minillm
