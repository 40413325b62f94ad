#pragma once
// What `minillm bench` prints: a table of the phases, or one JSON object.

#include "core/json_object.h"
#include "generate/decode_bench.h"
#include "train/bench.h"

#include <string>

namespace minillm::cli {

/// `allocations`: of one step, -1 where they are not counted. What was not measured is null.
JsonObject bench_json(const BenchResult& result, int allocations);

/// The same in lines for people; cells of what was not measured are empty.
std::string bench_text(const BenchResult& result, int allocations);

JsonObject decode_bench_json(const DecodeBenchResult& result, int allocations);
std::string decode_bench_text(const DecodeBenchResult& result, int allocations);

}  // namespace minillm::cli
