// kill -9 while a checkpoint is saved: before and after every system call, and at random moments.

#include "core/rng.h"
#include "tests/support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>

using namespace minillm;
using namespace minillm::test;

namespace {

/// A model whose every weight is the number of the step, so that a checkpoint's contents tell its step.
struct Model {
  explicit Model(int64_t step) {
    store.declare("w", {64, 64}, Init::constant(static_cast<double>(step)));
    store.allocate(DType::float32);
    store.initialize(1);
    optimizer.emplace(store, OptimConfig{});
    optimizer->set_steps(step);
    state.step = step;
  }
  CheckpointContents contents() { return {store, &*optimizer, state, "config", "tokenizer"}; }

  ParameterStore store;
  std::optional<AdamW> optimizer;
  RunState state;
};

/// The step of a checkpoint, after everything in it was compared with what that step holds.
int64_t verified_step(const Checkpoint& checkpoint) {
  Model model(0);
  checkpoint.load_weights(model.store);
  checkpoint.load_optimizer(model.store, *model.optimizer);
  for (const int64_t i : {0, 1000, 4095}) {
    CHECK(model.store.weights().at(i) == static_cast<double>(checkpoint.step()));
  }
  CHECK(model.optimizer->steps() == checkpoint.step());
  CHECK(checkpoint.tokenizer() == "tokenizer");
  return checkpoint.step();
}

void check_no_leftovers(const std::string& run) {
  clean_checkpoints(run);
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(run))) {
    CHECK(entry.path().extension() == ".h5");
  }
}

/// Forks a child that does `work` and kills it at its stop number `stop`: a stop stands before and after each system
/// call. Returns false when the child ended before.
bool run_and_kill_at(int stop, const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  for (int i = 0; i < stop && WIFSTOPPED(status); ++i) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
  }
  if (!WIFSTOPPED(status)) {
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return false;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return true;
}

bool can_trace() {
  return run_and_kill_at(1, [] { getppid(); });
}

/// Looks at `condition` every half millisecond, for a minute at most.
std::chrono::microseconds time_until(const std::function<bool()>& condition) {
  const auto start = std::chrono::steady_clock::now();
  auto now = start;
  while (!condition() && now - start < std::chrono::minutes(1)) {
    usleep(500);
    now = std::chrono::steady_clock::now();
  }
  return std::chrono::duration_cast<std::chrono::microseconds>(now - start) + std::chrono::milliseconds(1);
}

#if defined(MINILLM_SANITIZED)
constexpr int stride = 3;  // a stopped program under sanitizers is slow to start again
#else
constexpr int stride = 1;
#endif

}  // namespace

TEST_CASE("a kill before or after any system call of a save leaves the old or the new checkpoint") {
  if (!can_trace()) {
    MESSAGE("tracing a child is not allowed here; the test at random moments stands alone");
    return;
  }
  TemporaryFolder folder(fast_temporary_parent());
  const std::string run = folder / "run";
  int stops = 0;
  int old_found = 0;
  int new_found = 0;
  for (bool killed = true; killed; stops += stride) {
    std::filesystem::remove_all(run);
    create_run_folder({.folder = run});
    save_checkpoint(run, Model(1).contents(), 1);
    save_best_checkpoint(run, Model(1).contents());
    Model second(2);
    killed = run_and_kill_at(stops, [&] {
      save_checkpoint(run, second.contents(), 1);
      save_best_checkpoint(run, second.contents());
    });
    CAPTURE(stops);
    const std::optional<Checkpoint> newest = newest_checkpoint(run);
    REQUIRE(newest);
    const int64_t step = verified_step(*newest);
    ++(step == 1 ? old_found : new_found);
    CHECK((step == 1 || step == 2));
    const int64_t best = verified_step(Checkpoint(checkpoints_path(run) + "/best.h5"));
    CHECK((best == 1 || best == 2));
    CHECK(best <= step);
    CHECK(checkpoint_steps(run).size() <= 2);
    check_no_leftovers(run);
  }
  CHECK(old_found > 20 / stride);
  CHECK(new_found > 20 / stride);
}

TEST_CASE("a kill at a random moment of saving in a loop leaves a checkpoint that loads") {
  TemporaryFolder folder(fast_temporary_parent());
  const std::string run = folder / "run";
  create_run_folder({.folder = run});
  save_checkpoint(run, Model(1).contents(), 2);
  RandomStream random(random_key(1, "kill"));
  int64_t newest_step = 1;
  // The first child saves once before it is killed; the others are killed within twice the time that took here.
  std::chrono::microseconds longest_pause{0};
  size_t count_before = 1;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t step = newest_step + 1;; ++step) {
        save_checkpoint(run, Model(step).contents(), 2);
      }
    }
    if (i == 0) {
      longest_pause = 2 * time_until([&] { return checkpoint_steps(run).back() > 1; });
    } else {
      usleep(static_cast<useconds_t>(random.below(static_cast<uint64_t>(longest_pause.count()))));
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    const std::optional<Checkpoint> newest = newest_checkpoint(run);
    REQUIRE(newest);
    const int64_t step = verified_step(*newest);
    CHECK(step >= newest_step);
    CHECK(checkpoint_steps(run).back() == step);  // none that is whole by name is broken
    // A kill between saving and removing leaves one more than there were; any save that ends brings them back to two.
    const size_t count = checkpoint_steps(run).size();
    CHECK(count <= std::max<size_t>(count_before, 2) + 1);
    count_before = count;
    newest_step = step;
    check_no_leftovers(run);
  }
  CHECK(newest_step > 1);
}
