#include "formats/safetensors_shards.h"

#include "core/error.h"
#include "core/text.h"
#include "data/strict_json.h"
#include "formats/safetensors.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <utility>

namespace minillm {

namespace {

constexpr size_t most_index_bytes = size_t{1} << 26;

/// The tensors of each file that the index names.
std::map<std::string, std::vector<std::string>> tensors_by_file(const std::string& path) {
  const nlohmann::json root = parse_strictly(read_bytes(path, most_index_bytes), path,
                                             {.subject = "", .most_depth = 3, .deeper_than = "an index is"});
  const nlohmann::json map = root.is_object() ? root.value("weight_map", nlohmann::json()) : nlohmann::json();
  if (!map.is_object() || map.empty()) {
    fail_input({.where = path, .what = "is no index of weights: it has no weight_map"});
  }
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [tensor, file] : map.items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || std::filesystem::path(name).filename() != name) {
      fail_input({.where = path + ": weight_map: " + printable(tensor),
                  .what = "is not the name of a file beside the index",
                  .found = printable(file.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 60)});
    }
    files[name].push_back(tensor);
  }
  return files;
}

}  // namespace

WeightFile open_safetensors_shards(const std::string& index_path) {
  std::vector<WeightPart> parts;
  std::vector<StoredTensor> tensors;
  for (const auto& [name, expected] : tensors_by_file(index_path)) {
    const std::string path = (std::filesystem::path(index_path).parent_path() / name).string();
    const SafetensorsFile file(path);
    for (const std::string& tensor : expected) {
      if (file.find(tensor) == nullptr) {
        fail_input({.where = path,
                    .what = fmt::format("has no tensor {}, which {} says is in it", printable(tensor), index_path)});
      }
    }
    if (file.tensors().size() != expected.size()) {
      fail_input({.where = path,
                  .what = "holds other tensors than " + index_path + " lists",
                  .found = counted(static_cast<int64_t>(file.tensors().size()), "tensor"),
                  .expected = std::to_string(expected.size())});
    }
    for (StoredTensor stored : file.tensors()) {
      stored.part = parts.size();
      tensors.push_back(std::move(stored));
    }
    parts.push_back({path, open_for_reading(path)});
  }
  return {index_path, std::move(parts), std::move(tensors)};
}

}  // namespace minillm
