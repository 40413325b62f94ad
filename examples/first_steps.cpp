// The library without configs: a network of two layers learns exclusive or. Tensors, tape, backward, AdamW.
#include "autograd/ops.h"
#include "optim/adamw.h"

#include <cstdio>

using namespace minillm;

int main() {
  Buffer inputs({4, 2}, DType::float32);
  Buffer targets({4, 1}, DType::float32);
  for (int i = 0; i < 4; ++i) {
    inputs.tensor().as<float>()[2 * i] = static_cast<float>(i / 2);
    inputs.tensor().as<float>()[2 * i + 1] = static_cast<float>(i % 2);
    targets.tensor().as<float>()[i] = static_cast<float>(i / 2 != i % 2);
  }

  ParameterStore store;
  Parameter& hidden_weight = store.declare("hidden.weight", {8, 2}, Init::normal(1));
  Parameter& hidden_bias = store.declare("hidden.bias", {8}, Init::constant(0));
  Parameter& out_weight = store.declare("out.weight", {1, 8}, Init::normal(0.5));
  Parameter& out_bias = store.declare("out.bias", {1}, Init::constant(0));
  store.allocate(DType::float32);
  store.initialize(/*seed=*/1);
  AdamW optimizer(store, {.weight_decay = 0});

  Tape tape;
  for (int step = 0; step <= 400; ++step) {
    tape.clear();
    store.zero_gradients();
    Var x = tape.constant(inputs.tensor());
    Var hidden = tanh(linear(x, tape.parameter(hidden_weight), tape.parameter(hidden_bias)));
    Var y = linear(hidden, tape.parameter(out_weight), tape.parameter(out_bias));
    Var error = sub(y, tape.constant(targets.tensor()));
    Var loss = mean(mul(error, error), {0, 1});
    tape.backward(loss);
    store.finish_gradients();
    optimizer.step(/*lr=*/0.02);
    if (step % 100 == 0) {
      std::printf("step %3d  loss %.6f\n", step, loss.item());
    }
  }
}
