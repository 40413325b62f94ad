// Hugging Face's config.json.

#include "formats/huggingface_config.h"
#include "tests/fuzz/input_file.h"

#include <string_view>

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::read_or_refuse(
      [&] { parse_huggingface_config(std::string_view(reinterpret_cast<const char*>(data), size), "config.json"); });
}
