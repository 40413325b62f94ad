#include "cli/config_json.h"

#include "train/config_keys.h"

namespace minillm::cli {

JsonObject config_json(const Config& config) {
  JsonObject all;
  for (const std::string& section : section_names()) {
    JsonObject json;
    for (const ConfigKey& key : config_keys()) {
      if (key.section == section) {
        const std::string text = toml_text(key, config);
        json.add_raw(key.name, text.empty() ? "null" : text);
      }
    }
    all.add(section, json);
  }
  return all;
}

JsonObject finding_json(const Finding& finding) {
  JsonObject json;
  json.add("id", finding.rule->id);
  json.add("severity", severity_name(finding.rule->severity));
  json.add("name", finding.rule->name);
  json.add("message", finding.what);
  json.add("advice", finding.advice);
  return json;
}

std::vector<JsonObject> findings_json(const std::vector<Finding>& findings) {
  std::vector<JsonObject> objects;
  objects.reserve(findings.size());
  for (const Finding& finding : findings) {
    objects.push_back(finding_json(finding));
  }
  return objects;
}

}  // namespace minillm::cli
