// Attention of new positions to all before them, whose keys and values a Past keeps. For decoding: no gradient.

#include "core/kernels/past_attention.h"
#include "autograd/op_support.h"

namespace minillm {

namespace {

struct PastAttentionNode final : Node {
  void backward(Tape&) override {
    fail_input({.where = "[past_attention]", .what = "what was read before has no gradient; train without a past"});
  }
};

template <class T>
Var past_attention_fused(Var q, const KeptRows& kept, const kernels::PastShape& shape, Here here) {
  Tape& tape = q.tape();
  const Shape out_shape = {1, shape.count, shape.heads * shape.value_width};
  auto& node = tape.make<PastAttentionNode>("past_attention", {q}, out_shape, q.dtype(), here);
  const T* keys = kept.keys.as<T>();
  const T* values = kept.values ? kept.values.as<T>() : keys;
  const T* queries = q.value().as<T>();
  T* out = node.value.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::past_attention(queries, keys, values, out, shape);
      return tape.var(node);
    }
  }
  kernels::past_attention_reference(queries, keys, values, out, shape);
  return tape.var(node);
}

// The heads of a key head are stacked, [G, heads/G * count, key_width], so that one product serves them all.
Var past_attention_composed(Var q, const KeptRows& kept, const kernels::PastShape& shape) {
  Tape& tape = q.tape();
  const int64_t G = shape.key_heads;
  const int64_t seen = shape.past + shape.count;
  const int64_t rows = shape.heads / G * shape.count;
  Var keys = slice(tape.constant(kept.keys), 1, 0, seen);
  Var values = kept.values ? slice(tape.constant(kept.values), 1, 0, seen) : slice(keys, -1, 0, shape.value_width);
  Var queries = reshape(transpose(reshape(q, {shape.count, shape.heads, shape.key_width}), {1, 0, 2}),
                        {G, rows, shape.key_width});
  Var scores = reshape(scale(matmul(queries, keys, true), shape.scale), {shape.heads, shape.count, seen});
  Var mask = tape.computed({shape.count, seen}, q.dtype(),
                           [=](int64_t i) { return i % seen <= shape.past + i / seen ? 0.0 : -1e30; });
  Var weights = reshape(softmax(add(scores, mask)), {G, rows, seen});
  Var out = reshape(matmul(weights, values), {shape.heads, shape.count, shape.value_width});
  return reshape(transpose(out, {1, 0, 2}), {1, shape.count, shape.heads * shape.value_width});
}

}  // namespace

Var past_attention(Var q, const KeptRows& kept, int64_t past, double scale, Here here) {
  Tape& tape = q.tape();
  const Shape& keys = kept.keys.shape;
  check_op(q.shape().rank() == 4 && q.shape()[0] == 1 && keys.rank() == 3 && q.shape()[3] == keys[2] &&
               q.shape()[2] % keys[0] == 0,
           "past_attention", tape, here,
           "queries must be [1, T, heads, width] and keys [G, capacity, width]; found {} and {}", q.shape(), keys);
  check_op(past + q.shape()[1] <= keys[1], "past_attention", tape, here,
           "{} positions are kept, and there is room for {}", past + q.shape()[1], keys[1]);
  const kernels::PastShape shape = {.count = q.shape()[1],
                                    .past = past,
                                    .capacity = keys[1],
                                    .heads = q.shape()[2],
                                    .key_heads = keys[0],
                                    .key_width = keys[2],
                                    .key_row = keys[2],
                                    .value_width = kept.values ? kept.values.shape[2] : kept.value_width,
                                    .value_row = kept.values ? kept.values.shape[2] : keys[2],
                                    .scale = scale};
  if (tape.composed()) {
    return past_attention_composed(q, kept, shape);
  }
  return q.dtype() == DType::float64 ? past_attention_fused<double>(q, kept, shape, here)
                                     : past_attention_fused<float>(q, kept, shape, here);
}

}  // namespace minillm
