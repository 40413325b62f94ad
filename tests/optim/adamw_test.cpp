#include "optim/adamw.h"

#include "core/parallel.h"
#include "core/rng.h"
#include "optim/clip.h"
#include "optim/finite.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace minillm;

namespace {

/// A store with every kind of parameter; more than one chunk of matrix, sizes that are no multiple of the padding.
void declare_all(ParameterStore& store) {
  store.declare("model.embed_tokens.weight", {301, 67}, Init::normal(0.5));
  store.declare("model.layers.0.input_layernorm.weight", {67}, Init::constant(1));
  store.declare_merged("model.layers.0.self_attn.qkv_proj.weight",
                       {{"model.layers.0.self_attn.q_proj.weight", 67, Init::normal(0.5)},
                        {"model.layers.0.self_attn.k_proj.weight", 33, Init::normal(0.5)},
                        {"model.layers.0.self_attn.v_proj.weight", 33, Init::normal(0.5)}},
                       67);
  store.declare_merged("model.layers.0.self_attn.qkv_proj.bias",
                       {{"model.layers.0.self_attn.q_proj.bias", 67, Init::constant(0.5)},
                        {"model.layers.0.self_attn.k_proj.bias", 33, Init::constant(0.5)},
                        {"model.layers.0.self_attn.v_proj.bias", 33, Init::constant(0.5)}},
                       0);
  store.declare("model.norm.weight", {67}, Init::constant(1));
}

template <class T>
void fill_gradients(ParameterStore& store, uint64_t seed) {
  for (Parameter& parameter : store.parameters()) {
    RandomStream stream(random_key(seed, "gradient", parameter.name));
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      parameter.grad.as<T>()[i] = static_cast<T>(stream.normal());
    }
    parameter.grad_is_fresh = false;
  }
}

/// One parameter as a plain loop keeps it: the reference the optimizer is compared with.
struct Replica {
  std::vector<double> p, m, v;
  double decay;
};

std::vector<Replica> replicas_of(const ParameterStore& store, bool decay_norms) {
  std::vector<Replica> replicas;
  for (const Parameter& parameter : store.parameters()) {
    Replica replica;
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      replica.p.push_back(parameter.value.at(i));
    }
    replica.m.assign(replica.p.size(), 0);
    replica.v.assign(replica.p.size(), 0);
    const bool is_bias = parameter.name.find("bias") != std::string::npos;
    const bool decays = !is_bias && (parameter.shape.rank() == 2 || decay_norms);
    replica.decay = decays ? 0.1 : 0.0;
    replicas.push_back(replica);
  }
  return replicas;
}

/// Runs five clipped updates beside the plain loop and returns the largest difference of any weight.
template <class T>
double difference_after_five_steps(bool decay_norms, bool use_reference) {
  ParameterStore store;
  declare_all(store);
  store.allocate(dtype_of<T>());
  store.initialize(7);
  OptimConfig config;
  config.decay_norms = decay_norms;
  AdamW optimizer(store, config, use_reference);
  std::vector<Replica> replicas = replicas_of(store, decay_norms);
  const double lr = 0.01;
  const double scale = 0.25;
  for (int t = 1; t <= 5; ++t) {
    fill_gradients<T>(store, static_cast<uint64_t>(t));
    for (size_t k = 0; k < replicas.size(); ++k) {
      Replica& r = replicas[k];
      for (size_t i = 0; i < r.p.size(); ++i) {
        const double g = scale * store.parameters()[k].grad.at(static_cast<int64_t>(i));
        r.m[i] = 0.9 * r.m[i] + 0.1 * g;
        r.v[i] = 0.95 * r.v[i] + 0.05 * g * g;
        const double m_hat = r.m[i] / (1 - std::pow(0.9, t));
        const double v_hat = r.v[i] / (1 - std::pow(0.95, t));
        r.p[i] -= lr * r.decay * r.p[i];
        r.p[i] -= lr * m_hat / (std::sqrt(v_hat) + 1e-8);
      }
    }
    optimizer.step(lr, scale);
  }
  CHECK(optimizer.steps() == 5);
  double worst = 0;
  for (size_t k = 0; k < replicas.size(); ++k) {
    for (size_t i = 0; i < replicas[k].p.size(); ++i) {
      const double found = store.parameters()[k].value.at(static_cast<int64_t>(i));
      worst = std::max(worst, std::abs(found - replicas[k].p[i]));
    }
  }
  return worst;
}

double one_step(double p, double g, double beta1, double beta2, double lr) {
  ParameterStore store;
  Parameter& parameter = store.declare("w", {1}, Init::constant(p));
  store.allocate(DType::float64);
  store.initialize(1);
  OptimConfig config;
  config.beta1 = beta1;
  config.beta2 = beta2;
  config.weight_decay = 0;
  AdamW optimizer(store, config);
  parameter.grad.as<double>()[0] = g;
  optimizer.step(lr);
  return parameter.value.at(0);
}

}  // namespace

TEST_CASE("the first step is corrected for the bias of the moments") {
  CHECK(one_step(1, 0.5, 0.9, 0.999, 0.1) == doctest::Approx(0.9).epsilon(1e-7));  // 0.683772 without the correction
}

TEST_CASE("eps is added after the correction") {
  CHECK(1 - one_step(1, 1e-8, 0.9, 0.999, 0.1) == doctest::Approx(0.05).epsilon(1e-6));  // 0.003065 the other way round
}

TEST_CASE("AdamW equals a hand-written loop in double") {
  CHECK(difference_after_five_steps<double>(false, false) < 1e-14);
  CHECK(difference_after_five_steps<double>(true, false) < 1e-14);
  CHECK(difference_after_five_steps<float>(false, false) < 1e-6);
  CHECK(difference_after_five_steps<float>(true, true) < 1e-6);
}

namespace {

std::vector<char> bits_after_three_steps(int threads, bool use_reference) {
  set_num_threads(threads);
  ParameterStore store;
  declare_all(store);
  store.allocate(DType::float32);
  store.initialize(7);
  AdamW optimizer(store, {.decay_norms = true}, use_reference);
  for (uint64_t t = 1; t <= 3; ++t) {
    fill_gradients<float>(store, t);
    optimizer.step(1e-2, clip_factor(gradient_norm(store.gradients()), 1.0));
  }
  const Tensor& weights = store.weights();
  const char* begin = static_cast<const char*>(weights.data);
  set_num_threads(2);
  return {begin, begin + weights.bytes()};
}

}  // namespace

TEST_CASE("fast and reference kernels and any number of threads give the same bits") {
  const std::vector<char> one = bits_after_three_steps(1, false);
  CHECK(one == bits_after_three_steps(1, true));
  CHECK(one == bits_after_three_steps(2, false));
  CHECK(one == bits_after_three_steps(3, false));
  CHECK(one == bits_after_three_steps(4, false));
}

TEST_CASE("the padding between parameters stays zero") {
  ParameterStore store;
  Parameter& parameter = store.declare("w", {3}, Init::constant(1));
  store.declare("u", {3}, Init::constant(1));
  store.allocate(DType::float32);
  store.initialize(1);
  AdamW optimizer(store, {});
  parameter.grad.as<float>()[0] = 1;
  optimizer.step(0.1);
  for (const int64_t i : {3, 7, 15}) {
    CHECK(store.weights().at(i) == 0);
    CHECK(optimizer.m().at(i) == 0);
  }
}

TEST_CASE("every parameter is in one group, and the table says what decays") {
  ParameterStore store;
  declare_all(store);
  store.declare_decayed("model.layers.0.mlp.router.weight", {4, 67}, Init::normal(0.5), false);
  store.allocate(DType::float32);
  const AdamW plain(store, {});
  REQUIRE(plain.groups().size() == 4);
  CHECK(to_string(plain.groups()[0]) == "matrices: 4 tensors, 29,078 parameters, weight decay 0.1");
  CHECK(to_string(plain.groups()[1]) == "gains: 2 tensors, 134 parameters, weight decay 0");
  CHECK(to_string(plain.groups()[2]) == "biases: 3 tensors, 133 parameters, weight decay 0");
  CHECK(to_string(plain.groups()[3]) == "matrices without decay: 1 tensor, 268 parameters, weight decay 0");
  int64_t parameters = 0;
  for (const ParameterGroup& group : plain.groups()) {
    parameters += group.parameters;
  }
  CHECK(parameters == store.count());
  const AdamW decaying(store, {.decay_norms = true});
  CHECK(decaying.groups()[1].decay == 0.1);
  CHECK(decaying.groups()[2].decay == 0);
  CHECK(decaying.groups()[3].decay == 0);
}

TEST_CASE("the gradient norm is the square root of the sum of squares, with the same bits for 1 to 4 threads") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    ParameterStore store;
    declare_all(store);
    store.allocate(dtype);
    if (dtype == DType::float32) {
      fill_gradients<float>(store, 3);
    } else {
      fill_gradients<double>(store, 3);
    }
    long double sum = 0;
    for (int64_t i = 0; i < store.gradients().numel(); ++i) {
      const long double g = store.gradients().at(i);
      sum += g * g;
    }
    set_num_threads(1);
    const double norm = gradient_norm(store.gradients());
    CHECK(norm == doctest::Approx(static_cast<double>(std::sqrt(sum))).epsilon(1e-13));
    for (int threads = 2; threads <= 4; ++threads) {
      set_num_threads(threads);
      CHECK(gradient_norm(store.gradients()) == norm);
    }
    set_num_threads(2);
  }
}

TEST_CASE("a gradient too large for float squares does not overflow the norm") {
  ParameterStore store;
  Parameter& parameter = store.declare("w", {2}, Init::constant(0));
  store.allocate(DType::float32);
  parameter.grad.as<float>()[0] = 3e30F;
  parameter.grad.as<float>()[1] = 4e30F;
  CHECK(gradient_norm(store.gradients()) == doctest::Approx(5e30).epsilon(1e-6));
}

TEST_CASE("clipping bounds the norm and leaves small gradients alone") {
  CHECK(clip_factor(0.5, 1.0) == 1.0);
  CHECK(clip_factor(4, 1.0) == doctest::Approx(1 / 4.000001).epsilon(1e-15));
  CHECK(clip_factor(1e9, 0) == 1.0);
  CHECK(clip_factor(0, 1.0) == 1.0);
}

TEST_CASE("a non-finite gradient is named by tensor, and the weights are said to be whole") {
  ParameterStore store;
  declare_all(store);
  store.allocate(DType::float32);
  store.initialize(1);
  fill_gradients<float>(store, 1);
  CHECK_FALSE(first_non_finite_gradient(store));
  Parameter& qkv = store.parameters()[2];
  qkv.grad.as<float>()[67 * 67 + 5] = NAN;
  const std::optional<NonFinite> found = first_non_finite_gradient(store);
  REQUIRE(found);
  CHECK(found->tensor == "model.layers.0.self_attn.k_proj.weight");
  CHECK(found->index == 5);
  CHECK(std::isnan(gradient_norm(store.gradients())));
  CHECK(describe(refused_update(store, 12, 3.5, NAN, 1e-3, 1.0)) ==
        "step 12: the gradient of model.layers.0.self_attn.k_proj.weight is not finite (nan at element 5); found loss "
        "3.5, "
        "gradient norm nan, lr 0.001; all weights are finite and were left as they are; expected finite values; try a "
        "smaller optim.lr, a longer optim.warmup_steps or a smaller optim.grad_clip");
  CHECK(refused_update(store, 12, 3.5, NAN, 1e-3, 0.0).hint ==
        "try a smaller optim.lr, a longer optim.warmup_steps or clipping: optim.grad_clip = 1");
  store.parameters()[4].value.as<float>()[1] = INFINITY;
  REQUIRE(first_non_finite_weight(store));
  CHECK(describe(refused_update(store, 12, 3.5, NAN, 1e-3, 1.0))
            .find("model.norm.weight was not finite before this step") != std::string::npos);
}
