#include "autograd/tape.h"

#include "autograd/op_phase.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace minillm {

namespace {

/// A value that is given, not computed: a constant, a variable or a parameter.
struct LeafNode final : Node {
  void backward(Tape&) override {}
};

/// MINILLM_STOP_AT in the environment: the node in front of whose forward a debugger is to stop. -1: none.
NodeId read_stop_at() {
  const char* text = std::getenv("MINILLM_STOP_AT");
  if (text == nullptr) {
    return -1;
  }
  NodeId id = -1;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, id);
  if (error != std::errc() || rest != end || id < 0) {
    fail_input({.where = "MINILLM_STOP_AT",
                .what = "is no node of a tape",
                .found = fmt::format("\"{}\"", printable(text)),
                .expected = "a number from 0, as ml-tape lists them"});
  }
  return id;
}

/// "-" where the memory was given back or never taken.
std::string length_text(const Tensor& tensor) {
  return tensor ? fmt::format("{:.6g}", length_of(tensor)) : "-";
}

}  // namespace

// --- MemoryPool ---

MemoryPool::SizeClass& MemoryPool::size_class(size_t bytes) {
  const auto place = std::lower_bound(classes_.begin(), classes_.end(), bytes,
                                      [](const SizeClass& entry, size_t size) { return entry.bytes < size; });
  if (place != classes_.end() && place->bytes == bytes) {
    return *place;
  }
  return *classes_.insert(place, {bytes, {}});
}

void* MemoryPool::take(size_t bytes) {
  in_use_ += bytes;
  std::vector<void*>& free = size_class(bytes).free;
  if (free.empty()) {
    return arena_.allocate(bytes);
  }
  void* memory = free.back();
  free.pop_back();
  mark_used(memory, bytes);
  return memory;
}

void MemoryPool::give_back(void* memory, size_t bytes) {
  in_use_ -= bytes;
  mark_unused(memory, bytes);
  size_class(bytes).free.push_back(memory);
}

void MemoryPool::clear() {
  for (SizeClass& entry : classes_) {
    entry.free.clear();
  }
  arena_.clear();
  in_use_ = 0;
}

// --- Node ---

double Node::distance_to_kink(Tape&) const {
  return std::numeric_limits<double>::infinity();
}

void Node::forward(Tape&) {
  check(false, "#{} {} is marked as recomputable and has no forward", id, op);
}

const char* scope_of(const Node& node) {
  return node.parameter != nullptr ? node.parameter->name.c_str() : node.scope;
}

bool has_gradient(const Node& node) {
  return node.grad && (node.parameter == nullptr || !node.parameter->grad_is_fresh);
}

// --- Tape ---

Tape::Tape(TapeOptions options) : options_(options), stop_at_(read_stop_at()) {}

Var Tape::constant(const Tensor& value, Here here) {
  LeafNode& node = place<LeafNode>("constant", {}, here);
  node.value = value;
  node.pinned = true;
  return var(node);
}

Var Tape::filled(const Shape& shape, double value, DType dtype, Here here) {
  const Tensor tensor = allocate(shape, dtype);
  if (dtype == DType::float64) {
    std::fill_n(tensor.as<double>(), tensor.numel(), value);
  } else {
    std::fill_n(tensor.as<float>(), tensor.numel(), static_cast<float>(value));
  }
  return constant(tensor, here);
}

Var Tape::variable(const Tensor& value, Here here) {
  Var leaf = constant(value, here);
  leaf.node().op = "variable";
  leaf.node().needs_grad = options_.record;
  return leaf;
}

Past& Tape::past() const {
  const size_t i = options_.pasts.size() == 1 ? 0 : sequence_;
  check(i < options_.pasts.size(), "of {} sequences it is not said which one is computed", options_.pasts.size());
  return *options_.pasts[i];
}

Var Tape::parameter(Parameter& parameter, Here here) {
  check(static_cast<bool>(parameter.value), "parameter {} has no memory yet: call ParameterStore::allocate first",
        parameter.name);
  Var leaf = constant(parameter.value, here);
  Node& node = leaf.node();
  node.op = "parameter";
  node.parameter = &parameter;
  node.needs_grad = options_.record && parameter.grad;
  node.grad = parameter.grad;
  return leaf;
}

Var Tape::parameter_row(Parameter& parameter, int64_t row, Here here) {
  Shape shape;
  for (int axis = 1; axis < parameter.shape.rank(); ++axis) {
    shape.push_back(parameter.shape[axis]);
  }
  Var leaf = this->parameter(parameter, here);
  Node& node = leaf.node();
  node.value = node.value.rows(row, 1).reshape(shape);
  node.grad = node.needs_grad ? node.grad.rows(row, 1).reshape(shape) : Tensor();
  return leaf;
}

Tensor Tape::allocate(const Shape& shape, DType dtype) {
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  return {pool_.take(bytes), shape, dtype};
}

void Tape::append(Node& node, const char* op, std::span<const Var> inputs, Here here) {
  node.op = op;
  node.scope = scope_;
  node.here = here;
  node.id = size();
  NodeId* ids = static_cast<NodeId*>(arena_.allocate(inputs.size() * sizeof(NodeId)));
  node.inputs = {ids, inputs.size()};
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(&inputs[i].tape() == this, "[{}] operands live on different tapes", op);
    ids[i] = inputs[i].id();
    node.needs_grad = node.needs_grad || inputs[i].node().needs_grad;
  }
  nodes_.push_back(&node);
  if (node.id == stop_at_) {
    std::raise(SIGTRAP);  // `up` shows the op that is about to compute this node
  }
  move_clocks(node, Pass::forward);
}

void Tape::move_clocks(const Node& node, Pass pass) {
  if (PhaseClock::is_running()) {
    PhaseClock::move_to(phase_of(node.op));
  }
  if (options_.clock != nullptr) {
    options_.clock->move_to(node.id, pass);
  }
}

GradientTarget Tape::gradient_target(NodeId id) {
  Node& target = node(id);
  if (!target.needs_grad) {
    return {};
  }
  if (target.parameter != nullptr) {
    const bool fresh = std::exchange(target.parameter->grad_is_fresh, false);
    const bool is_whole = target.grad.numel() == target.parameter->numel();
    mark_used(target.parameter->grad.data, fresh ? target.parameter->grad.bytes() : 0);
    if (fresh && !is_whole) {
      fill_zero(target.parameter->grad);  // rows that nobody reads are never written
    }
    return {target.grad, fresh && is_whole};
  }
  if (target.grad) {
    return {target.grad, false};
  }
  target.grad = {pool_.take(target.value.bytes()), target.value.shape, target.value.dtype};
  return {target.grad, true};
}

bool Tape::move_gradient(Node& node, NodeId id) {
  Node& target = *nodes_[static_cast<size_t>(id)];
  const bool is_leaf = target.inputs.empty();
  if (options_.retain || is_leaf || !target.needs_grad || target.grad || target.value.numel() != node.grad.numel()) {
    return false;
  }
  target.grad = {node.grad.data, target.value.shape, target.value.dtype};
  node.grad = {};
  return true;
}

Tensor Tape::gradient(NodeId id) {
  const GradientTarget target = gradient_target(id);
  if (target.fresh) {
    fill_zero(target.tensor);
  }
  return target.tensor;
}

const Tensor& Tape::value(NodeId id) {
  Node& target = node(id);
  if (!target.value) {
    recompute(target);
  }
  return target.value;
}

void Tape::recompute(Node& node) {
  check(node.recomputable, "#{} {} was read in backward and not saved: an op calls Tape::save for what it reads there",
        node.id, node.op);
  const InPhase part(phase_of(node.op));
  node.value.data = pool_.take(node.value.bytes());
  node.forward(*this);
}

void Tape::release_unsaved(NodeId first, Var kept, std::span<const Var> also_kept) {
  if (options_.retain || !fast() || composed()) {
    return;
  }
  const auto is_kept = [&](NodeId id) {
    return kept.id() == id || std::any_of(also_kept.begin(), also_kept.end(), [id](Var var) { return var.id() == id; });
  };
  for (NodeId id = first; id < size(); ++id) {
    Node& current = node(id);
    const bool needed = current.saved && !current.recomputable;
    if (!current.pinned && !needed && !is_kept(id)) {
      release_value(current);
      current.released = true;
    }
  }
}

void Tape::release_value(Node& node) {
  if (node.value) {
    pool_.give_back(node.value.data, node.value.bytes());
    node.value.data = nullptr;
  }
}

void Tape::release_gradient(Node& node) {
  const bool is_leaf = node.inputs.empty();
  if (node.grad && !is_leaf) {
    pool_.give_back(node.grad.data, node.grad.bytes());
    node.grad = {};
  }
}

void Tape::backward(Var loss, double seed) {
  check(loss.value().numel() == 1, "backward starts at one element, #{} {} has shape {}", loss.id(), loss.node().op,
        loss.shape());
  check(loss.node().needs_grad, "#{} {} does not depend on any parameter or variable, or the tape does not record",
        loss.id(), loss.node().op);
  if (options_.retain) {
    // What an earlier backward left in intermediate values would be passed on a second time.
    for (Node* node : nodes_) {
      release_gradient(*node);
    }
  }
#if !defined(NDEBUG)
  warn_of_dead_ends(loss.id());
#endif
  const Tensor start = gradient(loss.id());
  if (start.dtype == DType::float64) {
    *start.as<double>() += seed;
  } else {
    *start.as<float>() += static_cast<float>(seed);
  }
  for (NodeId id = loss.id(); id >= 0; --id) {
    Node& current = *nodes_[static_cast<size_t>(id)];
    const bool is_leaf = current.inputs.empty();
    if (current.needs_grad && current.grad && !is_leaf) {
      move_clocks(current, Pass::backward);
      current.backward(*this);
      if (!options_.retain) {
        release_gradient(current);
      }
    }
    if (current.released) {  // those that read it, all later on the tape, are done
      release_value(current);
    }
  }
  PhaseClock::move_to(Phase::other);
  if (options_.clock != nullptr) {
    options_.clock->stop();
  }
}

std::vector<bool> Tape::ancestors(NodeId end) const {
  std::vector<bool> leads(nodes_.size(), false);
  leads[static_cast<size_t>(end)] = true;
  for (NodeId id = end; id >= 0; --id) {
    if (leads[static_cast<size_t>(id)]) {
      for (const NodeId input : nodes_[static_cast<size_t>(id)]->inputs) {
        leads[static_cast<size_t>(input)] = true;
      }
    }
  }
  return leads;
}

/// Once a tape: nodes that were computed for a gradient and got none.
void Tape::warn_of_dead_ends(NodeId loss) {
  if (dead_ends_told_) {
    return;
  }
  const std::vector<bool> leads = ancestors(loss);
  const auto is_dead_end = [&](const Node* node) {
    return node->needs_grad && !node->inputs.empty() && !leads[static_cast<size_t>(node->id)];
  };
  const auto end = nodes_.begin() + loss + 1;  // what stands behind belongs to another loss
  const auto first = std::find_if(nodes_.begin(), end, is_dead_end);
  if (first != end) {
    const Node& node = **first;
    log_warning("{} of {} nodes lead nowhere: the loss does not depend on them. The first is #{} {} in {} ({})",
                std::count_if(first, end, is_dead_end), size(), node.id, node.op, node.scope, node.here);
    dead_ends_told_ = true;
  }
}

void Tape::clear() {
  nodes_.clear();
  arena_.clear();
  pool_.clear();
  ++epoch_;
}

const char* Tape::intern(std::string_view scope) {
  auto found = scopes_.find(scope);
  if (found == scopes_.end()) {
    found = scopes_.emplace(scope).first;
  }
  return found->c_str();
}

void Tape::dump(std::FILE* out) const {
  fmt::print(out, "{:>5}  {:<22} {:<34} {:<22} {:>12} {:>12}  {}\n", "id", "op", "scope", "shape", "|value|", "|grad|",
             "called at");
  for (const Node* node : nodes_) {
    fmt::print(out, "{:>5}  {:<22} {:<34} {:<22} {:>12} {:>12}  {}\n", node->id, node->op, scope_of(*node),
               node->value.shape, length_text(node->value), length_text(has_gradient(*node) ? node->grad : Tensor()),
               node->here);
  }
}

}  // namespace minillm
