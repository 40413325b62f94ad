#include "core/tensor.h"

#include "core/memory.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace minillm {

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::int32: return "int32";
  }
  return "unknown";
}

size_t size_of(DType dtype) {
  return dtype == DType::float64 ? 8 : 4;
}

double Tensor::at(int64_t i) const {
  check(i >= 0 && i < numel(), "index {} is outside a tensor of shape {}", i, shape);
  return dtype == DType::float64 ? as<double>()[i] : static_cast<double>(as<float>()[i]);
}

void Tensor::set(int64_t i, double value) const {
  check(i >= 0 && i < numel(), "index {} is outside a tensor of shape {}", i, shape);
  if (dtype == DType::float64) {
    as<double>()[i] = value;
  } else {
    as<float>()[i] = static_cast<float>(value);
  }
}

Tensor Tensor::reshape(const Shape& new_shape) const {
  check(new_shape.numel() == numel(), "cannot reshape {} to {}: {} against {} elements", shape, new_shape, numel(),
        new_shape.numel());
  return {data, new_shape, dtype};
}

Tensor Tensor::rows(int64_t first, int64_t count) const {
  check(first >= 0 && count >= 0 && first + count <= shape[0], "rows [{}, {}) are outside a tensor of shape {}", first,
        first + count, shape);
  Tensor view = *this;
  const int64_t row = shape[0] == 0 ? 0 : numel() / shape[0];
  if (data != nullptr) {
    view.data = static_cast<char*>(data) + static_cast<size_t>(first * row) * size_of(dtype);
  }
  view.shape.set(0, count);
  return view;
}

namespace {

void* allocate_zeroed(size_t bytes) {
  void* data = allocate_aligned(bytes);
  std::memset(data, 0, bytes);
  return data;
}

template <class From, class To>
void convert(const From* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<To>(from[i]);
  }
}

}  // namespace

Buffer::Buffer(const Shape& shape, DType dtype)
    : tensor_{allocate_zeroed(static_cast<size_t>(shape.numel()) * size_of(dtype)), shape, dtype} {}

Buffer::~Buffer() {
  std::free(tensor_.data);
}

Buffer::Buffer(Buffer&& other) noexcept : tensor_(std::exchange(other.tensor_, Tensor{})) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  return *this;
}

void fill_zero(const Tensor& tensor) {
  std::memset(tensor.data, 0, tensor.bytes());
}

void copy_values(const Tensor& from, const Tensor& to) {
  check(from.numel() == to.numel(), "cannot copy {} into {}", from.shape, to.shape);
  if (from.dtype == to.dtype) {
    std::memcpy(to.data, from.data, from.bytes());
  } else if (from.dtype == DType::float64) {
    convert(from.as<double>(), to.as<float>(), from.numel());
  } else {
    convert(from.as<float>(), to.as<double>(), from.numel());
  }
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = tensor.at(static_cast<int64_t>(i));
  }
  return numbers;
}

double length_of(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    sum += tensor.at(i) * tensor.at(i);
  }
  return std::sqrt(sum);
}

}  // namespace minillm
