// Safetensors files: header and every tensor's values.

#include "formats/safetensors.h"
#include "tests/fuzz/input_file.h"

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile input(data, size);
  return fuzz::read_or_refuse([&] {
    const SafetensorsFile file(input.path());
    for (const StoredTensor& stored : file.tensors()) {
      if (is_readable(stored)) {
        const Buffer values(stored.shape, DType::float32);
        file.read(stored, values.tensor());
      }
    }
  });
}
