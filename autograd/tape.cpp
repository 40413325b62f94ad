#include "autograd/tape.h"

#include "autograd/op_phase.h"
#include "core/log.h"

#include <cmath>
#include <utility>

namespace minillm {

namespace {

/// A value that is given, not computed: a constant, a variable or a parameter.
struct LeafNode final : Node {
  void backward(Tape&) override {}
};

double norm(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; tensor && i < tensor.numel(); ++i) {
    sum += tensor.at(i) * tensor.at(i);
  }
  return std::sqrt(sum);
}

}  // namespace

// --- GradientPool ---

GradientPool::SizeClass& GradientPool::size_class(size_t bytes) {
  for (SizeClass& entry : classes_) {
    if (entry.bytes == bytes) {
      return entry;
    }
  }
  classes_.push_back({bytes, {}});
  return classes_.back();
}

void* GradientPool::take(size_t bytes) {
  std::vector<void*>& free = size_class(bytes).free;
  if (free.empty()) {
    return arena_.allocate(bytes);
  }
  void* memory = free.back();
  free.pop_back();
  return memory;
}

void GradientPool::give_back(void* memory, size_t bytes) {
  size_class(bytes).free.push_back(memory);
}

void GradientPool::clear() {
  for (SizeClass& entry : classes_) {
    entry.free.clear();
  }
  arena_.clear();
}

// --- Tape ---

Tape::Tape(TapeOptions options) : options_(options) {}

Var Tape::constant(const Tensor& value, Here here) {
  LeafNode& node = place<LeafNode>("constant", {}, here);
  node.value = value;
  return var(node);
}

Var Tape::scalar(double value, DType dtype, Here here) {
  Tensor tensor = allocate({}, dtype);
  if (dtype == DType::float64) {
    *tensor.as<double>() = value;
  } else {
    *tensor.as<float>() = static_cast<float>(value);
  }
  return constant(tensor, here);
}

Var Tape::variable(const Tensor& value, Here here) {
  Var leaf = constant(value, here);
  leaf.node().op = "variable";
  leaf.node().needs_grad = options_.record;
  return leaf;
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

Tensor Tape::allocate(const Shape& shape, DType dtype) {
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  return {arena_.allocate(bytes), shape, dtype};
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
  if (PhaseClock::is_running()) {
    PhaseClock::move_to(phase_of(op));  // its forward follows
  }
}

GradientTarget Tape::gradient_target(NodeId id) {
  Node& target = node(id);
  if (!target.needs_grad) {
    return {};
  }
  if (target.parameter != nullptr) {
    return {target.grad, std::exchange(target.parameter->grad_is_fresh, false)};
  }
  if (target.grad) {
    return {target.grad, false};
  }
  target.grad = {gradient_pool_.take(target.value.bytes()), target.value.shape, target.value.dtype};
  return {target.grad, true};
}

Tensor Tape::gradient(NodeId id) {
  const GradientTarget target = gradient_target(id);
  if (target.fresh) {
    fill_zero(target.tensor);
  }
  return target.tensor;
}

void Tape::release_gradient(Node& node) {
  const bool is_leaf = node.inputs.empty();
  if (node.grad && !is_leaf) {
    gradient_pool_.give_back(node.grad.data, node.grad.bytes());
    node.grad = {};
  }
}

void Tape::backward(Var loss, double seed) {
  check(loss.value().numel() == 1, "backward starts at one element, #{} {} has shape {}", loss.id(), loss.node().op,
        loss.shape());
  check(loss.node().needs_grad, "#{} {} does not depend on any parameter or variable, or the tape does not record",
        loss.id(), loss.node().op);
  if (options_.retain_grads) {
    // What an earlier backward left in intermediate values would be passed on a second time.
    for (Node* node : nodes_) {
      release_gradient(*node);
    }
  }
  const Tensor start = gradient(loss.id());
  if (start.dtype == DType::float64) {
    *start.as<double>() += seed;
  } else {
    *start.as<float>() += static_cast<float>(seed);
  }
  for (NodeId id = loss.id(); id >= 0; --id) {
    Node& current = *nodes_[static_cast<size_t>(id)];
    const bool is_leaf = current.inputs.empty();
    if (!current.needs_grad || !current.grad || is_leaf) {
      continue;
    }
    if (PhaseClock::is_running()) {
      PhaseClock::move_to(phase_of(current.op));
    }
    current.backward(*this);
    if (!options_.retain_grads) {
      release_gradient(current);
    }
  }
  PhaseClock::move_to(Phase::other);
}

void Tape::clear() {
  nodes_.clear();
  arena_.clear();
  gradient_pool_.clear();
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
    const char* scope = node->parameter != nullptr ? node->parameter->name.c_str() : node->scope;
    fmt::print(out, "{:>5}  {:<22} {:<34} {:<22} {:>12.6g} {:>12.6g}  {}:{}\n", node->id, node->op, scope,
               node->value.shape, norm(node->value), norm(node->grad), node->here.file, node->here.line);
  }
}

}  // namespace minillm
