#include "autograd/past.h"

namespace minillm {

size_t Past::bytes() const {
  size_t bytes = 0;
  for (const auto& [path, slots] : buffers_) {
    for (const Buffer& slot : slots) {
      bytes += slot.tensor().bytes();
    }
  }
  return bytes;
}

const Tensor& Past::buffer(std::string_view path, size_t slot, const Shape& shape, DType dtype) {
  auto found = buffers_.find(path);
  if (found == buffers_.end()) {
    found = buffers_.emplace(std::string(path), std::vector<Buffer>()).first;
  }
  std::vector<Buffer>& slots = found->second;
  while (slots.size() <= slot) {
    slots.emplace_back();
  }
  if (!slots[slot].tensor()) {
    slots[slot] = Buffer(shape, dtype);
  }
  const Tensor& tensor = slots[slot].tensor();
  check(tensor.shape == shape && tensor.dtype == dtype, "{} kept {} {} of its past and asks for {} {}", path,
        tensor.dtype, tensor.shape, dtype, shape);
  return tensor;
}

void Past::advance(int64_t count) {
  positions_ += count;
  check(positions_ <= capacity_, "{} positions were read, and there is room for {}", positions_, capacity_);
}

void Past::clear() {
  positions_ = 0;
  for (auto& [path, slots] : buffers_) {
    for (const Buffer& slot : slots) {
      if (slot.tensor()) {
        fill_zero(slot.tensor());
      }
    }
  }
}

}  // namespace minillm
