// minillm prepare: text to tokens.

#include "data/prepare.h"

#include "cli/command.h"
#include "data/tokenizer.h"

#include <cstdio>

namespace minillm::cli {

namespace {

int run_prepare(const Arguments& arguments) {
  PrepareOptions options;
  options.inputs = arguments.words();
  options.out = arguments.text("out");
  if (arguments.given("vocab")) {
    options.vocab_size = arguments.integer("vocab", smallest_vocabulary, INT32_MAX);
  }
  options.val_share = arguments.number("val");
  options.tokenizer_path = arguments.text("tokenizer");
  if (arguments.given("separator")) {
    options.separator = arguments.text("separator");
  }
  const PrepareSummary summary = prepare(options);
  std::fputs(summary.to_text().c_str(), stdout);
  std::printf("next: minillm train configs/baseline.toml data.path=%s\n", summary.out.c_str());
  return 0;
}

}  // namespace

Command prepare_command() {
  return {
      {.name = "prepare",
       .words = "FILE|DIR...",
       .summary = "text to tokens: trains or reuses a tokenizer, writes one data file",
       .min_words = 1,
       .max_words = SIZE_MAX,
       .options = {{"out", "FILE", "", "the data file to write (required)"},
                   {"vocab", "N", "2048", "size of the vocabulary"},
                   {"val", "SHARE", "0.1", "share of the text that is held out, from its end"},
                   {"tokenizer", "FILE", "", "a SentencePiece model, or a data file whose tokenizer is reused"},
                   {"separator", "LINE", "", "a line that parts documents inside a file; \"\" = blank lines", true}},
       .required = {"out"},
       .examples = {"minillm prepare corpora/austen --vocab 2048 --out corpora/austen.h5"}},
      run_prepare};
}

}  // namespace minillm::cli
