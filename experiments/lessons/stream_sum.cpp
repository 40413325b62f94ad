// D22: the final stream is the embedding plus all writes, and so is every logit.

#include "autograd/ops.h"
#include "experiments/lessons/forward_pass.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/subject.h"
#include "experiments/lessons/values.h"

#include <algorithm>

namespace minillm {

namespace {

constexpr int64_t T = 3;  // a determiner and an animal: the verb must agree with both

/// The last token's row of x [1, T, d].
std::vector<double> last_row(const Tensor& x) {
  const std::vector<double> all = numbers_of(x);
  return {all.end() - x.shape[2], all.end()};
}

/// One summand of the last token's final vector.
struct Write {
  std::string name;
  std::vector<double> vector;
};

/// The embedding, then what each sublayer wrote.
std::vector<Write> writes_of(Tape& tape) {
  const std::vector<const Node*> additions = stream_writes(tape);
  std::vector<Write> writes = {{"embed_tokens", last_row(tape.node(additions.front()->inputs[0]).value)}};
  for (const Node* addition : additions) {
    const std::string_view scope = std::string_view(addition->scope).substr(std::string_view("model.layers.").size());
    writes.push_back(
        {std::string(scope.substr(0, scope.rfind("_residual"))), last_row(tape.node(addition->inputs[1]).value)});
  }
  return writes;
}

/// max |embedding + all writes - last stream| over all tokens, summed in double.
double largest_gap(Tape& tape, const Tensor& last_stream) {
  const std::vector<const Node*> additions = stream_writes(tape);
  std::vector<double> sum = numbers_of(tape.node(additions.front()->inputs[0]).value);
  for (const Node* addition : additions) {
    const Tensor& write = tape.node(addition->inputs[1]).value;
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += write.at(static_cast<int64_t>(i));
    }
  }
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] -= last_stream.at(static_cast<int64_t>(i));
  }
  return largest_of(sum);
}

/// What a summand of the stream adds to a word's logit. The final norm divides by one number for the whole token, so
/// that a sum of vectors stays a sum of logits.
double logit_of(const std::vector<double>& vector, double rms, const Tensor& gain, const Tensor& word_row) {
  double logit = 0;
  for (size_t i = 0; i < vector.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    logit += vector[i] / rms * gain.at(at) * word_row.at(at);
  }
  return logit;
}

}  // namespace

Numbers stream_sum(Page& page) {
  page.say({"Question: x <- x + F(x), again and again. Is the last x then the embedding plus everything written?\n",
            "问题：x <- x + F(x)，一遍又一遍。最后的 x 是不是就等于嵌入加上所有写入？\n"});
  const Subject subject = train_small().subject;
  const std::vector<int32_t> ids = subject.validation(1, T);
  Tape tape(to_look_at);
  const std::vector<double> scores = last_row(subject.model->logits(tape, ids, 1).value());
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  const Node& final_norm = *stream_norms(tape).back();
  const Tensor& last_stream = tape.node(final_norm.inputs[0]).value;
  const Tensor& gain = tape.node(final_norm.inputs[1]).value;
  const Tensor word_row = subject.model->parameters().named_tensors().front().value.rows(best, 1);  // tied embedding
  const double stream_rms = rms_of(last_row(last_stream));
  const double divisor = std::sqrt(stream_rms * stream_rms + subject.config.model.norm_eps);

  std::string context;
  for (const int32_t id : ids) {
    context += subject.word(id) + " ";
  }
  page.say(
      {"A model trained on the built-in corpus reads: {}...\nIts first choice is \"{}\". What each write adds to that "
       "word's logit:\n",
       "在内置语料上训练的模型读到：{}……\n它的首选是「{}」。每次写入给这个词的 logit 加了多少：\n"},
      context, subject.word(static_cast<int32_t>(best)));
  Table table({page.in({"write", "写入"}), page.in({"RMS", "均方根"}), page.in({"of the logit", "占 logit"})});
  double total = 0;
  std::vector<double> shares;
  for (const Write& write : writes_of(tape)) {
    shares.push_back(logit_of(write.vector, divisor, gain, word_row));
    total += shares.back();
    table.add_row({write.name, fmt::format("{:.3f}", rms_of(write.vector)), fmt::format("{:+.3f}", shares.back())});
  }
  table.add_rule();
  table.add_row({page.in({"sum", "合计"}), fmt::format("{:.3f}", stream_rms), fmt::format("{:+.3f}", total)});
  const double logit = scores[static_cast<size_t>(best)];
  table.add_row({page.in({"the model's own", "模型自己算的"}), "", fmt::format("{:+.3f}", logit)});
  const double difference = largest_gap(tape, last_stream);
  page.show(table);
  page.say(
      {"Yes: embedding + {} writes equals the last stream, largest difference {:.1e} (float32 adds in another order).\n"
       "So the stream is a channel that sublayers share: each reads all that was written and adds its own part,\n"
       "and a prediction can be taken apart into parts with a sender.\n"
       "Next: it grows with every write; what should a sublayer read? See batchnorm-zeros.",
       "是：嵌入 + {} 次写入就是最后的流，最大相差 {:.1e}（float32 相加的顺序不同）。\n"
       "所以残差流是各子层共用的通道：每层读到此前写入的一切，再加上自己的一份；\n"
       "一次预测也就能拆成若干份，每份都知道是谁写的。\n"
       "下一步：每写一次它就更大，子层该读什么？见 batchnorm-zeros。"},
      shares.size() - 1, difference);
  return {{"writes", {static_cast<double>(shares.size() - 1)}},
          {"difference", {difference}},
          {"shares", shares},
          {"logit", {total, logit}}};
}

}  // namespace minillm
