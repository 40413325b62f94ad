#pragma once
// Tensor: a view of contiguous row-major values. Buffer: the RAII owner for values outside a tape or a parameter store.

#include "core/error.h"
#include "core/shape.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

enum class DType : uint8_t { float32, float64, int32 };

std::string_view to_string(DType dtype);
size_t size_of(DType dtype);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::float32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::float64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::int32;
}

}  // namespace minillm

template <>
struct fmt::formatter<minillm::DType> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(minillm::DType dtype, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(minillm::to_string(dtype), context);
  }
};

namespace minillm {

/// Pointer, shape, dtype. Copying copies the view, never the values; storage belongs to a tape's arena, a parameter
/// store or a Buffer. A default-made Tensor is empty: `if (tensor)` is false.
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::float32;

  explicit operator bool() const { return data != nullptr; }

  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }

  /// The values as T*; throws an Error when the tensor holds another type.
  template <class T>
  T* as() const {
    check(dtype == dtype_of<T>(), "tensor {} holds {}, asked for {}", shape, dtype, dtype_of<T>());
    return static_cast<T*>(data);
  }

  /// Value i of a floating tensor, in double. For tests, printing and scalars; kernels use as<T>().
  double at(int64_t i) const;
  /// Stores value i, rounded to the tensor's type.
  void set(int64_t i, double value) const;

  /// The same values under another shape with the same number of elements.
  Tensor reshape(const Shape& new_shape) const;

  /// Rows [first, first + count) along axis 0.
  Tensor rows(int64_t first, int64_t count) const;
};

/// Owns zero-initialised values, aligned to 64 bytes. Moves, does not copy.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Shape& shape, DType dtype);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

void fill_zero(const Tensor& tensor);

/// Copies values between tensors of the same number of elements, converting between float and double.
void copy_values(const Tensor& from, const Tensor& to);

/// All values, row-major, in double.
std::vector<double> numbers_of(const Tensor& tensor);

/// sqrt(sum of squares) of all values, in double; to look at.
double length_of(const Tensor& tensor);

}  // namespace minillm
