#pragma once
// What a weight of ours is called in another program's file, and how it stands there.

#include "formats/weight_layout.h"
#include "nn/model_config.h"

#include <string>
#include <string_view>

namespace minillm {

struct ForeignName {
  std::string name;  ///< several weights of ours may be parts of one
  WeightLayout layout = {};
};

/// A weight of ours within a layer: "model.layers.3.self_attn.q_proj.weight" is layer "3", part
/// "self_attn.q_proj.weight". Others have no layer and are their own part.
struct NameInLayer {
  std::string_view layer;
  std::string_view part;
};
NameInLayer split_layer(std::string_view name);

}  // namespace minillm
