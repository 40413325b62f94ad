// A recorded tape in Graphviz' language.

#include "core/text.h"
#include "core/utf8.h"
#include "train/tape_drawing.h"
#include "train/tape_lanes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace minillm {

namespace {

/// The modules that nodes lie in, as a tree: "model" > "layers.0" > "self_attn".
struct Cluster {
  std::map<std::string, Cluster> inner;
  std::vector<size_t> nodes;
};

/// The parts of a scope; a number belongs to the name in front of it.
std::vector<std::string> parts_of(std::string_view scope) {
  std::vector<std::string> parts;
  while (!scope.empty()) {
    const size_t end = std::min(scope.find('.'), scope.size());
    const std::string_view part = scope.substr(0, end);
    const bool is_number = part.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number && !parts.empty()) {
      parts.back() += "." + std::string(part);
    } else {
      parts.emplace_back(part);
    }
    scope.remove_prefix(std::min(end + 1, scope.size()));
  }
  return parts;
}

std::string dot_string(std::string_view text) {
  std::string string = "\"";
  for (const char c : text) {
    string += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return string + "\"";
}

/// A name without the module that it is read in: "q_proj.weight" for a node of that scope.
std::string_view name_within(std::string_view name, std::string_view scope) {
  const bool inside = name.starts_with(scope) && name.size() > scope.size() && name[scope.size()] == '.';
  return inside ? name.substr(scope.size() + 1) : name;
}

double seconds_of(const NodeRecord& node) {
  return node.seconds.forward + node.seconds.backward;
}

/// From white to orange by the root of the share: most nodes take little beside the largest.
std::string colour_of(double share) {
  const double strength = std::sqrt(share);
  const auto channel = [&](double full) { return static_cast<int>(std::lround(255 + (full - 255) * strength)); };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(242), channel(140), channel(56));
}

class DotWriter {
 public:
  explicit DotWriter(const TapeRecord& record) : nodes_(record.nodes), lanes_(lanes_of(record.nodes)) {
    for (const NodeRecord& node : nodes_) {
      longest_ = std::max(longest_, seconds_of(node));
    }
  }

  std::string text(const std::string& title) {
    text_ = fmt::format("// {}\ndigraph tape {{\n  label={};\n", title, dot_string(title));
    text_ += "  node [shape=box, style=filled, fontname=\"monospace\", fontsize=10];\n";
    text_ += "  fontname=\"monospace\";\n  fontsize=10;\n";
    Cluster all;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].is_leaf()) {
        Cluster* cluster = &all;
        for (const std::string& part : parts_of(nodes_[i].scope)) {
          cluster = &cluster->inner[part];
        }
        cluster->nodes.push_back(i);
      }
    }
    add_cluster(all, "", "  ");
    for (const NodeRecord& node : nodes_) {
      add_edges(node);
    }
    return text_ + "}\n";
  }

 private:
  void add_cluster(const Cluster& cluster, const std::string& path, const std::string& indent) {
    for (const size_t i : cluster.nodes) {
      add_node(nodes_[i], indent);
    }
    for (const auto& [name, inner] : cluster.inner) {
      const std::string inner_path = path.empty() ? name : path + "." + name;
      text_ += fmt::format("{0}subgraph {1} {{\n{0}  label={2};\n{0}  color=\"#888888\";\n", indent,
                           dot_string("cluster_" + inner_path), dot_string(name));
      add_cluster(inner, inner_path, indent + "  ");
      text_ += indent + "}\n";
    }
  }

  void add_node(const NodeRecord& node, const std::string& indent) {
    // \n in a label is Graphviz' own line end.
    std::string label = fmt::format("#{} {}", node.id, node.op);
    for (const NodeId operand : node.operands) {
      const NodeRecord& read = nodes_[static_cast<size_t>(operand)];
      if (read.is_leaf()) {
        const std::string_view name = read.is_parameter() ? name_within(read.scope, node.scope) : read.op;
        label += fmt::format("\\n{} {}", name, read.shape);
      }
    }
    label += fmt::format("\\n{}\\n{:.3f} ms, {}", node.shape, 1e3 * seconds_of(node),
                         bytes_text(static_cast<double>(node.bytes)));
    text_ += fmt::format("{}n{} [label=\"{}\", fillcolor=\"{}\"];\n", indent, node.id, label,
                         colour_of(longest_ > 0 ? seconds_of(node) / longest_ : 0));
  }

  /// Between nodes in one lane an edge pulls: streams come out straight.
  void add_edges(const NodeRecord& node) {
    for (const NodeId operand : node.operands) {
      if (nodes_[static_cast<size_t>(operand)].is_leaf()) {
        continue;
      }
      const bool straight = lane(operand) == lane(node.id);
      text_ += fmt::format("  n{} -> n{}{};\n", operand, node.id, straight ? " [weight=8]" : "");
    }
  }

  int lane(NodeId id) const { return lanes_[static_cast<size_t>(id)].lane; }

  const std::vector<NodeRecord>& nodes_;
  std::vector<LaneRow> lanes_;
  double longest_ = 0;
  std::string text_;
};

}  // namespace

std::string tape_dot(const TapeRecord& record) {
  const std::string title =
      fmt::format("{}{} of {}, {}", tape_mark, record.step, valid_utf8(printable(record.model)), tape_summary(record));
  return DotWriter(record).text(title);
}

}  // namespace minillm
