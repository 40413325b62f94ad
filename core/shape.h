#pragma once
// The extents of a tensor, outermost first: [B, T, d].

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace minillm {

/// At most max_rank extents, stored in place (a Shape never allocates). Rank 0 is a scalar.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t numel() const;

  /// The extent of an axis; negative axes count from the end. Throws when out of range.
  int64_t operator[](int axis) const;

  /// Axis in [0, rank); throws an Error naming the shape otherwise.
  int normalize_axis(int axis) const;

  void push_back(int64_t extent);
  void set(int axis, int64_t extent);

  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }

  bool operator==(const Shape& other) const;

 private:
  int rank_ = 0;
  std::array<int64_t, max_rank> extents_{};
};

/// Some axes of a shape, in some order; negative ones count from the end. Stored in place, as a Shape is.
class Axes {
 public:
  /// Throws an Error for more than Shape::max_rank.
  Axes(std::initializer_list<int> axes) : Axes(std::span<const int>(axes.begin(), axes.size())) {}
  explicit Axes(std::span<const int> axes);

  int size() const { return size_; }
  int operator[](int i) const { return axes_[static_cast<size_t>(i)]; }
  const int* begin() const { return axes_.data(); }
  const int* end() const { return axes_.data() + size_; }

 private:
  int size_ = 0;
  std::array<int, Shape::max_rank> axes_{};
};

/// Whether two shapes fit under right-aligned broadcasting: extents are equal or one of them is 1.
bool can_broadcast(const Shape& a, const Shape& b);

/// Right-aligned broadcasting (NumPy's rule); throws an Error with both shapes when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);

/// "[4, 256, 2048]"
std::string to_string(const Shape& shape);

}  // namespace minillm

/// A shape as to_string writes it. Arguments of `check` are then formatted only when it fails: the checks of every op
/// take nothing from the heap.
template <>
struct fmt::formatter<minillm::Shape> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(const minillm::Shape& shape, fmt::format_context& context) const;
};
