// A tokenizer as a data file or a checkpoint holds it: a SentencePiece model, byte-level BPE's tokenizer.json, a table
// of words. What is read must give back any text.

#include "data/tokenizer.h"
#include "tests/fuzz/input_file.h"

#include <memory>

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::read_or_refuse([&] {
    const std::unique_ptr<Tokenizer> tokenizer =
        load_tokenizer({reinterpret_cast<const char*>(data), size}, "tokenizer");
    const std::string text = "a b\n\xe5\xa5\xbd \xff";
    const std::vector<int32_t> ids = tokenizer->encode(text);
    if (tokenizer->tokenizer_kind() != TokenizerKind::words && tokenizer->decode(ids) != text) {
      __builtin_trap();
    }
  });
}
