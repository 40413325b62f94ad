#include "generate/decode_bench.h"

#include "core/read_bandwidth.h"
#include "core/rng.h"
#include "generate/decoder.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace minillm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int prefill_passes = 5;
constexpr int64_t warmup_tokens = 4;

/// Weights that are multiplied for each token: all but the embedding's other rows, unless it is the head too.
double bytes_read(const Transformer& model, const DecodingWeights* rounded) {
  double bytes = 0;
  const bool is_tied = model.config().tie_embeddings;
  for (const Parameter& parameter : model.parameters().parameters()) {
    if (parameter.name == "model.embed_positions.weight" ||
        (parameter.name == "model.embed_tokens.weight" && !is_tied)) {
      continue;
    }
    const size_t rounded_bytes = rounded != nullptr ? rounded->bytes_of(parameter) : 0;
    bytes += static_cast<double>(rounded_bytes > 0 ? rounded_bytes : parameter.value.bytes());
  }
  return bytes;
}

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

DecodeBenchResult decode_bench(const Transformer& model, const DecodingWeights* rounded, int64_t prompt_tokens,
                               int64_t tokens, TapeOptions options,
                               const std::function<void(const std::function<void()>&)>& after_warmup) {
  DecodeBenchResult result;
  options.decoding = rounded;
  const int64_t positions = model.config().max_seq_len;
  result.prompt_tokens = std::clamp<int64_t>(prompt_tokens, 1, std::max<int64_t>(1, positions - warmup_tokens - 2));
  result.weight_bytes = bytes_read(model, rounded);
  result.read_gigabytes_per_s = read_gigabytes_per_s(static_cast<size_t>(result.weight_bytes));
  RandomStream random(random_key(0, "decode tokens"));
  std::vector<int32_t> ids(static_cast<size_t>(positions));
  std::generate(ids.begin(), ids.end(),
                [&] { return static_cast<int32_t>(random.below(static_cast<uint64_t>(model.config().vocab_size))); });
  const std::span<const int32_t> all = ids;
  Decoder decoder(model, positions, options);
  result.prefill_seconds = 1e9;
  for (int pass = 0; pass < prefill_passes; ++pass) {
    decoder.clear();
    const double seconds = seconds_of([&] { decoder.read(all.first(static_cast<size_t>(result.prompt_tokens))); });
    result.prefill_seconds = std::min(result.prefill_seconds, seconds);
  }
  const auto read_one = [&] { decoder.read(all.subspan(static_cast<size_t>(decoder.positions()), 1)); };
  for (int64_t i = 0; i < warmup_tokens; ++i) {
    read_one();
  }
  if (after_warmup) {
    after_warmup(read_one);
  }
  std::vector<double> seconds;
  while (decoder.room() > 0 && static_cast<int64_t>(seconds.size()) < tokens) {
    seconds.push_back(seconds_of(read_one));
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  result.tokens = static_cast<int64_t>(seconds.size());
  result.token_seconds = *middle;
  result.read_gigabytes_per_s =
      std::max(result.read_gigabytes_per_s, read_gigabytes_per_s(static_cast<size_t>(result.weight_bytes)));
  return result;
}

}  // namespace minillm
