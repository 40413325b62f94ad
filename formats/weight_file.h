#pragma once
// A file of named weights, whatever its format: where each tensor's values stand, and how they become ours.

#include "autograd/parameter.h"
#include "core/tensor.h"
#include "data/file_descriptor.h"
#include "formats/weight_layout.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// A tensor of a file: where its values stand, row-major and little-endian.
struct StoredTensor {
  std::string name;
  std::string dtype;   ///< safetensors' word: "F32", "BF16", "I64"; of blocks GGUF's: "Q8_0"
  Shape shape;         ///< as ours, whatever the layout
  uint64_t begin = 0;  ///< of its values, from the start of the file
  uint64_t end = 0;
  WeightLayout layout = {};
  int64_t group = 0;  ///< I8: neighbouring values that share a float32 scale; the scales stand behind all values
  size_t part = 0;    ///< which of the files that the weights are spread over
};

/// One of the files that weights are spread over.
struct WeightPart {
  std::string path;
  FileDescriptor descriptor;
};

/// A file open for reading whose tensors are known. A format's reader makes it, after it has checked every range.
class WeightFile {
 public:
  /// Throws when two tensors have one name.
  WeightFile(std::string path, FileDescriptor descriptor, std::vector<StoredTensor> tensors);
  /// The same of several files, which `path` lists.
  WeightFile(std::string path, std::vector<WeightPart> parts, std::vector<StoredTensor> tensors);

  const std::string& path() const { return path_; }
  const std::vector<WeightPart>& parts() const { return parts_; }

  /// In order of their values in a file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// nullptr when there is none of that name.
  const StoredTensor* find(std::string_view name) const;

  /// Reads values into `to` (float32 or float64, same number of elements), in our layout. Types that are not readable
  /// are an error that names them.
  void read(const StoredTensor& stored, const Tensor& to) const;

 private:
  void read_as_stored(const StoredTensor& stored, const Tensor& to) const;

  std::string path_;
  std::vector<WeightPart> parts_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// Whether a tensor's values are plain floating numbers: F16, BF16, F32, F64.
bool is_floating_dtype(std::string_view dtype);

/// Whether `read` can make weights of a tensor: floating numbers, Q8_0 (blocks of a float16 scale and 32 signed bytes),
/// I8 in groups.
bool is_readable(const StoredTensor& stored);

/// Fills every named tensor of an allocated store, once. All names and shapes must match; otherwise one input error
/// lists what is missing in the file, not expected there, or of another shape, and no value of the store has changed. A
/// model with tied embeddings takes a file whose lm_head.weight equals model.embed_tokens.weight, with a notice.
void load_into(ParameterStore& store, const WeightFile& file);

}  // namespace minillm
