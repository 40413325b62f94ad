#pragma once
// What `minillm check` and `minillm ledger` print of a ledger: a table of parts, or the members of a JSON object.

#include "core/json_object.h"
#include "nn/ledger.h"
#include "nn/stages.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm::cli {

/// Parts with their parameters, shares and derivation, the sum, and the classic estimate beside it.
std::string parts_text(const TensorCount& count);

/// The keys that tensors tell: parameters, text_parameters, buffers, file_elements, tensors, groups, classic_estimate,
/// gap, gap_items.
void add_count(JsonObject& json, const TensorCount& count);

/// The keys that need a config too: active_parameters, flops_per_token, crossover_context, kv_bytes_per_token,
/// state_bytes and recent_bytes in `dtype`, and the forward costs they come from.
void add_costs(JsonObject& json, const Ledger& ledger, std::string_view dtype);

/// ffn_width, with 8 d / 3 and what that is rounded up to, and attention_gate; each only where there is one.
void add_widths(JsonObject& json, const Ledger& ledger, const ModelConfig& config);

/// The same as lines.
std::string widths_text(const Ledger& ledger, const ModelConfig& config);

/// Stages as a table, or as the member `stages`.
std::string stages_text(const std::vector<Stage>& stages);
void add_stages(JsonObject& json, const std::vector<Stage>& stages);

/// "61.60 %", "0.0024 %"
std::string percent_text(double share);
std::string percent_text(int64_t part, int64_t whole);

}  // namespace minillm::cli
