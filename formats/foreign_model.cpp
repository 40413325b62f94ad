#include "formats/foreign_model.h"

#include "core/error.h"
#include "core/text.h"
#include "data/user_block.h"
#include "formats/gguf.h"
#include "formats/huggingface.h"
#include "formats/llama2c.h"
#include "formats/llmc.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
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
    {"GGUF", is_gguf, open_gguf},
    {"a model of llama2.c", is_llama2c_model, open_llama2c},  // without a magic number: behind those that have one
};

/// What to do with a file that another command reads.
std::string advice_for(const std::string& kind) {
  if (kind == llmc_tokens_kind) {
    return "minillm import-tokens makes a data file of it";
  }
  if (kind == "safetensors") {
    return "beside its config.json give the folder; weights under minillm's names are read by minillm train --init";
  }
  return kind == "a minillm file" ? "minillm eval and train --init take a run as it is" : "";
}

/// Null: none.
const ForeignFormat* format_that_recognises(std::string_view first_bytes) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.recognises(first_bytes); });
  return found == std::end(table) ? nullptr : found;
}

ForeignModel open_file(const std::string& path) {
  const std::string start = read_bytes(path, UserBlock::size);
  if (const ForeignFormat* format = format_that_recognises(start)) {
    return format->open(path);
  }
  std::vector<std::string> names;
  for (const ForeignFormat& format : table) {
    names.emplace_back(format.name);
  }
  const std::string kind = guess_file_kind(start, file_size(open_for_reading(path).get(), path));
  fail_input({.where = path,
              .what = "is not a model that can be imported",
              .found = kind,
              .expected = join(names, " or "),
              .hint = advice_for(kind)});
}

/// A file by whose name a folder of such a format is known.
struct ForeignFolder {
  std::string_view file;
  std::string_view name;                            ///< for messages
  ForeignModel (*open)(const std::string& folder);  ///< null: the file is the model
};

constexpr ForeignFolder folders[] = {
    {huggingface_config_name, "Hugging Face", open_huggingface},
    {llama2c_model_name, "llama2.c", nullptr},
};

/// Null: none.
const ForeignFolder* format_of_folder(const std::string& path) {
  std::error_code error;
  const auto* found = std::find_if(std::begin(folders), std::end(folders), [&](const auto& row) {
    return std::filesystem::exists(file_in(path, row.file), error);
  });
  return found == std::end(folders) ? nullptr : found;
}

ForeignModel open_folder(const std::string& path) {
  if (const ForeignFolder* folder = format_of_folder(path)) {
    return folder->open == nullptr ? open_file(file_in(path, folder->file)) : folder->open(path);
  }
  std::vector<std::string> names;
  for (const ForeignFolder& folder : folders) {
    names.push_back(fmt::format("{} ({})", folder.file, folder.name));
  }
  fail_input({.where = path,
              .what = "is a folder without a model that can be imported",
              .expected = "a file " + join(names, " or ")});
}

}  // namespace

std::string file_in(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / std::string(name)).string();
}

bool is_foreign_model(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return format_of_folder(path) != nullptr;
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return false;
  }
  const std::string start = read_bytes(path, UserBlock::size);
  return format_of(start).empty() && format_that_recognises(start) != nullptr;
}

ForeignModel open_foreign_model(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? open_folder(path) : open_file(path);
}

}  // namespace minillm
