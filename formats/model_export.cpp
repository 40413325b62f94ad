#include "formats/model_export.h"

#include "core/error.h"
#include "core/text.h"
#include "formats/gguf.h"
#include "formats/huggingface.h"
#include "formats/llama2c.h"

#include <algorithm>

namespace minillm {

namespace {

const ExportFormat export_formats[] = {
    huggingface_export(),
    llama2c_export(),
    gguf_export(),
};

}  // namespace

std::vector<std::string> export_format_names() {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats) {
    names.emplace_back(format.name);
  }
  return names;
}

const ExportFormat& export_format(const std::string& name) {
  for (const ExportFormat& format : export_formats) {
    if (format.name == name) {
      return format;
    }
  }
  const std::vector<std::string> names = export_format_names();
  fail_input({.where = "--format",
              .what = "unknown format " + printable(name),
              .expected = join(names, " or "),
              .hint = did_you_mean(name, names)});
}

WeightsByName::WeightsByName(const Transformer& model) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    tensors_.emplace(tensor.name, tensor.value);
  }
}

const Tensor& WeightsByName::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  check(found != tensors_.end(), "the model has no weight {}", name);
  return found->second;
}

std::vector<float> WeightsByName::values(std::string_view name, const WeightLayout& layout) const {
  const Buffer in_file(shape_in_file(layout, find(name).shape), DType::float32);
  write_columns(name, layout, in_file.tensor());
  const float* values = in_file.tensor().as<float>();
  return {values, values + in_file.tensor().numel()};
}

void WeightsByName::write_columns(std::string_view name, const WeightLayout& layout, const Tensor& in_file) const {
  const Tensor& weight = find(name);
  const Buffer ours(weight.shape, DType::float32);
  copy_values(weight, ours.tensor());
  to_file_layout(layout, ours.tensor(), in_file);
}

}  // namespace minillm
