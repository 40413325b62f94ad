// The terminal curve of core/terminal.h.

#include "core/terminal.h"
#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace minillm {

namespace {

constexpr std::string_view marks = "*o+x#@";  // ASCII: one a series, then again from the start

struct Range {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  /// Where a value lies between low (0) and high (1). Halved before subtracting: the span may exceed a double.
  double share(double value) const { return high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0; }
};

/// Dots, `width` x `height` of them, row 0 at the top.
struct Canvas {
  int width;
  int height;
  std::vector<char> dots;  // 0 or a mark

  Canvas(int w, int h) : width(w), height(h), dots(static_cast<size_t>(w) * static_cast<size_t>(h), '\0') {}

  char& at(int x, int y) { return dots[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)]; }

  void line(std::pair<int, int> from, std::pair<int, int> to, char mark) {
    const int steps = std::max({std::abs(to.first - from.first), std::abs(to.second - from.second), 1});
    for (int i = 0; i <= steps; ++i) {
      const double share = static_cast<double>(i) / steps;
      const int x = static_cast<int>(std::lround(from.first + share * (to.first - from.first)));
      const int y = static_cast<int>(std::lround(from.second + share * (to.second - from.second)));
      at(x, y) = mark;
    }
  }
};

bool is_shown(const Series& one, size_t i) {
  return std::isfinite(one.x[i]) && std::isfinite(one.y[i]);
}

void draw(Canvas& canvas, const Series& one, const Range& x, const Range& y, char mark) {
  bool has_last = false;
  std::pair<int, int> last;
  for (size_t i = 0; i < std::min(one.x.size(), one.y.size()); ++i) {
    if (!is_shown(one, i)) {
      has_last = false;  // a gap stays a gap
      continue;
    }
    const std::pair<int, int> dot = {static_cast<int>(std::lround(x.share(one.x[i]) * (canvas.width - 1))),
                                     static_cast<int>(std::lround((1 - y.share(one.y[i])) * (canvas.height - 1)))};
    canvas.line(has_last ? last : dot, dot, mark);
    last = dot;
    has_last = true;
  }
}

/// The braille character of a cell of 2 x 4 dots: U+2800 plus one bit a dot, in Unicode's order.
std::string braille_cell(Canvas& canvas, int column, int row) {
  static constexpr unsigned bit_of_dot[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  unsigned bits = 0;
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 2; ++x) {
      if (canvas.at(2 * column + x, 4 * row + y) != '\0') {
        bits |= bit_of_dot[y][x];
      }
    }
  }
  if (bits == 0) {
    return " ";
  }
  const char utf8[] = {'\xe2', static_cast<char>(0xa0 | bits >> 6), static_cast<char>(0x80 | (bits & 0x3f))};
  return std::string(utf8, 3);
}

std::string row_text(Canvas& canvas, int row, const CurveOptions& options) {
  std::string line;
  for (int column = 0; column < options.columns; ++column) {
    if (options.braille) {
      line += braille_cell(canvas, column, row);
    } else {
      const char mark = canvas.at(column, row);
      line += mark == '\0' ? ' ' : mark;
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string legend(const std::vector<Series>& series, bool braille) {
  std::string text;
  for (size_t i = 0; i < series.size(); ++i) {
    text += (i == 0 ? "" : "   ");
    text += braille ? "" : std::string(1, marks[i % marks.size()]) + " ";
    text += series[i].name;
  }
  return text;
}

}  // namespace

std::string curve(const std::vector<Series>& series, const CurveOptions& options) {
  Range x;
  Range y;
  for (const Series& one : series) {
    for (size_t i = 0; i < std::min(one.x.size(), one.y.size()); ++i) {
      if (is_shown(one, i)) {
        x.include(one.x[i]);
        y.include(one.y[i]);
      }
    }
  }
  if (x.empty() || options.columns < 1 || options.rows < 1) {
    return "";
  }
  Canvas canvas(options.columns * (options.braille ? 2 : 1), options.rows * (options.braille ? 4 : 1));
  for (size_t i = 0; i < series.size(); ++i) {
    draw(canvas, series[i], x, y, marks[i % marks.size()]);
  }
  const std::string top = fmt::format("{:.4g}", y.high);
  const std::string bottom = fmt::format("{:.4g}", y.low);
  const size_t margin = std::max(top.size(), bottom.size());
  const std::string blanks(margin, ' ');
  std::string text = blanks + " " + options.y_label + "\n";
  for (int row = 0; row < options.rows; ++row) {
    const std::string& label = row == 0 ? top : row == options.rows - 1 ? bottom : blanks;
    text += std::string(margin - label.size(), ' ') + label + " |" + row_text(canvas, row, options) + "\n";
  }
  const std::string first = fmt::format("{:.6g}", x.low);
  const std::string last = fmt::format("{:.6g} {}", x.high, options.x_label);
  const size_t axis = static_cast<size_t>(options.columns);
  const size_t gap = axis - std::min(axis - 1, first.size() + last.size());
  text += blanks + " +" + std::string(axis, '-') + "\n" + blanks + "  " + first + std::string(gap, ' ') + last + "\n";
  return series.size() > 1 ? text + blanks + "  " + legend(series, options.braille) + "\n" : text;
}

}  // namespace minillm
