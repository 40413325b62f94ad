#include "core/kernels/broadcast.h"

#include "core/kernels/reduce.h"

namespace minillm::kernels {

namespace {

/// Elements between neighbours along each axis of `shape`, right-aligned under `rank` axes; 0 where it is stretched.
std::array<int64_t, Shape::max_rank> steps_under(const Shape& shape, int rank) {
  std::array<int64_t, Shape::max_rank> steps{};
  int64_t step = 1;
  for (int from_end = 1; from_end <= shape.rank(); ++from_end) {
    const int64_t extent = shape[-from_end];
    steps[static_cast<size_t>(rank - from_end)] = extent == 1 ? 0 : step;
    step *= extent;
  }
  return steps;
}

}  // namespace

Broadcast merge_axes(const Shape& a, const Shape& b) {
  const Shape common = broadcast_shapes(a, b);
  const auto a_steps = steps_under(a, common.rank());
  const auto b_steps = steps_under(b, common.rank());
  Broadcast merged;
  for (int axis = 0; axis < common.rank(); ++axis) {
    const size_t i = static_cast<size_t>(axis);
    const int64_t extent = common[axis];
    if (extent == 1) {
      continue;
    }
    const size_t outer = static_cast<size_t>(merged.rank - 1);
    if (merged.rank > 0 && merged.a_step[outer] == extent * a_steps[i] && merged.b_step[outer] == extent * b_steps[i]) {
      merged.extent[outer] *= extent;
      merged.a_step[outer] = a_steps[i];
      merged.b_step[outer] = b_steps[i];
      continue;
    }
    const size_t next = static_cast<size_t>(merged.rank);
    merged.extent[next] = extent;
    merged.a_step[next] = a_steps[i];
    merged.b_step[next] = b_steps[i];
    ++merged.rank;
  }
  if (merged.rank == 0) {
    merged.rank = 1;
    merged.extent[0] = 1;
    merged.a_step[0] = 1;
    merged.b_step[0] = 1;
  }
  return merged;
}

int64_t Broadcast::rows() const {
  int64_t product = 1;
  for (int axis = 0; axis + 1 < rank; ++axis) {
    product *= extent[static_cast<size_t>(axis)];
  }
  return product;
}

int64_t Broadcast::offset(int64_t row, const std::array<int64_t, Shape::max_rank>& step) const {
  int64_t place = 0;
  for (int axis = rank - 2; axis >= 0; --axis) {
    const size_t i = static_cast<size_t>(axis);
    place += row % extent[i] * step[i];
    row /= extent[i];
  }
  return place;
}

namespace {

/// Adds the axes [axis, rank) in order on the calling thread.
template <class T>
void add_axes(const Broadcast& axes, int axis, const T* from, T* to) {
  const size_t i = static_cast<size_t>(axis);
  const int64_t count = axes.extent[i];
  if (axis + 1 < axes.rank) {
    for (int64_t k = 0; k < count; ++k) {
      add_axes(axes, axis + 1, from + k * axes.a_step[i], to + k * axes.b_step[i]);
    }
    return;
  }
  if (axes.b_step[i] == 0) {
    *to += static_cast<T>(sum_values(from, count));
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    to[k] += from[k];
  }
}

}  // namespace

template <class T>
void add_reduced(const Broadcast& axes, const T* from, T* to) {
  const bool outermost_is_summed = axes.b_step[0] == 0;
  if (outermost_is_summed && axes.rank == 2) {
    add_rows_to_one(from, to, axes.extent[0], axes.extent[1]);
    return;
  }
  if (outermost_is_summed) {
    add_axes(axes, 0, from, to);
    return;
  }
  // Tasks share the outermost axis, which is kept: no two of them write to one place.
  const int64_t elements_per_step = axes.a_step[0];
  const int64_t chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, elements_per_step));
  parallel_for(axes.extent[0], chunk, [&axes, from, to](int64_t begin, int64_t end) {
    Broadcast part = axes;
    part.extent[0] = end - begin;
    add_axes(part, 0, from + begin * axes.a_step[0], to + begin * axes.b_step[0]);
  });
}

template void add_reduced(const Broadcast&, const float*, float*);
template void add_reduced(const Broadcast&, const double*, double*);

}  // namespace minillm::kernels
