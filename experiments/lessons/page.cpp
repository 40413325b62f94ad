#include "experiments/lessons/page.h"

namespace minillm {

void Page::show(const std::vector<Series>& series, const Text& x_label, const Text& y_label) {
  const bool braille = series.size() == 1 && terminal_is_utf8();  // whose lines have no marks to tell them apart
  write(curve(series, {.rows = 10, .x_label = in(x_label), .y_label = in(y_label), .braille = braille}) + "\n");
}

void Page::write(const std::string& lines) {
  text_ += lines;
  if (out_ != nullptr) {
    std::fputs(lines.c_str(), out_);
    std::fflush(out_);  // lessons that train take seconds
  }
}

}  // namespace minillm
