#pragma once
// Configs and what lints say of them as JSON, for every command that prints one.

#include "core/json_object.h"
#include "train/lint.h"
#include "train/train_config.h"

#include <vector>

namespace minillm::cli {

/// Every setting, section by section; what is not derived is null.
JsonObject config_json(const Config& config);

/// id, severity, name, message, advice.
JsonObject finding_json(const Finding& finding);
std::vector<JsonObject> findings_json(const std::vector<Finding>& findings);

}  // namespace minillm::cli
