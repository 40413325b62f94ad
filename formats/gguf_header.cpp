#include "core/error.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace minillm {

namespace {

constexpr size_t chunk_bytes = size_t{1} << 18;
constexpr uint64_t most_text = uint64_t{1} << 24;
constexpr uint64_t least_metadata = 8 + 4 + 1;        // bytes of the shortest entry
constexpr uint64_t least_tensor = 8 + 4 + 8 + 4 + 8;  // of a tensor's
constexpr uint32_t most_rank = 4;

struct TensorType {
  uint32_t type;
  std::string_view dtype;
  uint64_t block_values;
  uint64_t block_bytes;
};

/// ggml's numbers.
constexpr TensorType tensor_types[] = {
    {0, "F32", 1, 4}, {1, "F16", 1, 2}, {8, "Q8_0", 32, 34}, {28, "F64", 1, 8}, {30, "BF16", 1, 2}};

const TensorType* find_type(uint32_t type) {
  const auto* row = std::find_if(std::begin(tensor_types), std::end(tensor_types),
                                 [&](const TensorType& r) { return r.type == type; });
  return row == std::end(tensor_types) ? nullptr : row;
}

/// Reads a file from its start on, a chunk at a time.
class Reader {
 public:
  Reader(int descriptor, uint64_t file_bytes, const std::string& path)
      : descriptor_(descriptor), file_bytes_(file_bytes), path_(path) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_bytes_ - at_; }

  template <class T>
  T number() {
    T value = 0;
    take(&value, sizeof value);
    return value;
  }

  std::string text(const char* what) {
    const uint64_t length = number<uint64_t>();
    if (length > std::min(left(), most_text)) {
      fail(fmt::format("{} is longer than the file", what), fmt::format("{} bytes", length),
           fmt::format("at most {}", std::min(left(), most_text)));
    }
    std::string bytes(length, '\0');
    take(bytes.data(), bytes.size());
    return bytes;
  }

  /// A count of things that take at least so many bytes each.
  uint64_t count(const char* what, uint64_t least_bytes) {
    const uint64_t found = number<uint64_t>();
    if (found > left() / least_bytes) {
      fail(fmt::format("the number of {} cannot be right", what), std::to_string(found),
           fmt::format("at most {} in the {} bytes that follow", left() / least_bytes, left()));
    }
    return found;
  }

  [[noreturn]] void fail(std::string what, std::string found, std::string expected) const {
    fail_input({.where = path_,
                .what = std::move(what),
                .found = std::move(found),
                .expected = std::move(expected),
                .hint = "the file is damaged or was cut: copy it again"});
  }

 private:
  void take(void* into, size_t count) {
    if (count > left()) {
      fail("the file ends inside its header", fmt::format("{} bytes", file_bytes_),
           fmt::format("at least {}", at_ + count));
    }
    char* to = static_cast<char*>(into);
    while (count > 0) {
      if (used_ == chunk_.size()) {
        chunk_.resize(std::min<uint64_t>(chunk_bytes, left()));
        read_exactly(descriptor_, chunk_.data(), chunk_.size(), at_, path_);
        used_ = 0;
      }
      const size_t now = std::min(count, chunk_.size() - used_);
      std::memcpy(to, chunk_.data() + used_, now);
      to += now;
      used_ += now;
      at_ += now;
      count -= now;
    }
  }

  int descriptor_;
  uint64_t file_bytes_;
  const std::string& path_;
  uint64_t at_ = 0;
  std::vector<char> chunk_;
  size_t used_ = 0;
};

bool read_boolean(Reader& reader) {
  return reader.number<uint8_t>() != 0;
}

/// A value that is no list.
GgufValue read_plain(Reader& reader, uint32_t type, const std::string& key) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::u8: return int64_t{reader.number<uint8_t>()};
    case GgufType::i8: return int64_t{reader.number<int8_t>()};
    case GgufType::u16: return int64_t{reader.number<uint16_t>()};
    case GgufType::i16: return int64_t{reader.number<int16_t>()};
    case GgufType::u32: return int64_t{reader.number<uint32_t>()};
    case GgufType::i32: return int64_t{reader.number<int32_t>()};
    case GgufType::f32: return double{reader.number<float>()};
    case GgufType::boolean: return read_boolean(reader);
    case GgufType::text: return reader.text(key.c_str());
    case GgufType::u64: return static_cast<int64_t>(std::min<uint64_t>(reader.number<uint64_t>(), INT64_MAX));
    case GgufType::i64: return reader.number<int64_t>();
    case GgufType::f64: return reader.number<double>();
    case GgufType::list: break;
  }
  reader.fail(fmt::format("{} is of a type that the format does not have", printable(key)), std::to_string(type),
              "0 to 12");
}

uint64_t least_bytes_of(uint32_t type) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    default: return 8;
  }
}

GgufValue read_list(Reader& reader, const std::string& key) {
  const uint32_t type = reader.number<uint32_t>();
  const uint64_t count = reader.count("values in a list", least_bytes_of(type));
  std::vector<std::string> texts;
  std::vector<double> numbers;
  for (uint64_t i = 0; i < count; ++i) {
    GgufValue value = read_plain(reader, type, key);  // a list of lists is none
    if (std::string* text = std::get_if<std::string>(&value)) {
      texts.push_back(std::move(*text));
    } else if (const int64_t* whole = std::get_if<int64_t>(&value)) {
      numbers.push_back(static_cast<double>(*whole));
    } else if (const double* number = std::get_if<double>(&value)) {
      numbers.push_back(*number);
    }
  }
  if (static_cast<GgufType>(type) == GgufType::text) {
    return texts;
  }
  return numbers;
}

GgufTensor read_tensor(Reader& reader, const std::string& path) {
  GgufTensor tensor;
  tensor.name = reader.text("a tensor's name");
  const uint32_t rank = reader.number<uint32_t>();
  const std::string shown = printable(tensor.name);
  if (rank < 1 || rank > most_rank) {
    reader.fail(fmt::format("tensor {} cannot be right", shown), fmt::format("rank {}", rank),
                fmt::format("1 to {}", most_rank));
  }
  uint64_t values = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    tensor.extents.push_back(reader.number<uint64_t>());
    if (__builtin_mul_overflow(values, tensor.extents.back(), &values) || values > uint64_t{1} << 58) {
      reader.fail(fmt::format("tensor {} is larger than any file", shown), std::to_string(tensor.extents.back()), "");
    }
  }
  tensor.type = reader.number<uint32_t>();
  tensor.begin = reader.number<uint64_t>();
  const TensorType* type = find_type(tensor.type);
  if (type == nullptr) {
    fail_input({.where = path,
                .what = fmt::format("tensor {} is of a type that is not read here", shown),
                .found = fmt::format("ggml's type {}", tensor.type),
                .expected = "F32 (0), F16 (1), Q8_0 (8), F64 (28) or BF16 (30)"});
  }
  if (tensor.extents[0] % type->block_values != 0) {
    reader.fail(fmt::format("tensor {} has rows that are not whole blocks", shown), std::to_string(tensor.extents[0]),
                fmt::format("a multiple of {}", type->block_values));
  }
  tensor.end = values / type->block_values * type->block_bytes;  // so long; placed by the caller
  return tensor;
}

uint64_t alignment_of(const GgufHeader& header, const Reader& reader) {
  const auto found = header.metadata.find("general.alignment");
  const int64_t* given = found == header.metadata.end() ? nullptr : std::get_if<int64_t>(&found->second);
  const uint64_t alignment = given == nullptr ? gguf_alignment : static_cast<uint64_t>(*given);
  if (!std::has_single_bit(alignment) || alignment > uint64_t{1} << 30) {
    reader.fail("general.alignment cannot be right", std::to_string(alignment), "a power of two");
  }
  return alignment;
}

/// Turns offsets into places of the file, which must be in it and apart.
void place_tensors(GgufHeader& header, uint64_t file_bytes, const Reader& reader) {
  const uint64_t alignment = alignment_of(header, reader);
  const uint64_t start = (reader.at() + alignment - 1) / alignment * alignment;
  std::set<std::string> names;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (GgufTensor& tensor : header.tensors) {
    const std::string shown = printable(tensor.name);
    const uint64_t bytes = tensor.end;
    if (!names.insert(tensor.name).second) {
      reader.fail(fmt::format("two tensors are named {}", shown), "", "");
    }
    if (start > file_bytes || tensor.begin > file_bytes - start || bytes > file_bytes - start - tensor.begin) {
      reader.fail(fmt::format("tensor {} ends beyond the file", shown),
                  fmt::format("{} bytes from {} on in a file of {}", bytes, tensor.begin, file_bytes), "");
    }
    tensor.begin += start;
    tensor.end = tensor.begin + bytes;
    ranges.emplace_back(tensor.begin, tensor.end);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      reader.fail("two tensors overlap", fmt::format("values from {}", ranges[i].first),
                  fmt::format("from {}", ranges[i - 1].second));
    }
  }
}

}  // namespace

std::string_view gguf_dtype(uint32_t type) {
  const TensorType* row = find_type(type);
  return row == nullptr ? "" : row->dtype;
}

GgufHeader read_gguf_header(int descriptor, uint64_t file_bytes, const std::string& path) {
  Reader reader(descriptor, file_bytes, path);
  GgufHeader header;
  const uint32_t magic = reader.number<uint32_t>();
  check(std::memcmp(&magic, gguf_magic.data(), gguf_magic.size()) == 0, "{} is no GGUF file", path);
  header.version = reader.number<uint32_t>();
  if (header.version != 2 && header.version != 3) {
    fail_input({.where = path,
                .what = "is a GGUF file of a version that is not read here",
                .found = std::to_string(header.version),
                .expected = "2 or 3"});
  }
  const uint64_t tensors = reader.count("tensors", least_tensor);
  const uint64_t metadata = reader.count("metadata", least_metadata);
  for (uint64_t i = 0; i < metadata; ++i) {
    const std::string key = reader.text("a key");
    const uint32_t type = reader.number<uint32_t>();
    GgufValue value =
        static_cast<GgufType>(type) == GgufType::list ? read_list(reader, key) : read_plain(reader, type, key);
    if (!header.metadata.emplace(key, std::move(value)).second) {
      reader.fail(fmt::format("the key {} stands twice", printable(key)), "", "");
    }
  }
  for (uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(read_tensor(reader, path));
  }
  place_tensors(header, file_bytes, reader);
  return header;
}

}  // namespace minillm
