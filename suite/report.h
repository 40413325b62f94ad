#pragma once
// The report of any runs: a page that needs nothing beside it, a page of Markdown, figures as SVG.

#include "suite/comparison.h"

#include <string>
#include <vector>

namespace minillm {

/// Reads the runs of all folders (find_runs), with what OUT/suite.json and OUT/speed.jsonl beside them say.
/// `reference`: the group that all are compared with; "" = what the suite says, else baseline, else the first.
Comparison gather(const std::vector<std::string>& folders, const std::string& reference);

/// The comparison as people read it on a terminal: the table, the verdicts, the curves.
std::string report_text(const Comparison& comparison);

/// The same for a paper or a README. `figure`: the picture's path, "" = without.
std::string report_markdown(const Comparison& comparison, const std::string& figure);

/// The object that the page reads; suite/report_page.js says how. `watch_seconds`: how often the page loads itself
/// again; 0 = never.
std::string report_json(const Comparison& comparison, int watch_seconds, const std::vector<std::string>& figures);

/// Validation and training losses as an SVG made by gnuplot; "" where that is not installed.
std::string curves_svg(const Comparison& comparison);

struct ReportFiles {
  std::string page;      ///< report.html
  std::string markdown;  ///< report.md beside it
  std::string figure;    ///< curves.svg beside it; "" without gnuplot
};

/// Writes the files, each whole or not at all. `page` ends in .html.
ReportFiles write_report(const Comparison& comparison, const std::string& page, int watch_seconds = 0);

}  // namespace minillm
