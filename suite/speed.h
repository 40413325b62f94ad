#pragma once
// How fast each variant of a suite trains, measured alone, apart from its runs.

#include "suite/plan.h"
#include "train/run.h"

#include <map>
#include <string>
#include <vector>

namespace minillm {

/// Measurements of each variant that the median is taken of.
constexpr size_t speed_repeats = 3;

/// Fills OUT/speed.jsonl up to speed_repeats measurements a variant, a line each. One round measures every variant
/// once, so that what changes in the machine meanwhile meets all of them; variants whose steps do the same work share
/// their measurements.
RunEnd measure_speeds(const Plan& plan, bool (*stop_requested)());

/// Tokens a second by variant, in the order they were measured.
std::map<std::string, std::vector<double>> read_speeds(const std::string& out);

}  // namespace minillm
