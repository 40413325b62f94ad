#pragma once
// The four phrases of the course, 好吃, 不好吃, 难吃, 不难吃: "not" turns the verdict round, so it is exclusive or.

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "experiments/lessons/page.h"
#include "experiments/lessons/values.h"
#include "optim/adamw.h"

#include <array>
#include <vector>

namespace minillm {

inline constexpr std::array<Text, 4> taste_names = {{
    {"好吃 (tasty)", "好吃"},
    {"不好吃 (not tasty)", "不好吃"},
    {"难吃 (awful)", "难吃"},
    {"不难吃 (not awful)", "不难吃"},
}};

/// [4, 2]: 1 for 好 and 0 for 难; 1 where 不 stands before it
inline Buffer taste_inputs() {
  return values({4, 2}, {1, 0, 1, 1, 0, 0, 0, 1});
}

/// [4, 1]: 1 for what tastes good
inline Buffer taste_targets() {
  return values({4, 1}, {1, 0, 0, 1});
}

/// mean (y - target)^2
inline Var squared_error(Var y, Var target) {
  Var error = sub(y, target);
  return mean(mul(error, error), {0, 1});
}

/// Full-batch AdamW without decay on loss_of(tape), at a rate that falls linearly to 0. Returns the last loss.
template <class Loss>
double fit(ParameterStore& store, Loss loss_of, int64_t steps, double rate) {
  AdamW optimizer(store, {.weight_decay = 0});
  Tape tape;
  for (int64_t step = 0; step < steps; ++step) {
    tape.clear();
    store.zero_gradients();
    tape.backward(loss_of(tape));
    store.finish_gradients();
    optimizer.step(rate * (1 - static_cast<double>(step) / static_cast<double>(steps)));
  }
  tape.clear();
  return loss_of(tape).item();
}

}  // namespace minillm
