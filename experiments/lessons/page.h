#pragma once
// The page a lesson writes on: sentences in English and Chinese, tables, curves, and a picture for --svg.

#include "core/terminal.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace minillm {

enum class Language : uint8_t { en, zh };

/// The same words in both languages.
struct Text {
  std::string_view en;
  std::string_view zh;
};

/// The same sentence in both, with {} where values stand. Both are checked against the values when this is compiled.
template <class... Args>
struct Sentence {
  fmt::format_string<Args...> en;
  fmt::format_string<Args...> zh;
};

class Page {
 public:
  /// `out` (nullptr: nowhere) gets each line as it is written. `run`: the trained model to look into, a run's folder or
  /// a checkpoint; "": the lesson trains a small one.
  explicit Page(Language language, std::FILE* out = nullptr, std::string run = "")
      : language_(language), out_(out), run_(std::move(run)) {}

  /// One or more lines: page.say({"{} of {}", "{} / {}"}, 1, 2);
  template <class... Args>
  void say(const std::type_identity_t<Sentence<Args...>>& sentence, Args&&... args) {
    write(fmt::format(language_ == Language::en ? sentence.en : sentence.zh, std::forward<Args>(args)...) + "\n");
  }

  /// The words of the page's language, for headings and cells.
  std::string in(const Text& text) const { return std::string(language_ == Language::en ? text.en : text.zh); }

  void show(const Table& table) { write(table.text() + "\n"); }
  void show(const std::vector<Series>& series, const Text& x_label, const Text& y_label);

  /// The lesson's picture, as SVG.
  void draw(std::string svg) { picture_ = std::move(svg); }
  const std::string& picture() const { return picture_; }

  Language language() const { return language_; }
  const std::string& run() const { return run_; }
  const std::string& text() const { return text_; }  ///< all that was written

 private:
  void write(const std::string& lines);

  Language language_;
  std::FILE* out_;
  std::string run_;
  std::string text_;
  std::string picture_;
};

}  // namespace minillm
