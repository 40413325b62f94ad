#include "formats/weight_layout.h"

#include "tests/support/message_of.h"

#include <doctest/doctest.h>

#include <vector>

using namespace minillm;
using namespace minillm::test;

namespace {

Buffer counted(const Shape& shape, DType dtype = DType::float32) {
  Buffer buffer(shape, dtype);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    buffer.tensor().set(i, static_cast<double>(i));
  }
  return buffer;
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> found;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    found.push_back(tensor.at(i));
  }
  return found;
}

}  // namespace

TEST_CASE("rotary pairs: rows j and j + head/2 of a head are rows 2j and 2j + 1 in the file") {
  const WeightLayout layout = {.rotary_heads = 2};
  const Shape shape = {12, 1};  // heads of 6
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Buffer ours = counted(shape, dtype);
    const Buffer file(shape, dtype);
    to_file_layout(layout, ours.tensor(), file.tensor());
    CHECK(values(file.tensor()) == std::vector<double>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11});
    const Buffer back(shape, dtype);
    from_file_layout(layout, file.tensor(), back.tensor());
    CHECK(values(back.tensor()) == values(ours.tensor()));
  }
}

TEST_CASE("transposed: rows are columns first to first + rows of the file's matrix, and nothing else is touched") {
  const WeightLayout layout = {.width = 5, .first = 2};
  const Buffer ours = counted({2, 3});
  CHECK(shape_in_file(layout, {2, 3}) == Shape{3, 5});
  const Buffer file({3, 5}, DType::float32);
  to_file_layout(layout, ours.tensor(), file.tensor());
  CHECK(values(file.tensor()) == std::vector<double>{0, 0, 0, 3, 0, 0, 0, 1, 4, 0, 0, 0, 2, 5, 0});
  const Buffer back({2, 3}, DType::float32);
  from_file_layout(layout, file.tensor(), back.tensor());
  CHECK(values(back.tensor()) == values(ours.tensor()));
}

TEST_CASE("a vector that is a part of another") {
  const WeightLayout layout = {.width = 4, .first = 1};
  CHECK(shape_in_file(layout, {2}) == Shape{4});
  const Buffer file = counted({4});
  const Buffer ours({2}, DType::float32);
  from_file_layout(layout, file.tensor(), ours.tensor());
  CHECK(values(ours.tensor()) == std::vector<double>{1, 2});
}

TEST_CASE("layouts that do not fit are refused") {
  const Buffer file({4, 1}, DType::float32);
  const Buffer ours({4, 1}, DType::float32);
  CHECK_CONTAINS(message_of([&] { from_file_layout({.rotary_heads = 3}, file.tensor(), ours.tensor()); }),
                 "4 rows are not 3 heads of an even width");
  CHECK_CONTAINS(message_of([&] { from_file_layout({.rotary_heads = 4}, file.tensor(), ours.tensor()); }),
                 "even width");
  CHECK_CONTAINS(message_of([&] { from_file_layout({.width = 5}, file.tensor(), ours.tensor()); }), "has shape");
  const Buffer wide({1, 4}, DType::float32);
  CHECK_CONTAINS(message_of([&] { from_file_layout({.width = 4, .first = 1}, wide.tensor(), ours.tensor()); }),
                 "rows 1 to 5 of a width of 4");
}
