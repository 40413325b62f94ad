// load_into of formats/weight_file.h: a file's tensors against a model's, name by name.

#include "core/log.h"
#include "core/text.h"
#include "formats/weight_file.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace minillm {

namespace {

constexpr std::string_view embedding_name = "model.embed_tokens.weight";
constexpr std::string_view head_name = "lm_head.weight";

/// How a file and a model differ.
struct Differences {
  std::vector<std::string> missing;     ///< the model's, not in the file
  std::vector<std::string> unexpected;  ///< the file's, not in the model
  std::vector<std::string> differing;   ///< another shape, or a dtype that cannot be read
  bool none() const { return missing.empty() && unexpected.empty() && differing.empty(); }
};

Differences compare(const std::vector<NamedTensor>& wanted, const WeightFile& file) {
  Differences differences;
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : wanted) {
    names.insert(tensor.name);
    const StoredTensor* stored = file.find(tensor.name);
    if (stored == nullptr) {
      differences.missing.emplace_back(tensor.name);
    } else if (!(stored->shape == tensor.value.shape)) {
      differences.differing.push_back(fmt::format("{} {} (the model's is {})", tensor.name, to_string(stored->shape),
                                                  to_string(tensor.value.shape)));
    } else if (!is_readable(*stored)) {
      differences.differing.push_back(fmt::format("{} of dtype {}", tensor.name, stored->dtype));
    }
  }
  for (const StoredTensor& stored : file.tensors()) {
    if (names.count(stored.name) == 0) {
      differences.unexpected.push_back(printable(stored.name));
    }
  }
  return differences;
}

/// "3 missing in the file: a, b, c"
void append_list(std::string& text, const char* heading, const std::vector<std::string>& names) {
  if (!names.empty()) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", names.size(), heading, join(names));
  }
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void fail_different(const std::string& path, const Differences& differences) {
  std::string found;
  append_list(found, "missing in the file", differences.missing);
  append_list(found, "not in the model", differences.unexpected);
  append_list(found, "different", differences.differing);
  std::string hint = "compare the [model] section with the config these weights were trained with";
  if (contains(differences.unexpected, head_name)) {
    hint = "lm_head.weight differs from model.embed_tokens.weight: set model.tie_embeddings = false";
  } else if (contains(differences.missing, head_name)) {
    hint = "the file has no head of its own: set model.tie_embeddings = true";
  }
  fail_input({.where = path, .what = "the weights do not fit the model", .found = found, .hint = hint});
}

/// Whether a file's head repeats its embedding: the same range, or the same values.
bool head_repeats_embedding(const WeightFile& file) {
  const StoredTensor* head = file.find(head_name);
  const StoredTensor* embedding = file.find(embedding_name);
  if (head == nullptr || embedding == nullptr || !(head->shape == embedding->shape) || !is_readable(*head) ||
      !is_readable(*embedding)) {
    return false;
  }
  if (head->begin == embedding->begin && head->end == embedding->end && head->dtype == embedding->dtype) {
    return true;
  }
  const Buffer head_values(head->shape, DType::float64);
  const Buffer embedding_values(embedding->shape, DType::float64);
  file.read(*head, head_values.tensor());
  file.read(*embedding, embedding_values.tensor());
  return std::memcmp(head_values.tensor().data, embedding_values.tensor().data, head_values.tensor().bytes()) == 0;
}

}  // namespace

void load_into(ParameterStore& store, const WeightFile& file) {
  check(store.allocated(), "{}: the parameter store has no memory yet", file.path());
  const std::vector<NamedTensor> wanted = store.named_tensors();
  Differences differences = compare(wanted, file);
  const auto head = std::find(differences.unexpected.begin(), differences.unexpected.end(), head_name);
  if (head != differences.unexpected.end() && head_repeats_embedding(file)) {
    differences.unexpected.erase(head);
    log_info("{}: lm_head.weight equals model.embed_tokens.weight and is not needed: the model ties them", file.path());
  }
  if (!differences.none()) {
    fail_different(file.path(), differences);
  }
  for (const NamedTensor& tensor : wanted) {
    file.read(*file.find(tensor.name), tensor.value);
  }
}

}  // namespace minillm
