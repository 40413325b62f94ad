#include "formats/weight_file.h"

#include "core/error.h"
#include "core/text.h"
#include "formats/half.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace minillm {

namespace {

static_assert(std::endian::native == std::endian::little, "values of files are copied as they stand");

constexpr size_t chunk_bytes = size_t{1} << 20;  // values are converted through a buffer of this size

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

}  // namespace

bool is_floating_dtype(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

WeightFile::WeightFile(std::string path, FileDescriptor descriptor, std::vector<StoredTensor> tensors)
    : path_(std::move(path)), descriptor_(std::move(descriptor)), tensors_(std::move(tensors)) {
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
    read_exactly(descriptor_.get(), bytes.data(), count * element_bytes, stored.begin + first * element_bytes, path_);
    if (to.dtype == DType::float64) {
      convert_values(stored.dtype, bytes.data(), to.as<double>() + first, count);
    } else {
      convert_values(stored.dtype, bytes.data(), to.as<float>() + first, count);
    }
  }
}

}  // namespace minillm
