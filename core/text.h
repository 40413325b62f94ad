#pragma once
// Words and numbers for messages: the nearest known word to a misspelt one, lists, thousands separators.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Number of single-character insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment distance). Letters are compared without regard to case; '-' and '_' are equal.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" when none is near enough to be a likely misspelling: the distance must not
/// exceed a third of the longer word (at least 1), or one must begin with the other (3 characters or more). Ties go to
/// the earlier candidate.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean lr?", or "" without a near candidate: ready to be a Problem's hint.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// 3688704 -> "3,688,704"
std::string thousands(int64_t number);

/// "1 file", "3,000 files"
std::string counted(int64_t number, std::string_view noun);

/// 44264448 -> "44.3 MB", 512 -> "512 B": powers of 1000, three digits.
std::string bytes_text(double bytes);

/// 62 -> "1:02", 3723 -> "1:02:03", rounded to seconds. Not a finite number, or negative: "-".
std::string duration_text(double seconds);

/// Bytes from outside for a message on a terminal: control characters become \x1b, what is longer than `limit` bytes is
/// cut and marked "...". Nothing becomes "", in quotes, so that it can be seen.
std::string printable(std::string_view bytes, size_t limit = 120);

/// Text between the tags of HTML or SVG: &, < and > become entities.
std::string markup_text(std::string_view text);

/// A path as a word of a command line that can be pasted into a shell: in single quotes when it holds more than
/// letters, digits and the marks of paths, behind ./ when it begins with a dash as options do. Nothing becomes ''.
std::string shell_word(std::string_view word);

/// A whole message for a terminal: control characters but line ends and tabs become \x1b, so that no name or text in it
/// can steer the terminal.
std::string without_controls(std::string_view message);

}  // namespace minillm
