#include "train/tape_record.h"

#include "train/trainer.h"

#include <numeric>

namespace minillm {

namespace {

constexpr int timed_passes = 3;  // the first ones find the tape's memory, and what they read, not yet at hand

bool is_view(Tape& tape, const Node& node) {
  return !node.inputs.empty() && node.value && node.value.data == tape.node(node.inputs.front()).value.data;
}

int64_t held_bytes(Tape& tape, const Node& node) {
  const bool holds = node.parameter == nullptr && !node.released && !is_view(tape, node);
  return holds ? static_cast<int64_t>(node.value.bytes()) : 0;
}

NodeRecord record_of(const Node& node) {
  NodeRecord record;
  record.id = node.id;
  record.op = node.op;
  record.scope = scope_of(node);
  record.called_at = fmt::format("{}", node.here);
  record.operands.assign(node.inputs.begin(), node.inputs.end());
  record.shape = node.value.shape;
  record.value_length = length_of(node.value);
  if (has_gradient(node)) {
    record.gradient_length = length_of(node.grad);
  }
  return record;
}

}  // namespace

NodeClock::Seconds TapeRecord::seconds() const {
  NodeClock::Seconds sum;
  for (const NodeRecord& node : nodes) {
    sum.forward += node.seconds.forward;
    sum.backward += node.seconds.backward;
  }
  return sum;
}

int64_t TapeRecord::bytes() const {
  return std::accumulate(nodes.begin(), nodes.end(), int64_t{0},
                         [](int64_t sum, const NodeRecord& node) { return sum + node.bytes; });
}

TapeRecord record_step(const Config& config, const Transformer& model, const Loader& data, int64_t step) {
  Transformer copy(model.config());
  copy.allocate(model.parameters().dtype(), config.train.seed);
  copy_values(model.parameters().weights(), copy.parameters().weights());
  const int64_t first_sample = step * config.train.batch_size;
  Batch batch;
  TapeRecord record;
  record.step = step;
  record.model = config.run.name;

  TapeOptions options = tape_options(config.train);
  options.retain = true;
  {
    Tape tape(options);
    tape.backward(replay(config.train, copy, data, first_sample, batch, tape));
    copy.parameters().finish_gradients();
    for (NodeId id = 0; id < tape.size(); ++id) {
      record.nodes.push_back(record_of(tape.node(id)));
    }
  }
  record.sequences = batch.batch_size;
  record.seq_len = batch.seq_len;

  NodeClock clock;
  options.retain = false;
  options.clock = &clock;
  Tape tape(options);
  for (int pass = 0; pass < timed_passes; ++pass) {
    clock = {};
    Var loss = replay(config.train, copy, data, first_sample, batch, tape);
    clock.stop();
    check(static_cast<size_t>(tape.size()) == record.nodes.size(), "two passes made {} and {} nodes",
          record.nodes.size(), tape.size());
    for (NodeRecord& node : record.nodes) {
      node.bytes = held_bytes(tape, tape.node(node.id));
    }
    tape.backward(loss);
  }
  for (NodeRecord& node : record.nodes) {
    node.seconds = clock.seconds(node.id);
  }
  return record;
}

}  // namespace minillm
