// A comparison for a terminal, and as Markdown.

#include "core/terminal.h"
#include "core/text.h"
#include "suite/report.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

constexpr size_t most_curves = 8;  // that a terminal can tell apart

std::string number_text(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

std::string signed_text(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:+.{}f}", value, digits) : "-";
}

const std::vector<std::string> headings = {"variant",  "seeds", "parameters", "%",       "val loss", "delta",
                                           "in sigma", "tok/s", "max grad",   "stalled", "diverged", "verdict"};

std::vector<std::string> cells_of(const RunGroup& group) {
  std::string verdict(verdict_word(group.verdict));
  std::replace(verdict.begin(), verdict.end(), '_', ' ');
  const std::string spread = std::isfinite(group.val_sd) ? fmt::format(" ± {:.4f}", group.val_sd) : "";
  return {printable(group.name),
          std::to_string(group.seeds),
          thousands(group.parameters),
          signed_text(group.parameter_difference, 3),
          number_text(group.val_loss, 4) + spread,
          signed_text(group.delta, 4),
          signed_text(group.delta_sigmas, 1),
          std::isfinite(group.tokens_per_s) ? thousands(std::llround(group.tokens_per_s)) : "-",
          number_text(group.grad_norm_max_first_100, 2),
          fmt::format("{}/{}", group.stalled, group.ended),
          fmt::format("{}/{}", group.diverged, group.ended),
          verdict};
}

std::string noise_text(const NoiseFloor& noise) {
  if (!noise.is_known()) {
    return "noise floor: not known";
  }
  const std::string again = std::isfinite(noise.same_seed_difference)
                                ? fmt::format("; the same seed again differs by {:.2g}", noise.same_seed_difference)
                                : "";
  return fmt::format(
      "noise floor: sigma {:.4f} nats over {} seeds of {}, range {:.4f}{}; 3 sigma {:.4f} for a difference of means, "
      "4.24 sigma {:.4f} for one of two single runs",
      noise.sigma, noise.seeds, noise.of, noise.range, again, noise.of_means(), noise.of_single_runs());
}

/// A name that means nothing to Markdown, on one line.
std::string markdown(const std::string& name) {
  std::string text;
  for (const char c : printable(name)) {
    text += std::string("\\`*_{}[]<>#|").find(c) == std::string::npos ? std::string(1, c) : fmt::format("\\{}", c);
  }
  return text;
}

/// One curve a group: its first run's validation losses.
std::string curves_text(const Comparison& comparison) {
  std::vector<Series> series;
  for (const RunGroup& group : comparison.groups) {
    const RunRecord& run = comparison.runs[group.runs.front()];
    Series one{.name = group.name, .x = {}, .y = {}};
    for (const EvalRecord& record : run.metrics.evaluations) {
      one.x.push_back(static_cast<double>(record.step));
      one.y.push_back(record.val_loss);
    }
    if (!one.x.empty() && series.size() < most_curves) {
      series.push_back(std::move(one));
    }
  }
  return curve(series, {.y_label = "val loss", .braille = terminal_is_utf8()});
}

}  // namespace

std::string report_text(const Comparison& comparison) {
  Table table(headings);
  std::string sentences;
  for (const RunGroup& group : comparison.groups) {
    table.add_row(cells_of(group));
    sentences += fmt::format("{}: {}\n", printable(group.name), group.sentence);
  }
  return fmt::format("{}\n{}\n{}\n\n{}", table.text(), sentences, noise_text(comparison.noise),
                     curves_text(comparison));
}

std::string report_markdown(const Comparison& comparison, const std::string& figure) {
  std::string text = fmt::format("{}\n# {}\n\n", report_mark, markdown(comparison.title));
  text += "| " + join(headings, " | ") + " |\n";
  text += "| " + join(std::vector<std::string>(headings.size(), "---"), " | ") + " |\n";
  for (const RunGroup& group : comparison.groups) {
    std::vector<std::string> cells = cells_of(group);
    cells.front() = markdown(group.name);
    text += "| " + join(cells, " | ") + " |\n";
  }
  text += "\n";
  for (const RunGroup& group : comparison.groups) {
    text += fmt::format("- **{}**: {}\n", markdown(group.name), group.sentence);
  }
  text += "\n" + noise_text(comparison.noise) + "\n";
  if (!figure.empty()) {
    text += fmt::format("\n![losses]({})\n", figure);
  }
  return text;
}

}  // namespace minillm
