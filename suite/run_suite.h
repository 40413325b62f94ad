#pragma once
// Runs a suite: one run after the other, each where it was when something stopped it, then every variant's speed.

#include "suite/plan.h"
#include "train/run.h"
#include "train/summary.h"

#include <optional>
#include <string>

namespace minillm {

/// Whether a run was started in the folder.
bool is_begun(const std::string& folder);

/// The summary of a run that is over, one way or the other.
std::optional<Summary> result_of(const std::string& folder);

/// Makes OUT/suite.json, a run's folder for every planned run and OUT/speed.jsonl. What is there already is kept: a
/// finished run is not run again, a begun one goes on from its newest checkpoint. A run whose loss stops being finite
/// is a result; another failure ends the suite. Throws an input Error, before anything is run, when a folder holds a
/// run of other settings. `stop_requested` (nullptr: never) is asked after every step.
RunEnd run_suite(const Plan& plan, bool (*stop_requested)());

}  // namespace minillm
