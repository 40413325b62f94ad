#include "data/h5_support.h"

#include <array>

namespace minillm {

std::string_view to_string(H5Type type) {
  switch (type) {
    case H5Type::f32: return "float32";
    case H5Type::f64: return "float64";
    case H5Type::i32: return "int32";
    case H5Type::i64: return "int64";
    case H5Type::u8: return "u8";
    case H5Type::u16: return "u16";
    case H5Type::u32: return "u32";
    case H5Type::other: return "another type";
  }
  return "another type";
}

namespace h5 {

hid_t disk_type(H5Type type) {
  switch (type) {
    case H5Type::f32: return H5T_IEEE_F32LE;
    case H5Type::f64: return H5T_IEEE_F64LE;
    case H5Type::i32: return H5T_STD_I32LE;
    case H5Type::i64: return H5T_STD_I64LE;
    case H5Type::u8: return H5T_STD_U8LE;
    case H5Type::u16: return H5T_STD_U16LE;
    case H5Type::u32: return H5T_STD_U32LE;
    case H5Type::other: break;
  }
  return H5I_INVALID_HID;
}

hid_t memory_type(H5Type type) {
  switch (type) {
    case H5Type::f32: return H5T_NATIVE_FLOAT;
    case H5Type::f64: return H5T_NATIVE_DOUBLE;
    case H5Type::i32: return H5T_NATIVE_INT32;
    case H5Type::i64: return H5T_NATIVE_INT64;
    case H5Type::u8: return H5T_NATIVE_UINT8;
    case H5Type::u16: return H5T_NATIVE_UINT16;
    case H5Type::u32: return H5T_NATIVE_UINT32;
    case H5Type::other: break;
  }
  return H5I_INVALID_HID;
}

H5Type type_of(hid_t stored) {
  for (H5Type type : {H5Type::f32, H5Type::f64, H5Type::i32, H5Type::i64, H5Type::u8, H5Type::u16, H5Type::u32}) {
    if (H5Tequal(stored, disk_type(type)) > 0) {
      return type;
    }
  }
  return H5Type::other;
}

Handle make_space(const Shape& shape) {
  if (shape.rank() == 0) {
    return Handle(H5Screate(H5S_SCALAR), H5Sclose);
  }
  std::array<hsize_t, Shape::max_rank> extents{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents[static_cast<size_t>(axis)] = static_cast<hsize_t>(shape[axis]);
  }
  return Handle(H5Screate_simple(shape.rank(), extents.data(), nullptr), H5Sclose);
}

}  // namespace h5

}  // namespace minillm
