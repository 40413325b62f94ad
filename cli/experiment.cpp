// minillm experiment: a suite of runs, one after the other, then their report.

#include "cli/command.h"
#include "cli/signals.h"
#include "core/log.h"
#include "core/terminal.h"
#include "core/text.h"
#include "suite/report.h"
#include "suite/run_suite.h"
#include "train/run_folder.h"
#include "train/suite_file.h"

#include <cstdio>
#include <optional>

namespace minillm::cli {

namespace {

/// Every run before it is run: D-15 of the course, "count before you write it down".
std::string plan_text(const Plan& plan) {
  Table table({"run", "parameters", "d_ff", "steps", "PFLOP", "state"});
  double flops = 0;
  for (const PlannedRun& run : plan.runs) {
    const std::optional<Summary> result = result_of(run.folder);
    table.add_row({run.name(), thousands(run.parameters), std::to_string(run.complete.model.d_ff),
                   std::to_string(run.complete.train.steps), fmt::format("{:.3f}", run.flops / 1e15),
                   result ? result->end : (is_begun(run.folder) ? "begun" : "to run")});
    flops += run.flops;
  }
  return fmt::format("{}\n{} runs, {:.2f} PFLOP\n", table.text(), plan.runs.size(), flops / 1e15);
}

int run_experiment(const Arguments& arguments) {
  const bool quick = arguments.given("quick");
  const Suite suite = load_suite(arguments.words().front(), arguments.overrides(), quick);
  std::string out = arguments.text("out");
  if (out.empty()) {
    out = "runs/" + suite.name + (quick ? "-quick" : "");
  }
  check_folder_name(out);
  const Plan plan = make_plan(suite, out, arguments.text("only"));
  if (arguments.given("plan")) {
    std::fputs(plan_text(plan).c_str(), stdout);
    return 0;
  }
  install_signal_handlers();
  if (run_suite(plan, stop_requested) == RunEnd::stopped) {
    log_info("stopped; the same command goes on from here");
    return stopped_by_signal;
  }
  const Comparison comparison = gather({out}, "");
  const ReportFiles files = write_report(comparison, out + "/report.html");
  std::fputs(report_text(comparison).c_str(), stdout);
  log_info("{} shows the curves; next: open it, or minillm report {} --out report.html", files.page, shell_word(out));
  return 0;
}

}  // namespace

Command experiment_command() {
  return {{.name = "experiment",
           .words = "SUITE.toml",
           .summary = "a suite of runs, restartable, then their comparison and report",
           .note = "Started again, it goes on where it was stopped. docs/experiments.md has the keys of a suite.",
           .min_words = 1,
           .max_words = 1,
           .overrides = true,
           .options = {{"out", "DIR", "", "the folder of the runs (default runs/<suite's name>)"},
                       {"only", "NAME", "", "the runs of one variant alone"},
                       {"quick", "", "", "short runs, a minute each: to see that it works"},
                       {"plan", "", "", "show the runs with their sizes and run nothing"}},
           .examples = {"minillm experiment experiments/ablations/suite.toml --quick",
                        "minillm experiment experiments/ffn/suite.toml --plan",
                        "minillm experiment experiments/noise_floor/suite.toml data.path=corpora/austen.h5"}},
          run_experiment};
}

}  // namespace minillm::cli
