#pragma once
// Weights of a model set by name, where a test needs certain ones.

#include "nn/transformer.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace minillm::test {

/// Every element of the weights whose name ends so becomes value(place in its tensor, what it was).
inline void set_weights(const Transformer& model, std::string_view ending,
                        const std::function<double(int64_t i, double was)>& value) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (tensor.name.ends_with(ending)) {
      for (int64_t i = 0; i < tensor.value.numel(); ++i) {
        tensor.value.set(i, value(i, tensor.value.at(i)));
      }
    }
  }
}

}  // namespace minillm::test
