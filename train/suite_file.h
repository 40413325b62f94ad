#pragma once
// A suite: a set of runs over configs, settings and seeds, and what each is compared with. docs/experiments.md has the
// keys of its file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// One [[run]] at one point of the grid: what its runs share, their seeds apart.
struct Variant {
  std::string name;                    ///< "post-lr=0.003-warmup_steps=0": the run's, with the grid's values
  std::string run;                     ///< the [[run]]'s alone: "post"
  std::string base;                    ///< the config file
  std::vector<std::string> overrides;  ///< lowest first: the suite's, the run's, the grid's, the command line's
  std::vector<uint64_t> seeds;
  std::string match;      ///< the variant whose number of parameters model.d_ff is solved for; "" = none
  std::string reference;  ///< the variant it is compared with; its own name: with none
};

struct Suite {
  std::string name;         ///< the file's without .toml; its folder's when it is called suite.toml
  std::string noise_floor;  ///< a folder of runs of the reference's config with five seeds or more; "" = none
  std::vector<Variant> variants;
};

/// Reads a suite's file. `quick`: with what its [quick] says, or a quarter of the steps. Throws an Error that lists
/// every problem with file:line; the configs of the runs themselves are not looked at.
Suite load_suite(const std::string& path, const std::vector<std::string>& overrides, bool quick);

}  // namespace minillm
