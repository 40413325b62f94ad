#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace minillm {

namespace {

char folded(char c) {
  if (c == '-') {
    return '_';
  }
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool begins_with(std::string_view text, std::string_view start) {
  return start.size() >= 3 && text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(), [](char a, char b) { return folded(a) == folded(b); });
}

std::string escape_controls(std::string_view bytes, std::string_view kept) {
  std::string text;
  for (const char byte : bytes) {
    const unsigned char value = static_cast<unsigned char>(byte);
    const bool control = (value < 0x20 || value == 0x7f) && kept.find(byte) == std::string_view::npos;
    if (control) {
      text += fmt::format("\\x{:02x}", value);
    } else {
      text += byte;
    }
  }
  return text;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table D[i][j] = distance of a's first i and b's first j characters.
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t cost = folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + cost});
      const bool swapped =
          i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    const size_t allowed = std::max<size_t>(1, std::max(word.size(), candidate.size()) / 3);
    const bool near = distance <= allowed || begins_with(candidate, word) || begins_with(word, candidate);
    if (near && (best == nullptr || distance < best_distance)) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string suggestion = nearest(word, candidates);
  return suggestion.empty() ? suggestion : "did you mean " + suggestion + "?";
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (&word != &words.front()) {
      text += separator;
    }
    text += word;
  }
  return text;
}

std::string thousands(int64_t number) {
  std::string digits = std::to_string(number);
  const int64_t first_digit = number < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first_digit; at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

std::string counted(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", thousands(number), noun, number == 1 ? "" : "s");
}

std::string bytes_text(double bytes) {
  static constexpr std::array<const char*, 6> units = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (unit + 1 < units.size() && std::fabs(bytes) >= 999.5) {
    bytes /= 1000;
    ++unit;
  }
  if (unit == 0) {
    return fmt::format("{:.0f} {}", bytes, units[unit]);
  }
  const int decimals = bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", bytes, decimals, units[unit]);
}

std::string duration_text(double seconds) {
  const double longest = 1e9;  // 30 years: beyond it the estimate says nothing
  if (!std::isfinite(seconds) || seconds < 0 || seconds > longest) {
    return "-";
  }
  const int64_t whole = std::llround(seconds);
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string printable(std::string_view bytes, size_t limit) {
  if (bytes.empty()) {
    return "\"\"";
  }
  const std::string text = escape_controls(bytes.substr(0, limit), "");
  return bytes.size() > limit ? text + "..." : text;
}

std::string shell_word(std::string_view word) {
  if (word.starts_with('-')) {
    return shell_word(fmt::format("./{}", word));
  }
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=+@%-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string without_controls(std::string_view message) {
  return escape_controls(message, "\n\t");
}

std::string markup_text(std::string_view text) {
  std::string markup;
  for (const char c : text) {
    switch (c) {
      case '&': markup += "&amp;"; break;
      case '<': markup += "&lt;"; break;
      case '>': markup += "&gt;"; break;
      default: markup += c;
    }
  }
  return markup;
}

}  // namespace minillm
