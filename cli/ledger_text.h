#pragma once
// What `minillm check` and `minillm ledger` print of a ledger: a table of parts, or the members of a JSON object.

#include "cli/json_object.h"
#include "nn/ledger.h"

#include <string>
#include <string_view>

namespace minillm::cli {

/// Parts with their parameters, shares and derivation, the sum, and the classic estimate beside it.
std::string parts_text(const TensorCount& count);

/// The keys that tensors tell: parameters, text_parameters, buffers, file_elements, tensors, groups, classic_estimate,
/// gap, gap_items.
void add_count(JsonObject& json, const TensorCount& count);

/// The keys that need a config too: active_parameters, flops_per_token, crossover_context, kv_bytes_per_token and
/// state_bytes in `dtype`, and the forward costs they come from.
void add_costs(JsonObject& json, const Ledger& ledger, std::string_view dtype);

/// "61.60 %"
std::string percent_text(double share);

}  // namespace minillm::cli
