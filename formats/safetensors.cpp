#include "formats/safetensors.h"

#include "core/atomic_file.h"
#include "core/text.h"
#include "data/user_block.h"
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

static_assert(std::endian::native == std::endian::little, "values are written as they stand");

constexpr uint64_t length_bytes = 8;  // the header's length stands first

FileDescriptor open_regular_file(const std::string& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    const std::string reason = file ? "not a file" : system_error_text(errno);
    fail_input({.where = path, .what = "cannot be opened", .found = reason, .expected = "a .safetensors file"});
  }
  return file;
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
    const std::string advice = fmt::format("minillm import {} --out RUN makes a run to start from", shell_word(path));
    fail_input({.where = path,
                .what = "is not a safetensors file",
                .found = kind,
                .hint = kind == llmc_model_kind ? advice : ""});
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

WeightFile open_safetensors(const std::string& path) {
  FileDescriptor file = open_regular_file(path);
  const uint64_t file_bytes = file_size(file.get(), path);
  const std::string header = read_header(file.get(), file_bytes, path);
  std::vector<StoredTensor> tensors = parse_safetensors_header(header, length_bytes + header.size(), file_bytes, path);
  return {path, std::move(file), std::move(tensors)};
}

bool ends_with_one_of(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<StoredTensor> read_safetensors_header(const std::string& path) {
  const FileDescriptor file = open_regular_file(path);
  const std::string header = read_header(file.get(), file_size(file.get(), path), path);
  return parse_safetensors_header(header, length_bytes + header.size(), any_file_bytes, path);
}

bool is_buffer(const StoredTensor& tensor) {
  const Shape& shape = tensor.shape;
  const int rank = shape.rank();
  const bool is_square = rank >= 2 && shape[rank - 1] == shape[rank - 2];
  const bool is_mask = tensor.name.ends_with("attn.bias") && is_square;
  const bool is_index = tensor.dtype == "I64" || tensor.dtype == "BOOL";
  return is_mask || is_index ||
         ends_with_one_of(tensor.name, {"attn.masked_bias", "inv_freq", "running_mean", "running_var"});
}

SafetensorsFile::SafetensorsFile(const std::string& path) : WeightFile(open_safetensors(path)) {}

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

void load_into(ParameterStore& store, const std::string& path) {
  load_into(store, SafetensorsFile(path));
}

}  // namespace minillm
