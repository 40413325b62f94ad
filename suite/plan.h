#pragma once
// What a suite comes to: every run with its config and folder, before anything is run.

#include "train/config_file.h"
#include "train/suite_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

struct PlannedRun {
  std::string variant;
  uint64_t seed = 0;
  std::string folder;   ///< OUT/VARIANT-seedN
  LoadedConfig loaded;  ///< as start_run wants it
  Config complete;
  int64_t parameters = 0;
  double flops = 0;  ///< of all its steps: how the time left is shared out

  std::string name() const { return fmt::format("{}-seed{}", variant, seed); }
};

struct Plan {
  std::string out;
  Suite suite;
  std::vector<PlannedRun> runs;  ///< every variant's first seed, then every variant's second, ...
};

/// Loads and completes every run's config. `only`: a variant's name, or a [[run]]'s with all its grid; "" = all.
/// Throws an Error for the first config that is wrong, and when no variant has the name.
Plan make_plan(const Suite& suite, const std::string& out, const std::string& only);

/// OUT/suite.json: what a report must know beside the runs.
struct SuiteRecord {
  std::string name;
  std::vector<std::string> runs;        ///< names of all that are planned
  std::vector<std::string> variants;    ///< names, in their order
  std::vector<std::string> references;  ///< of each variant: what it is compared with
  std::string noise_floor;              ///< a folder of runs; "" = none
};

void write_plan(const Plan& plan);

/// Nothing where `out` is no suite's folder. An input Error when its suite.json cannot be read.
std::optional<SuiteRecord> read_plan(const std::string& out);

}  // namespace minillm
