#include "data/loader.h"

#include "core/error.h"
#include "core/rng.h"

namespace minillm {

namespace {

constexpr double hidden_share = 0.15;
constexpr int32_t hidden_id = 0;  // <unk>, which no text is made of: unknown characters are written as bytes

void resize(Batch& batch, int64_t count, int64_t seq_len) {
  batch.batch_size = count;
  batch.seq_len = seq_len;
  batch.inputs.resize(static_cast<size_t>(count * seq_len));
  batch.targets.resize(static_cast<size_t>(count * seq_len));
}

void copy_window(const Tokens& tokens, int64_t seq_len, int64_t window, int64_t row, Batch& batch) {
  int32_t* inputs = batch.inputs.data() + row * seq_len;
  int32_t* targets = batch.targets.data() + row * seq_len;
  const int64_t start = window * seq_len;
  for (int64_t t = 0; t < seq_len; ++t) {
    inputs[t] = tokens[start + t];
    targets[t] = tokens[start + t + 1];
  }
}

void mask_row(RandomStream draws, int64_t row, Batch& batch) {
  int32_t* inputs = batch.inputs.data() + row * batch.seq_len;
  int32_t* targets = batch.targets.data() + row * batch.seq_len;
  for (int64_t t = 0; t < batch.seq_len; ++t) {
    const bool is_hidden = draws.uniform() < hidden_share;
    targets[t] = is_hidden ? inputs[t] : -1;
    inputs[t] = is_hidden ? hidden_id : inputs[t];
  }
}

}  // namespace

int64_t window_count(const Tokens& tokens, int64_t seq_len) {
  check(seq_len >= 1, "seq_len is at least 1, found {}", seq_len);
  return tokens.size() == 0 ? 0 : (tokens.size() - 1) / seq_len;
}

Loader::Loader(const Tokens& tokens, int64_t seq_len, std::string_view order, uint64_t seed, std::string_view split,
               std::string_view objective)
    : tokens_(tokens),
      seq_len_(seq_len),
      windows_(window_count(tokens, seq_len)),
      shuffled_(order == "shuffled"),
      masked_(objective == "masked"),
      key_(random_key(seed, "data order")),
      mask_key_(random_key(seed, "hidden tokens")) {
  check(masked_ || objective == "next", "unknown objective {}", objective);
  if (order != "shuffled" && order != "sequential") {
    fail_input({.where = "data.order",
                .what = "unknown order",
                .found = std::string(order),
                .expected = "shuffled or sequential"});
  }
  if (windows_ == 0) {
    fail_input({.where = fmt::format("the {} split", split),
                .what = fmt::format("is shorter than one window: needs {} tokens, has {}", seq_len + 1, tokens.size()),
                .hint = "prepare more text, or lower data.seq_len"});
  }
}

int64_t Loader::window_of(uint64_t sample) const {
  const uint64_t windows = static_cast<uint64_t>(windows_);
  if (!shuffled_) {
    return static_cast<int64_t>(sample % windows);
  }
  const Permutation permutation(random_key(key_, sample / windows), windows);
  return static_cast<int64_t>(permutation(sample % windows));
}

void Loader::batch(uint64_t first_sample, int64_t count, Batch& batch) const {
  resize(batch, count, seq_len_);
  for (int64_t row = 0; row < count; ++row) {
    const uint64_t sample = first_sample + static_cast<uint64_t>(row);
    copy_window(tokens_, seq_len_, window_of(sample), row, batch);
    if (masked_) {
      mask_row(RandomStream(random_key(mask_key_, sample)), row, batch);
    }
  }
}

Batch Loader::batch(uint64_t first_sample, int64_t count) const {
  Batch result;
  batch(first_sample, count, result);
  return result;
}

}  // namespace minillm
