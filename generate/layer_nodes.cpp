#include "generate/layer_nodes.h"

#include "nn/tensor_count.h"

#include <string_view>

namespace minillm {

namespace {

/// Whether a product's weight is a feed-forward network's down_proj, or one of the experts'.
bool is_down_projection(Tape& tape, const Node& product) {
  const Parameter* weight = tape.node(product.inputs[1]).parameter;
  if (weight == nullptr) {
    return false;
  }
  const std::string_view name = weight->name;
  return name.find(".mlp.") != std::string_view::npos && name.ends_with("down_proj.weight");
}

bool is_sublayer_norm(std::string_view scope) {
  return scope.ends_with(".input_layernorm") || scope.ends_with(".post_attention_layernorm");
}

/// The gate of a mixer is the last sigmoid in its scope, or the product x sigmoid(x) that SiLU makes of it.
void look_for_gate(const Node& node, LayerNodes& nodes) {
  const std::string_view op = node.op;
  const Node* last = nodes.mixer_gate;
  const bool is_silu = op == "mul" && last != nullptr && node.inputs[1] == last->id &&
                       std::string_view(last->op) == "sigmoid" && node.inputs[0] == last->inputs[0];
  if (op == "sigmoid" || is_silu) {
    nodes.mixer_gate = &node;
  }
}

}  // namespace

std::vector<LayerNodes> find_layer_nodes(Tape& tape, const ModelConfig& config) {
  std::vector<LayerNodes> layers(static_cast<size_t>(config.n_layers));
  for (NodeId id = 0; id < tape.size(); ++id) {
    const Node& node = tape.node(id);
    const std::string_view scope = node.scope;
    const std::string_view op = node.op;
    const int64_t layer = layer_of(scope);
    if (layer < 0) {
      continue;
    }
    LayerNodes& nodes = layers[static_cast<size_t>(layer)];
    if (scope.ends_with(".self_attn") || scope.ends_with(".linear_attn")) {
      look_for_gate(node, nodes);
    }
    if (scope.ends_with(".self_attn") && op == "softmax") {
      nodes.probabilities = &node;
      nodes.scores = &tape.node(node.inputs[0]);
    } else if (is_sublayer_norm(scope)) {
      if (nodes.norms.empty() || nodes.norms.back()->scope != scope) {
        nodes.norms.push_back(&node);
      }
      nodes.norms.back() = &node;
    } else if (scope.ends_with(".mlp") && op == "top_k") {
      nodes.router = &tape.node(node.inputs[0]);
    } else if (op == "matmul" && is_down_projection(tape, node)) {
      nodes.hidden.push_back(&tape.node(node.inputs[0]));
    }
  }
  return layers;
}

}  // namespace minillm
