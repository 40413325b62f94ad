#pragma once
// safetensors: 8 bytes little-endian header length N, N bytes of JSON {"name": {"dtype", "shape", "data_offsets":
// [begin, end]}, "__metadata__": {...}} (padded with spaces), then the values, row-major, offsets counted from there.

#include "autograd/parameter.h"
#include "core/tensor.h"
#include "formats/weight_file.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// A file open for reading. Opening reads and checks the header alone, in memory bounded by the file's own size; every
/// size in it is taken as a claim: header length, shape products (overflow), ranges (inside the file, as long as shape
/// and dtype say, together covering the data without gaps; two tensors may share one range), names (unique). Errors are
/// input errors that name file and tensor.
class SafetensorsFile : public WeightFile {
 public:
  explicit SafetensorsFile(const std::string& path);
};

/// The tensors that a file's header declares, in order of their values, which may be missing: for counting.
std::vector<StoredTensor> read_safetensors_header(const std::string& path);

/// Whether a tensor was never trained: causal masks, rotary frequencies, running statistics, 64-bit whole
/// numbers. Narrower ones may be packed weights.
bool is_buffer(const StoredTensor& tensor);

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

/// load_into of formats/weight_file.h for a safetensors file (`train --init`).
void load_into(ParameterStore& store, const std::string& path);

}  // namespace minillm
