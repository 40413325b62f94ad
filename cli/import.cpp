// minillm import: models of other tools.

#include "cli/command.h"
#include "train/imported_run.h"

#include <cstdio>

namespace minillm::cli {

namespace {

int run_import(const Arguments& arguments) {
  const ImportedRun run =
      import_run({.file = arguments.words().front(), .out = arguments.text("out"), .force = arguments.given("force")});
  std::fputs(run.to_text().c_str(), stdout);
  return 0;
}

}  // namespace

Command import_command() {
  return {{.name = "import",
           .words = "PATH",
           .summary = "a model of another tool (llm.c, llama2.c) to a run's folder",
           .min_words = 1,
           .max_words = 1,
           .options = {{"out", "RUN", "", "the run's folder to make (required)"},
                       {"force", "", "", "move an existing run to RUN.old instead of refusing"}},
           .required = {"out"},
           .examples = {"minillm import gpt2_124M.bin --out runs/gpt2"}},
          run_import};
}

}  // namespace minillm::cli
