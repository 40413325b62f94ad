#include "formats/safetensors_header.h"

#include "core/text.h"
#include "data/strict_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace minillm {

namespace {

using Json = nlohmann::json;

constexpr JsonKind header_kind = {
    .subject = "the safetensors header ", .top_key = "tensor", .most_depth = 2, .deeper_than = "the format allows"};

/// Where and what for a fault of one tensor.
Problem about(const std::string& path, std::string_view tensor, std::string what) {
  return {.where = path, .what = "tensor " + printable(tensor) + " " + std::move(what)};
}

/// A JSON value for a message, cut short.
std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
}

/// Bytes an element of each dtype of the format takes; 0 for a word the format does not have.
uint64_t bytes_per_element(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, uint64_t>, 16> sizes = {{{"F64", 8},
                                                                                   {"F32", 4},
                                                                                   {"F16", 2},
                                                                                   {"BF16", 2},
                                                                                   {"I64", 8},
                                                                                   {"I32", 4},
                                                                                   {"I16", 2},
                                                                                   {"I8", 1},
                                                                                   {"U64", 8},
                                                                                   {"U32", 4},
                                                                                   {"U16", 2},
                                                                                   {"U8", 1},
                                                                                   {"BOOL", 1},
                                                                                   {"F8_E4M3", 1},
                                                                                   {"F8_E5M2", 1},
                                                                                   {"F8_E8M0", 1}}};
  for (const auto& [name, bytes] : sizes) {
    if (name == dtype) {
      return bytes;
    }
  }
  return 0;
}

const Json& field(const Json& entry, const char* key, const std::string& path, std::string_view tensor) {
  const auto found = entry.find(key);
  if (found == entry.end()) {
    fail_input(about(path, tensor, std::string("has no ") + key));
  }
  return *found;
}

/// A whole number in [0, 2^63): what extents and offsets are.
uint64_t count_of(const Json& value, const char* key, const std::string& path, std::string_view tensor) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) {
    Problem problem = about(path, tensor, std::string("has a wrong ") + key);
    problem.found = shown(value);
    problem.expected = "a whole number from 0";
    fail_input(problem);
  }
  return value.get<uint64_t>();
}

/// Also returns the bytes shape and dtype call for.
Shape read_shape(const Json& value, uint64_t element_bytes, uint64_t& bytes, const std::string& path,
                 std::string_view tensor) {
  if (!value.is_array() || value.size() > Shape::max_rank) {
    Problem problem = about(path, tensor, "has a wrong shape");
    problem.found = shown(value);
    problem.expected = fmt::format("a list of at most {} numbers", Shape::max_rank);
    fail_input(problem);
  }
  Shape shape;
  bytes = element_bytes;
  for (const Json& extent : value) {
    const uint64_t count = count_of(extent, "shape", path, tensor);
    if (__builtin_mul_overflow(bytes, count, &bytes) || bytes > INT64_MAX) {
      Problem problem = about(path, tensor, "has a shape too large to exist");
      problem.found = shown(value);
      fail_input(problem);
    }
    shape.push_back(static_cast<int64_t>(count));
  }
  return shape;
}

StoredTensor read_entry(const std::string& name, const Json& entry, uint64_t data_bytes, const std::string& path) {
  if (!entry.is_object()) {
    Problem problem = about(path, name, "is not described by dtype, shape and data_offsets");
    problem.found = shown(entry);
    fail_input(problem);
  }
  const Json& dtype = field(entry, "dtype", path, name);
  const std::string dtype_name = dtype.is_string() ? dtype.get<std::string>() : "";
  const uint64_t element_bytes = bytes_per_element(dtype_name);
  if (element_bytes == 0) {
    Problem problem = about(path, name, "has an unknown dtype");
    problem.found = shown(dtype);
    problem.expected = "a type of the format: F32, F16, BF16, F64, U8, ...";
    fail_input(problem);
  }
  uint64_t bytes = 0;
  const Json& shape_field = field(entry, "shape", path, name);
  const Shape shape = read_shape(shape_field, element_bytes, bytes, path, name);
  const Json& offsets = field(entry, "data_offsets", path, name);
  if (!offsets.is_array() || offsets.size() != 2) {
    Problem problem = about(path, name, "has wrong data_offsets");
    problem.found = shown(offsets);
    problem.expected = "[begin, end]";
    fail_input(problem);
  }
  const uint64_t begin = count_of(offsets[0], "data_offsets", path, name);
  const uint64_t end = count_of(offsets[1], "data_offsets", path, name);
  if (end < begin || end - begin != bytes) {
    Problem problem = about(path, name, "has data_offsets that do not fit its shape");
    problem.found = shown(offsets);
    problem.expected = fmt::format("{} bytes for {} {}", bytes, dtype_name, shown(shape_field));
    fail_input(problem);
  }
  if (end > data_bytes) {
    Problem problem = about(path, name, "ends beyond the file");
    problem.found = fmt::format("{} bytes of values", data_bytes);
    problem.expected = fmt::format("at least {}", end);
    problem.hint = "the file was cut: copy it again";
    fail_input(problem);
  }
  return {name, dtype_name, shape, begin, end};
}

/// The ranges, sorted, must follow each other: an overlap or a gap means that the header belongs to other values.
/// Returns where they end.
uint64_t check_ranges(const std::vector<StoredTensor>& tensors, const std::string& path) {
  uint64_t covered = 0;
  uint64_t last_begin = 0;
  for (const StoredTensor& tensor : tensors) {
    const bool shares_last = tensor.begin == last_begin && tensor.end == covered;
    if (tensor.begin != covered && !shares_last) {
      Problem problem =
          about(path, tensor.name, tensor.begin < covered ? "overlaps another" : "leaves a gap before it");
      problem.found = fmt::format("values from {}", tensor.begin);
      problem.expected = fmt::format("from {}", covered);
      fail_input(problem);
    }
    last_begin = tensor.begin;
    covered = tensor.end;
  }
  return covered;
}

}  // namespace

std::vector<StoredTensor> parse_safetensors_header(std::string_view header, uint64_t data_start, uint64_t file_bytes,
                                                   const std::string& path) {
  const Json root = parse_strictly(header, path, header_kind);
  if (!root.is_object()) {
    fail_input({.where = path, .what = "the safetensors header is not an object", .found = shown(root)});
  }
  const uint64_t data_bytes = file_bytes - data_start;
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : root.items()) {
    if (name != "__metadata__") {
      tensors.push_back(read_entry(name, entry, data_bytes, path));
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const uint64_t covered = check_ranges(tensors, path);
  if (covered != data_bytes && file_bytes != any_file_bytes) {
    fail_input({.where = path,
                .what = "the file is longer than its tensors",
                .found = fmt::format("{} bytes of values", data_bytes),
                .expected = fmt::format("{}", covered),
                .hint = "it is damaged, or something was appended"});
  }
  for (StoredTensor& tensor : tensors) {
    tensor.begin += data_start;
    tensor.end += data_start;
  }
  return tensors;
}

std::string make_safetensors_header(const std::vector<StoredTensor>& tensors,
                                    const std::map<std::string, std::string>& metadata, const std::string& path) {
  nlohmann::ordered_json root;
  root["__metadata__"] = metadata;
  for (const StoredTensor& tensor : tensors) {
    if (root.contains(tensor.name)) {
      fail_input(about(path, tensor.name, "is to be written twice"));
    }
    root[tensor.name] = {{"dtype", tensor.dtype},
                         {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                         {"data_offsets", {tensor.begin, tensor.end}}};
  }
  try {
    std::string header = root.dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return header;
  } catch (const nlohmann::ordered_json::exception& error) {
    fail_input({.where = path, .what = "a name or metadata is not UTF-8", .found = printable(error.what(), 200)});
  }
}

}  // namespace minillm
