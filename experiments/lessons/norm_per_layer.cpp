// N16: whatever size the stream has, a sublayer reads vectors of size 1.

#include "experiments/lessons/forward_pass.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/subject.h"
#include "experiments/lessons/values.h"

namespace minillm {

namespace {

struct Sizes {
  std::vector<std::string> names;
  std::vector<double> before;  ///< RMS of what each norm reads
  std::vector<double> behind;  ///< and of what it hands on
};

Sizes sizes_of(const Transformer& model, const std::vector<int32_t>& ids, int64_t batch_size) {
  Tape tape(to_look_at);
  model.logits(tape, ids, batch_size);
  Sizes sizes;
  for (const Node* norm : stream_norms(tape)) {
    sizes.names.emplace_back(std::string_view(norm->scope).substr(std::string_view("model.").size()));
    sizes.before.push_back(rms_of(numbers_of(tape.node(norm->inputs[0]).value)));
    sizes.behind.push_back(rms_of(numbers_of(norm->value)));
  }
  return sizes;
}

}  // namespace

Numbers norm_per_layer(Page& page) {
  page.say(
      {"Question: the stream grows from layer to layer. What size does a sublayer read?\n"
       "RMS over all tokens in front of each norm and behind it, before training and after:\n",
       "问题：流一层比一层大，子层读到的是多大？\n"
       "所有 token 的均方根，在每个归一化之前与之后，训练前与训练后：\n"});
  const Subject subject = subject_of(page);
  const int64_t T = std::min<int64_t>(32, subject.config.data.seq_len);
  const std::vector<int32_t> ids = subject.validation(8, T);
  const int64_t batch_size = static_cast<int64_t>(ids.size()) / T;
  const Sizes at_start = sizes_of(*subject.untrained(), ids, batch_size);
  const Sizes trained = sizes_of(*subject.model, ids, batch_size);
  if (trained.names.empty()) {
    fail_input({.where = page.run(), .what = "has no norm on its stream", .found = subject.config.model.norm});
  }

  Table table({page.in({"norm", "归一化"}), page.in({"before training: stream", "训练前：流"}),
               page.in({"behind", "之后"}), page.in({"trained: stream", "训练后：流"}), page.in({"behind ", "之后 "})});
  for (size_t i = 0; i < trained.names.size(); ++i) {
    table.add_row({trained.names[i], fmt::format("{:.4f}", at_start.before[i]),
                   fmt::format("{:.4f}", at_start.behind[i]), fmt::format("{:.4f}", trained.before[i]),
                   fmt::format("{:.4f}", trained.behind[i])});
  }
  page.show(table);
  page.say(
      {"Before training every sublayer reads size 1 whatever the stream's (a little less where the stream is so small\n"
       "that eps = {} shows). Training changes that only through the gains. A norm takes away each token's overall\n"
       "size and nothing else: its direction passes.\n"
       "Next: and the mean, which RMSNorm leaves? See zero-mean.",
       "训练前，不管流多大，子层读到的都是 1（流小到 eps = {} 看得出来时略小一点）。\n"
       "训练只能通过增益改变它。归一化去掉的是每个 token 的整体大小，仅此而已：方向原样通过。\n"
       "下一步：RMSNorm 留下的均值呢？见 zero-mean。"},
      subject.config.model.norm_eps);
  return {{"start_before", at_start.before},
          {"start_behind", at_start.behind},
          {"trained_before", trained.before},
          {"trained_behind", trained.behind}};
}

}  // namespace minillm
