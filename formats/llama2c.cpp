#include "formats/llama2c.h"

#include "core/error.h"
#include "core/text.h"
#include "data/user_block.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

namespace minillm {

namespace {

constexpr uint32_t magic = 0x616b3432;
constexpr size_t long_header = 256;
constexpr size_t size_count = 7;
constexpr size_t short_header = size_count * sizeof(int32_t);
constexpr size_t tied_at = 8 + short_header;  // of the long header
constexpr size_t group_at = tied_at + 1;
constexpr int64_t most_plausible = int64_t{1} << 26;  // four letters of a text are more
constexpr double most_bytes = 1e18;                   // beyond any file

struct Header {
  int version = 0;
  Llama2cSizes sizes;
  int64_t group = 0;  ///< of version 2
  uint64_t bytes = short_header;
};

int32_t int_at(std::string_view bytes, size_t at) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool has_magic(std::string_view bytes) {
  return bytes.size() >= sizeof magic && static_cast<uint32_t>(int_at(bytes, 0)) == magic;
}

Llama2cSizes sizes_at(std::string_view bytes, size_t at) {
  std::array<int32_t, size_count> values{};
  std::memcpy(values.data(), bytes.data() + at, sizeof values);
  Llama2cSizes sizes;
  sizes.dim = values[0];
  sizes.hidden_dim = values[1];
  sizes.n_layers = values[2];
  sizes.n_heads = values[3];
  sizes.n_kv_heads = values[4];
  sizes.is_tied = values[5] > 0;
  sizes.vocab_size = values[5] > 0 ? int64_t{values[5]} : -int64_t{values[5]};
  sizes.seq_len = values[6];
  return sizes;
}

std::string to_string(const Llama2cSizes& sizes) {
  return fmt::format("{} layers of width {}, hidden {}, {} heads, {} of keys, a vocabulary of {}{}, {} positions",
                     sizes.n_layers, sizes.dim, sizes.hidden_dim, sizes.n_heads, sizes.n_kv_heads, sizes.vocab_size,
                     sizes.is_tied ? "" : " with a head of its own", sizes.seq_len);
}

Header read_header(const std::string& start, const std::string& path) {
  Header header;
  if (!has_magic(start)) {
    header.sizes = sizes_at(start, 0);
    return header;
  }
  if (start.size() < long_header) {
    fail_input({.where = path,
                .what = "the file ends inside the header of llama2.c's models",
                .found = fmt::format("{} bytes", start.size()),
                .expected = fmt::format("at least {}", long_header),
                .hint = "it was cut: copy it again"});
  }
  header.version = int_at(start, 4);
  if (header.version != 1 && header.version != 2) {
    fail_input({.where = path,
                .what = "is a model of llama2.c of a version that is not read here",
                .found = fmt::format("version {}", header.version),
                .expected = "0 (without a magic number), 1 (float32) or 2 (int8)"});
  }
  header.bytes = long_header;
  header.sizes = sizes_at(start, 8);
  if (header.sizes.is_tied) {  // a negative vocabulary is no flag here
    header.sizes.is_tied = start[tied_at] != 0;
  } else {
    header.sizes.vocab_size = -header.sizes.vocab_size;
  }
  header.group = header.version == 2 ? int_at(start, group_at) : 0;
  return header;
}

[[noreturn]] void refuse(const std::string& path, std::string what, int64_t found, std::string expected) {
  fail_input({.where = path,
              .what = "the header cannot be right: " + std::move(what),
              .found = std::to_string(found),
              .expected = std::move(expected),
              .hint = "it is damaged, or no model of llama2.c"});
}

/// Sizes that no model has, or that none here can have, before anything is computed from them.
void check_sizes(const Header& header, const std::string& path) {
  const Llama2cSizes& sizes = header.sizes;
  const std::pair<const char*, int64_t> least_one[] = {
      {"dim", sizes.dim},         {"hidden_dim", sizes.hidden_dim}, {"n_layers", sizes.n_layers},
      {"n_heads", sizes.n_heads}, {"n_kv_heads", sizes.n_kv_heads}, {"seq_len", sizes.seq_len}};
  for (const auto& [name, value] : least_one) {
    if (value < 1) {
      refuse(path, name, value, "at least 1");
    }
  }
  if (sizes.vocab_size < 2) {
    refuse(path, "vocab_size", sizes.vocab_size, "at least 2");
  }
  if (sizes.dim % sizes.n_heads != 0) {
    refuse(path, "n_heads does not divide dim", sizes.n_heads, fmt::format("a divisor of {}", sizes.dim));
  }
  if (sizes.n_heads % sizes.n_kv_heads != 0) {
    refuse(path, "n_kv_heads does not divide n_heads", sizes.n_kv_heads, fmt::format("a divisor of {}", sizes.n_heads));
  }
  if (sizes.dim / sizes.n_heads % 2 != 0) {
    refuse(path, "a head has an odd width", sizes.dim / sizes.n_heads, "an even one: positions turn pairs");
  }
  if (header.version == 2 && header.group < 1) {
    refuse(path, "the size of groups", header.group, "at least 1");
  }
}

uint64_t values_of(const Llama2cPart& part) {
  return static_cast<uint64_t>(part.rows) * static_cast<uint64_t>(part.columns == 0 ? 1 : part.columns);
}

/// Bytes of one tensor. A group of version 2 never spans two: then the writer would have refused it.
uint64_t bytes_of(const Llama2cPart& part, const Header& header, const std::string& path) {
  const uint64_t values = values_of(part);
  if (header.version < 2 || part.columns == 0) {
    return values * sizeof(float);
  }
  const uint64_t group = static_cast<uint64_t>(header.group);
  if (values % group != 0) {
    refuse(path, fmt::format("groups do not divide the {} values of {}", values, part.name), header.group, "a divisor");
  }
  return values + values / group * sizeof(float);
}

/// The size of the file that such a header stands in, or an Error when it is beyond any file.
void check_file_size(const Header& header, uint64_t file_bytes, const std::string& path) {
  const std::vector<Llama2cPart> parts = llama2c_parts(header.sizes, header.version);
  double about = 0;  // 64 bits might not do
  for (const Llama2cPart& part : parts) {
    const double values = static_cast<double>(part.rows) * static_cast<double>(std::max<int64_t>(1, part.columns));
    about += 5 * values * static_cast<double>(part.of_layers ? header.sizes.n_layers : 1);
  }
  uint64_t expected = header.bytes;
  if (about < most_bytes) {
    for (const Llama2cPart& part : parts) {
      expected += bytes_of(part, header, path) * static_cast<uint64_t>(part.of_layers ? header.sizes.n_layers : 1);
    }
    if (expected == file_bytes) {
      return;
    }
  }
  const bool is_longer = about < most_bytes && file_bytes > expected;
  const std::string bytes = about < most_bytes ? fmt::format("{} bytes", expected) : "more than any file has";
  fail_input(
      {.where = path,
       .what = is_longer ? "the file is longer than its header says" : "the file is shorter than its header says",
       .found = fmt::format("{} bytes", file_bytes),
       .expected = fmt::format("{} for {}", bytes, to_string(header.sizes)),
       .hint = is_longer ? "it is damaged, or something was appended" : "it was cut or is damaged: copy it again"});
}

std::vector<StoredTensor> walk_tensors(const Header& header, uint64_t file_bytes, const std::string& path) {
  std::vector<StoredTensor> tensors;
  uint64_t at = header.bytes;
  for (const Llama2cPart& part : llama2c_parts(header.sizes, header.version)) {
    const uint64_t bytes = bytes_of(part, header, path);
    const bool in_groups = header.version == 2 && part.columns > 0;
    for (int64_t layer = 0; layer < (part.of_layers ? header.sizes.n_layers : 1); ++layer, at += bytes) {
      if (part.name.empty()) {
        continue;
      }
      StoredTensor tensor;
      tensor.name = part.of_layers ? fmt::format("model.layers.{}.{}", layer, part.name) : std::string(part.name);
      tensor.dtype = in_groups ? "I8" : "F32";
      tensor.shape = part.columns == 0 ? Shape{part.rows} : Shape{part.rows, part.columns};
      tensor.begin = at;
      tensor.end = at + bytes;
      tensor.layout.rotary_heads = part.rotary_heads;
      tensor.group = in_groups ? header.group : 0;
      tensors.push_back(std::move(tensor));
    }
  }
  check(at == file_bytes, "{}: the tensors end at byte {} of {}", path, at, file_bytes);
  return tensors;
}

ModelConfig config_of(const Llama2cSizes& sizes) {
  ModelConfig config;
  config.vocab_size = sizes.vocab_size;
  config.d_model = sizes.dim;
  config.n_layers = sizes.n_layers;
  config.n_heads = sizes.n_heads;
  config.n_kv_heads = sizes.n_kv_heads;
  config.d_ff = sizes.hidden_dim;
  config.max_seq_len = sizes.seq_len;
  config.tie_embeddings = sizes.is_tied;
  config.rope_theta = llama2c_theta;
  config.norm_eps = llama2c_eps;
  return config;
}

}  // namespace

std::vector<Llama2cPart> llama2c_parts(const Llama2cSizes& sizes, int version) {
  const int64_t dim = sizes.dim;
  const int64_t hidden = sizes.hidden_dim;
  const int64_t heads = sizes.n_heads;
  const int64_t kv_heads = sizes.n_kv_heads;
  const int64_t kv_dim = dim / heads * kv_heads;
  const Llama2cPart embedding = {"model.embed_tokens.weight", false, sizes.vocab_size, dim, 0};
  const Llama2cPart attention_norm = {"input_layernorm.weight", true, dim, 0, 0};
  const Llama2cPart ffn_norm = {"post_attention_layernorm.weight", true, dim, 0, 0};
  const Llama2cPart norm = {"model.norm.weight", false, dim, 0, 0};
  const std::vector<Llama2cPart> attention = {{"self_attn.q_proj.weight", true, dim, dim, heads},
                                              {"self_attn.k_proj.weight", true, kv_dim, dim, kv_heads},
                                              {"self_attn.v_proj.weight", true, kv_dim, dim, 0},
                                              {"self_attn.o_proj.weight", true, dim, dim, 0}};
  const std::vector<Llama2cPart> ffn = {{"mlp.gate_proj.weight", true, hidden, dim, 0},
                                        {"mlp.down_proj.weight", true, dim, hidden, 0},
                                        {"mlp.up_proj.weight", true, hidden, dim, 0}};
  std::vector<Llama2cPart> parts;
  const auto add = [&](const std::vector<Llama2cPart>& more) { parts.insert(parts.end(), more.begin(), more.end()); };
  if (version == 0) {
    add({embedding, attention_norm});
    add(attention);
    add({ffn_norm});
    add(ffn);
    add({norm, {"", false, 2 * sizes.seq_len, dim / heads / 2, 0}});  // cosines, then sines, which run.c skips
  } else {
    add({attention_norm, ffn_norm, norm, embedding});
    add(attention);
    add(ffn);
  }
  if (!sizes.is_tied) {
    add({{"lm_head.weight", false, sizes.vocab_size, dim, 0}});
  }
  return parts;
}

bool is_llama2c_model(std::string_view first_bytes) {
  if (has_magic(first_bytes)) {
    return true;
  }
  if (first_bytes.size() < short_header) {
    return false;
  }
  const Llama2cSizes sizes = sizes_at(first_bytes, 0);
  for (const int64_t size : {sizes.dim, sizes.hidden_dim, sizes.n_layers, sizes.n_heads, sizes.n_kv_heads,
                             sizes.vocab_size, sizes.seq_len}) {
    if (size < 1 || size > most_plausible) {
      return false;
    }
  }
  return sizes.dim % sizes.n_heads == 0 && sizes.n_heads % sizes.n_kv_heads == 0;
}

ForeignModel open_llama2c(const std::string& path) {
  FileDescriptor file = open_for_reading(path);
  const uint64_t file_bytes = file_size(file.get(), path);
  std::string start(std::min<uint64_t>(long_header, file_bytes), '\0');
  read_exactly(file.get(), start.data(), start.size(), 0, path);
  const Header header = read_header(start, path);
  check_sizes(header, path);
  check_file_size(header, file_bytes, path);
  if (header.sizes.n_layers > most_layers) {
    fail_input({.where = path,
                .what = "the model is larger than minillm's can be: n_layers",
                .found = std::to_string(header.sizes.n_layers),
                .expected = fmt::format("at most {}", most_layers)});
  }
  const std::string kind = header.version == 2 ? fmt::format("int8 in groups of {}", header.group) : "float32";
  ForeignModel model = {fmt::format("llama2.c, version {} ({})", header.version, kind),
                        config_of(header.sizes),
                        {path, std::move(file), walk_tensors(header, file_bytes, path)},
                        ""};
  const std::string tokenizer =
      (std::filesystem::path(path).parent_path() / std::string(llama2c_tokenizer_name)).string();
  std::error_code error;
  if (std::filesystem::exists(tokenizer, error)) {
    model.tokenizer = read_llama2c_tokenizer(tokenizer, header.sizes.vocab_size);
    model.dropped = model.tokenizer.empty() ? "the tokenizer, which has no pieces for bytes" : "";
  }
  return model;
}

}  // namespace minillm
