#pragma once
// Inside data/h5_*.cpp only: RAII for HDF5 identifiers and the table of element types.

#include "core/error.h"
#include "data/h5_file.h"

#include <hdf5.h>

#include <utility>

namespace minillm::h5 {

/// An HDF5 identifier and the call that gives it back.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

  /// Who takes it gives it back.
  hid_t release() { return std::exchange(id_, -1); }

  herr_t reset() { return id_ >= 0 ? close_(std::exchange(id_, -1)) : 0; }

 private:
  hid_t id_;
  Close close_;
};

/// libhdf5 prints its stack of errors unless told not to; the switch is per thread, so every entry sets it.
inline void silence() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

/// The type on disk is little-endian whatever the machine; in memory it is the machine's own.
hid_t disk_type(H5Type type);
hid_t memory_type(H5Type type);

/// What a stored type is, by class, size, sign and byte order.
H5Type type_of(hid_t stored);

template <class T>
constexpr H5Type type_for();
template <>
constexpr H5Type type_for<float>() {
  return H5Type::f32;
}
template <>
constexpr H5Type type_for<double>() {
  return H5Type::f64;
}
template <>
constexpr H5Type type_for<int32_t>() {
  return H5Type::i32;
}
template <>
constexpr H5Type type_for<int64_t>() {
  return H5Type::i64;
}
template <>
constexpr H5Type type_for<uint8_t>() {
  return H5Type::u8;
}
template <>
constexpr H5Type type_for<uint16_t>() {
  return H5Type::u16;
}
template <>
constexpr H5Type type_for<uint32_t>() {
  return H5Type::u32;
}

inline H5Type type_for(DType dtype) {
  switch (dtype) {
    case DType::float32: return H5Type::f32;
    case DType::float64: return H5Type::f64;
    case DType::int32: return H5Type::i32;
  }
  return H5Type::other;
}

/// One dimension per extent; a scalar for rank 0.
Handle make_space(const Shape& shape);

}  // namespace minillm::h5
