#pragma once
// What a model does with one text: of each layer its activations, where attention looks, what it writes to the residual
// stream, and how strongly the loss depends on it.

#include "core/json_object.h"
#include "data/tokenizer.h"
#include "generate/layer_statistics.h"
#include "nn/transformer.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace minillm {

/// Where one head looks, over the T queries of the text.
struct HeadAttention {
  double entropy = not_there;            ///< nats: the mean over queries t of -sum_u p_tu ln p_tu
  double first_token_share = not_there;  ///< mean weight on position 0, of the queries behind it; of one token: NaN
};

/// What one sublayer adds to the residual stream; NaN where the stream is no sum of writes.
struct StreamWrite {
  double rms = not_there;    ///< over all elements of all tokens
  double logit = not_there;  ///< what it adds to the logit of the token that comes next, less the mean of what it adds
                             ///< to all logits; mean over the T - 1 predictions. NaN where the final norm is no factor
};

struct LayerInspection {
  LayerStatistics statistics = {};
  Moments stream = {};                    ///< of what stands behind the layer, over all elements of all tokens
  double stream_gradient = not_there;     ///< |dL/dx| of the stream behind the layer, all tokens together
  double parameter_gradient = not_there;  ///< |dL/dtheta| of the layer's parameters together
  StreamWrite mixer = {};
  StreamWrite ffn = {};
  std::vector<HeadAttention> heads = {};  ///< of full and latent attention; empty for any other mixer
  std::vector<float> weights = {};        ///< [H, N, N] of the first N = map_tokens tokens: query, key; empty: not kept
};

/// How exactly the last stream is the embedding plus all writes: x_L = x_0 + sum of F_l.
struct ResidualSum {
  double difference = not_there;  ///< max |x_0 + sum F_l - x_L|, summed in double
  double largest = not_there;     ///< max |x_L|
  std::string reason = {};        ///< why the stream is no such sum; "": it is
};

struct Inspection {
  int64_t tokens = 0;                   ///< T, `<s>` among them
  double loss = not_there;              ///< L, mean nats of the T - 1 next tokens
  double gradient_norm = not_there;     ///< |dL/dtheta| of all parameters
  double next_token_logit = not_there;  ///< less the mean of all logits, mean over the T - 1 predictions
  std::string no_loss = {};             ///< why there is no loss and no gradient; "": there is
  double largest_entropy = 0;           ///< of attention that is even: mean of ln(t + 1), without a mask ln T
  Moments embedding = {};               ///< of the stream in front of the first layer
  double embedding_gradient = not_there;
  StreamWrite embedding_write = {};  ///< the sum's first term
  ResidualSum sum = {};
  int64_t map_tokens = 0;  ///< N
  std::vector<LayerInspection> layers = {};
};

/// Of a text's ids, `<s>` first: 1 to max_seq_len of them, else an input Error. One forward pass through composed ops,
/// and one backward where a next token is predicted, without dropout; every intermediate value is kept, so memory grows
/// with layers * heads * T^2. Takes the memory of the model's gradients and leaves the text's there. `map_tokens`: how
/// many tokens' weights are kept, at most T.
Inspection inspect(Transformer& model, std::span<const int32_t> ids, int64_t map_tokens = 0);

/// How many tokens a page of attention maps can show of a text of T: at most 256, and 8 million weights in all.
int64_t tokens_for_maps(const ModelConfig& config, int64_t T);

/// An id's text as one printable word: a blank is U+2581, a byte that is no part of a character or steers terminals is
/// <0xNN>; ids without text are their names.
std::string token_label(const Tokenizer& tokenizer, int32_t id);

/// Adds everything but the attention weights, under the names of docs/numbers.md; null for what is not there.
void add_numbers(const Inspection& inspection, JsonObject& json);

}  // namespace minillm
