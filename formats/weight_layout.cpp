#include "formats/weight_layout.h"

namespace minillm {

namespace {

/// Calls copy(place in ours, place in the file) for every element of ours.
template <class Copy>
void walk(const WeightLayout& layout, const Shape& ours, Copy copy) {
  const int64_t rows = ours[0];
  const int64_t columns = ours.rank() > 1 ? ours[1] : 1;
  check(layout.width == 0 || layout.rotary_heads == 0, "a matrix is transposed or has pairs of rows, not both");
  check(layout.width == 0 || layout.first + rows <= layout.width, "rows {} to {} of a width of {}", layout.first,
        layout.first + rows, layout.width);
  const int64_t heads = layout.rotary_heads;
  const int64_t head = heads == 0 ? 0 : rows / heads;
  check(heads == 0 || (head * heads == rows && head % 2 == 0), "{} rows are not {} heads of an even width", rows,
        heads);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t file_row = row;
    if (heads > 0) {
      const int64_t within = row % head;
      const int64_t half = within / (head / 2);
      file_row = row - within + 2 * (within % (head / 2)) + half;
    }
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t in_file =
          layout.width > 0 ? column * layout.width + layout.first + row : file_row * columns + column;
      copy(row * columns + column, in_file);
    }
  }
}

template <class T>
void read_all(const WeightLayout& layout, const Tensor& file, const Tensor& ours) {
  const T* from = file.as<T>();
  T* to = ours.as<T>();
  walk(layout, ours.shape, [&](int64_t here, int64_t there) { to[here] = from[there]; });
}

template <class T>
void write_all(const WeightLayout& layout, const Tensor& ours, const Tensor& file) {
  const T* from = ours.as<T>();
  T* to = file.as<T>();
  walk(layout, ours.shape, [&](int64_t here, int64_t there) { to[there] = from[here]; });
}

}  // namespace

Shape shape_in_file(const WeightLayout& layout, const Shape& ours) {
  if (layout.width == 0) {
    return ours;
  }
  return ours.rank() > 1 ? Shape{ours[1], layout.width} : Shape{layout.width};
}

void from_file_layout(const WeightLayout& layout, const Tensor& file, const Tensor& ours) {
  check(file.shape == shape_in_file(layout, ours.shape), "a matrix of {} has shape {} in a file", ours.shape,
        file.shape);
  ours.dtype == DType::float64 ? read_all<double>(layout, file, ours) : read_all<float>(layout, file, ours);
}

void to_file_layout(const WeightLayout& layout, const Tensor& ours, const Tensor& file) {
  check(file.shape == shape_in_file(layout, ours.shape), "a matrix of {} has shape {} in a file", ours.shape,
        file.shape);
  ours.dtype == DType::float64 ? write_all<double>(layout, ours, file) : write_all<float>(layout, ours, file);
}

}  // namespace minillm
