// minillm export: a run for other tools.

#include "cli/command.h"
#include "core/parallel.h"
#include "core/text.h"
#include "formats/model_export.h"
#include "train/exported_run.h"

#include <cstdio>

namespace minillm::cli {

namespace {

int run_export(const Arguments& arguments) {
  set_num_threads(0);
  const ExportedRun exported = export_run({.run = arguments.words().front(),
                                           .checkpoint = arguments.text("checkpoint"),
                                           .format = arguments.text("format"),
                                           .out = arguments.text("out"),
                                           .weights = arguments.text("weights"),
                                           .allow_eps = arguments.given("allow-eps")});
  std::fputs(exported.to_text().c_str(), stdout);
  return 0;
}

}  // namespace

Command export_command() {
  return {
      {.name = "export",
       .words = "RUN",
       .summary = "a trained model for other tools, compared with the run before it gets its name",
       .min_words = 1,
       .max_words = 1,
       .options = {{"format", join(export_format_names(), "|"), "", "whose files to write (required)"},
                   {"out", "PATH", "", "the folder to make, or the file (required)"},
                   {"weights", join(weight_type_names(), "|"), "f32", "the type of matrices; gguf has all"},
                   {"allow-eps", "", "", "also where the format's programs fix another norm_eps; tells what it costs"},
                   {"checkpoint", "best|last|N", "last", "which checkpoint"}},
       .required = {"format", "out"},
       .examples = {"minillm export runs/quickstart --format llama2c --out quickstart_llama2c"}},
      run_export};
}

}  // namespace minillm::cli
