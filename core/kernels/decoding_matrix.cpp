#include "core/kernels/decoding_matrix.h"

namespace minillm::kernels {

namespace {

constexpr int64_t few_rows = 16;  // for which a product is that of each, one after the other

}  // namespace

DecodingMatrix::Matrix DecodingMatrix::make(DecodingType type, const float* values, int64_t rows, int64_t columns) {
  switch (type) {
    case DecodingType::float32: break;
    case DecodingType::bf16: return PanelMatrix<uint16_t>(values, rows, columns);
    case DecodingType::int8: return Int8Matrix(values, rows, columns);
  }
  return PanelMatrix<float>(values, rows, columns);
}

DecodingMatrix::DecodingMatrix(DecodingType type, const float* values, int64_t rows, int64_t columns)
    : rows_(rows), columns_(columns), matrix_(make(type, values, rows, columns)) {}

size_t DecodingMatrix::bytes() const {
  return std::visit([](const auto& matrix) { return matrix.bytes(); }, matrix_);
}

bool DecodingMatrix::is_for(int64_t count) const {
  return count <= few_rows || std::holds_alternative<Int8Matrix>(matrix_);
}

void DecodingMatrix::multiply(const float* x, int64_t count, float* y, bool add) const {
  std::visit([=](const auto& matrix) { matrix.multiply(x, count, y, add); }, matrix_);
}

void DecodingMatrix::expand(float* values) const {
  std::visit([=](const auto& matrix) { matrix.expand(values); }, matrix_);
}

}  // namespace minillm::kernels
