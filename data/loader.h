#pragma once
// Loader: which tokens a sample is made of. A pure function of the sample's number, so that the cursor of a run is one
// integer and any batch can be made again.
//
// W = (tokens - 1) / seq_len windows; window w has inputs [w*T, w*T + T) and targets one further. With
// i = step * batch_size + b the number of a sample,
//   sequential: window i mod W
//   shuffled:   window perm(seed, i div W)[i mod W], a permutation of all windows for every epoch
//
// Under the masked objective (Devlin et al. 2018, BERT) the targets are the window's own tokens: each position is
// hidden with probability 0.15, by draws of (seed, i), its input becomes id 0 (<unk>), and only hidden ones are
// counted.

#include "core/batch.h"
#include "core/rng.h"
#include "data/token_file.h"

#include <cstdint>
#include <string_view>

namespace minillm {

/// Windows of seq_len + 1 tokens that overlap by one; 0 when there is not even one.
int64_t window_count(const Tokens& tokens, int64_t seq_len);

class Loader {
 public:
  /// `order` is "shuffled" or "sequential", `objective` "next" or "masked". `tokens` must outlive the loader. Throws an
  /// input Error when the split is shorter than a window ("needs 65 tokens, has 64"); `split` names it.
  Loader(const Tokens& tokens, int64_t seq_len, std::string_view order, uint64_t seed, std::string_view split = "train",
         std::string_view objective = "next");

  int64_t windows() const { return windows_; }

  /// The window that sample i reads.
  int64_t window_of(uint64_t sample) const;

  /// Samples [first_sample, first_sample + count). The second form keeps the batch's memory from call to call.
  Batch batch(uint64_t first_sample, int64_t count) const;
  void batch(uint64_t first_sample, int64_t count, Batch& batch) const;

 private:
  const Tokens& tokens_;
  int64_t seq_len_;
  int64_t windows_;
  bool shuffled_;
  bool masked_;
  uint64_t key_;
  RandomKey mask_key_;
};

}  // namespace minillm
