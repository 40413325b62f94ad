// F19: a feed-forward network works on each token by itself; attention does not.

#include "experiments/lessons/lesson.h"
#include "experiments/lessons/sentence.h"
#include "nn/attention.h"
#include "nn/ffn.h"

namespace minillm {

namespace {

/// max |change| of what the sublayer writes for each token, when 苹果 becomes another word.
std::vector<double> changes(const Sublayer& sublayer, int64_t d) {
  Buffer before = sentence_vectors(d, DType::float32);
  Buffer after = sentence_vectors(d, DType::float32);
  copy_values(normal_values({1, d}, DType::float32, "梨").tensor(), after.tensor().rows(apple, 1));
  Tape tape({.record = false});
  Var x = tape.constant(before.tensor().reshape({1, sentence_length, d}));
  Var y = tape.constant(after.tensor().reshape({1, sentence_length, d}));
  const std::vector<double> difference = numbers_of(sub(sublayer.forward(y), sublayer.forward(x)).value());
  std::vector<double> largest;
  for (int64_t t = 0; t < sentence_length; ++t) {
    const auto row = difference.begin() + t * d;
    largest.push_back(largest_of({row, row + d}));
  }
  return largest;
}

}  // namespace

Numbers per_token(Page& page) {
  page.say(
      {"Question: in 小明把苹果给了小王, 苹果 (apple) becomes 梨 (pear). Which tokens notice?\n"
       "Largest change of what each sublayer writes, token by token:\n",
       "问题：小明把苹果给了小王，把 苹果 换成 梨，哪些 token 会察觉？\n"
       "每个子层写出的向量，逐个 token 的最大变化：\n"});
  ModelConfig config;
  config.vocab_size = sentence_length;
  config.d_model = 64;
  config.n_heads = 4;
  config.d_ff = 176;
  derive(config, 0, sentence_length);
  ModelConfig bidirectional = config;
  bidirectional.causal = false;
  RopeTable rope(config);
  ParameterStore store;
  const auto ffn = make_ffn(config, Scope(store, "ffn"));
  const auto attention = make_mixer(config, Scope(store, "causal"), rope, 0);
  const auto both_ways = make_mixer(bidirectional, Scope(store, "bidirectional"), rope, 0);
  store.allocate(DType::float32);
  store.initialize(1);
  rope.allocate(DType::float32);

  std::vector<std::string> headings = {""};
  headings.insert(headings.end(), sentence_tokens.begin(), sentence_tokens.end());
  Table table(headings);
  Numbers numbers;
  const auto row = [&](const char* key, const Text& name, const Sublayer& sublayer) {
    numbers[key] = changes(sublayer, config.d_model);
    std::vector<std::string> cells = {page.in(name)};
    for (const double change : numbers[key]) {
      cells.push_back(change == 0 ? "0" : fmt::format("{:.2e}", change));
    }
    table.add_row(cells);
  };
  row("ffn", {"feed-forward network", "前馈网络"}, *ffn);
  row("causal", {"causal attention", "因果注意力"}, *attention);
  row("bidirectional", {"bidirectional attention", "双向注意力"}, *both_ways);
  page.show(table);
  page.say(
      {"The feed-forward network: exactly 0 everywhere else. It cannot carry anything from one token to another.\n"
       "Attention is the only part that does, in a causal model from earlier tokens to later ones.\n"
       "Next: what does a neuron of that network do to its token? See ffn-neurons.",
       "前馈网络：别处恰好是 0。它没法把任何东西从一个 token 搬到另一个 token。\n"
       "只有注意力能搬，因果模型里只从前往后搬。\n"
       "下一步：前馈网络的一个神经元对它的 token 做什么？见 ffn-neurons。"});
  return numbers;
}

}  // namespace minillm
