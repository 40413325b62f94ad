#include "core/terminal.h"

#include "core/error.h"
#include "core/text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace minillm {

namespace {

/// The next code point of UTF-8 text; what is no UTF-8 counts as U+FFFD, as terminals show it.
uint32_t next_code_point(std::string_view text, size_t& at) {
  const unsigned char lead = static_cast<unsigned char>(text[at++]);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  if (lead >= 0xf8 || (lead >= 0x80 && lead < 0xc0)) {
    return 0xfffd;
  }
  uint32_t code = more == 0 ? lead : lead & (0x3fU >> more);
  for (int i = 0; i < more; ++i) {
    if (at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) {
      return 0xfffd;
    }
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3fU);
  }
  return code;
}

size_t width_of(uint32_t code) {
  if (code < 0x20 || (code >= 0x300 && code < 0x370) || code == 0x200b || code == 0x200d ||
      (code >= 0xfe00 && code <= 0xfe0f)) {
    return 0;
  }
  const bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                    (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) ||
                    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

/// "3,688,704", "-1.5e-04", "12.3%", "44.3 MB", "0:42": begins like a number.
bool looks_like_number(std::string_view cell) {
  size_t at = 0;
  while (at < cell.size() && (cell[at] == '-' || cell[at] == '+' || cell[at] == '~')) {
    ++at;
  }
  return cell.empty() || cell == "-" || cell == "nan" || (at < cell.size() && cell[at] >= '0' && cell[at] <= '9');
}

std::string padded(std::string_view cell, size_t width, bool right) {
  const std::string blanks(width - std::min(width, display_width(cell)), ' ');
  return right ? blanks + std::string(cell) : std::string(cell) + blanks;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    width += width_of(next_code_point(text, at));
  }
  return width;
}

void Table::add_row(std::vector<std::string> cells) {
  check(!cells.empty() && cells.size() <= headings_.size(), "a table of {} columns got a row of {}", headings_.size(),
        cells.size());
  cells.resize(headings_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t column = 0; column < headings_.size(); ++column) {
    size_t width = display_width(headings_[column]);
    bool all_numbers = !rows_.empty();
    for (const std::vector<std::string>& row : rows_) {
      if (!row.empty()) {
        width = std::max(width, display_width(row[column]));
        all_numbers = all_numbers && looks_like_number(row[column]);
      }
    }
    widths.push_back(width);
    right.push_back(all_numbers);
  }
  const auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t column = 0; column < cells.size(); ++column) {
      line += (column == 0 ? "" : "  ") + padded(cells[column], widths[column], right[column]);
    }
    return without_trailing_blanks(line) + "\n";
  };
  std::string rule;
  for (size_t column = 0; column < widths.size(); ++column) {
    rule += (column == 0 ? "" : "  ") + std::string(widths[column], '-');
  }
  std::string text = line_of(headings_) + rule + "\n";
  for (const std::vector<std::string>& row : rows_) {
    text += row.empty() ? rule + "\n" : line_of(row);
  }
  return text;
}

bool terminal_is_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      const std::string_view locale = value;
      return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
    }
  }
  return false;
}

std::string progress_text(const Progress& progress) {
  return fmt::format("step {}/{} | loss {:.4f} | lr {:.1e} | grad_norm {:.2f} | {} tok/s | {} left", progress.step,
                     progress.steps, progress.loss, progress.lr, progress.grad_norm,
                     thousands(static_cast<int64_t>(progress.tokens_per_s)), duration_text(progress.seconds_left));
}

ProgressLine::ProgressLine(std::FILE* stream) : stream_(stream), active_(::isatty(::fileno(stream)) == 1) {}

void ProgressLine::show(std::string_view text) {
  if (!active_) {
    return;
  }
  // Carriage return, text, erase to the end of the line: no flicker, and no rest of a longer line before.
  std::fprintf(stream_, "\r%.*s\x1b[K", static_cast<int>(text.size()), text.data());
  std::fflush(stream_);
  shown_ = true;
}

void ProgressLine::finish() {
  if (shown_) {
    std::fputs("\r\x1b[K", stream_);
    std::fflush(stream_);
    shown_ = false;
  }
}

}  // namespace minillm
