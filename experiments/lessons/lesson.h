#pragma once
// Lessons: the course's small experiments, each a short program part that prints its numbers and can be stepped
// through. A new lesson is one file and one line in the table of experiments/lessons/lesson.cpp.

#include "experiments/lessons/page.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// What a lesson found, by name, unrounded: {"mse", {0.25}}.
using Numbers = std::map<std::string, std::vector<double>>;

/// A row of the table of lessons.
struct Lesson {
  std::string_view id;    ///< its number in the course: "D01"
  std::string_view name;  ///< "linear-fails"
  Text title;
  Numbers (*run)(Page& page);
  bool has_picture = false;  ///< calls Page::draw
  bool reads_run = false;    ///< looks into a trained model, that of Page::run
};

/// In the order in which one forces the next.
std::span<const Lesson> lessons();

/// By name or by id, in either case of letters. Throws an input Error with the nearest name.
const Lesson& find_lesson(std::string_view word);

}  // namespace minillm
