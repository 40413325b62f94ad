// y[r, :] = table[ids[r], :]

#include "core/kernels/embedding.h"

#include "autograd/op_support.h"

#include <algorithm>

namespace minillm {

namespace {

template <class T>
struct EmbeddingNode final : Node {
  NodeId table;
  Tensor ids;  // [R], a copy: the caller's may be gone when backward runs

  void backward(Tape& tape) override;
};

template <class T>
Var embedding_fused(Var table, std::span<const int32_t> ids, Here here) {
  Tape& tape = table.tape();
  const int64_t R = static_cast<int64_t>(ids.size());
  const int64_t d = table.shape()[1];
  auto& node = tape.make<EmbeddingNode<T>>("embedding", {table}, {R, d}, table.dtype(), here);
  node.table = table.id();
  node.ids = tape.allocate({R}, DType::int32);
  int32_t* saved_ids = node.ids.template as<int32_t>();
  std::copy(ids.begin(), ids.end(), saved_ids);
  const T* table_values = table.value().as<T>();
  T* y = node.value.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::embedding_forward(table_values, saved_ids, y, R, d);
      return tape.var(node);
    }
  }
  kernels::embedding_forward_reference(table_values, saved_ids, y, R, d);
  return tape.var(node);
}

template <class T>
void EmbeddingNode<T>::backward(Tape& tape) {
  const int64_t R = value.shape[0];
  const int64_t d = value.shape[1];
  const T* dy = grad.as<T>();
  T* dtable = tape.gradient(table).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::embedding_backward(dy, ids.as<int32_t>(), dtable, R, d);
      return;
    }
  }
  kernels::embedding_backward_reference(dy, ids.as<int32_t>(), dtable, R, d);
}

// The product of one-hot rows with the table. Memory [R, V]: for reading and testing at small sizes.
template <class T>
Var embedding_composed(Var table, std::span<const int32_t> ids) {
  Tape& tape = table.tape();
  const int64_t V = table.shape()[0];
  const Tensor one_hot = tape.allocate({static_cast<int64_t>(ids.size()), V}, table.dtype());
  fill_zero(one_hot);
  T* row = one_hot.as<T>();
  for (const int32_t id : ids) {
    row[id] = 1;
    row += V;
  }
  return matmul(tape.constant(one_hot), table);
}

}  // namespace

Var embedding(Var table, std::span<const int32_t> ids, Here here) {
  Tape& tape = table.tape();
  check_op(table.shape().rank() == 2, "embedding", tape, here, "the table must be [V, d]; found {}", table.shape());
  const int64_t V = table.shape()[0];
  for (size_t r = 0; r < ids.size(); ++r) {
    check_op(ids[r] >= 0 && ids[r] < V, "embedding", tape, here, "token id {} at position {} is outside [0, {})",
             ids[r], r, V);
  }
  const bool in_double = table.dtype() == DType::float64;
  if (tape.composed()) {
    return in_double ? embedding_composed<double>(table, ids) : embedding_composed<float>(table, ids);
  }
  return in_double ? embedding_fused<double>(table, ids, here) : embedding_fused<float>(table, ids, here);
}

}  // namespace minillm
