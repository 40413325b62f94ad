#include "formats/weight_file.h"

#include "core/error.h"
#include "core/half.h"
#include "core/text.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace minillm {

namespace {

static_assert(std::endian::native == std::endian::little, "values of files are copied as they stand");

constexpr size_t chunk_values = size_t{1} << 17;  // so many are converted at a time

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

/// GGUF's blocks of 32 values: a float16 scale, then signed bytes.
constexpr size_t block_values = 32;
constexpr size_t block_bytes = 2 + block_values;

template <class To>
void convert_blocks(const char* bytes, To* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const char* block = bytes + i / block_values * block_bytes;
    uint16_t scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    to[i] = static_cast<To>(half_to_float(scale) *
                            static_cast<float>(static_cast<signed char>(block[sizeof scale + i % block_values])));
  }
}

/// `scales` holds those of the groups from the first value on.
template <class To>
void convert_groups(const char* bytes, const float* scales, int64_t group, To* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(static_cast<signed char>(bytes[i]));
    to[i] = static_cast<To>(value * scales[i / static_cast<size_t>(group)]);
  }
}

/// Bytes of `count` values, which are whole blocks where the type has blocks.
uint64_t bytes_of(std::string_view dtype, uint64_t count) {
  if (dtype == "Q8_0") {
    return count / block_values * block_bytes;
  }
  return count * (dtype == "F64" ? 8 : dtype == "F32" ? 4 : dtype == "I8" ? 1 : 2);
}

template <class To>
void convert_stored(const StoredTensor& stored, const char* bytes, const float* scales, To* to, size_t count) {
  if (stored.dtype == "Q8_0") {
    convert_blocks(bytes, to, count);
  } else if (stored.dtype == "I8") {
    convert_groups(bytes, scales, stored.group, to, count);
  } else {
    convert_values(stored.dtype, bytes, to, count);
  }
}

}  // namespace

bool is_floating_dtype(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

bool is_readable(const StoredTensor& stored) {
  const uint64_t values = static_cast<uint64_t>(shape_in_file(stored.layout, stored.shape).numel());
  return is_floating_dtype(stored.dtype) || (stored.dtype == "Q8_0" && values % block_values == 0) ||
         (stored.dtype == "I8" && stored.group > 0 && values % static_cast<uint64_t>(stored.group) == 0);
}

WeightFile::WeightFile(std::string path, FileDescriptor descriptor, std::vector<StoredTensor> tensors)
    : WeightFile(path, std::vector<WeightPart>(), std::move(tensors)) {
  parts_.push_back({std::move(path), std::move(descriptor)});
}

WeightFile::WeightFile(std::string path, std::vector<WeightPart> parts, std::vector<StoredTensor> tensors)
    : path_(std::move(path)), parts_(std::move(parts)), tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const bool is_new = index_.emplace(tensors_[i].name, i).second;
    check(is_new, "{}: two tensors are named {}", path_, printable(tensors_[i].name));
  }
}

const StoredTensor* WeightFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void WeightFile::read(const StoredTensor& stored, const Tensor& to) const {
  if (!is_readable(stored)) {
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
  if (stored.layout.is_ours()) {
    read_as_stored(stored, to);
    return;
  }
  const Buffer in_file(shape_in_file(stored.layout, stored.shape), to.dtype);
  read_as_stored(stored, in_file.tensor());
  from_file_layout(stored.layout, in_file.tensor(), to.reshape(stored.shape));
}

void WeightFile::read_as_stored(const StoredTensor& stored, const Tensor& to) const {
  const size_t total = static_cast<size_t>(to.numel());
  const uint64_t scale_bytes = stored.group > 0 ? total / static_cast<uint64_t>(stored.group) * sizeof(float) : 0;
  check(stored.end - stored.begin == bytes_of(stored.dtype, total) + scale_bytes,
        "{}: tensor {} takes {} bytes for {} values of {}", path_, printable(stored.name), stored.end - stored.begin,
        total, stored.dtype);
  const auto& [path, descriptor] = parts_.at(stored.part);
  std::vector<float> scales(scale_bytes / sizeof(float));
  read_exactly(descriptor.get(), scales.data(), scale_bytes, stored.end - scale_bytes, path);
  // Whole blocks and groups: a chunk begins where a scale does.
  const size_t step = stored.group > 0 ? static_cast<size_t>(stored.group) : block_values;
  const size_t chunk = (chunk_values + step - 1) / step * step;
  std::vector<char> bytes(bytes_of(stored.dtype, std::min(chunk, total)));
  for (size_t first = 0; first < total; first += chunk) {
    const size_t count = std::min(chunk, total - first);
    read_exactly(descriptor.get(), bytes.data(), bytes_of(stored.dtype, count),
                 stored.begin + bytes_of(stored.dtype, first), path);
    const float* first_scale = scales.data() + (stored.group > 0 ? first / step : 0);
    if (to.dtype == DType::float64) {
      convert_stored(stored, bytes.data(), first_scale, to.as<double>() + first, count);
    } else {
      convert_stored(stored, bytes.data(), first_scale, to.as<float>() + first, count);
    }
  }
}

}  // namespace minillm
