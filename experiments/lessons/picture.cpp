#include "experiments/lessons/picture.h"

#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace minillm {

namespace {

constexpr double picture_width = 680;  // of the whole picture, in pixels
constexpr double picture_height = 440;
constexpr double left = 70;  // the frame of the plot
constexpr double right = 500;
constexpr double top = 50;
constexpr double bottom = 390;
constexpr int plane_cells = 41;  // of a plane, along each axis
constexpr std::array<std::string_view, 6> colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#333333"};

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, markup_text(text));
}

struct Axis {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  double from;  // where low stands in the picture
  double to;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double place(double value) const { return high > low ? from + (value - low) / (high - low) * (to - from) : from; }
};

/// Opening, title, frame, the ends of both axes and their labels.
std::string frame(std::string_view title, std::string_view x_label, std::string_view y_label, const Axis& x,
                  const Axis& y) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      picture_width, picture_height);
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999999\"/>\n", left,
                     top, right - left, bottom - top);
  svg += text_at(left, 28, "start", title);
  svg += text_at(left, bottom + 18, "middle", fmt::format("{:.4g}", x.low));
  svg += text_at(right, bottom + 18, "middle", fmt::format("{:.4g}", x.high));
  svg += text_at((left + right) / 2, bottom + 34, "middle", x_label);
  svg += text_at(left - 6, bottom, "end", fmt::format("{:.4g}", y.low));
  svg += text_at(left - 6, top + 10, "end", fmt::format("{:.4g}", y.high));
  return svg + text_at(left, top - 6, "start", y_label);
}

/// Blue, white, red for -1, 0, 1.
std::string colour_of(double share) {
  const int fade = static_cast<int>(std::lround(255 * (1 - std::min(1.0, std::abs(share)))));
  return share < 0 ? fmt::format("#{0:02x}{0:02x}ff", fade) : fmt::format("#ff{0:02x}{0:02x}", fade);
}

}  // namespace

Series over_layers(const std::string& name, const std::vector<double>& values, int64_t first) {
  Series series{name, {}, values};
  for (size_t i = 0; i < values.size(); ++i) {
    series.x.push_back(static_cast<double>(first) + static_cast<double>(i));
  }
  return series;
}

std::string line_picture(std::string_view title, std::string_view x_label, std::string_view y_label,
                         const std::vector<Series>& series) {
  Axis x{.from = left, .to = right};
  Axis y{.from = bottom, .to = top};
  for (const Series& line : series) {
    for (size_t i = 0; i < line.y.size(); ++i) {
      if (std::isfinite(line.y[i])) {
        x.include(line.x[i]);
        y.include(line.y[i]);
      }
    }
  }
  std::string svg = frame(title, x_label, y_label, x, y);
  for (size_t k = 0; k < series.size(); ++k) {
    const std::string_view colour = colours[k % colours.size()];
    svg += fmt::format("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"{}\" points=\"", colour);
    for (size_t i = 0; i < series[k].y.size(); ++i) {
      if (std::isfinite(series[k].y[i])) {
        svg += fmt::format("{:.1f},{:.1f} ", x.place(series[k].x[i]), y.place(series[k].y[i]));
      }
    }
    const double line_top = top + 10 + 20 * static_cast<double>(k);
    svg += fmt::format("\"/>\n<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n", right + 12,
                       line_top - 6, colour);
    svg += text_at(right + 32, line_top, "start", series[k].name);
  }
  return svg + "</svg>\n";
}

std::string plane_picture(std::string_view title, std::string_view x_label, std::string_view y_label, double range,
                          const std::function<double(double x, double y)>& value) {
  const Axis x{.low = -range, .high = range, .from = left, .to = right};
  const Axis y{.low = -range, .high = range, .from = bottom, .to = top};
  std::vector<double> found;
  const double step = 2 * range / plane_cells;
  for (int row = 0; row < plane_cells; ++row) {
    for (int column = 0; column < plane_cells; ++column) {
      found.push_back(value(-range + step * (column + 0.5), range - step * (row + 0.5)));
    }
  }
  double largest = 0;
  for (const double one : found) {
    largest = std::max(largest, std::abs(one));
  }
  std::string svg = frame(title, x_label, y_label, x, y);
  const double cell_width = (right - left) / plane_cells;
  const double cell_height = (bottom - top) / plane_cells;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t row = i / plane_cells;
    const size_t column = i % plane_cells;
    // The root shows small values beside large ones.
    const double share = std::copysign(std::sqrt(std::abs(found[i]) / largest), found[i]);
    svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
                       left + cell_width * static_cast<double>(column), top + cell_height * static_cast<double>(row),
                       cell_width, cell_height, colour_of(share));
  }
  svg += text_at(right + 12, top + 12, "start", fmt::format("{:.4g}", largest));
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", right + 12, top + 20,
                     colour_of(1));
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", right + 12, top + 38,
                     colour_of(-1));
  return svg + text_at(right + 12, top + 70, "start", fmt::format("{:.4g}", -largest)) + "</svg>\n";
}

}  // namespace minillm
