#pragma once
// The built-in corpus: sentences of a small random grammar, so that a run needs no file and its best loss is known.
//
//   sentence    = determiner [mood] animal verb " the" [colour] thing [adverb] ".\n"
//   determiner  singular ("A", "Every") or plural ("Two", "Many"); animal and verb agree with it, also across the mood
//
// Optional parts stand with probability 1/2, words of a kind are equally likely, sentences are independent. A sentence
// has one derivation, so the entropy of the text is that of the choices:
//
//   rate = (H(choices of a sentence)) / (mean tokens of a sentence)    nats per token
//
// No model can have a lower expected loss; one that sees the two tokens before (and the determiner) reaches it.

#include "data/token_file.h"

#include <cstdint>

namespace minillm {

struct Synthetic {
  TokenFile data;           ///< like a file's; tokenizer is a WordTable of at most 64 ids
  double entropy_rate = 0;  ///< nats per token, in closed form
};

/// The same for the same arguments. Each split begins with `<s>` and ends with the sentence that reaches its size.
Synthetic make_synthetic(uint64_t seed = 1, int64_t train_tokens = 400000, int64_t val_tokens = 40000);

}  // namespace minillm
