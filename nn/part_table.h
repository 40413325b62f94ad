#pragma once
// A table of parts: what a config word stands for. nn keeps one table per kind of part (norm, ffn, residual, mixer);
// the accepted words and the ledger come from it, so a new part is one file and one line.

#include "core/error.h"
#include "core/text.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// The row named `word`, or nullptr.
template <class Row>
const Row* find_part(std::span<const Row> table, std::string_view word) {
  for (const Row& row : table) {
    if (word == row.name) {
      return &row;
    }
  }
  return nullptr;
}

/// What is wrong with a word that the table does not have: for messages with `key` as their place.
template <class Row>
Problem unknown_part(std::span<const Row> table, std::string_view key, std::string_view word) {
  std::vector<std::string> names;
  for (const Row& row : table) {
    names.emplace_back(row.name);
  }
  return {.where = std::string(key),
          .what = "unknown word",
          .found = "\"" + std::string(word) + "\"",
          .expected = names.size() == 1 ? names.front() : "one of " + join(names),
          .hint = did_you_mean(word, names)};
}

/// The row named `word`; throws an Error naming `key` and the accepted words.
template <class Row>
const Row& get_part(std::span<const Row> table, std::string_view key, std::string_view word) {
  const Row* row = find_part(table, word);
  if (row == nullptr) {
    fail_input(unknown_part(table, key, word));
  }
  return *row;
}

}  // namespace minillm
