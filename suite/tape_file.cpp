#include "suite/tape_file.h"

#include "core/atomic_file.h"
#include "core/text.h"
#include "suite/page.h"
#include "suite/tape_page.h"
#include "train/tape_drawing.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace minillm {

namespace {

struct Form {
  std::string_view ending;
  std::string_view mark;  // what tells its files from other people's
  std::string (*text)(const TapeRecord& record);
};

constexpr std::array<Form, 3> forms = {
    {{".txt", tape_mark, tape_text}, {".dot", tape_mark, tape_dot}, {".html", tape_page_mark, tape_page}}};

/// nullptr: the name says none.
const Form* form_of(const std::string& path) {
  const auto form =
      std::find_if(forms.begin(), forms.end(), [&](const Form& one) { return path.ends_with(one.ending); });
  return form == forms.end() ? nullptr : &*form;
}

}  // namespace

void check_tape_file(const std::string& path, const std::string& option) {
  const Form* form = form_of(path);
  if (form == nullptr) {
    fail_input({.where = option,
                .what = "the file's name says in which form the tape is written",
                .found = printable(path),
                .expected = "a name ending in .txt (a table), .dot (Graphviz) or .html (a page)"});
  }
  check_replaceable(path);
  check_ours(path, form->mark, "tape");
}

void write_tape_file(const std::string& path, const TapeRecord& record) {
  const Form* form = form_of(path);
  check(form != nullptr, "{} is no name of a tape: call check_tape_file first", path);
  std::filesystem::create_directories(folder_of(path));
  write_file_atomically(path, form->text(record));
}

}  // namespace minillm
