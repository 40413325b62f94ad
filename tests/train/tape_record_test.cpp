// A step's tape, recorded and drawn.

#include "train/tape_record.h"

#include "tests/small_model.h"
#include "train/tape_drawing.h"
#include "train/tape_lanes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

using namespace minillm;

namespace {

Config look_config() {
  Config config;
  config.model = small_model(64, 32);
  config.data.seq_len = 16;
  config.train.batch_size = 4;
  config.train.micro_batch_size = 2;
  config.run.name = "small";
  return config;
}

Tokens some_tokens(int64_t vocab_size) {
  std::vector<uint16_t> ids;
  for (int64_t i = 0; i < 2000; ++i) {
    ids.push_back(static_cast<uint16_t>(i * i % 31 * 7 % vocab_size));
  }
  return Tokens(std::move(ids));
}

TapeRecord record_of(Config config) {
  derive(config.model, 0, config.data.seq_len);
  Transformer model(config.model);
  model.allocate(DType::float32, 1);
  const Tokens tokens = some_tokens(config.model.vocab_size);
  const Loader loader(tokens, config.data.seq_len, "sequential", 1);
  return record_step(config, model, loader, 3);
}

/// A graph by hand: each node with its operands.
std::vector<NodeRecord> graph(const std::vector<std::vector<NodeId>>& operands) {
  std::vector<NodeRecord> nodes;
  for (const std::vector<NodeId>& of_node : operands) {
    NodeRecord node;
    node.id = static_cast<NodeId>(nodes.size());
    node.op = of_node.empty() ? "parameter" : "op";
    node.operands = of_node;
    nodes.push_back(node);
  }
  return nodes;
}

std::string drawn(const std::vector<NodeRecord>& nodes, int lanes) {
  std::string text;
  for (const LaneRow& row : lanes_of(nodes)) {
    text += lane_text(row, lanes) + "\n";
  }
  return text;
}

/// The last node of a block's norm, by the end of its scope, and its lane.
int lane_of_norm(const TapeRecord& record, std::string_view scope) {
  const std::vector<LaneRow> rows = lanes_of(record.nodes);
  int lane = -1;
  for (const NodeRecord& node : record.nodes) {
    lane = node.scope == scope && !node.is_leaf() ? rows[static_cast<size_t>(node.id)].lane : lane;
  }
  return lane;
}

const NodeRecord& reader_of(const TapeRecord& record, NodeId id) {
  return *std::find_if(record.nodes.begin(), record.nodes.end(), [id](const NodeRecord& node) {
    return std::find(node.operands.begin(), node.operands.end(), id) != node.operands.end();
  });
}

}  // namespace

TEST_CASE("a value runs down its lane to who reads it last") {
  // 0 a weight, 1 the stream, 2 a norm of it, 3 and 4 read that, 5 both, 6 the stream and 5.
  const std::vector<NodeRecord> block = graph({{}, {0}, {1}, {2, 0}, {2}, {3, 4}, {1, 5}});
  CHECK(drawn(block, 3) ==
        "     \n"
        "●    \n"
        "├─●  \n"
        "│ ├─●\n"
        "│ ● │\n"
        "│ ●─┘\n"
        "●─┘  \n");
}

TEST_CASE("lines cross lanes that have nothing to do with them, and join those that do") {
  const std::vector<NodeRecord> crossed = graph({{}, {0}, {0}, {0}, {1, 3}, {4, 2}});
  CHECK(drawn(crossed, 3) ==
        "     \n"
        "●    \n"
        "│ ●  \n"
        "│ │ ●\n"
        "●─│─┘\n"
        "●─┘  \n");
  const std::vector<NodeRecord> joined = graph({{}, {0}, {0}, {0}, {1, 2, 3}, {2, 4}, {2}});
  CHECK(drawn(joined, 3) ==
        "     \n"
        "●    \n"
        "│ ●  \n"
        "│ │ ●\n"
        "●─┼─┘\n"
        "●─┤  \n"
        "  ●  \n");
}

TEST_CASE("a norm leaves the stream's lane when post becomes pre") {
  Config config = look_config();
  CHECK(lane_of_norm(record_of(config), "model.layers.1.input_layernorm") == 1);
  config.model.norm_position = "post";
  CHECK(lane_of_norm(record_of(config), "model.layers.1.input_layernorm") == 0);
}

TEST_CASE("a recorded block is the block: norm, mixer, write, norm, FFN, write") {
  const TapeRecord record = record_of(look_config());
  const std::string_view layer = "model.layers.0.";
  std::vector<std::string> steps;
  for (const NodeRecord& node : record.nodes) {
    if (node.scope.starts_with(layer) && !node.is_leaf()) {
      const std::string part = node.scope.substr(layer.size(), node.scope.find('.', layer.size()) - layer.size());
      if (steps.empty() || steps.back() != part) {
        steps.push_back(part);
      }
    }
  }
  CHECK(steps == std::vector<std::string>{"input_layernorm", "self_attn", "attention_residual",
                                          "post_attention_layernorm", "mlp", "mlp_residual"});
  CHECK(record.step == 3);
  CHECK(record.sequences == 2);
  CHECK(record.seq_len == 16);
  for (const NodeRecord& node : record.nodes) {
    if (node.op == "add") {
      CHECK(node.shape == Shape{2, 16, 32});
    }
  }
}

TEST_CASE("a record's times are within the time it took, and nothing is held that backward does not need") {
  const auto begin = std::chrono::steady_clock::now();
  const TapeRecord record = record_of(look_config());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(record.seconds().forward > 0);
  CHECK(record.seconds().backward > 0);
  CHECK(record.seconds().forward + record.seconds().backward < seconds);
  for (const NodeRecord& node : record.nodes) {
    CAPTURE(node.op);
    CAPTURE(node.scope);
    CHECK((node.is_leaf() || node.seconds.forward > 0));
    CHECK((node.seconds.backward > 0) == (!node.is_leaf() && node.gradient_length.has_value()));
    CHECK((node.op != "reshape" || node.bytes == 0));
    CHECK((!node.is_parameter() || node.bytes == 0));
    CHECK(std::isfinite(node.value_length));
  }
  // The sublayer's norm can be computed again; the stream in front of it cannot.
  const auto norm = std::find_if(record.nodes.begin(), record.nodes.end(), [](const NodeRecord& node) {
    return node.scope == "model.layers.1.input_layernorm" && !node.is_leaf();
  });
  CHECK(norm->bytes == 0);
  CHECK(record.nodes[static_cast<size_t>(norm->operands.front())].bytes == 2 * 16 * 32 * 4);
}

TEST_CASE("the record's lengths are those of a pass by hand") {
  Config config = look_config();
  derive(config.model, 0, config.data.seq_len);
  const TapeRecord record = record_of(config);
  Transformer model(config.model);
  model.allocate(DType::float32, 1);
  const Tokens tokens = some_tokens(64);
  Tape tape({.retain = true});
  model.parameters().zero_gradients();
  tape.backward(model.forward(tape, Loader(tokens, 16, "sequential", 1).batch(12, 2)));
  model.parameters().finish_gradients();
  REQUIRE(static_cast<size_t>(tape.size()) == record.nodes.size());
  for (const NodeRecord& node : record.nodes) {
    CAPTURE(node.id);
    CHECK(node.value_length == length_of(tape.node(node.id).value));
    const Tensor& gradient = tape.node(node.id).grad;
    CHECK(node.gradient_length.has_value() == static_cast<bool>(gradient));
    CHECK((!gradient || *node.gradient_length == length_of(gradient)));
  }
}

TEST_CASE("the table has a line a node, the graph a box and an edge for each operand") {
  const TapeRecord record = record_of(look_config());
  const std::string text = tape_text(record);
  CHECK(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) == record.nodes.size() + 2);
  CHECK(text.starts_with("Tape of step 3 of small, 2 x 16 tokens, "));

  const std::string dot = tape_dot(record);
  const auto count_of = [&](std::string_view word) {
    size_t count = 0;
    for (size_t at = dot.find(word); at != std::string::npos; at = dot.find(word, at + 1)) {
      ++count;
    }
    return count;
  };
  size_t boxes = 0;
  size_t edges = 0;
  for (const NodeRecord& node : record.nodes) {
    boxes += node.is_leaf() ? 0 : 1;
    for (const NodeId operand : node.operands) {
      edges += record.nodes[static_cast<size_t>(operand)].is_leaf() ? 0 : 1;
    }
  }
  CHECK(count_of("fillcolor") == boxes);
  CHECK(count_of(" -> ") == edges);
  CHECK(count_of("{") == count_of("}"));
  CHECK(count_of("subgraph \"cluster_model.layers.1.self_attn\"") == 1);
  CHECK(count_of("\\nweight [96, 32]") == 4);
  const NodeRecord& first = reader_of(record, record.nodes[0].id);
  CHECK(count_of(fmt::format("n{} [label=\"#{} {}", first.id, first.id, first.op)) == 1);
}
