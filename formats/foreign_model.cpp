#include "formats/foreign_model.h"

#include "core/error.h"
#include "core/text.h"
#include "data/user_block.h"
#include "formats/llmc.h"

#include <string_view>
#include <vector>

namespace minillm {

namespace {

/// Every binary file of llm.c begins with a number of its own, so its kind is told by that alone.
bool is_llmc_model(std::string_view first_bytes) {
  return guess_file_kind(std::string(first_bytes), first_bytes.size()) == llmc_model_kind;
}

struct ForeignFormat {
  std::string_view name;                             ///< for messages
  bool (*recognises)(std::string_view first_bytes);  ///< at most UserBlock::size of them
  ForeignModel (*open)(const std::string& path);     ///< checks all but the values
};

constexpr ForeignFormat table[] = {
    {"a GPT-2 checkpoint of llm.c", is_llmc_model, open_llmc},
};

/// What to do with a file that another command reads.
std::string advice_for(const std::string& kind) {
  if (kind == llmc_tokens_kind) {
    return "minillm import-tokens makes a data file of it";
  }
  if (kind == "safetensors") {
    return "weights under minillm's names are read by minillm train --init";
  }
  return kind == "a minillm file" ? "minillm eval and train --init take a run as it is" : "";
}

}  // namespace

ForeignModel open_foreign_model(const std::string& path) {
  const std::string start = read_bytes(path, UserBlock::size);
  std::vector<std::string> names;
  for (const ForeignFormat& format : table) {
    if (format.recognises(start)) {
      return format.open(path);
    }
    names.emplace_back(format.name);
  }
  const std::string kind = guess_file_kind(start, file_size(open_for_reading(path).get(), path));
  fail_input({.where = path,
              .what = "is not a model that can be imported",
              .found = kind,
              .expected = join(names, " or "),
              .hint = advice_for(kind)});
}

}  // namespace minillm
