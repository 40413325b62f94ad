#include "train/samples.h"

#include "core/json_text.h"
#include "core/log.h"
#include "core/utf8.h"
#include "generate/generator.h"
#include "train/trainer.h"

namespace minillm {

namespace {

constexpr int64_t sample_tokens = 64;

}  // namespace

SampleWriter::SampleWriter(std::string path, int64_t keep_bytes, const TokenFile& data)
    : log_(std::move(path), keep_bytes) {
  if (!data.tokenizer.empty()) {
    tokenizer_ = load_tokenizer(data.tokenizer, data.path);
  }
}

void SampleWriter::write(int64_t updates, const Transformer& model, const Config& config) {
  if (tokenizer_ == nullptr) {
    return;
  }
  Sampler sampler({}, config.train.seed);
  const int32_t prompt[] = {tokenizer_->bos_id()};
  const Generation generation =
      generate(model, prompt, sample_tokens, sampler, rules_of(*tokenizer_), tape_options(config.train));
  const std::string text = valid_utf8(tokenizer_->decode(generation.tokens));
  log_.append(fmt::format(R"({{"step":{},"text":{}}})", updates, json_string(text)));
  log_info("sample: {}", text);
}

}  // namespace minillm
