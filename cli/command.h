#pragma once
// A command is one file in cli/ with one function declared here, and a line in main.cpp's table.

#include "cli/options.h"

namespace minillm::cli {

struct Command {
  CommandSpec spec;
  int (*run)(const Arguments& arguments);  ///< returns the exit status; an Error's fault is one too
};

Command prepare_command();
Command import_tokens_command();
Command import_command();
Command export_command();
Command train_command();
Command eval_command();
Command check_command();
Command ledger_command();
Command lint_command();
Command lesson_command();
Command generate_command();
Command chat_command();
Command inspect_command();
Command gradcheck_command();
Command bench_command();
Command experiment_command();
Command report_command();

}  // namespace minillm::cli
