#include "support.h"

using namespace minillm::test;

namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The program must refuse these words as wrong input: status 2, one line on standard error, nothing else.
std::string refusal(const std::vector<std::string>& words) {
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
    CHECK(mentions(outcome.out, "\n  prepare "));
    CHECK(mentions(outcome.out, "minillm prepare TEXT.txt --out data.h5"));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("version names the parts") {
  const Outcome outcome = run_program({"--version"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out.rfind("minillm ", 0) == 0);
  CHECK(mentions(outcome.out, "\ncompiler "));
  CHECK(mentions(outcome.out, "\noneDNN "));
  CHECK(mentions(outcome.out, "\nHDF5 1."));
}

TEST_CASE("every command's help has its options and an example") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"prepare", "--help"}, {"help", "prepare"}, {"prepare", "--bogus", "-h"}}) {
    const Outcome outcome = run_program(words);
    CHECK(outcome.status == 0);
    CHECK(mentions(outcome.out, "minillm prepare FILE|DIR..."));
    CHECK(mentions(outcome.out, "--vocab N"));
    CHECK(mentions(outcome.out, "(default: 2048)"));
    CHECK(mentions(outcome.out, "Example:\n  minillm prepare "));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("unknown commands and options suggest the nearest") {
  CHECK(mentions(refusal({"prepair"}), "unknown command prepair; did you mean prepare?"));
  CHECK(mentions(refusal({"zzzz"}), "commands are prepare"));
  CHECK(mentions(refusal({"--verison"}), "unknown command --verison"));
  CHECK(mentions(refusal({""}), "unknown command"));
  CHECK(mentions(refusal({"help", "prepair"}), "did you mean prepare?"));
  CHECK(mentions(refusal({"prepare", "a.txt", "--vocabs", "9"}), "unknown option --vocabs; did you mean --vocab?"));
  CHECK(mentions(refusal({"prepare", "a.txt", "--Out=x"}), "unknown option --Out; did you mean --out?"));
  CHECK(mentions(refusal({"prepare", "-out", "x"}), "unknown option -out; did you mean --out?"));
  CHECK(mentions(refusal({"prepare", "--zzzz"}), "see minillm prepare --help"));
  CHECK(mentions(refusal({"prepare", "\x1b[31m"}), "--out is missing"));
  CHECK_FALSE(mentions(refusal({"\x1b[31m"}), "\x1b"));
}

TEST_CASE("missing, surplus and malformed words are named with an example") {
  CHECK(mentions(refusal({"prepare", "--out", "x.h5"}), "FILE|DIR... is missing; for example: minillm prepare"));
  CHECK(mentions(refusal({"prepare", "a.txt"}), "--out is missing; for example: minillm prepare"));
  CHECK(mentions(refusal({"prepare", "a.txt", "--out"}), "--out needs a value; expected --out FILE"));
  CHECK(mentions(refusal({"prepare", "a.txt", "--out", "--vocab", "9"}), "--out needs a value; found --vocab"));
  CHECK(mentions(refusal({"import-tokens", "a.bin", "b.bin", "--out", "x", "--vocab", "9"}), "unexpected word b.bin"));
  const std::vector<std::string> good = {"import-tokens", "a.bin", "--out", "x"};
  for (const char* wrong : {"12x", "1e3", "-1", "0", "99999999999999999999", " 5", "nan"}) {
    std::vector<std::string> words = good;
    words.push_back(std::string("--vocab=") + wrong);
    CHECK(mentions(refusal(words), "--vocab: the value is not a whole number in range"));
  }
  std::vector<std::string> words = good;
  words.insert(words.end(), {"--vocab", "9", "--val", "half"});
  CHECK(mentions(refusal(words), "--val: the value is not a number; found half"));
}

TEST_CASE("results that cannot be written are failed work") {
  const Outcome outcome = run_program({"--help"}, "/dev/full");
  CHECK(outcome.status == 1);
  CHECK(mentions(outcome.err, "standard output cannot be written: No space left on device"));
}
