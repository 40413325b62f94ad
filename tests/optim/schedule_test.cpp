#include "optim/schedule.h"

#include "core/error.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

using namespace minillm;

TEST_CASE("warm-up starts above zero, is a straight line and ends at the peak") {
  OptimConfig config;
  config.lr = 1.0;
  config.warmup_steps = 10;
  for (int64_t step = 0; step < 10; ++step) {
    CHECK(learning_rate(config, step, 100) == doctest::Approx(0.1 * static_cast<double>(step + 1)).epsilon(1e-15));
  }
  CHECK(learning_rate(config, 0, 100) > 0);
  CHECK(learning_rate(config, 8, 100) < 1.0);
  CHECK(learning_rate(config, 9, 100) == 1.0);   // the last warm-up step, (s + 1) / warmup_steps = 1
  CHECK(learning_rate(config, 10, 100) == 1.0);  // phase 0 of the decay
  CHECK(learning_rate(config, 11, 100) < 1.0);
}

TEST_CASE("every schedule has its closed form") {
  OptimConfig config;
  config.lr = 2e-3;
  config.min_lr_ratio = 0.1;
  config.warmup_steps = 20;
  const int64_t steps = 120;
  for (const int64_t step : {20, 45, 70, 119, 120}) {
    const double phase = static_cast<double>(step - 20) / 100;
    config.schedule = "cosine";
    CHECK(learning_rate(config, step, steps) ==
          doctest::Approx(2e-4 + 1.8e-3 * (1 + std::cos(std::numbers::pi * phase)) / 2).epsilon(1e-14));
    config.schedule = "linear";
    CHECK(learning_rate(config, step, steps) == doctest::Approx(2e-3 - 1.8e-3 * phase).epsilon(1e-14));
    config.schedule = "constant";
    CHECK(learning_rate(config, step, steps) == 2e-3);
  }
  config.schedule = "wsd";
  config.decay_fraction = 0.25;  // the last 30 of 120 steps
  CHECK(learning_rate(config, 20, steps) == 2e-3);
  CHECK(learning_rate(config, 90, steps) == 2e-3);
  CHECK(learning_rate(config, 105, steps) == doctest::Approx(1.1e-3).epsilon(1e-14));
  CHECK(learning_rate(config, 120, steps) == doctest::Approx(2e-4).epsilon(1e-14));
  config.decay_fraction = 1;  // decay cannot begin before warm-up ends
  CHECK(learning_rate(config, 20, steps) == 2e-3);
  CHECK(learning_rate(config, 70, steps) == doctest::Approx(1.1e-3).epsilon(1e-14));
  config.decay_fraction = 0;
  CHECK(learning_rate(config, 119, steps) == 2e-3);
}

TEST_CASE("no combination of warm-up and length leaves [0, peak]") {
  for (const char* schedule : {"cosine", "linear", "constant", "wsd"}) {
    for (const auto& [warmup, steps] : {std::pair{100, 100}, {200, 100}, {0, 100}, {0, 0}, {1, 1}, {0, 1}}) {
      OptimConfig config;
      config.schedule = schedule;
      config.warmup_steps = warmup;
      for (int64_t step = 0; step <= steps + 2; ++step) {
        CAPTURE(schedule);
        CAPTURE(config.warmup_steps);
        CAPTURE(step);
        const double lr = learning_rate(config, step, steps);
        REQUIRE(std::isfinite(lr));
        REQUIRE(lr >= 0);
        REQUIRE(lr <= config.lr);
      }
    }
  }
}

TEST_CASE("an unknown schedule is named") {
  OptimConfig config;
  config.warmup_steps = 0;
  config.schedule = "step";
  CHECK_THROWS_WITH_AS(learning_rate(config, 0, 10),
                       "optim.schedule: unknown schedule; found step; expected cosine, linear, constant or wsd", Error);
}

namespace {

std::string only_problem(const OptimConfig& config, int64_t steps = 1000) {
  const std::vector<Problem> problems = problems_of(config, steps);
  REQUIRE(problems.size() == 1);
  return describe(problems.front());
}

}  // namespace

TEST_CASE("impossible optimizer settings are refused by name") {
  CHECK(problems_of({}, 1000).empty());
  CHECK(problems_of({.lr = 0}, 1000).empty());
  CHECK(only_problem({.lr = -1e-3}) == "optim.lr: value out of range; found -0.001; expected a finite number >= 0");
  CHECK(only_problem({.lr = NAN}) == "optim.lr: value out of range; found nan; expected a finite number >= 0");
  CHECK(only_problem({.lr = INFINITY}) == "optim.lr: value out of range; found inf; expected a finite number >= 0");
  CHECK(only_problem({.weight_decay = -0.1}).starts_with("optim.weight_decay: "));
  CHECK(only_problem({.beta1 = -0.1}).starts_with("optim.beta1: "));
  CHECK(only_problem({.beta2 = 1.0}) == "optim.beta2: value out of range; found 1; expected a number in [0, 1)");
  CHECK(only_problem({.eps = 0}) == "optim.eps: value out of range; found 0; expected a finite number >= 1.18e-38");
  CHECK(only_problem({.grad_clip = -1}).starts_with("optim.grad_clip: "));
  CHECK(only_problem({.min_lr_ratio = 1.5}).starts_with("optim.min_lr_ratio: "));
  CHECK(only_problem({.decay_fraction = -0.1}).starts_with("optim.decay_fraction: "));
  CHECK(only_problem({.warmup_steps = -1}).starts_with("optim.warmup_steps: "));
  CHECK(only_problem({.warmup_steps = 200}, 100) ==
        "optim.warmup_steps: value out of range; found 200; expected 0 to train.steps = 100; shorten the warm-up or "
        "lengthen the run");
  CHECK(problems_of({.warmup_steps = 100}, 100).empty());
  CHECK(problems_of({.warmup_steps = 100}, 0).empty());
}

TEST_CASE("all problems of a configuration are listed") {
  const std::vector<Problem> problems = problems_of({.lr = -1, .weight_decay = -1, .beta1 = 1, .eps = -1}, 1000);
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].where == "optim.lr");
  CHECK(problems[3].where == "optim.eps");
}
