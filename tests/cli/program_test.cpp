#include "support.h"

using namespace minillm::test;

namespace {

/// The program must refuse these words as wrong input: status 2, one line on standard error, nothing else.
std::string refused_words(const std::vector<std::string>& words) {
  const Outcome outcome = run_program(words);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.rfind("error: ", 0) == 0);
  CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  return outcome.err;
}

}  // namespace

TEST_CASE("without a command: what there is and what to type next") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--help"}, {"-h"}, {"help"}}) {
    const Outcome outcome = run_program(words);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "\n  prepare "));
    CHECK(contains(outcome.out, "minillm prepare TEXT.txt --out data.h5"));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("version names the parts") {
  const Outcome outcome = run_program({"--version"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out.rfind("minillm ", 0) == 0);
  CHECK(contains(outcome.out, "\ncompiler "));
  CHECK(contains(outcome.out, "\noneDNN "));
  CHECK(contains(outcome.out, "\nHDF5 1."));
}

TEST_CASE("every command's help has its options and an example") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"prepare", "--help"}, {"help", "prepare"}, {"prepare", "--bogus", "-h"}}) {
    const Outcome outcome = run_program(words);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "minillm prepare FILE|DIR..."));
    CHECK(contains(outcome.out, "--vocab N"));
    CHECK(contains(outcome.out, "(default: 2048)"));
    CHECK(contains(outcome.out, "Example:\n  minillm prepare "));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("unknown commands and options suggest the nearest") {
  CHECK(contains(refused_words({"prepair"}), "unknown command prepair; did you mean prepare?"));
  CHECK(contains(refused_words({"zzzz"}), "commands are prepare"));
  CHECK(contains(refused_words({"--verison"}), "unknown command --verison"));
  CHECK(contains(refused_words({""}), "unknown command"));
  CHECK(contains(refused_words({"help", "prepair"}), "did you mean prepare?"));
  CHECK(
      contains(refused_words({"prepare", "a.txt", "--vocabs", "9"}), "unknown option --vocabs; did you mean --vocab?"));
  CHECK(contains(refused_words({"prepare", "a.txt", "--Out=x"}), "unknown option --Out; did you mean --out?"));
  CHECK(contains(refused_words({"prepare", "-out", "x"}), "unknown option -out; did you mean --out?"));
  CHECK(contains(refused_words({"prepare", "--zzzz"}), "see minillm prepare --help"));
  CHECK(contains(refused_words({"prepare", "\x1b[31m"}), "--out is missing"));
  CHECK_FALSE(contains(refused_words({"\x1b[31m"}), "\x1b"));
}

TEST_CASE("missing, surplus and malformed words are named with an example") {
  CHECK(contains(refused_words({"prepare", "--out", "x.h5"}), "FILE|DIR... is missing; for example: minillm prepare"));
  CHECK(contains(refused_words({"prepare", "a.txt"}), "--out is missing; for example: minillm prepare"));
  CHECK(contains(refused_words({"prepare", "a.txt", "--out"}), "--out needs a value; expected --out FILE"));
  CHECK(contains(refused_words({"prepare", "a.txt", "--out", "--vocab", "9"}), "--out needs a value; found --vocab"));
  CHECK(contains(refused_words({"import-tokens", "a.bin", "b.bin", "--out", "x", "--vocab", "9"}),
                 "unexpected word b.bin"));
  const std::vector<std::string> good = {"import-tokens", "a.bin", "--out", "x"};
  for (const char* wrong : {"12x", "1e3", "-1", "0", "99999999999999999999", " 5", "nan"}) {
    std::vector<std::string> words = good;
    words.push_back(std::string("--vocab=") + wrong);
    CHECK(contains(refused_words(words), "--vocab: the value is not a whole number in range"));
  }
  std::vector<std::string> words = good;
  words.insert(words.end(), {"--vocab", "9", "--val", "half"});
  CHECK(contains(refused_words(words), "--val: the value is not a number; found half"));
}

TEST_CASE("MINILLM_VERBOSE=0 silences logs and warnings, and no error") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"train",         std::string(MINILLM_SOURCE_DIR) + "/configs/tiny.toml",
                                          "train.steps=1", "optim.warmup_steps=0",
                                          "--out",         folder / "run",
                                          "--force"};
  CHECK(contains(run_program(words).err, "step 1/1"));
  REQUIRE(::setenv("MINILLM_VERBOSE", "0", 1) == 0);
  const Outcome silent = run_program(words);
  const Outcome wrong = run_program({"check", folder / "none.toml"});
  REQUIRE(::unsetenv("MINILLM_VERBOSE") == 0);
  CHECK(silent.status == 0);
  CHECK(silent.err.empty());
  CHECK(wrong.status == 2);
  CHECK(contains(wrong.err, "error: "));
}

TEST_CASE("results that cannot be written are failed work") {
  const Outcome outcome = run_program({"--help"}, "/dev/full");
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "standard output cannot be written: No space left on device"));
}
