// minillm lesson: the course's small experiments.

#include "experiments/lessons/lesson.h"
#include "cli/command.h"
#include "core/atomic_file.h"
#include "core/parallel.h"
#include "core/text.h"

#include <cstdio>

namespace minillm::cli {

namespace {

Language language_of(const Arguments& arguments) {
  const std::string& word = arguments.text("lang");
  if (word != "en" && word != "zh") {
    fail_input({.where = "--lang", .what = "unknown language", .found = printable(word), .expected = "en or zh"});
  }
  return word == "zh" ? Language::zh : Language::en;
}

/// The names of the lessons that have something: pictures, or use for a trained model.
std::string names_of(bool Lesson::*property) {
  std::vector<std::string> names;
  for (const Lesson& lesson : lessons()) {
    if (lesson.*property) {
      names.emplace_back(lesson.name);
    }
  }
  return join(names);
}

void list(Language language) {
  const Page page(language);
  Table table({page.in({"lesson", "课"}), "", page.in({"what it shows", "看什么"})});
  for (const Lesson& lesson : lessons()) {
    table.add_row({std::string(lesson.name), std::string(lesson.id), page.in(lesson.title)});
  }
  fmt::print("{}", table.text());
}

int run_lesson(const Arguments& arguments) {
  const Language language = language_of(arguments);
  const std::string& svg = arguments.text("svg");
  const std::string& run_folder = arguments.text("run");
  if (arguments.words().empty()) {
    if (!svg.empty() || !run_folder.empty()) {
      fail_input({.where = svg.empty() ? "--run" : "--svg", .what = "goes with a lesson's name"});
    }
    list(language);
    return 0;
  }
  const Lesson& lesson = find_lesson(arguments.words().front());
  if (!svg.empty()) {
    if (!lesson.has_picture) {
      fail_input({.where = "--svg",
                  .what = fmt::format("{} draws nothing", lesson.name),
                  .hint = "these do: " + names_of(&Lesson::has_picture)});
    }
    check_replaceable(svg);  // before the lesson, which may take seconds
  }
  if (!run_folder.empty() && !lesson.reads_run) {
    fail_input({.where = "--run",
                .what = fmt::format("{} looks into no trained model", lesson.name),
                .hint = "these do: " + names_of(&Lesson::reads_run)});
  }
  set_num_threads(1);  // small work, and one thread to step through
  flush_denormals();
  Page page(language, stdout, run_folder);
  lesson.run(page);
  if (!svg.empty()) {
    write_file_atomically(svg, page.picture());
  }
  return 0;
}

}  // namespace

Command lesson_command() {
  return {{.name = "lesson",
           .words = "[NAME]",
           .summary = "the course's small experiments; without a name, their list",
           .note = "NAME may be the lesson's number in the course, D07.",
           .max_words = 1,
           .options = {{"lang", "en|zh", "en", "language of the text"},
                       {"svg", "FILE", "", "also draw the lesson's picture"},
                       {"run", "RUN", "", "look into this trained model instead of a small one trained now"}},
           .examples = {"minillm lesson linear-fails", "minillm lesson gate-plane --lang zh --svg plane.svg"}},
          run_lesson};
}

}  // namespace minillm::cli
