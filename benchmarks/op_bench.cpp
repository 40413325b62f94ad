// The fused ops of the reference model's step, and those of its most common variants. Ops that are bound by memory
// count bytes, the others operations; attention's are the causal count of docs/numbers.md.

#include "benchmarks/bench_support.h"
#include "core/kernels/activation.h"
#include "core/kernels/adamw.h"
#include "core/kernels/attention.h"
#include "core/kernels/embedding.h"
#include "core/kernels/layernorm.h"
#include "core/kernels/linear_cross_entropy.h"
#include "core/kernels/rmsnorm.h"
#include "core/kernels/rope.h"
#include "core/kernels/sum_of_squares.h"

#include <vector>

namespace minillm::bench {

namespace {

constexpr double eps = 1e-6;
const QkvLayout layout = {.n_heads = heads, .n_kv_heads = heads, .head_dim = d / heads};

std::vector<int32_t> ids() {
  std::vector<int32_t> result(static_cast<size_t>(R));
  RandomStream random(random_key(1, "ids"));
  for (int32_t& id : result) {
    id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  }
  return result;
}

void rmsnorm_forward(benchmark::State& state) {
  const Buffer x = uniform(R * d);
  const Buffer gain = uniform(d);
  const Buffer y = uniform(R * d);
  const Buffer rstd = uniform(R);
  for (auto _ : state) {
    kernels::rmsnorm_forward(data(x), data(gain), data(y), data(rstd), R, d, eps, 0);
    keep(y);
  }
  count_floats(state, 2 * R * d);
}
BENCHMARK(rmsnorm_forward)->UseRealTime();

void rmsnorm_backward(benchmark::State& state) {
  const Buffer x = uniform(R * d);
  const Buffer gain = uniform(d);
  const Buffer dy = uniform(R * d);
  const Buffer rstd = uniform(R);
  const Buffer dx = uniform(R * d);
  const Buffer dw = uniform(d);
  const Buffer partial = uniform(kernels::rmsnorm_partials(R) * d);
  for (auto _ : state) {
    kernels::rmsnorm_backward(data(dy), data(x), data(gain), data(rstd), data(dx), data(dw), data(partial), R, d, 0);
    keep(dx);
  }
  count_floats(state, 4 * R * d);
}
BENCHMARK(rmsnorm_backward)->UseRealTime();

void layernorm_forward(benchmark::State& state) {
  const Buffer x = uniform(R * d);
  const Buffer gain = uniform(d);
  const Buffer bias = uniform(d);
  const Buffer y = uniform(R * d);
  const Buffer mean = uniform(R);
  const Buffer rstd = uniform(R);
  for (auto _ : state) {
    kernels::layernorm_forward(data(x), data(gain), data(bias), data(y), data(mean), data(rstd), R, d, eps);
    keep(y);
  }
  count_floats(state, 2 * R * d);
}
BENCHMARK(layernorm_forward)->UseRealTime();

void layernorm_backward(benchmark::State& state) {
  const Buffer x = uniform(R * d);
  const Buffer gain = uniform(d);
  const Buffer dy = uniform(R * d);
  const Buffer mean = uniform(R);
  const Buffer rstd = uniform(R);
  const Buffer dx = uniform(R * d);
  const Buffer dw = uniform(d);
  const Buffer db = uniform(d);
  const Buffer partial = uniform(kernels::layernorm_partials(R) * 2 * d);
  for (auto _ : state) {
    kernels::layernorm_backward(data(dy), data(x), data(gain), data(mean), data(rstd), data(dx), data(dw), data(db),
                                data(partial), R, d);
    keep(dx);
  }
  count_floats(state, 4 * R * d);
}
BENCHMARK(layernorm_backward)->UseRealTime();

void rope_forward(benchmark::State& state) {
  const Buffer x = uniform(R * layout.width());
  const Buffer y = uniform(R * layout.width());
  const Buffer table = uniform(T * layout.head_dim / 2);
  for (auto _ : state) {
    kernels::rope_forward(data(x), data(table), data(table), data(y), B, T, layout.head_dim / 2, layout);
    keep(y);
  }
  count_floats(state, 2 * R * layout.width());
}
BENCHMARK(rope_forward)->UseRealTime();

void rope_backward(benchmark::State& state) {
  const Buffer dy = uniform(R * layout.width());
  const Buffer dx = uniform(R * layout.width());
  const Buffer table = uniform(T * layout.head_dim / 2);
  for (auto _ : state) {
    kernels::rope_backward(data(dy), data(table), data(table), data(dx), B, T, layout.head_dim / 2, layout, true);
    keep(dx);
  }
  count_floats(state, 2 * R * layout.width());
}
BENCHMARK(rope_backward)->UseRealTime();

void swiglu_forward(benchmark::State& state) {
  const Buffer gate_up = uniform(R * 2 * f);
  const Buffer y = uniform(R * f);
  for (auto _ : state) {
    kernels::gated_activation_forward(data(gate_up), data(y), R, f, Activation::silu);
    keep(y);
  }
  count_floats(state, 3 * R * f);
}
BENCHMARK(swiglu_forward)->UseRealTime();

void swiglu_backward(benchmark::State& state) {
  const Buffer gate_up = uniform(R * 2 * f);
  const Buffer dy = uniform(R * f);
  const Buffer d_gate_up = uniform(R * 2 * f);
  for (auto _ : state) {
    kernels::gated_activation_backward(data(dy), data(gate_up), data(d_gate_up), R, f, Activation::silu, true);
    keep(d_gate_up);
  }
  count_floats(state, 5 * R * f);
}
BENCHMARK(swiglu_backward)->UseRealTime();

void gelu_forward(benchmark::State& state) {
  const Buffer x = uniform(R * 4 * d);
  const Buffer y = uniform(R * 4 * d);
  for (auto _ : state) {
    kernels::activate_forward(data(x), data(y), R * 4 * d, Activation::gelu);
    keep(y);
  }
  count_floats(state, 2 * R * 4 * d);
}
BENCHMARK(gelu_forward)->UseRealTime();

void gelu_backward(benchmark::State& state) {
  const Buffer x = uniform(R * 4 * d);
  const Buffer dy = uniform(R * 4 * d);
  const Buffer dx = uniform(R * 4 * d);
  for (auto _ : state) {
    kernels::activate_backward(data(dy), data(x), data(dx), R * 4 * d, Activation::gelu, true);
    keep(dx);
  }
  count_floats(state, 3 * R * 4 * d);
}
BENCHMARK(gelu_backward)->UseRealTime();

struct AttentionBuffers {
  Buffer qkv = uniform(R * layout.width());
  Buffer out = uniform(R * d);
  Buffer stats = uniform(B * heads * 2 * T);
  Buffer dout = uniform(R * d);
  Buffer dqkv = uniform(R * layout.width());
};

/// Forward: two products over the T + 1 keys that a query sees two times over.
constexpr double attention_flops = 2.0 * static_cast<double>(R * d) * static_cast<double>(T + 1);

void attention_forward(benchmark::State& state) {
  const AttentionBuffers buffers;
  for (auto _ : state) {
    kernels::attention_forward(data(buffers.qkv), data(buffers.out), data(buffers.stats), B, T, layout, true);
    keep(buffers.out);
  }
  count_flops(state, attention_flops);
}
BENCHMARK(attention_forward)->UseRealTime();

void attention_backward(benchmark::State& state) {
  const AttentionBuffers buffers;
  kernels::attention_forward(data(buffers.qkv), data(buffers.out), data(buffers.stats), B, T, layout, true);
  for (auto _ : state) {
    kernels::attention_backward(data(buffers.dout), data(buffers.qkv), data(buffers.out), data(buffers.stats),
                                data(buffers.dqkv), B, T, layout, true, true);
    keep(buffers.dqkv);
  }
  count_flops(state, 2 * attention_flops);
}
BENCHMARK(attention_backward)->UseRealTime();

void linear_cross_entropy(benchmark::State& state) {
  const Buffer hidden = uniform(R * d);
  const Buffer weight = uniform(V * d);
  const Buffer dhidden = uniform(R * d);
  const Buffer dweight = uniform(V * d);
  const Buffer logits = uniform(kernels::linear_cross_entropy_scratch(R, V));
  const std::vector<int32_t> targets = ids();
  std::vector<double> row_loss(static_cast<size_t>(R));
  for (auto _ : state) {
    kernels::linear_cross_entropy_forward(data(hidden), data(weight), targets.data(), data(dhidden), data(dweight),
                                          data(logits), row_loss.data(), R, d, V, R);
    keep(dhidden);
  }
  count_flops(state, 6.0 * static_cast<double>(R * d * V));
}
BENCHMARK(linear_cross_entropy)->UseRealTime();

void embedding_backward(benchmark::State& state) {
  const Buffer dy = uniform(R * d);
  const Buffer table = uniform(V * d);
  const std::vector<int32_t> tokens = ids();
  for (auto _ : state) {
    kernels::embedding_backward(data(dy), tokens.data(), data(table), R, d);
    keep(table);
  }
  count_floats(state, 3 * R * d);
}
BENCHMARK(embedding_backward)->UseRealTime();

/// One thread's share of an update: 4 arrays read, 3 written.
void adamw(benchmark::State& state) {
  const int64_t count = 1 << 20;
  const Buffer p = uniform(count);
  const Buffer m = uniform(count);
  const Buffer v({count}, DType::float32);
  const Buffer grad = uniform(count);
  const kernels::AdamWFactors factors = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .shrink = 1, .step_size = 1e-4};
  for (auto _ : state) {
    kernels::adamw(data(p), data(m), data(v), data(grad), count, factors);
    keep(p);
  }
  count_floats(state, 7 * count);
}
BENCHMARK(adamw)->UseRealTime();

void sum_of_squares(benchmark::State& state) {
  const int64_t count = 1 << 22;
  const Buffer x = uniform(count);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels::sum_of_squares(data(x), count));
  }
  count_floats(state, count);
}
BENCHMARK(sum_of_squares)->UseRealTime();

}  // namespace

}  // namespace minillm::bench
