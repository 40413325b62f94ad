#include "suite/report.h"

#include "core/atomic_file.h"
#include "core/log.h"
#include "core/text.h"
#include "suite/page.h"
#include "suite/plan.h"
#include "suite/run_suite.h"
#include "suite/speed.h"
#include "train/line_log.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

namespace minillm {

namespace {

void append(std::vector<RunRecord>& runs, const std::string& folder, const std::string& suite) {
  for (const std::string& path : find_runs(folder)) {
    runs.push_back(read_run(path));
    runs.back().suite = suite;
  }
}

void add_noise_floor(const std::string& folder, ComparisonPlan& plan) {
  if (std::filesystem::is_directory(folder)) {
    append(plan.noise_floor, folder, "");
  } else {
    log_warning("{}: no such folder; the noise floor is that of the runs themselves", folder);
  }
}

/// Adds what a suite's folder says beside its runs. `prefix` stands before its groups' names.
void add_suite(const SuiteRecord& suite, const std::string& prefix, ComparisonPlan& plan) {
  plan.title += (plan.title.empty() ? "" : ", ") + suite.name;
  for (size_t i = 0; i < suite.variants.size(); ++i) {
    plan.order.push_back(prefix + suite.variants[i]);
    plan.references[plan.order.back()] = prefix + suite.references[i];
  }
  if (!suite.noise_floor.empty()) {
    add_noise_floor(suite.noise_floor, plan);
  }
}

/// "runs/ablations/" -> "ablations"
std::string name_of(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

/// A file of dygraphs, without the address of a map that browsers would ask for; "" where it is not installed.
std::string dygraphs(const std::string& name) {
  std::string text = read_text("/usr/share/javascript/dygraphs/" + name);  // of Debian's libjs-dygraphs
  const size_t map = text.rfind("# sourceMappingURL=");
  return map == std::string::npos ? text : text.substr(0, text.rfind('\n', map) + 1);
}

/// `svg`: what stands in for the curves where dygraphs is not installed; "" = nothing.
std::string page_text(const Comparison& comparison, const std::string& svg, int watch_seconds) {
  std::map<std::string, std::string> values = {{"{{TITLE}}", markup_text(comparison.title)},
                                               {"/*{{DYGRAPHS}}*/", dygraphs("dygraph.min.js")},
                                               {"/*{{DYGRAPHS_CSS}}*/", dygraphs("dygraph.min.css")}};
  const bool is_static = values["/*{{DYGRAPHS}}*/"].empty();
  if (is_static) {
    log_warning("the page shows static figures: dygraphs is not installed (apt-get install libjs-dygraphs)");
  }
  const PageOptions options = {.watch_seconds = watch_seconds, .figure = is_static ? svg : ""};
  values["{{DATA}}"] = inside_script(page_json(comparison, options));
  return filled_page("report_page.html", std::move(values));
}

}  // namespace

Comparison gather(const std::vector<std::string>& folders, const std::string& reference) {
  ComparisonPlan plan{.title = "", .reference = reference};
  std::vector<RunRecord> runs;
  std::vector<std::optional<SuiteRecord>> suites;
  for (const std::string& folder : folders) {
    suites.push_back(read_plan(folder));
  }
  const bool are_several = std::count_if(suites.begin(), suites.end(), [](const auto& suite) { return !!suite; }) > 1;
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::string prefix = are_several && suites[i] ? name_of(folders[i]) + "/" : "";
    if (suites[i]) {
      add_suite(*suites[i], prefix, plan);
      for (const auto& [name, speeds] : read_speeds(folders[i])) {
        plan.speeds[prefix + name] = speeds;
      }
    }
    append(runs, folders[i], prefix);
  }
  if (plan.title.empty()) {
    plan.title = name_of(folders.front());
  }
  return compare(std::move(runs), plan);
}

bool has_planned_runs(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::optional<SuiteRecord> suite = read_plan(folder);
    for (const std::string& run : suite ? suite->runs : std::vector<std::string>{}) {
      if (!result_of(folder + "/" + run)) {
        return true;
      }
    }
  }
  return false;
}

ReportFiles write_report(const Comparison& comparison, const std::string& page, int watch_seconds) {
  const std::string folder = folder_of(page);
  std::filesystem::create_directories(folder);
  ReportFiles files{.page = page, .markdown = folder + "/report.md", .figure = folder + "/curves.svg"};
  check_ours(files.page, "minillm report", "report");
  check_ours(files.markdown, report_mark, "report");
  check_ours(files.figure, report_mark, "report");
  const std::string svg = curves_svg(comparison);
  if (svg.empty()) {
    log_warning("no curves.svg: gnuplot is not installed (apt-get install gnuplot-nox), or there is nothing to draw");
    std::filesystem::remove(files.figure);
    files.figure.clear();
  } else {
    write_file_atomically(files.figure, svg + report_mark + "\n");
  }
  write_file_atomically(page, page_text(comparison, svg, watch_seconds));
  write_file_atomically(files.markdown, report_markdown(comparison, files.figure.empty() ? "" : "curves.svg"));
  return files;
}

}  // namespace minillm
