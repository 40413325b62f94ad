#include "core/tensor.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

using namespace minillm;

TEST_CASE("a buffer is zeroed, aligned to 64 bytes and moves without copying") {
  Buffer first({3, 5}, DType::float32);
  const Tensor view = first.tensor();
  CHECK(reinterpret_cast<uintptr_t>(view.data) % 64 == 0);
  for (int64_t i = 0; i < view.numel(); ++i) {
    CHECK(view.at(i) == 0);
  }
  Buffer second = std::move(first);
  CHECK(second.tensor().data == view.data);
  CHECK_FALSE(static_cast<bool>(first.tensor()));
  Buffer empty({0}, DType::float64);
  CHECK(static_cast<bool>(empty.tensor()));
}

TEST_CASE("tensors are views: rows and reshape share storage") {
  Buffer buffer({4, 3}, DType::float64);
  double* values = buffer.tensor().as<double>();
  for (int i = 0; i < 12; ++i) {
    values[i] = i;
  }
  const Tensor rows = buffer.tensor().rows(1, 2);
  CHECK(rows.shape == Shape{2, 3});
  CHECK(rows.at(0) == 3);
  CHECK(rows.at(5) == 8);
  const Tensor flat = rows.reshape({6});
  flat.as<double>()[0] = -1;
  CHECK(buffer.tensor().at(3) == -1);
}

TEST_CASE("wrong views and types are errors") {
  Buffer buffer({4, 3}, DType::float32);
  CHECK_THROWS_AS(buffer.tensor().rows(3, 2), Error);
  CHECK_THROWS_AS(buffer.tensor().reshape({5}), Error);
  CHECK_THROWS_AS(buffer.tensor().as<double>(), Error);
  CHECK_THROWS_AS(buffer.tensor().at(12), Error);
}

TEST_CASE("copy_values converts between float and double") {
  Buffer doubles({2}, DType::float64);
  Buffer floats({2}, DType::float32);
  doubles.tensor().as<double>()[0] = 0.1;
  doubles.tensor().as<double>()[1] = -3;
  copy_values(doubles.tensor(), floats.tensor());
  CHECK(floats.tensor().as<float>()[0] == 0.1F);
  copy_values(floats.tensor(), doubles.tensor());
  CHECK(doubles.tensor().as<double>()[0] == static_cast<double>(0.1F));
  CHECK(doubles.tensor().as<double>()[1] == -3);
  Buffer three({3}, DType::float32);
  CHECK_THROWS_AS(copy_values(three.tensor(), floats.tensor()), Error);
}
