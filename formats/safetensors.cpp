#include "formats/safetensors.h"

#include "core/atomic_file.h"
#include "core/log.h"
#include "core/text.h"
#include "data/user_block.h"
#include "formats/half.h"
#include "formats/safetensors_header.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace minillm {

namespace {

static_assert(std::endian::native == std::endian::little, "values of files are copied as they stand");

constexpr size_t chunk_bytes = size_t{1} << 20;  // values are converted through a buffer of this size
constexpr uint64_t length_bytes = 8;             // the header's length stands first

/// Reads exactly `bytes` at `offset`.
void read_exactly(int descriptor, void* to, size_t bytes, uint64_t offset, const std::string& path) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t done = ::pread(descriptor, at, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      fail_input({.where = path,
                  .what = "cannot be read",
                  .found = done < 0 ? system_error_text(errno) : "the end of the file",
                  .expected = fmt::format("{} more bytes", bytes)});
    }
    at += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

template <class From, class To, class Widen>
void convert(const char* bytes, To* to, size_t count, Widen widen) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, bytes + i * sizeof(From), sizeof(From));
    to[i] = static_cast<To>(widen(value));
  }
}

template <class To>
void convert_values(std::string_view dtype, const char* bytes, To* to, size_t count) {
  if (dtype == "F64") {
    convert<double>(bytes, to, count, [](double value) { return value; });
  } else if (dtype == "F32") {
    convert<float>(bytes, to, count, [](float value) { return value; });
  } else if (dtype == "F16") {
    convert<uint16_t>(bytes, to, count, half_to_float);
  } else {
    convert<uint16_t>(bytes, to, count, bfloat16_to_float);
  }
}

int open_regular_file(const std::string& path, uint64_t& bytes) {
  // Without O_NONBLOCK a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string reason = descriptor < 0 ? system_error_text(errno) : "not a file";
    ::close(descriptor);
    fail_input({.where = path, .what = "cannot be opened", .found = reason, .expected = "a .safetensors file"});
  }
  bytes = static_cast<uint64_t>(status.st_size);
  return descriptor;
}

/// Throws when the first bytes are those of another kind of file that we know.
void refuse_other_kinds(const std::string& start, uint64_t file_bytes, const std::string& path) {
  const std::string kind = guess_file_kind(start, file_bytes);
  if (kind == "a minillm file") {
    fail_input({.where = path,
                .what = "is a file of minillm, not a safetensors file",
                .hint = "to start from a run's weights give the run's folder"});
  }
  if (kind != "unknown binary data" && kind != "safetensors") {
    fail_input({.where = path, .what = "is not a safetensors file", .found = kind});
  }
}

/// The header's text; its claimed length is compared with the file before any memory is taken for it.
std::string read_header(int descriptor, uint64_t file_bytes, const std::string& path) {
  char start[16] = {};
  const size_t start_bytes = std::min<uint64_t>(sizeof(start), file_bytes);
  read_exactly(descriptor, start, start_bytes, 0, path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, start, length_bytes);
  const bool fits = file_bytes >= length_bytes + 2 && header_bytes >= 2 && header_bytes <= file_bytes - length_bytes;
  const bool begins = file_bytes > length_bytes && start[length_bytes] == '{';
  if (!begins) {
    refuse_other_kinds(std::string(start, start_bytes), file_bytes, path);
  }
  if (!fits || header_bytes > max_safetensors_header) {
    fail_input({.where = path,
                .what = "is not a safetensors file, or was cut: its header does not fit",
                .found = fmt::format("a header of {} bytes in a file of {}", header_bytes, file_bytes),
                .expected = fmt::format("at most {} and inside the file", max_safetensors_header)});
  }
  if (!begins) {
    fail_input({.where = path,
                .what = "is not a safetensors file: its header does not begin with '{'",
                .found = printable({start + length_bytes, start_bytes - length_bytes})});
  }
  std::string header(header_bytes, '\0');
  read_exactly(descriptor, header.data(), header.size(), length_bytes, path);
  return header;
}

}  // namespace

bool is_floating_dtype(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  uint64_t file_bytes = 0;
  descriptor_ = open_regular_file(path, file_bytes);
  try {
    const std::string header = read_header(descriptor_, file_bytes, path);
    tensors_ = parse_safetensors_header(header, length_bytes + header.size(), file_bytes, path);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    index_.emplace(tensors_[i].name, i);
  }
}

SafetensorsFile::~SafetensorsFile() {
  ::close(descriptor_);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::read(const StoredTensor& stored, const Tensor& to) const {
  if (!is_floating_dtype(stored.dtype)) {
    fail_input({.where = path_,
                .what = "tensor " + printable(stored.name) + " holds numbers that cannot be weights here",
                .found = "dtype " + stored.dtype,
                .expected = "F32, F16, BF16 or F64"});
  }
  check(to.numel() == stored.shape.numel(), "{}: tensor {} has shape {}, its destination {}", path_,
        printable(stored.name), to_string(stored.shape), to_string(to.shape));
  if (to.numel() == 0) {
    return;
  }
  const size_t element_bytes = (stored.end - stored.begin) / static_cast<size_t>(to.numel());
  const size_t chunk = chunk_bytes / element_bytes;
  std::vector<char> bytes(chunk_bytes);
  const size_t total = static_cast<size_t>(to.numel());
  for (size_t first = 0; first < total; first += chunk) {
    const size_t count = std::min(chunk, total - first);
    read_exactly(descriptor_, bytes.data(), count * element_bytes, stored.begin + first * element_bytes, path_);
    if (to.dtype == DType::float64) {
      convert_values(stored.dtype, bytes.data(), to.as<double>() + first, count);
    } else {
      convert_values(stored.dtype, bytes.data(), to.as<float>() + first, count);
    }
  }
}

void write_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                       std::map<std::string, std::string> metadata) {
  metadata.emplace("format", "pt");
  // The widest elements first, as the format's own writer orders them: then every tensor is aligned to its elements.
  std::vector<TensorToSave> ordered(tensors.begin(), tensors.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const TensorToSave& a, const TensorToSave& b) {
    return size_of(a.value.dtype) > size_of(b.value.dtype);
  });
  std::vector<StoredTensor> entries;
  uint64_t offset = 0;
  for (const TensorToSave& tensor : ordered) {
    check(tensor.value.dtype != DType::int32, "{}: tensor {} holds int32, only float32 and float64 are written", path,
          tensor.name);
    const uint64_t end = offset + tensor.value.bytes();
    const char* dtype = tensor.value.dtype == DType::float64 ? "F64" : "F32";
    entries.push_back({std::string(tensor.name), dtype, tensor.value.shape, offset, end});
    offset = end;
  }
  const std::string header = make_safetensors_header(entries, metadata, path);
  const uint64_t header_bytes = header.size();
  AtomicFile file(path);
  file.write(&header_bytes, sizeof(header_bytes));
  file.write(header);
  for (const TensorToSave& tensor : ordered) {
    file.write(tensor.value.data, tensor.value.bytes());
  }
  file.commit();
}

void save_weights(const ParameterStore& store, const std::string& path, std::map<std::string, std::string> metadata) {
  check(store.allocated(), "{}: the parameter store has no memory yet", path);
  std::vector<TensorToSave> tensors;
  for (const NamedTensor& tensor : store.named_tensors()) {
    tensors.push_back({tensor.name, tensor.value});
  }
  write_safetensors(path, tensors, std::move(metadata));
}

}  // namespace minillm
