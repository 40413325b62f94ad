#pragma once
// Runs sorted into groups that differ in nothing but their seed, and what their seeds spread over.

#include "suite/comparison.h"

#include <cstddef>
#include <string>
#include <vector>

namespace minillm {

/// Indices into `runs`, in the order of each group's first.
std::vector<std::vector<size_t>> groups_of(const std::vector<RunRecord>& runs);

/// "trained on ..." where the two learned from other data or another number of tokens, or "".
std::string difference_of_training(const RunRecord& run, const RunRecord& other);

/// The spread of a group's final validation losses; of nothing where a run stalled or diverged: such runs say nothing
/// of others' noise.
NoiseFloor noise_of(const std::vector<RunRecord>& runs, const std::vector<size_t>& group);

/// How far a loss swings: the standard deviation of the losses of the second half of the steps around the straight line
/// that fits them best, nats a token. Every fifth step counts: those are what a record keeps. NaN of fewer than 8.
double loss_oscillation(const std::vector<TrainRecord>& train);

/// A group with all that follows from its own runs; `alone`: its speeds measured alone.
RunGroup summarize_group(const std::vector<RunRecord>& runs, std::vector<size_t> group, std::vector<double> alone);

/// "layernorm-seed3" -> "layernorm", behind the name of its suite where there are several.
std::string group_name(const RunRecord& run);

}  // namespace minillm
