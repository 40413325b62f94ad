#include "experiments/lessons/forward_pass.h"

#include "autograd/parameter.h"
#include "core/error.h"
#include "nn/tensor_count.h"

#include <string_view>

namespace minillm {

std::vector<const Node*> stream_norms(Tape& tape) {
  std::vector<const Node*> norms;
  for (NodeId id = 0; id < tape.size(); ++id) {
    const Node& node = tape.node(id);
    const std::string_view op = node.op;
    const std::string_view scope = node.scope;
    const bool on_stream = scope.ends_with("layernorm") || scope == "model.norm";
    if (on_stream && (op == "rmsnorm" || op == "layernorm" || op == "batchnorm")) {
      norms.push_back(&node);
    }
  }
  return norms;
}

std::vector<const Node*> stream_writes(Tape& tape) {
  std::vector<const Node*> writes;
  for (NodeId id = 0; id < tape.size(); ++id) {
    const Node& node = tape.node(id);
    if (std::string_view(node.op) == "add" && std::string_view(node.scope).ends_with("_residual")) {
      writes.push_back(&node);
    }
  }
  return writes;
}

const Node& ffn_units(Tape& tape, int64_t layer) {
  for (NodeId id = 0; id < tape.size(); ++id) {
    const Node& node = tape.node(id);
    const Parameter* weight = node.inputs.size() < 2 ? nullptr : tape.node(node.inputs[1]).parameter;
    if (weight != nullptr && weight->name.ends_with(".mlp.down_proj.weight") && layer_of(weight->name) == layer) {
      return tape.node(node.inputs[0]);
    }
  }
  fail_input({.where = fmt::format("layer {}", layer),
              .what = "has no feed-forward network that this lesson can look into",
              .expected = "one of two or three matrices, no experts",
              .hint = "leave --run out for a model that has"});
}

}  // namespace minillm
