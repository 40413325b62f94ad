#pragma once
// safetensors: 8 bytes little-endian header length N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets":
// [begin, end]}, "__metadata__": {...}} (padded with spaces), then the values, row-major, offsets counted from there.

#include "autograd/parameter.h"
#include "core/tensor.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// A tensor of a file: what the header says about it, checked.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< "F32", "BF16", "I64": the file's word
  Shape shape;
  uint64_t begin = 0;  ///< of its values, from the start of the file
  uint64_t end = 0;
};

/// A file open for reading. Opening reads and checks the header alone, in memory bounded by the file's own size; every
/// size in it is taken as a claim: header length, shape products (overflow), ranges (inside the file, as long as shape
/// and dtype say, together covering the data without gaps; two tensors may share one range), names (unique). Errors are
/// input errors that name file and tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }

  /// In order of their values in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  /// nullptr when there is none of that name.
  const StoredTensor* find(std::string_view name) const;

  /// Reads values into `to` (float32 or float64, same number of elements). F16, BF16, F32, F64 are converted; another
  /// dtype is an error that names it.
  void read(const StoredTensor& stored, const Tensor& to) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// Whether `read` can convert this dtype: F16, BF16, F32, F64.
bool is_floating_dtype(std::string_view dtype);

/// A tensor to write; float32 becomes F32, float64 F64.
struct TensorToSave {
  std::string_view name;
  Tensor value;
};

/// Writes a file that appears whole or not at all. `metadata` gets "format": "pt" unless it has a "format": other
/// readers refuse a file without. Names must be unique UTF-8.
void write_safetensors(const std::string& path, std::span<const TensorToSave> tensors,
                       std::map<std::string, std::string> metadata = {});

/// Writes every named tensor of a store: the names of interface and checkpoints, one copy of a tied matrix.
void save_weights(const ParameterStore& store, const std::string& path,
                  std::map<std::string, std::string> metadata = {});

/// Fills an allocated store from a file (`--init`). All names and shapes must match; otherwise one input error lists
/// what is missing in the file, not expected there, or of another shape, and no value of the store has changed. A model
/// with tied embeddings takes a file whose lm_head.weight equals model.embed_tokens.weight, with a notice.
void load_into(ParameterStore& store, const std::string& path);

}  // namespace minillm
