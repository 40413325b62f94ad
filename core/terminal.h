#pragma once
// What people see on a terminal: aligned tables, a curve, a line that is rewritten while work goes on.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Columns on a terminal that UTF-8 text takes: East Asian wide characters and emoji count two, combining marks none.
/// Approximate where terminals differ; exact for what tables here hold (Latin, Chinese).
size_t display_width(std::string_view text);

/// Rows of cells, printed with every column as wide as its widest cell. A column whose cells (the heading apart) all
/// look like numbers stands flush right, others flush left.
class Table {
 public:
  explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

  /// One cell a heading; missing ones are empty, more are an error.
  void add_row(std::vector<std::string> cells);
  void add_rule() { rows_.emplace_back(); }  ///< a line across, before a total

  std::string text() const;  ///< ends with a newline

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

/// One line of a curve: y over x. Values that are not finite are left out.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
};

struct CurveOptions {
  int columns = 60;  ///< of the plot, axis labels apart
  int rows = 15;
  std::string x_label = "step";
  std::string y_label = "loss";
  bool braille = true;  ///< 2 x 4 dots a character; false: ASCII marks, one a character
};

/// The series on shared axes, with their range in y and x and a legend when there is more than one. "" when no series
/// has a finite point. Neighbouring points are joined.
std::string curve(const std::vector<Series>& series, const CurveOptions& options = {});

/// True when the locale says UTF-8, so that braille and box characters can be shown.
bool terminal_is_utf8();

/// What a training step shows.
struct Progress {
  int64_t step = 0;  ///< updates done
  int64_t steps = 0;
  double loss = 0;  ///< nats a token
  double lr = 0;
  double grad_norm = 0;
  double tokens_per_s = 0;
  double seconds_left = 0;
};

/// "step 100/2000 | loss 3.4121 | lr 3.0e-04 | grad_norm 0.81 | 12,400 tok/s | 1:02 left"
std::string progress_text(const Progress& progress);

/// A line on standard error that replaces itself. Does nothing when `stream` is no terminal, so logs and pipes stay
/// clean; call `finish` before anything else is printed.
class ProgressLine {
 public:
  explicit ProgressLine(std::FILE* stream = stderr);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool active() const { return active_; }
  void show(std::string_view text);
  void finish();  ///< erases the line

 private:
  std::FILE* stream_;
  bool active_;
  bool shown_ = false;
};

}  // namespace minillm
