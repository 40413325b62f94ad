// What a checkpoint holds, in a form that tests compare bit for bit:
//
//   checkpoint_digest FILE.h5...
//
// prints a JSON object a line: the step, a SHA-256 over every weight's name, shape and bytes, the same over both
// moments of the optimizer, and whether all of them are finite. Times and file sizes, which differ from run to run, are
// left out.

#include "core/error.h"
#include "data/h5_file.h"
#include "data/sha256.h"

#include <cmath>
#include <cstdio>
#include <string>

using namespace minillm;

namespace {

bool is_finite(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (!std::isfinite(tensor.at(i))) {
      return false;
    }
  }
  return true;
}

/// Adds every dataset of a group to the hash; false when a value is not finite.
bool add_group(const H5Reader& reader, const std::string& group, Sha256& hash) {
  bool finite = true;
  for (const std::string& name : reader.list(group)) {
    const std::string path = group + "/" + name;
    const DType dtype = reader.type(path) == H5Type::f64 ? DType::float64 : DType::float32;
    const Buffer buffer(reader.shape(path), dtype);
    const Tensor tensor = buffer.tensor();
    reader.read(path, tensor);
    const std::string header = path + to_string(tensor.shape);
    hash.update(header.data(), header.size());
    hash.update(tensor.data, static_cast<size_t>(tensor.numel()) * size_of(dtype));
    finite = is_finite(tensor) && finite;
  }
  return finite;
}

void print_digest(const std::string& path) {
  const H5Reader reader(path, {.name = "minillm-checkpoint", .version = 1, .remedy = ""});
  Sha256 weights;
  Sha256 moments;
  bool finite = add_group(reader, "/weights", weights);
  finite = add_group(reader, "/optimizer/m", moments) && finite;
  finite = add_group(reader, "/optimizer/v", moments) && finite;
  fmt::print("{{\"step\": {}, \"weights\": \"{}\", \"moments\": \"{}\", \"finite\": {}}}\n",
             reader.read<int64_t>("/state/step", 0).front(), weights.hex(), moments.hex(), finite);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) {
      print_digest(argv[i]);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.fault());
  }
  return 0;
}
