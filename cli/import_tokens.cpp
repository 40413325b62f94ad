// minillm import-tokens: token files of other tools.

#include "data/import_tokens.h"

#include "cli/command.h"
#include "core/error.h"
#include "data/token_file.h"

#include <cstdio>

namespace minillm::cli {

namespace {

int run_import_tokens(const Arguments& arguments) {
  if (arguments.given("val") && arguments.given("val-file")) {
    fail_input({.where = "--val",
                .what = "does not go with --val-file",
                .hint = "held-out tokens come from a file of their own, or from the end of FILE.bin"});
  }
  ImportOptions options;
  options.file = arguments.words().front();
  options.out = arguments.text("out");
  options.vocab_size = arguments.integer("vocab", smallest_token_vocabulary, INT32_MAX);
  options.val_file = arguments.text("val-file");
  options.val_share = arguments.number("val");
  options.dtype = arguments.text("dtype");
  const ImportSummary summary = import_tokens(options);
  std::fputs(summary.to_text().c_str(), stdout);
  return 0;
}

}  // namespace

Command import_tokens_command() {
  return {{.name = "import-tokens",
           .words = "FILE.bin",
           .summary = "token files of nanoGPT and llm.c to a data file",
           .min_words = 1,
           .max_words = 1,
           .options = {{"out", "FILE", "", "the data file to write (required)"},
                       {"vocab", "N", "", "size of the vocabulary the tokens belong to (required)"},
                       {"val-file", "FILE", "", "held-out tokens; without it a share of FILE.bin is held out"},
                       {"val", "SHARE", "0.1", "share of the tokens that is held out, from the end"},
                       {"dtype", "TYPE", "", "u16 or u32; by the header or the vocabulary's size when absent"}},
           .required = {"out", "vocab"},
           .examples = {"minillm import-tokens train.bin --val-file val.bin --vocab 50257 --out data.h5"}},
          run_import_tokens};
}

}  // namespace minillm::cli
