// Every matrix product of a training step, by minillm and by oneDNN's own dnnl_sgemm with as many threads.

#include "benchmarks/bench_support.h"
#include "core/kernels/gemm.h"

#ifdef MINILLM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace minillm::bench {

namespace {

using kernels::Operand;
using kernels::Result;

/// C [M, N] = op(A) op(B) over K, as gemm.h stores operands.
struct Product {
  std::string name;
  int64_t M;
  int64_t N;
  int64_t K;
  bool transpose_a;
  bool transpose_b;
};

using Multiply = void (*)(Operand<float> A, Operand<float> B, Result<float> C, const Product& p);

void by_minillm(Operand<float> A, Operand<float> B, Result<float> C, const Product& p) {
  kernels::gemm(A, B, C, p.M, p.N, p.K, 0.0);
}

#ifdef MINILLM_ONEDNN
void by_onednn(Operand<float> A, Operand<float> B, Result<float> C, const Product& p) {
  const dnnl_status_t status = dnnl_sgemm(A.transposed ? 'T' : 'N', B.transposed ? 'T' : 'N', p.M, p.N, p.K, 1.0F,
                                          A.data, A.ld, B.data, B.ld, 0.0F, C.data, C.ld);
  check(status == dnnl_success, "oneDNN refuses {}", p.name);
}
#endif

void run(benchmark::State& state, const Product& p, Multiply multiply) {
  const Buffer a = uniform(p.M * p.K);
  const Buffer b = uniform(p.K * p.N);
  const Buffer c = uniform(p.M * p.N);
  const Operand<float> A = {data(a), p.transpose_a ? p.M : p.K, p.transpose_a};
  const Operand<float> B_operand = {data(b), p.transpose_b ? p.K : p.N, p.transpose_b};
  for (auto _ : state) {
    multiply(A, B_operand, {data(c), p.N}, p);
    keep(c);
  }
  count_flops(state, 2.0 * static_cast<double>(p.M * p.N * p.K));
}

/// What a core reaches when all operands lie in its caches: 280 rows against a packed panel of the widest tile.
void tiles_in_cache(benchmark::State& state) {
  constexpr int64_t M = 280;
  constexpr int64_t N = 32;
  constexpr int64_t K = 256;
  const Buffer a = uniform(M * K);
  const Buffer b = uniform(K * N);
  const Buffer c = uniform(M * N);
  const Buffer memory = uniform(kernels::packed_floats(N, K));
  const kernels::Packed packed = kernels::pack({data(b), N, false}, N, K, data(memory));
  for (auto _ : state) {
    kernels::gemm_packed({data(a), K, false}, packed, {data(c), N}, M, K, 0.0);
    keep(c);
  }
  count_flops(state, 2.0 * M * N * K);
}
BENCHMARK(tiles_in_cache);

/// The three products of y = x W^T with x [R, in] and W [out, in].
void register_linear(const std::string& name, int64_t in, int64_t out) {
  const Product products[] = {
      {"forward/" + name, R, out, in, false, true},
      {"dX/" + name, R, in, out, false, false},
      {"dW/" + name, out, in, R, true, false},
  };
  for (const Product& p : products) {
    benchmark::RegisterBenchmark(("gemm/" + p.name + "/minillm").c_str(), run, p, by_minillm)->UseRealTime();
#ifdef MINILLM_ONEDNN
    benchmark::RegisterBenchmark(("gemm/" + p.name + "/oneDNN").c_str(), run, p, by_onednn)->UseRealTime();
#endif
  }
}

const bool registered = [] {
  register_linear("qkv_proj", d, 3 * d);
  register_linear("o_proj", d, d);
  register_linear("gate_up_proj", d, 2 * f);
  register_linear("down_proj", f, d);
  register_linear("lm_head", d, V);
  return true;
}();

}  // namespace

}  // namespace minillm::bench
