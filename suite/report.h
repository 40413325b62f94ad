#pragma once
// The report of any runs: a page that needs nothing beside it, a page of Markdown, figures as SVG.

#include "suite/comparison.h"

#include <string>
#include <vector>

namespace minillm {

/// Reads the runs of all folders (find_runs), with what OUT/suite.json and OUT/speed.jsonl beside them say.
/// `reference`: the group that all are compared with; "" = what the suite says, else baseline, else the first.
Comparison gather(const std::vector<std::string>& folders, const std::string& reference);

/// Whether a suite's folder among these has runs in its plan that have not ended.
bool has_planned_runs(const std::vector<std::string>& folders);

/// The comparison as people read it on a terminal: the table, the verdicts, the curves.
std::string report_text(const Comparison& comparison);

/// The same for a paper or a README. `figure`: the picture's path, "" = without.
std::string report_markdown(const Comparison& comparison, const std::string& figure);

/// The whole comparison as one object, curves and all.
std::string report_json(const Comparison& comparison);

/// What the page makes of it.
struct PageOptions {
  int watch_seconds = 0;    ///< how often the page loads itself again; 0 = never
  std::string figure = {};  ///< an SVG in place of the curves, where they cannot be drawn; "" = none
};

/// The same for the page, with at most 1,000 points a curve of five digits; suite/report_data.js reads it.
std::string page_json(const Comparison& comparison, const PageOptions& options);

/// The means of the validation losses as an SVG made by gnuplot; "" where that is not installed, or nothing is to draw.
std::string curves_svg(const Comparison& comparison);

/// The first line of a report.md, which tells it from other people's.
inline constexpr const char* report_mark = "<!-- made by minillm report -->";

struct ReportFiles {
  std::string page;      ///< report.html
  std::string markdown;  ///< report.md beside it
  std::string figure;    ///< curves.svg beside it; "" without gnuplot
};

/// Writes the files, each whole or not at all. `page` ends in .html. Throws an input Error rather than replace a file
/// of one of these names that no report wrote.
ReportFiles write_report(const Comparison& comparison, const std::string& page, int watch_seconds = 0);

}  // namespace minillm
