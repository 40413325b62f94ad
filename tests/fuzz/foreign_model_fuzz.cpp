// Whatever `import` takes as one file: GGUF, llama2.c's versions, llm.c's checkpoints, told by their first bytes. Every
// weight is read into the model, as an import does.

#include "data/tokenizer.h"
#include "formats/foreign_model.h"
#include "nn/transformer.h"
#include "tests/fuzz/input_file.h"

using namespace minillm;

namespace {

constexpr int64_t most_parameters = 1 << 20;  // of a model worth filling here: a header alone cannot ask for more

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile input(data, size);
  return fuzz::read_or_refuse([&] {
    ForeignModel file = open_foreign_model(input.path());
    derive(file.config, 0, 0);
    Transformer model(file.config);
    if (model.parameters().count() <= most_parameters) {
      model.parameters().allocate(DType::float32, false);
      load_into(model.parameters(), file.weights);
    }
    if (!file.tokenizer.empty()) {
      load_tokenizer(file.tokenizer, "tokenizer")->encode("a b");
    }
  });
}
