// Every combination of the classic choices builds, runs forward and backward, and reaches every parameter.

#include "nn/transformer.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace minillm;

namespace {

/// The names of parameters that got no gradient, or one that is not finite.
std::string unreached(const ParameterStore& store) {
  std::string names;
  for (const NamedTensor& tensor : store.named_tensors()) {
    double largest = 0;
    bool finite = true;
    for (int64_t i = 0; i < tensor.grad.numel(); ++i) {
      const double value = tensor.grad.at(i);
      finite = finite && std::isfinite(value);
      largest = std::max(largest, std::abs(value));
    }
    if (!finite || largest == 0) {
      names += " " + std::string(tensor.name);
    }
  }
  return names;
}

void run(const ModelConfig& config) {
  Transformer model(config);
  model.allocate(DType::float32, 1);
  Tape tape;
  const Batch batch = small_batch(5, 13);
  CHECK(model.logits(tape, batch.inputs, batch.batch_size).shape() == Shape{2, 5, 13});
  tape.clear();
  model.parameters().zero_gradients();
  Var loss = model.forward(tape, batch);
  CHECK(loss.shape() == Shape{});
  CHECK(std::isfinite(loss.item()));
  tape.backward(loss);
  model.parameters().finish_gradients();
  CHECK(unreached(model.parameters()) == "");
}

}  // namespace

TEST_CASE("768 combinations: forward, backward, shapes, finite gradients everywhere") {
  int count = 0;
  for (const char* norm : {"layernorm", "rmsnorm", "zero_centered_rmsnorm"}) {
    for (const char* norm_position : {"pre", "post"}) {
      for (const char* ffn : {"gelu", "swiglu"}) {
        for (const char* residual : {"plain", "none"}) {
          for (const char* position : {"rope", "learned"}) {
            for (int bits = 0; bits < 16; ++bits) {
              ModelConfig config = small_model(13, 16);
              config.norm = norm;
              config.norm_position = norm_position;
              config.ffn = (bits & 1) != 0 ? ffn : "none";
              config.residual = residual;
              config.position = position;
              config.n_kv_heads = (bits & 2) != 0 ? 4 : 2;
              config.tie_embeddings = (bits & 4) != 0;
              config.bias = (bits & 8) != 0;
              derive(config, 13, 6);
              CAPTURE(norm);
              CAPTURE(norm_position);
              CAPTURE(ffn);
              CAPTURE(residual);
              CAPTURE(position);
              CAPTURE(bits);
              run(config);
              ++count;
            }
          }
        }
      }
    }
  }
  CHECK(count == 768);
  MESSAGE(count << " combinations");
}
