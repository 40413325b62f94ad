// The llama2.c model that minillm writes: version 0, which run.c reads.

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/architecture.h"
#include "formats/llama2c.h"
#include "formats/sentencepiece_model.h"

#include <array>
#include <cmath>
#include <filesystem>

namespace minillm {

namespace {

Llama2cSizes sizes_of(const ModelConfig& config) {
  return {.dim = config.d_model,
          .hidden_dim = config.d_ff,
          .n_layers = config.n_layers,
          .n_heads = config.n_heads,
          .n_kv_heads = config.n_kv_heads,
          .vocab_size = config.vocab_size,
          .seq_len = config.max_seq_len,
          .is_tied = config.tie_embeddings};
}

/// run.c knows the ids of special pieces and of bytes by heart.
std::vector<std::string> tokenizer_obstacles(const Tokenizer& tokenizer) {
  if (tokenizer.tokenizer_kind() == TokenizerKind::byte_bpe) {
    return {"the tokenizer is byte-level BPE, which joins by a list of pairs; tokenizer.bin has scores of pieces"};
  }
  std::vector<std::string> found;
  const auto at = [&](const char* what, int64_t id, int64_t expected) {
    if (id != expected) {
      found.push_back(fmt::format("the tokenizer's {} has id {}, not {}", what, id, expected));
    }
  };
  at("<unk>", tokenizer.unk_id(), 0);
  at("<s>", tokenizer.bos_id(), 1);
  at("</s>", tokenizer.eos_id(), 2);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.kind(id) == PieceKind::byte && tokenizer.piece(id) == byte_piece_name(0)) {
      at("first byte", id, 3);
    }
  }
  return found;
}

std::vector<std::string> llama2c_obstacles(const ModelToExport& source) {
  const ModelConfig& config = source.model.config();
  ModelConfig fixed = as_llama_kind(config);
  fixed.rope_theta = llama2c_theta;
  fixed.bias = false;
  fixed.qk_norm = false;
  fixed.head_dim = config.d_model / config.n_heads;
  std::vector<std::string> found = differences(config, fixed);
  if (source.tokenizer != nullptr) {
    const std::vector<std::string> more = tokenizer_obstacles(*source.tokenizer);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

/// The two tables of angles, [seq_len, head/2] each, that older programs of llama2.c read and run.c skips.
std::vector<float> angle_tables(const ModelConfig& config) {
  std::vector<float> values;
  for (const bool is_sine : {false, true}) {
    for (int64_t position = 0; position < config.max_seq_len; ++position) {
      for (int64_t pair = 0; pair < config.head_dim / 2; ++pair) {
        const double share = 2 * static_cast<double>(pair) / static_cast<double>(config.head_dim);
        const double angle = static_cast<double>(position) * std::pow(llama2c_theta, -share);
        values.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return values;
}

void write_model(const Transformer& model, const std::string& path) {
  const ModelConfig& config = model.config();
  const Llama2cSizes sizes = sizes_of(config);
  const WeightsByName weights(model);
  const int64_t signed_vocabulary = sizes.is_tied ? sizes.vocab_size : -sizes.vocab_size;
  const std::array<int64_t, 7> numbers = {sizes.dim,        sizes.hidden_dim,  sizes.n_layers, sizes.n_heads,
                                          sizes.n_kv_heads, signed_vocabulary, sizes.seq_len};
  AtomicFile file(path);
  for (const int64_t number : numbers) {
    const int32_t narrow = static_cast<int32_t>(number);
    file.write(&narrow, sizeof narrow);
  }
  for (const Llama2cPart& part : llama2c_parts(sizes, 0)) {
    for (int64_t layer = 0; layer < (part.of_layers ? sizes.n_layers : 1); ++layer) {
      const std::string name =
          part.of_layers ? fmt::format("model.layers.{}.{}", layer, part.name) : std::string(part.name);
      const WeightLayout layout = {.rotary_heads = part.rotary_heads};
      const std::vector<float> values = name.empty() ? angle_tables(config) : weights.values(name, layout);
      file.write(values.data(), values.size() * sizeof(float));
    }
  }
  file.commit();
}

std::string write_llama2c(const ModelToExport& source, const std::string& path) {
  const std::filesystem::path folder = path;
  write_model(source.model, (folder / std::string(llama2c_model_name)).string());
  if (source.tokenizer == nullptr) {
    return fmt::format("{}, which run.c needs: the run has no tokenizer", llama2c_tokenizer_name);
  }
  write_llama2c_tokenizer(*source.tokenizer, source.model.config().vocab_size,
                          (folder / std::string(llama2c_tokenizer_name)).string());
  return "";
}

}  // namespace

ExportFormat llama2c_export() {
  return {.name = "llama2c",
          .is_folder = true,
          .fixed_eps = llama2c_eps,
          .all_weight_types = false,
          .obstacles = llama2c_obstacles,
          .write = write_llama2c};
}

}  // namespace minillm
