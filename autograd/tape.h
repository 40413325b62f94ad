#pragma once
// The tape: nodes in creation order. Forward appends, backward is one reverse loop, clear gives everything back.

#include "autograd/node.h"
#include "autograd/node_clock.h"
#include "autograd/parameter.h"
#include "autograd/past.h"
#include "autograd/var.h"
#include "core/arena.h"
#include "core/rng.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <new>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace minillm {

enum class Kernels : uint8_t { fast, reference };  ///< train.kernels; float64 always runs the reference kernels
enum class Ops : uint8_t { fused, composed };      ///< train.ops; composed builds every fused op from primitives

class DecodingWeights;

struct TapeOptions {
  Kernels kernels = Kernels::fast;
  Ops ops = Ops::fused;
  bool record = true;                 ///< false: no gradients, the same forward code runs
  bool training = true;               ///< false: dropout is the identity
  bool retain = false;                ///< keep all intermediate values and their gradients, to look at
  std::span<Past* const> pasts = {};  ///< of a decoder, one a sequence: what was read before, where is kept what the
                                      ///< next pass needs
  const DecodingWeights* decoding = nullptr;  ///< of a decoder: what few rows are multiplied by
  NodeClock* clock = nullptr;                 ///< counts each node's time, to look at
};

/// Where an accumulating kernel writes an input's gradient.
struct GradientTarget {
  Tensor tensor;       ///< empty when the input needs no gradient
  bool fresh = false;  ///< true: the memory is uninitialised and must be overwritten, not added to

  explicit operator bool() const { return static_cast<bool>(tensor); }
};

/// An arena that recycles: what is given back is what the next request of the same size gets.
class MemoryPool {
 public:
  void* take(size_t bytes);
  void give_back(void* memory, size_t bytes);
  void clear();
  size_t bytes_in_use() const { return in_use_; }
  size_t peak_bytes() const { return arena_.bytes_used(); }
  size_t bytes_reserved() const { return arena_.bytes_reserved(); }

 private:
  struct SizeClass {
    size_t bytes = 0;
    std::vector<void*> free;
  };
  SizeClass& size_class(size_t bytes);

  Arena arena_;
  std::vector<SizeClass> classes_;  // ascending
  size_t in_use_ = 0;
};

/// One forward and backward pass at a time; not for use from several threads.
class Tape {
 public:
  /// Throws an input Error when MINILLM_STOP_AT, the node in front of whose forward a debugger is to stop, is no
  /// number.
  explicit Tape(TapeOptions options = {});
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  const TapeOptions& options() const { return options_; }
  bool fast() const { return options_.kernels == Kernels::fast; }
  bool composed() const { return options_.ops == Ops::composed; }

  /// Whether the sequences of this pass stand behind pasts.
  bool reads_on() const { return !options_.pasts.empty(); }
  /// That of the sequence that is computed now; where there are several, OneSequence says which.
  Past& past() const;
  /// The position in its sequence of the first token of this pass.
  int64_t first_position() const { return reads_on() ? past().positions() : 0; }
  /// The sequences of the next passes.
  void set_pasts(std::span<Past* const> pasts) { options_.pasts = pasts; }
  /// While it lives, past() is that of sequence `i` of the batch.
  class OneSequence {
   public:
    OneSequence(Tape& tape, size_t i) : tape_(tape) { tape.sequence_ = i; }
    ~OneSequence() { tape_.sequence_ = no_sequence; }
    OneSequence(const OneSequence&) = delete;
    OneSequence& operator=(const OneSequence&) = delete;

   private:
    Tape& tape_;
  };

  // --- leaves ---

  /// A value without a gradient; the caller keeps its storage alive until clear().
  Var constant(const Tensor& value, Here here = {});
  /// A constant with the same number everywhere; `scalar`: with one element.
  Var filled(const Shape& shape, double value, DType dtype, Here here = {});
  Var scalar(double value, DType dtype, Here here = {}) { return filled({}, value, dtype, here); }
  /// A constant whose element i, row-major, is value_at(i).
  template <class Function>
  Var computed(const Shape& shape, DType dtype, Function value_at, Here here = {}) {
    const Tensor values = allocate(shape, dtype);
    const int64_t count = values.numel();
    if (dtype == DType::float64) {
      std::generate_n(values.as<double>(), count, [&, i = int64_t{0}]() mutable { return value_at(i++); });
    } else {
      std::generate_n(values.as<float>(), count,
                      [&, i = int64_t{0}]() mutable { return static_cast<float>(value_at(i++)); });
    }
    return constant(values, here);
  }
  /// A value with a gradient that stays readable until clear().
  Var variable(const Tensor& value, Here here = {});
  /// A parameter; its gradient is the parameter's own. Using one twice adds both contributions (tied weights).
  Var parameter(Parameter& parameter, Here here = {});
  /// Row `row` of a parameter [n, ..] under its own shape [..]: a view, as its gradient is one of the parameter's.
  Var parameter_row(Parameter& parameter, int64_t row, Here here = {});

  // --- for ops ---

  /// Appends a node with an uninitialised value. `N` derives from Node and is trivially destructible.
  template <class N>
  N& make(const char* op, std::initializer_list<Var> inputs, const Shape& shape, DType dtype, Here here) {
    return make_n<N>(op, std::span<const Var>(inputs.begin(), inputs.size()), shape, dtype, here);
  }
  template <class N>
  N& make_n(const char* op, std::span<const Var> inputs, const Shape& shape, DType dtype, Here here) {
    N& node = place<N>(op, inputs, here);
    node.value = allocate(shape, dtype);
    return node;
  }
  /// Appends a node whose value is a view of its input's (reshape).
  template <class N>
  N& make_view(const char* op, Var input, const Tensor& value, Here here) {
    N& node = place<N>(op, {&input, 1}, here);
    node.value = value;
    node.pinned = true;
    input.node().pinned = true;
    return node;
  }
  Var var(const Node& node) { return {this, node.id, epoch_}; }

  /// The id of an operand whose value backward will read. An op saves each of them, and its own value if it reads that;
  /// what nobody saved may be gone by then.
  NodeId save(Var operand) {
    save(operand.node());
    return operand.id();
  }
  void save(Node& node) { node.saved = node.saved || options_.record; }

  /// Uninitialised memory until clear(): what an op saves for backward beside values.
  Tensor allocate(const Shape& shape, DType dtype);

  /// Memory that lives as long as this object: what an op needs while it runs.
  class Scratch {
   public:
    Scratch(MemoryPool& pool, const Shape& shape, DType dtype) : pool_(pool), tensor_{nullptr, shape, dtype} {
      tensor_.data = pool_.take(tensor_.bytes());
    }
    ~Scratch() { pool_.give_back(tensor_.data, tensor_.bytes()); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    const Tensor& tensor() const { return tensor_; }

   private:
    MemoryPool& pool_;
    Tensor tensor_;
  };
  Scratch scratch(const Shape& shape, DType dtype) { return {pool_, shape, dtype}; }

  // --- between ops ---

  /// Gives the memory of the values made since node `first` to those that follow, `kept` and `also_kept` apart, as far
  /// as no backward needs them: those that nobody saved, and those that can be computed again. Whoever calls it reads
  /// no Var of them any more; one that is read throws. Does nothing under TapeOptions::retain and on the readable paths
  /// (reference kernels, composed ops), where everything stays to be looked at.
  void release_unsaved(NodeId first, Var kept, std::span<const Var> also_kept = {});

  // --- inside Node::backward ---

  Node& node(NodeId id) { return *nodes_[static_cast<size_t>(id)]; }
  /// A value that was saved, an operand's or the node's own; computed again when its memory was released.
  const Tensor& value(NodeId id);
  const Shape& shape(NodeId id) const { return nodes_[static_cast<size_t>(id)]->value.shape; }

  /// The gradient of an input to add to (zero-filled at its first use); empty when the input needs none.
  Tensor gradient(NodeId id);
  /// The same without the zero-fill, for kernels that can overwrite: saves a pass over memory.
  GradientTarget gradient_target(NodeId id);
  /// Makes the gradient of `node` that of its input `id`, memory and all, when it is the input's first: saves a copy
  /// for the last input to which an op passes its gradient on unchanged. False: nothing was done.
  bool move_gradient(Node& node, NodeId id);

  // --- running ---

  /// Runs every node's backward in reverse order of creation, from a one-element loss with gradient `seed`. Without
  /// NDEBUG a warning names nodes that were computed for a gradient and do not lead to the loss.
  void backward(Var loss, double seed = 1.0);

  /// Forgets all nodes and gives their memory back; every Var made before is invalid from here on.
  void clear();

  // --- names and streams ---

  /// Names the scope of nodes made while the guard lives: `auto scope = tape.enter("model.layers.0.self_attn");`
  class ScopeGuard {
   public:
    ScopeGuard(Tape& tape, const char* scope) : tape_(tape), outer_(tape.scope_) { tape.scope_ = scope; }
    ~ScopeGuard() { tape_.scope_ = outer_; }
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

   private:
    Tape& tape_;
    const char* outer_;
  };
  ScopeGuard enter(std::string_view scope) { return {*this, intern(scope)}; }
  const char* scope() const { return scope_; }

  /// The key of this pass' random draws (dropout): set by the trainer from (seed, step, micro-batch).
  void set_random_key(RandomKey key) { random_key_ = key; }
  RandomKey random_key() const { return random_key_; }

  // --- looking ---

  uint32_t epoch() const { return epoch_; }
  NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
  size_t bytes_in_use() const { return arena_.bytes_used() + pool_.bytes_in_use(); }
  size_t peak_bytes() const { return arena_.bytes_used() + pool_.peak_bytes(); }  ///< since clear()
  size_t bytes_reserved() const { return arena_.bytes_reserved() + pool_.bytes_reserved(); }

  /// Of each node whether `end` was computed from it, `end` itself among them.
  std::vector<bool> ancestors(NodeId end) const;

  /// One line a node: id, op, scope, shape, |value|, |grad|, where it was called.
  void dump(std::FILE* out) const;

 private:
  template <class N>
  N& place(const char* op, std::span<const Var> inputs, Here here) {
    static_assert(std::is_trivially_destructible_v<N>, "nodes hold plain data only");
    N& node = *new (arena_.allocate(sizeof(N))) N();
    append(node, op, inputs, here);
    return node;
  }
  void append(Node& node, const char* op, std::span<const Var> inputs, Here here);
  const char* intern(std::string_view scope);
  /// What follows is counted for this node, by the clocks that run.
  void move_clocks(const Node& node, Pass pass);
  void warn_of_dead_ends(NodeId loss);
  void recompute(Node& node);
  void release_value(Node& node);
  void release_gradient(Node& node);

  static constexpr size_t no_sequence = SIZE_MAX;

  TapeOptions options_;
  NodeId stop_at_;  // -1: no node
  size_t sequence_ = no_sequence;
  Arena arena_;      // nodes
  MemoryPool pool_;  // values, gradients and scratch memory
  std::vector<Node*> nodes_;
  std::set<std::string, std::less<>> scopes_;
  const char* scope_ = "";
  RandomKey random_key_ = 0;
  uint32_t epoch_ = 1;
  bool dead_ends_told_ = false;
};

}  // namespace minillm
