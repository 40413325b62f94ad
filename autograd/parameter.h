#pragma once
// Parameters: declared by modules (name, shape, init, decay), then laid out by the store in flat aligned buffers.
// Before `allocate` a store holds shapes only, which is all a ledger needs.

#include "core/tensor.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace minillm {

/// How a parameter starts: normal(0, std), a constant, or log(u) with u uniform in (0, most).
struct Init {
  enum class Kind : uint8_t { normal, constant, log_uniform };
  Kind kind = Kind::constant;
  double value = 0;  ///< the standard deviation, the constant, or most

  static Init normal(double std) { return {Kind::normal, std}; }
  static Init constant(double value) { return {Kind::constant, value}; }
  static Init log_uniform(double most) { return {Kind::log_uniform, most}; }
};

/// Rows of a parameter that have a name of their own outside: q, k and v are three tensors in a checkpoint and one
/// matrix in memory.
struct NamedRows {
  std::string name;  ///< "model.layers.0.self_attn.q_proj.weight"
  int64_t rows = 0;
  Init init;
};

/// One matrix, vector or scalar of the model. `value` and `grad` are views into the store's flat buffers.
struct Parameter {
  std::string name;               ///< the first of its named rows, or the merged name "...qkv_proj.weight"
  Shape shape;                    ///< [rows, columns] or [elements]
  std::vector<NamedRows> slices;  ///< cover axis 0 in order; their names are those in files, logs and errors
  bool decay = false;             ///< whether AdamW's weight decay applies
  bool is_buffer = false;         ///< kept with the weights and never trained: its gradient stays 0
  int64_t offset = 0;             ///< of its first element in the flat buffers, set by `allocate`
  Tensor value;
  Tensor grad;
  bool grad_is_fresh = true;  ///< no gradient was added since zero_gradients: the first addition may overwrite

  int64_t numel() const { return shape.numel(); }
};

/// One named tensor as files know it: a row range of a parameter.
struct NamedTensor {
  std::string_view name;
  Tensor value;
  Tensor grad;
  bool decay = false;
  bool is_buffer = false;
};

/// What follows each update of the weights: running statistics, clipped projections.
class UpdateHook {
 public:
  UpdateHook(const UpdateHook&) = delete;  // the store knows its address
  UpdateHook& operator=(const UpdateHook&) = delete;
  virtual void after_update() = 0;

 protected:
  UpdateHook() = default;
  ~UpdateHook() = default;
};

/// Owns weights and gradients: one flat buffer each, matrices in order of declaration, then vectors, every parameter at
/// a multiple of 64 bytes. Adding optimizer state, clipping or reducing a gradient is one loop over `weights().numel()`
/// values; the padding between parameters is zero and stays zero.
class ParameterStore {
 public:
  /// Declares a parameter. Names are unique; declaring after `allocate` is an error. The reference stays valid.
  /// Matrices (rank >= 2) decay, everything else does not unless `decay` says so.
  Parameter& declare(std::string name, Shape shape, Init init);
  Parameter& declare_decayed(std::string name, Shape shape, Init init, bool decay);

  /// Declares values that are stored with the weights and changed by their owner alone.
  Parameter& declare_buffer(std::string name, Shape shape, double value);

  /// Calls hook.after_update() whenever `updated` is called. The hook outlives the last of these calls.
  void follow_updates(UpdateHook& hook) { hooks_.push_back(&hook); }
  /// For an optimizer that has updated the weights.
  void updated();

  /// Declares one matrix [sum of rows, columns] (columns > 0) or one vector [sum of rows] (columns = 0) whose row
  /// ranges carry the names.
  Parameter& declare_merged(std::string name, std::vector<NamedRows> slices, int64_t columns);

  /// Takes the memory (zero-filled) and hands out the views. Gradients only when `with_gradients`.
  void allocate(DType dtype, bool with_gradients = true);
  /// Takes the memory of the gradients where `allocate` left it out; does nothing where they are there.
  void allocate_gradients();

  /// Fills every parameter from its Init. The stream of each named tensor is keyed (seed, "init", name).
  void initialize(uint64_t seed);

  bool allocated() const { return static_cast<bool>(weights_.tensor()); }
  DType dtype() const { return weights_.tensor().dtype; }
  const Tensor& weights() const { return weights_.tensor(); }      ///< flat, with padding
  const Tensor& gradients() const { return gradients_.tensor(); }  ///< flat, with padding

  /// Marks every gradient as not yet written; the memory itself is not touched, but in builds that check who reads it
  /// all the same (mark_unused).
  void zero_gradients();
  /// Zero-fills the gradients that no node added to since zero_gradients, so that the flat buffer is valid as a whole.
  void finish_gradients();

  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }

  /// Every tensor under its outside name, in order of declaration. Before `allocate` the tensors are empty.
  std::vector<NamedTensor> named_tensors() const;
  std::vector<std::string_view> names() const;

  int64_t count() const;  ///< elements of all parameters, padding and buffers excluded

  /// A view of `flat` (laid out as weights(), or empty: shapes only) for each named tensor, in order of declaration.
  std::vector<Tensor> views(const Tensor& flat) const;

 private:
  Parameter& add(Parameter parameter);

  std::deque<Parameter> parameters_;  // a deque: references handed to modules stay valid
  std::unordered_set<std::string> taken_names_;
  std::vector<UpdateHook*> hooks_;
  Buffer weights_;
  Buffer gradients_;
};

}  // namespace minillm
