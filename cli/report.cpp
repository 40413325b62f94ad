// minillm report: compares any runs, and shows them.

#include "suite/report.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "core/log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace minillm::cli {

namespace {

constexpr int watch_seconds = 5;

/// Whether something goes on that the page will have to show. A run that has not begun to write yet is no error here.
bool write_once(const Arguments& arguments, const std::string& page) {
  try {
    const Comparison comparison = gather(arguments.words(), arguments.text("reference"));
    const bool is_going_on =
        has_planned_runs(arguments.words()) || std::any_of(comparison.runs.begin(), comparison.runs.end(),
                                                           [](const RunRecord& run) { return !run.has_ended(); });
    write_report(comparison, page, is_going_on ? watch_seconds : 0);
    log_info("{}: {} runs", page, comparison.runs.size());
    return is_going_on;
  } catch (const Error& error) {
    if (!has_planned_runs(arguments.words())) {
      throw;
    }
    log_info("waiting: {}", error.what());
    return true;
  }
}

/// Writes the page again and again while runs go on, until a signal.
int watch(const Arguments& arguments, const std::string& page) {
  install_signal_handlers();
  bool is_going_on = true;
  while (is_going_on && !stop_requested()) {
    is_going_on = write_once(arguments, page);
    for (int tenths = 0; is_going_on && tenths < 10 * watch_seconds && !stop_requested(); ++tenths) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  return stop_requested() ? stopped_by_signal : 0;
}

int run_report(const Arguments& arguments) {
  const std::string& page = arguments.text("out");
  if (!page.ends_with(".html")) {
    fail_input({.where = "--out", .what = "the report is a page", .found = page, .expected = "a name ending in .html"});
  }
  if (arguments.given("watch")) {
    return watch(arguments, page);
  }
  const Comparison comparison = gather(arguments.words(), arguments.text("reference"));
  const ReportFiles files = write_report(comparison, page);
  const std::string text = arguments.given("json") ? report_json(comparison) + "\n" : report_text(comparison);
  std::fputs(text.c_str(), stdout);
  log_info("wrote {}, {}{}{}", files.page, files.markdown, files.figure.empty() ? "" : ", ", files.figure);
  return 0;
}

}  // namespace

Command report_command() {
  return {{.name = "report",
           .words = "DIR...",
           .summary = "compares runs: a table with verdicts, curves, one page that opens anywhere",
           .note = "A DIR is a run or a folder of runs. Runs that differ in their seed alone are taken together.",
           .min_words = 1,
           .max_words = 64,
           .options = {{"out", "FILE", "report.html", "the page; report.md and curves.svg stand beside it"},
                       {"reference", "NAME", "", "what all are compared with (default: the suite's, or baseline)"},
                       {"watch", "", "", "write it again every few seconds while runs go on"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm report runs/ablations --out report.html",
                        "minillm report runs/baseline runs/wider --reference baseline"}},
          run_report};
}

}  // namespace minillm::cli
