#include "core/shape.h"

#include "core/error.h"

#include <algorithm>

namespace minillm {

Shape::Shape(std::initializer_list<int64_t> extents) {
  for (int64_t extent : extents) {
    push_back(extent);
  }
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (int64_t extent : *this) {
    product *= extent;
  }
  return product;
}

int64_t Shape::operator[](int axis) const {
  return extents_[normalize_axis(axis)];
}

int Shape::normalize_axis(int axis) const {
  const int from_front = axis < 0 ? axis + rank_ : axis;
  check(from_front >= 0 && from_front < rank_, "axis {} is out of range for shape {}", axis, *this);
  return from_front;
}

void Shape::push_back(int64_t extent) {
  check(rank_ < max_rank, "a shape has at most {} axes", max_rank);
  check(extent >= 0, "a shape's extents are not negative, found {}", extent);
  extents_[rank_++] = extent;
}

void Shape::set(int axis, int64_t extent) {
  check(extent >= 0, "a shape's extents are not negative, found {}", extent);
  extents_[normalize_axis(axis)] = extent;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

Axes::Axes(std::span<const int> axes) : size_(static_cast<int>(axes.size())) {
  check(axes.size() <= axes_.size(), "a shape has at most {} axes, found {}", axes_.size(), axes.size());
  std::copy(axes.begin(), axes.end(), axes_.begin());
}

bool can_broadcast(const Shape& a, const Shape& b) {
  for (int from_end = 1; from_end <= std::min(a.rank(), b.rank()); ++from_end) {
    const int64_t in_a = a[-from_end];
    const int64_t in_b = b[-from_end];
    if (in_a != in_b && in_a != 1 && in_b != 1) {
      return false;
    }
  }
  return true;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  check(can_broadcast(a, b), "shapes {} and {} do not broadcast", a, b);
  Shape result = a.rank() >= b.rank() ? a : b;
  const int rank = result.rank();
  for (int from_end = 1; from_end <= rank; ++from_end) {
    const int64_t in_a = from_end <= a.rank() ? a[-from_end] : 1;
    const int64_t in_b = from_end <= b.rank() ? b[-from_end] : 1;
    result.set(rank - from_end, in_a == 1 ? in_b : in_a);
  }
  return result;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int64_t extent : shape) {
    if (text.size() > 1) {
      text += ", ";
    }
    text += std::to_string(extent);
  }
  return text + "]";
}

}  // namespace minillm

fmt::format_context::iterator fmt::formatter<minillm::Shape>::format(const minillm::Shape& shape,
                                                                     fmt::format_context& context) const {
  return fmt::formatter<std::string_view>::format(minillm::to_string(shape), context);
}
