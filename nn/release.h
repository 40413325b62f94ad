#pragma once
// The [release] section of a config: what the files of a released model hold beside its text model. Counted, never
// trained.

#include "core/error.h"
#include "nn/tensor_count.h"
#include "nn/transformer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct ReleaseConfig {
  std::string dtype;             ///< of the released weights and of a decoder's caches; where absent, train.dtype
  double stated_parameters = 0;  ///< what its name says, 27e9 for "27B"; 0: nothing
  bool causal_masks = false;     ///< each layer's files hold a mask [max_seq_len, max_seq_len] as a buffer
  bool qkv_bias = false;         ///< biases on q, k and v alone (Qwen2)
  bool attention_sinks = false;  ///< a logit a head that attends to nothing (gpt-oss)
  bool router_bias = false;      ///< a bias on a mixture's router (gpt-oss)
  int64_t mtp_layers = 0;        ///< layers that predict one token more, like the model's with full attention; 0: none

  int64_t vision_layers = 0;     ///< blocks of the vision tower; 0: none
  int64_t vision_d_model = 0;    ///< its width
  int64_t vision_d_ff = 0;       ///< inner width of its feed-forward networks
  int64_t vision_positions = 0;  ///< rows of its table of positions
  int64_t vision_patch = 16;     ///< pixels along a patch's edge
  int64_t vision_frames = 2;     ///< images of a video in one patch
  int64_t vision_merge = 2;      ///< patches along the edge of a square that becomes one token
};

/// A number type that weights are released in.
struct StoredType {
  std::string_view name;  ///< "bfloat16"
  int64_t bytes = 0;      ///< of an element
};

/// float32 first.
std::span<const StoredType> stored_types();

/// Bytes an element of a type of that table takes.
int64_t stored_bytes(std::string_view type);

/// What is wrong with the sizes of `release` beside this model, by key.
std::vector<Problem> problems_of(const ReleaseConfig& release, const ModelConfig& model);

/// Whether the config describes something that this program counts and cannot train.
bool is_for_counting(const ReleaseConfig& release);

/// The model's tensors, then what `release` adds: masks ("model.layers.0.self_attn.bias"), biases and sinks, the
/// modules that predict further tokens ("mtp."), the vision tower ("model.visual."), under the names of Qwen's released
/// files.
///
/// A prediction module (Gloeckle et al. 2024; DeepSeek-V3, sec. 2.2): layers of the model, a projection [d, 2d] of
/// embedding beside hidden state, a norm of each and one at the end. The tower (Qwen2-VL): LayerNorm blocks with
/// biases, a linear patch embedding, learned positions, and a merger of vision_merge^2 patches into the model's width.
std::vector<CountedTensor> released_tensors(const Transformer& model, const ReleaseConfig& release);

}  // namespace minillm
