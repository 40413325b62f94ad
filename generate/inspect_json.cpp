// An inspection as JSON, and its tokens as words.

#include "core/utf8.h"
#include "generate/inspect.h"

#include <string_view>

namespace minillm {

namespace {

constexpr std::string_view blank_mark = "\xe2\x96\x81";  // U+2581, as SentencePiece shows a blank

/// NULs, line ends, escapes: bytes below the first printable one, and DEL. Those of C1 (U+0080 to U+009F) steer
/// terminals as well.
bool is_control(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  return byte(0) < 0x20 || byte(0) == 0x7f || (byte(0) == 0xc2 && byte(1) < 0xa0);
}

std::string bytes_as_names(std::string_view bytes) {
  std::string names;
  for (const char c : bytes) {
    names += fmt::format("<0x{:02X}>", static_cast<unsigned char>(c));
  }
  return names;
}

void add_write(JsonObject& json, std::string_view sublayer, const StreamWrite& write) {
  json.add(fmt::format("{}_write_rms", sublayer), write.rms);
  json.add(fmt::format("{}_write_logit", sublayer), write.logit);
}

JsonObject head_json(const HeadAttention& head) {
  JsonObject json;
  json.add("entropy", head.entropy);
  json.add("first_token_share", head.first_token_share);
  return json;
}

JsonObject layer_json(size_t index, const LayerInspection& layer) {
  JsonObject json = to_json(index, layer.statistics);
  json.add("stream_mean", layer.stream.mean);
  json.add("stream_std", layer.stream.std);
  json.add("stream_gradient", layer.stream_gradient);
  json.add("parameter_gradient", layer.parameter_gradient);
  add_write(json, "mixer", layer.mixer);
  add_write(json, "ffn", layer.ffn);
  std::vector<JsonObject> heads;
  for (const HeadAttention& head : layer.heads) {
    heads.push_back(head_json(head));
  }
  json.add("heads", heads);
  return json;
}

JsonObject embedding_json(const Inspection& inspection) {
  JsonObject json;
  json.add("stream_rms", inspection.embedding.rms);
  json.add("stream_mean", inspection.embedding.mean);
  json.add("stream_std", inspection.embedding.std);
  json.add("stream_gradient", inspection.embedding_gradient);
  json.add("write_logit", inspection.embedding_write.logit);
  return json;
}

/// A reason or null.
void add_reason(JsonObject& json, std::string_view key, const std::string& reason) {
  if (reason.empty()) {
    json.add_null(key);
  } else {
    json.add(key, reason);
  }
}

JsonObject sum_json(const ResidualSum& sum) {
  JsonObject json;
  json.add("difference", sum.difference);
  json.add("largest", sum.largest);
  json.add("relative", sum.difference / sum.largest);
  add_reason(json, "reason", sum.reason);
  return json;
}

}  // namespace

std::string token_label(const Tokenizer& tokenizer, int32_t id) {
  const std::string name = tokenizer.bytes(id).empty() ? tokenizer.piece(id) : "";
  std::string_view bytes = name.empty() ? tokenizer.bytes(id) : name;
  std::string label;
  while (!bytes.empty()) {
    const Utf8Front front = utf8_front(bytes);
    const std::string_view part = bytes.substr(0, front.bytes);
    const bool shows = front.kind == Utf8Front::Kind::character && !is_control(part);
    label += part == " " ? std::string(blank_mark) : shows ? std::string(part) : bytes_as_names(part);
    bytes.remove_prefix(front.bytes);
  }
  return label;
}

void add_numbers(const Inspection& inspection, JsonObject& json) {
  json.add("loss", inspection.loss);
  json.add("gradient_norm", inspection.gradient_norm);
  json.add("next_token_logit", inspection.next_token_logit);
  add_reason(json, "no_loss", inspection.no_loss);
  json.add("largest_entropy", inspection.largest_entropy);
  json.add("residual_sum", sum_json(inspection.sum));
  json.add("embedding", embedding_json(inspection));
  std::vector<JsonObject> layers;
  for (size_t layer = 0; layer < inspection.layers.size(); ++layer) {
    layers.push_back(layer_json(layer, inspection.layers[layer]));
  }
  json.add("layers", layers);
}

}  // namespace minillm
