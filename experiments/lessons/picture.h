#pragma once
// Pictures of lessons as SVG, each a complete file.

#include "core/terminal.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// One value of each layer, counted from `first`.
Series over_layers(const std::string& name, const std::vector<double>& values, int64_t first);

/// The series as lines on shared axes with a legend; points that are not finite are left out.
std::string line_picture(std::string_view title, std::string_view x_label, std::string_view y_label,
                         const std::vector<Series>& series);

/// A function of (x, y) over the square [-range, range]^2 in cells: blue below 0, red above, white at 0.
std::string plane_picture(std::string_view title, std::string_view x_label, std::string_view y_label, double range,
                          const std::function<double(double x, double y)>& value);

}  // namespace minillm
