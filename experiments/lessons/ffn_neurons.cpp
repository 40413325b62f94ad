// D23: a neuron of a feed-forward network reads a direction, has a threshold, and writes a direction.

#include "core/text.h"
#include "experiments/lessons/forward_pass.h"
#include "experiments/lessons/lesson.h"
#include "experiments/lessons/subject.h"
#include "experiments/lessons/values.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace minillm {

namespace {

constexpr int64_t read_sequences = 64;
constexpr size_t shown_neurons = 4;
constexpr size_t shown_contexts = 3;
constexpr size_t shown_words = 4;
constexpr size_t context_words = 5;  // before that many a token is not looked at

/// Indices of the largest first, `count` of them.
std::vector<size_t> largest_first(const std::vector<double>& numbers, size_t count) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] > numbers[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

Tensor tensor_named(const Transformer& model, const std::string& name) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (tensor.name == name) {
      return tensor.value;
    }
  }
  return {};
}

/// The units of the last layer's network over the tokens of `ids`.
struct Units {
  const Subject& subject;
  std::vector<int32_t> ids;  ///< [B, T]
  size_t T;
  Tensor values;  ///< [B, T, f], behind the activation
  Tensor down;    ///< down_proj [d, f]
  Tensor head;    ///< the output matrix [V, d]

  size_t count() const { return static_cast<size_t>(values.shape[-1]); }

  /// 0 where too few words stand before to be shown.
  std::vector<double> over_tokens(size_t unit) const {
    std::vector<double> activations(ids.size(), 0.0);
    for (size_t at = 0; at < ids.size(); ++at) {
      if (at % T + 1 >= context_words) {
        activations[at] = values.at(static_cast<int64_t>(at * count() + unit));
      }
    }
    return activations;
  }

  /// The unit's column of down_proj against every row of the output matrix: how much likelier it makes each word.
  std::vector<double> writes(size_t unit) const {
    const int64_t d = down.shape[0];
    std::vector<double> scores(static_cast<size_t>(head.shape[0]), 0.0);
    for (size_t word = 0; word < scores.size(); ++word) {
      for (int64_t i = 0; i < d; ++i) {
        scores[word] +=
            head.at(static_cast<int64_t>(word) * d + i) * down.at(i * down.shape[1] + static_cast<int64_t>(unit));
      }
    }
    return scores;
  }

  /// The words up to and including a token.
  std::string context_of(size_t at) const {
    std::string context;
    for (size_t i = at + 1 - context_words; i <= at; ++i) {
      context += (context.empty() ? "" : " ") + subject.word(ids[i]);
    }
    return context;
  }
};

Units last_layer(const Subject& subject, Tape& tape) {
  const ModelConfig& config = subject.config.model;
  const int64_t T = std::min<int64_t>(32, subject.config.data.seq_len);
  const std::vector<int32_t> ids = subject.validation(read_sequences, T);
  subject.model->logits(tape, ids, static_cast<int64_t>(ids.size()) / T);
  const int64_t layer = config.n_layers - 1;
  return {subject,
          ids,
          static_cast<size_t>(T),
          ffn_units(tape, layer).value,
          tensor_named(*subject.model, fmt::format("model.layers.{}.mlp.down_proj.weight", layer)),
          tensor_named(*subject.model, config.tie_embeddings ? "model.embed_tokens.weight" : "lm_head.weight")};
}

/// What excites a unit, and what it writes. Returns how many words bring it above half of its peak.
size_t show_unit(Page& page, const Units& units, size_t unit) {
  const std::vector<double> activations = units.over_tokens(unit);
  const double peak = *std::max_element(activations.begin(), activations.end());
  std::set<int32_t> excited_by;
  for (size_t at = 0; at < activations.size(); ++at) {
    if (activations[at] > peak / 2) {
      excited_by.insert(units.ids[at]);
    }
  }
  std::vector<std::string> words;
  for (const size_t word : largest_first(units.writes(unit), shown_words)) {
    words.push_back(units.subject.word(static_cast<int32_t>(word)));
  }
  page.say({"neuron {}, above half of its peak for {} of {} words; writes: {}",
            "神经元 {}，有 {} 个词（共 {} 个）使它超过峰值的一半；写：{}"},
           unit, excited_by.size(), units.head.shape[0], join(words));
  std::set<std::string> shown;
  for (const size_t at : largest_first(activations, activations.size())) {
    if (shown.size() == shown_contexts || activations[at] <= 0) {
      break;
    }
    if (shown.insert(units.context_of(at)).second) {
      page.say({"  {:8.3f}  {}", "  {:8.3f}  {}"}, activations[at], units.context_of(at));
    }
  }
  return excited_by.size();
}

}  // namespace

Numbers ffn_neurons(Page& page) {
  page.say(
      {"Question: what does one neuron of a feed-forward network do? A row of the input matrices asks (a direction is\n"
       "read), the activation decides (a threshold), a column of down_proj answers (a direction is written).\n",
       "问题：前馈网络的一个神经元在做什么？输入矩阵的一行在问（读一个方向），激活函数在定（一个阈值），\n"
       "down_proj 的一列在答（写一个方向）。\n"});
  const Subject subject = subject_of(page);
  Tape tape(to_look_at);
  const Units units = last_layer(subject, tape);
  std::vector<double> peaks;
  std::set<size_t> favourites;
  for (size_t unit = 0; unit < units.count(); ++unit) {
    const std::vector<double> activations = units.over_tokens(unit);
    peaks.push_back(*std::max_element(activations.begin(), activations.end()));
    favourites.insert(largest_first(units.writes(unit), 1).front());
  }

  page.say(
      {"The {} neurons of the last layer with the highest peaks over {} tokens: the contexts that excite them most\n"
       "(the last word is where it fires), and the words that what they write makes likelier.\n",
       "最后一层里，{} 个峰值最高的神经元（看了 {} 个 token）：最能激发它的上下文（在最后那个词处激发），\n"
       "以及它写的东西让哪些词更可能出现。\n"},
      shown_neurons, units.ids.size());
  Numbers numbers = {{"neurons", {static_cast<double>(units.count())}},
                     {"favourites", {static_cast<double>(favourites.size())}}};
  for (const size_t unit : largest_first(peaks, shown_neurons)) {
    numbers["peaks"].push_back(peaks[unit]);
    numbers["words"].push_back(static_cast<double>(show_unit(page, units, unit)));
  }
  page.say({"\nThe layer's {} neurons have {} different words that they favour most, of {}: several neurons serve one "
            "word,\n"
            "and one neuron several (superposition). A neuron is seldom a concept.\n"
            "Next: which part makes a model learn at all? See ladder.",
            "\n这一层 {} 个神经元最偏爱的词一共只有 {} 个（词表 {}）：几个神经元服务同一个词，\n"
            "一个神经元也服务几个词（叠加）。一个神经元很少就是一个概念。\n"
            "下一步：到底哪个部件让模型学得动？见 ladder。"},
           units.count(), favourites.size(), units.head.shape[0]);
  return numbers;
}

}  // namespace minillm
