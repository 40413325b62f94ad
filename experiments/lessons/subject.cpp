#include "experiments/lessons/subject.h"

#include "data/synthetic.h"
#include "experiments/lessons/values.h"
#include "nn/tensor_count.h"
#include "train/complete_config.h"
#include "train/evaluate.h"
#include "train/loaded_run.h"
#include "train/trainer.h"

#include <algorithm>

namespace minillm {

namespace {

constexpr std::string_view small_config = R"(
[model]
d_model = 32
n_layers = 4
n_heads = 4
d_ff = 96

[data]
path = "synthetic"
seq_len = 32

[optim]
lr = 5e-3
warmup_steps = 30

[train]
steps = 240
batch_size = 16
eval_tokens = 8192
seed = 1
)";

double loss_of(const Subject& subject) {
  const DataConfig& data = subject.config.data;
  const TrainConfig& train = subject.config.train;
  const Loader windows = validation_windows(subject.data.val, data);
  return evaluate(*subject.model, windows, train.eval_tokens / data.seq_len, train.batch_size, tape_options(train))
      .loss;
}

/// Multiplies each matrix of the layers to a deviation of 1/sqrt(in).
void resize_to_fan_in(const Transformer& model) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (layer_of(tensor.name) < 0 || tensor.value.shape.rank() != 2) {
      continue;
    }
    const double factor =
        1 / (std::sqrt(static_cast<double>(tensor.value.shape[1])) * rms_of(numbers_of(tensor.value)));
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      tensor.value.set(i, factor * tensor.value.at(i));
    }
  }
}

}  // namespace

std::vector<int32_t> Subject::validation(int64_t sequences, int64_t T) const {
  const Loader windows = validation_windows(data.val, config.data);
  const Batch batch = windows.batch(0, std::min(sequences, windows.windows()));
  std::vector<int32_t> ids;
  for (int64_t b = 0; b < batch.batch_size; ++b) {
    const auto start = batch.inputs.begin() + b * batch.seq_len;
    ids.insert(ids.end(), start, start + std::min(T, batch.seq_len));
  }
  return ids;
}

std::unique_ptr<Transformer> Subject::untrained() const {
  auto fresh = std::make_unique<Transformer>(config.model);
  fresh->allocate(model->parameters().dtype(), config.train.seed, false);
  return fresh;
}

std::string Subject::word(int32_t id) const {
  if (tokenizer == nullptr) {
    return std::to_string(id);
  }
  const std::string piece = tokenizer->piece(id);
  const size_t first = piece.find_first_not_of(' ');
  std::string word = first == std::string::npos ? piece : piece.substr(first);
  std::replace(word.begin(), word.end(), '\n', ' ');
  return word.substr(0, word.find_last_not_of(' ') + 1);
}

SmallTraining train_small(const std::vector<std::string>& overrides, bool fan_in) {
  Synthetic corpus = make_synthetic();
  SmallTraining result;
  result.entropy_rate = corpus.entropy_rate;
  Subject& subject = result.subject;
  subject.data = std::move(corpus.data);
  LoadedConfig loaded = parse_config(small_config, "the lesson's config", overrides);
  complete_config(loaded, &subject.data);
  subject.config = loaded.config;
  subject.tokenizer = load_tokenizer(subject.data.tokenizer, "synthetic");
  subject.model = std::make_unique<Transformer>(subject.config.model);
  subject.model->allocate(model_dtype(subject.config.train), subject.config.train.seed);
  if (fan_in) {
    resize_to_fan_in(*subject.model);
  }

  const TrainConfig& train = subject.config.train;
  const Loader windows(subject.data.train, subject.config.data.seq_len, subject.config.data.order, train.seed);
  Trainer trainer(subject.config, *subject.model, windows);
  result.val_loss.push_back(loss_of(subject));
  while (trainer.steps_done() < train.steps) {
    trainer.step();
    if (trainer.steps_done() % (train.steps / 4) == 0) {
      result.val_loss.push_back(loss_of(subject));
    }
  }
  return result;
}

Subject subject_of(Page& page) {
  if (!page.run().empty()) {
    LoadedRun run = load_run(page.run(), "last");
    TokenFile data = open_data_for(run, "");
    page.say({"The model: {}, after {} steps.\n", "模型：{}，训练了 {} 步。\n"}, run.checkpoint, run.step);
    return {run.config, std::move(run.model), std::move(run.tokenizer), std::move(data)};
  }
  SmallTraining trained = train_small();
  page.say(
      {"The model: {} parameters, trained here for {} steps on the built-in corpus, to a validation loss of {:.3f}\n"
       "(no model can go below {:.3f}). Another: --run RUN.\n",
       "模型：{} 个参数，刚在内置语料上训练了 {} 步，验证损失 {:.3f}（任何模型都低不过 {:.3f}）。\n"
       "想看别的模型：--run RUN。\n"},
      trained.subject.model->parameters().count(), trained.subject.config.train.steps, trained.val_loss.back(),
      trained.entropy_rate);
  return std::move(trained.subject);
}

}  // namespace minillm
