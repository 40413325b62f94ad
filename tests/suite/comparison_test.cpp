#include "suite/comparison.h"

#include "tests/support/message_of.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace minillm;
using namespace minillm::test;

namespace {

/// A finished run of 10 steps that came to this loss.
RunRecord run_of(const std::string& variant, uint64_t seed, double val_loss, const std::string& norm = "rmsnorm") {
  RunRecord run;
  run.config.model.vocab_size = 64;
  run.config.model.norm = norm;
  run.config.train.steps = 10;
  run.config.train.seed = seed;
  run.config.run.name = fmt::format("{}-seed{}", variant, seed);
  run.folder = "runs/" + run.config.run.name;
  for (int64_t step = 0; step < 10; ++step) {
    run.metrics.train.push_back({.step = step, .loss = 5, .grad_norm = 1, .lr = 1e-3, .tokens_per_s = 100});
  }
  run.metrics.evaluations.push_back({.step = 10, .val_loss = val_loss});
  run.summary = summarize(run.metrics, 6.5);
  run.summary.parameters = 1000;
  return run;
}

/// Five seeds around 4 of sample standard deviation sqrt(2.5e-4) = 0.0158114 and range 0.04.
std::vector<RunRecord> baseline() {
  std::vector<RunRecord> runs;
  const double losses[] = {3.98, 3.99, 4.00, 4.01, 4.02};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    runs.push_back(run_of("baseline", seed, losses[seed - 1]));
  }
  return runs;
}

constexpr double sigma = 0.0158113883008419;

/// What a variant of these losses comes to beside the five baselines.
RunGroup judged(const std::vector<double>& losses, int64_t parameters = 1000) {
  std::vector<RunRecord> runs = baseline();
  for (size_t i = 0; i < losses.size(); ++i) {
    runs.push_back(run_of("other", i + 1, losses[i], "layernorm"));
    runs.back().summary.parameters = parameters;
  }
  return compare(std::move(runs), {.title = "test"}).groups.back();
}

}  // namespace

TEST_CASE("the noise floor is the sample standard deviation over seeds, with both thresholds") {
  const Comparison comparison = compare(baseline(), {.title = "test"});
  REQUIRE(comparison.groups.size() == 1);
  CHECK(comparison.groups[0].verdict == Verdict::reference);
  CHECK(comparison.groups[0].val_loss == doctest::Approx(4).epsilon(1e-12));
  CHECK(comparison.noise.of == "baseline");
  CHECK(comparison.noise.seeds == 5);
  CHECK(comparison.noise.sigma == doctest::Approx(sigma).epsilon(1e-12));
  CHECK(comparison.noise.range == doctest::Approx(0.04).epsilon(1e-12));
  CHECK(comparison.noise.of_means() == doctest::Approx(3 * sigma).epsilon(1e-12));
  CHECK(comparison.noise.of_single_runs() == doctest::Approx(4.2426406871192851 * sigma).epsilon(1e-12));
  CHECK(std::isnan(comparison.noise.same_seed_difference));
}

TEST_CASE("a seed that ran twice counts once, and shows what its repeats differ by") {
  std::vector<RunRecord> runs = baseline();
  runs.push_back(run_of("again", 1, 3.9825));
  const Comparison comparison = compare(std::move(runs), {.title = "test"});
  REQUIRE(comparison.groups.size() == 1);
  CHECK(comparison.noise.seeds == 5);
  CHECK(comparison.noise.sigma == doctest::Approx(sigma).epsilon(1e-12));
  CHECK(comparison.noise.same_seed_difference == doctest::Approx(0.0025).epsilon(1e-9));
}

TEST_CASE("a verdict needs three sigma, and says when two single runs would not do") {
  // Two single runs would need 4.24 sigma, 0.0671; means need 3 sigma, 0.0474.
  const RunGroup below = judged({4.045, 4.045});
  CHECK(below.verdict == Verdict::no_conclusion);
  CHECK(below.delta == doctest::Approx(0.045).epsilon(1e-9));
  CHECK(below.sentence == "no conclusion: 0.0450 nats worse is below 3 sigma, 0.0474");
  const RunGroup between = judged({4.05, 4.05});
  CHECK(between.verdict == Verdict::worse);
  CHECK(between.sentence == "worse than baseline by 0.0500 nats, 3.2 sigma: two single runs would not show it");
  const RunGroup clear = judged({3.9, 3.9});
  CHECK(clear.verdict == Verdict::better);
  CHECK(clear.delta_sigmas == doctest::Approx(-0.1 / sigma).epsilon(1e-9));
  CHECK(clear.sentence == "better than baseline by 0.1000 nats, 6.3 sigma");
  REQUIRE(clear.changes.size() == 1);
  CHECK(clear.changes[0].key == "model.norm");
}

TEST_CASE("two single runs need 4.24 sigma, and a variant that spreads wider must stand out of its own spread") {
  std::vector<RunRecord> single = {run_of("baseline", 1, 4), run_of("other", 1, 4.06, "layernorm")};
  const ComparisonPlan plan = {.title = "test", .noise_floor = baseline()};
  const RunGroup below = compare(single, plan).groups.back();
  CHECK(below.verdict == Verdict::no_conclusion);
  CHECK(below.sentence == "no conclusion: 0.0600 nats worse is below 4.24 sigma, 0.0671");
  single[1].summary.final_val_loss = 4.07;
  CHECK(compare(single, plan).groups.back().verdict == Verdict::worse);
  const RunGroup wide = judged({4.0, 4.4});
  CHECK(wide.verdict == Verdict::no_conclusion);
  CHECK(wide.sentence ==
        "no conclusion: 0.2000 nats worse is below 3 times its own spread, 0.8485; its own seeds spread over 18 sigma");
}

TEST_CASE("fewer than five seeds, or seeds that all end alike, are no noise floor to judge by") {
  std::vector<RunRecord> runs = {run_of("baseline", 1, 4), run_of("baseline", 2, 4.001),
                                 run_of("other", 1, 5, "layernorm")};
  const RunGroup few = compare(runs, {.title = "test"}).groups.back();
  CHECK(few.verdict == Verdict::no_conclusion);
  CHECK(few.sentence == "no conclusion: 0.9995 nats worse, but the noise floor rests on 2 seeds of baseline");
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    runs.push_back(run_of("flat", seed, 4, "none"));
  }
  const ComparisonPlan plan = {.title = "test", .reference = "flat"};
  CHECK(compare(runs, plan).groups.front().sentence ==
        "no conclusion: 0.0005 nats worse, but the noise floor is not known");
}

TEST_CASE("failed and unfinished runs have no final loss, whatever they logged on the way") {
  std::vector<RunRecord> runs = baseline();
  runs.push_back(run_of("other", 1, 3.5, "layernorm"));
  runs.push_back(run_of("other", 2, 3.5, "layernorm"));
  runs.back().summary.end = "failed";
  runs.back().summary.diverged = true;
  const RunGroup failed = compare(runs, {.title = "test"}).groups.back();
  CHECK(failed.verdict == Verdict::worse);
  CHECK(failed.sentence == "1 of 2 runs failed where baseline trains; 1 of 2 diverged");
  CHECK(failed.seeds == 1);
  runs.back().summary.end = "unfinished";
  CHECK(compare(runs, {.title = "test"}).groups.back().verdict == Verdict::unfinished);
  runs.back() = run_of("other", 2, 3.5, "layernorm");
  runs.back().summary.steps = 6;  // ended early by train.max_minutes
  CHECK(compare(runs, {.title = "test"}).groups.back().seeds == 1);
  for (RunRecord& run : runs) {
    run.summary.end = run.name().starts_with("baseline") ? "failed" : "finished";
  }
  CHECK(compare(runs, {.title = "test"}).groups.back().verdict == Verdict::no_conclusion);
}

TEST_CASE("a reference that was not run is named, and each reference brings its own noise floor") {
  std::vector<RunRecord> runs = baseline();
  for (uint64_t seed = 1; seed <= 5; ++seed) {  // ten times as wide
    runs.push_back(run_of("fast", seed, 4 + 0.1 * static_cast<double>(seed), "none"));
  }
  runs.push_back(run_of("fast_norm", 1, 4.6, "layernorm"));
  const ComparisonPlan plan = {.title = "test",
                               .references = {{"baseline", "baseline"}, {"fast", "nowhere"}, {"fast_norm", "fast"}}};
  const Comparison comparison = compare(runs, plan);
  CHECK(comparison.groups[1].verdict == Verdict::unfinished);
  CHECK(comparison.groups[1].sentence.starts_with("nowhere, which it is compared with, was not run"));
  CHECK(comparison.groups[2].noise.sigma == doctest::Approx(10 * sigma).epsilon(1e-9));
  CHECK(comparison.groups[2].verdict == Verdict::no_conclusion);
  CHECK(comparison.noise.sigma == doctest::Approx(sigma).epsilon(1e-9));
}

TEST_CASE("models whose sizes differ by 1 % or more are not compared") {
  CHECK(judged({3.9}, 1009).verdict == Verdict::better);
  CHECK(judged({3.9}, 991).verdict == Verdict::better);
  const RunGroup refused = judged({3.9}, 1010);
  CHECK(refused.verdict == Verdict::refused);
  CHECK(refused.parameter_difference == doctest::Approx(1).epsilon(1e-12));
  CHECK(contains(refused.sentence, "not compared: +1.00 % parameters, 1 % is too much"));
  CHECK(judged({3.9}, 990).verdict == Verdict::refused);
}

TEST_CASE("other data and other numbers of tokens are not compared") {
  std::vector<RunRecord> runs = baseline();
  runs.push_back(run_of("longer", 1, 3.9));
  runs.back().config.train.steps = 20;
  runs.push_back(run_of("elsewhere", 1, 3.9));
  runs.back().summary.unigram_loss = 6.6;
  const Comparison comparison = compare(std::move(runs), {.title = "test"});
  REQUIRE(comparison.groups.size() == 3);
  CHECK(comparison.groups[1].sentence == "not compared: trained on 81,920 tokens instead of 40,960");
  CHECK(comparison.groups[2].sentence ==
        "not compared: trained on other data, of unigram loss 6.6000 instead of 6.5000");
}

TEST_CASE("stalled and diverged are told apart from the verdict, and no noise floor rests on them") {
  std::vector<RunRecord> runs = baseline();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    runs.push_back(run_of("stuck", seed, 6.52, "none"));
  }
  runs.push_back(run_of("blown", 1, 9, "layernorm"));
  runs.back().summary.diverged = true;
  const Comparison comparison = compare(std::move(runs), {.title = "test"});
  REQUIRE(comparison.groups.size() == 3);
  CHECK(comparison.noise.of == "baseline");
  CHECK(comparison.groups[1].stalled == 6);
  CHECK(comparison.groups[1].verdict == Verdict::worse);
  CHECK(contains(comparison.groups[1].sentence, "; 6 of 6 stalled at the unigram loss"));
  CHECK(comparison.groups[2].diverged == 1);
  CHECK(contains(comparison.groups[2].sentence, "; 1 of 1 diverged"));
}

TEST_CASE("how far a loss swings is told beside the verdict, without its trend and without its first half") {
  // Eight steps count, 40 to 75. These signs sum to 0 and do not follow the step, so a line takes nothing from them:
  // the deviation is size sqrt(8 / 6).
  const auto swinging = [](const std::string& variant, double size, double trend, const std::string& norm) {
    RunRecord run = run_of(variant, 1, 4, norm);
    run.config.train.steps = 80;
    run.metrics.train.clear();
    const double signs[] = {1, -1, -1, 1, -1, 1, 1, -1};
    for (int64_t step = 0; step < 80; ++step) {
      const bool counts = step >= 40 && step % 5 == 0;
      const double swing = counts ? size * signs[(step - 40) / 5] : static_cast<double>(step % 3);
      run.metrics.train.push_back({.step = step, .loss = 6 + swing - trend * static_cast<double>(step)});
    }
    return run;
  };
  const Comparison comparison = compare({swinging("baseline", 0.1, 0.01, "rmsnorm"),
                                         swinging("calm", 0.15, 0, "layernorm"), swinging("wild", 0.25, 0.02, "none")},
                                        {.title = "test"});
  REQUIRE(comparison.groups.size() == 3);
  CHECK(comparison.groups[0].loss_oscillation == doctest::Approx(0.1 * std::sqrt(8.0 / 6)).epsilon(1e-9));
  CHECK(comparison.groups[1].loss_oscillation == doctest::Approx(0.15 * std::sqrt(8.0 / 6)).epsilon(1e-9));
  CHECK_FALSE(contains(comparison.groups[1].sentence, "swings"));
  CHECK(contains(comparison.groups[2].sentence, "; its loss swings 2.5 times as wide"));
  CHECK(std::isnan(compare(baseline(), {.title = "test"}).groups[0].loss_oscillation));  // of ten steps each
}

TEST_CASE("without seeds there is no conclusion, and unfinished runs have no mean") {
  std::vector<RunRecord> runs = {run_of("baseline", 1, 4), run_of("other", 1, 3, "layernorm"),
                                 run_of("going", 1, 2, "none")};
  runs.back().summary.end = "unfinished";
  const Comparison comparison = compare(std::move(runs), {.title = "test"});
  CHECK_FALSE(comparison.noise.is_known());
  CHECK(comparison.groups[1].verdict == Verdict::no_conclusion);
  CHECK(std::isnan(comparison.groups[1].delta_sigmas));
  CHECK(comparison.groups[2].verdict == Verdict::unfinished);
  CHECK(std::isnan(comparison.groups[2].val_loss));
}

TEST_CASE("a plan orders the groups, gives each its reference, and may bring its own noise floor") {
  std::vector<RunRecord> runs = {run_of("c", 1, 4.1, "layernorm"), run_of("a", 1, 4), run_of("b", 1, 4.05, "none")};
  const ComparisonPlan plan = {.title = "test",
                               .order = {"a", "b", "c"},
                               .references = {{"a", "a"}, {"b", "a"}, {"c", "b"}},
                               .noise_floor = baseline(),
                               .speeds = {{"b", {90, 110, 100}}}};
  const Comparison comparison = compare(runs, plan);
  REQUIRE(comparison.groups.size() == 3);
  CHECK(comparison.groups[0].name == "a");
  CHECK(comparison.groups[2].name == "c");
  CHECK(comparison.groups[2].reference == 1);
  CHECK(comparison.groups[2].delta == doctest::Approx(0.05).epsilon(1e-9));
  CHECK(comparison.noise.sigma == doctest::Approx(sigma).epsilon(1e-12));
  CHECK(comparison.groups[1].tokens_per_s == 100);
  CHECK(comparison.groups[1].speeds.size() == 3);
  const Comparison other = compare(runs, {.title = "test", .reference = "c"});
  CHECK(other.groups[0].verdict == Verdict::reference);
  CHECK(other.groups[1].delta == doctest::Approx(-0.1).epsilon(1e-9));
  CHECK(message_of([&] { compare(runs, {.title = "test", .reference = "zzz"}); }) ==
        "--reference: no group of runs has this name; found zzz; the groups are c, a, b");
}

TEST_CASE("lints name what a comparison rests on") {
  std::vector<RunRecord> runs = baseline();
  runs.push_back(run_of("other", 1, 4.01, "layernorm"));
  const Comparison comparison = compare(std::move(runs), {.title = "test"});
  const auto count = [&](const std::string& id, const std::string& where) {
    return std::count_if(comparison.findings.begin(), comparison.findings.end(),
                         [&](const auto& row) { return row.second.rule->id == id && row.first == where; });
  };
  CHECK(count("E16", "other") == 1);
  CHECK(count("E18", "other") == 1);
  CHECK(count("E17", "") == 0);
  const Comparison few = compare({run_of("baseline", 1, 4), run_of("baseline", 2, 4.1)}, {.title = "test"});
  CHECK(few.noise.is_known());
  CHECK(std::any_of(few.findings.begin(), few.findings.end(),
                    [](const auto& row) { return row.second.rule->id == "E17"; }));
}

TEST_CASE("a deeper plain network that trains worse with normal gradients is told") {
  std::vector<RunRecord> runs = {run_of("shallow", 1, 4), run_of("deep", 1, 4.5)};
  for (RunRecord& run : runs) {
    run.config.model.residual = "none";
  }
  runs[1].config.model.n_layers = 16;
  runs[1].metrics.train.back().loss = 5.5;
  const auto has_it = [](const Comparison& comparison) {
    return std::any_of(comparison.findings.begin(), comparison.findings.end(),
                       [](const auto& row) { return row.second.rule->id == "E03" && row.first == "deep"; });
  };
  CHECK(has_it(compare(runs, {.title = "test"})));
  runs[1].metrics.train.back().loss = 4.5;
  CHECK_FALSE(has_it(compare(runs, {.title = "test"})));
  runs[1].metrics.train.back().loss = 5.5;
  runs[1].summary.grad_norm_max_first_100 = 50;
  CHECK_FALSE(has_it(compare(runs, {.title = "test"})));
}
