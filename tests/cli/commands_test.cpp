#include "support.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <thread>

using namespace minillm::test;
using Words = std::vector<std::string>;

namespace {

const std::string tiny = std::string(MINILLM_SOURCE_DIR) + "/configs/tiny.toml";

/// A run of `steps` steps on the generated corpus; must succeed.
void train(const std::string& folder, int steps, const Words& more = {}) {
  Words words = {"train",
                 tiny,
                 "--out",
                 folder,
                 "train.steps=" + std::to_string(steps),
                 "optim.warmup_steps=0",
                 "train.eval_every=0"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_program(words);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  CHECK(outcome.out.empty());  // logs are not results
}

}  // namespace

TEST_CASE("generate --json is one valid object, whatever an untrained model writes") {
  const TemporaryFolder folder;
  train(folder / "run", 1);
  const Words words = {"generate", folder / "run",  "--json", "--seed",   "7",        "--max-tokens", "20", "--top-p",
                       "1",        "--temperature", "3",      "--prompt", "a\xff\"\n"};
  const Outcome first = run_program(words);
  REQUIRE_MESSAGE(first.status == 0, first.err);
  const nlohmann::json object = nlohmann::json::parse(first.out);
  CHECK(object.at("seed") == 7);
  CHECK(object.at("token_ids").size() <= 20);
  CHECK(object.at("prompt_token_ids").at(0) == 1);
  CHECK(nlohmann::json::parse(run_program(words).out).at("token_ids") == object.at("token_ids"));
}

TEST_CASE("sampler options are refused by name, before anything is printed") {
  const TemporaryFolder folder;
  train(folder / "run", 1);
  for (const Words& wrong : {Words{"--temperature", "nan"},
                             {"--temperature", "-1"},
                             {"--temperature", "inf"},
                             {"--top-p", "1.1"},
                             {"--top-p", "-0.1"},
                             {"--top-k", "-1"},
                             {"--checkpoint", "99"},
                             {"--checkpoint", "newest"}}) {
    Words words = {"generate", folder / "run"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const Outcome outcome = run_program(words);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_MESSAGE(outcome.err.find(wrong[0].substr(2)) != std::string::npos, outcome.err);
  }
}

TEST_CASE("a run stopped by a signal saves and exits with 3") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    const std::string out = "run.out=" + run;
    ::execl(MINILLM_BINARY, MINILLM_BINARY, "train", tiny.c_str(), out.c_str(), "train.steps=1000000", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && read_file(run + "/metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  CHECK_FALSE(std::filesystem::is_empty(run + "/checkpoints"));
}
