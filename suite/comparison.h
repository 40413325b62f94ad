#pragma once
// Runs that differ in nothing but their seed form a group; groups are compared by the means of their final validation
// losses, in units of the noise floor. docs/numbers.md has the definitions.

#include "suite/run_record.h"
#include "train/config_file.h"
#include "train/lint.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace minillm {

/// What only the seed changes: the spread of one config's final validation losses.
struct NoiseFloor {
  std::string of;      ///< the group it was measured on; "" = there is none
  int64_t seeds = 0;   ///< different ones
  double sigma = 0;    ///< sample standard deviation, nats a token
  double range = 0;    ///< largest less smallest
  double repeats = 0;  ///< largest difference of two runs with the same seed; NaN without such

  bool is_known() const { return seeds >= 2; }
  bool is_enough() const { return seeds >= 5; }  ///< what a noise floor should rest on
  double of_run() const { return 3 * sigma; }    ///< a difference of means below it is no conclusion
  double of_difference() const;                  ///< 3 sqrt(2) sigma: three sigma of the difference of two single runs
};

enum class Verdict : uint8_t { reference, better, worse, no_conclusion, refused, unfinished };
std::string_view verdict_word(Verdict verdict);

/// Runs of one config. Means are over its different seeds.
struct RunGroup {
  std::string name;          ///< of its first run, without the seed
  std::vector<size_t> runs;  ///< indices into Comparison::runs
  size_t reference = 0;      ///< index of the group it is compared with; its own: with none
  int64_t parameters = 0;
  double val_loss = std::numeric_limits<double>::quiet_NaN();  ///< mean of the final ones, nats a token
  double val_sd = std::numeric_limits<double>::quiet_NaN();    ///< its own spread; NaN of a single seed
  double tokens_per_s = std::numeric_limits<double>::quiet_NaN();
  int64_t speed_measurements = 0;  ///< alone; 0: tokens_per_s is the median over the runs themselves
  double grad_norm_max_first_100 = std::numeric_limits<double>::quiet_NaN();  ///< the largest of its runs
  int64_t over = 0;      ///< runs that came to an end
  int64_t stalled = 0;   ///< of these
  int64_t diverged = 0;  ///< of these

  // Against the reference; NaN where there is no comparison.
  double parameter_difference = std::numeric_limits<double>::quiet_NaN();  ///< per cent
  double delta = std::numeric_limits<double>::quiet_NaN();                 ///< val_loss less the reference's
  double delta_sigmas = std::numeric_limits<double>::quiet_NaN();
  Verdict verdict = Verdict::unfinished;
  std::string sentence;  ///< the verdict in words, with its numbers
  std::vector<ConfigChange> changes;
};

struct Comparison {
  std::string title;
  std::vector<RunRecord> runs;
  std::vector<RunGroup> groups;
  NoiseFloor noise;
  /// A finding and the group it is about; "" = about the comparison.
  std::vector<std::pair<std::string, Finding>> findings;
};

/// What a suite knows beside its runs.
struct ComparisonPlan {
  std::string title;
  std::vector<std::string> order = {};                        ///< names of groups; others follow
  std::map<std::string, std::string> references = {};         ///< of groups by name; others: `reference`
  std::string reference = {};                                 ///< "" = the group named baseline, else the first
  std::vector<RunRecord> noise_floor = {};                    ///< runs that are not shown, for the noise floor alone
  std::map<std::string, std::vector<double>> speeds = {};     ///< tokens a second, measured alone
};

Comparison compare(std::vector<RunRecord> runs, const ComparisonPlan& plan);

}  // namespace minillm
