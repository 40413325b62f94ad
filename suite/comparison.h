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
#include <string_view>
#include <utility>
#include <vector>

namespace minillm {

/// NaN: a number that runs do not tell.
inline constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

/// What only the seed changes: the spread of one config's final validation losses.
struct NoiseFloor {
  std::string of;                           ///< the group it was measured on; "" = there is none
  int64_t seeds = 0;                        ///< different ones
  double sigma = 0;                         ///< sample standard deviation, nats a token
  double range = 0;                         ///< largest less smallest
  double same_seed_difference = not_known;  ///< largest of two runs with one seed

  bool is_known() const { return seeds >= 2 && sigma > 0; }
  bool is_enough() const { return is_known() && seeds >= 5; }  ///< what a verdict needs
  double of_means() const { return 3 * sigma; }                ///< a difference of means below it is no conclusion
  double of_single_runs() const;  ///< 3 sqrt(2) sigma: three sigma of the difference of two single runs
};

enum class Verdict : uint8_t { reference, better, worse, no_conclusion, refused, unfinished };
std::string_view verdict_word(Verdict verdict);

/// Runs of one config. Means are over its different seeds, of runs that did all their steps.
struct RunGroup {
  std::string name;                    ///< of its first run, without the seed
  std::vector<size_t> runs;            ///< indices into Comparison::runs
  int64_t seeds = 0;                   ///< different ones
  size_t reference = 0;                ///< index of the group it is compared with; its own: with none
  std::string missing_reference = {};  ///< the plan's, which has no runs; "" = it is there
  int64_t parameters = 0;
  double val_loss = not_known;  ///< mean of the final ones, nats a token
  double val_sd = not_known;    ///< its own spread; NaN of a single seed
  double tokens_per_s = not_known;
  std::vector<double> speeds =
      {};  ///< tokens a second, measured alone; empty: tokens_per_s is the median over the runs
  double grad_norm_max_first_100 = not_known;  ///< the largest of its runs
  double loss_oscillation = not_known;         ///< mean over its runs; suite/run_groups.h says of what
  int64_t ended = 0;                           ///< runs that came to an end
  int64_t failed = 0;                          ///< of these, by an update that was not finite: they have no final loss
  int64_t stalled = 0;                         ///< of these
  int64_t diverged = 0;                        ///< of these, the failed included
  NoiseFloor noise;                            ///< what it is judged by

  bool has_ended() const { return ended == static_cast<int64_t>(runs.size()); }

  // Against the reference; NaN where there is no comparison.
  double parameter_difference = not_known;  ///< per cent
  double delta = not_known;                 ///< val_loss less the reference's
  double delta_sigmas = not_known;
  Verdict verdict = Verdict::unfinished;
  std::string sentence = {};  ///< the verdict in words, with its numbers
  std::vector<ConfigChange> changes = {};
};

struct Comparison {
  std::string title;
  std::vector<RunRecord> runs;
  std::vector<RunGroup> groups;
  NoiseFloor noise;  ///< the first group's
  /// A finding and the group it is about; "" = about the comparison.
  std::vector<std::pair<std::string, Finding>> findings;

  /// Of the first run that knows it; NaN without one.
  double unigram_loss() const;
};

/// What a suite knows beside its runs.
struct ComparisonPlan {
  std::string title;
  std::vector<std::string> order = {};                     ///< names of groups; others follow
  std::map<std::string, std::string> references = {};      ///< of groups by name; others: `reference`
  std::string reference = {};                              ///< "" = the group named baseline, else the first
  std::vector<RunRecord> noise_floor = {};                 ///< runs that are not shown, for the noise floor alone
  std::map<std::string, std::vector<double>> speeds = {};  ///< tokens a second, measured alone
};

Comparison compare(std::vector<RunRecord> runs, const ComparisonPlan& plan);

}  // namespace minillm
