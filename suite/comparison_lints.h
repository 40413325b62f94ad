#pragma once
// What is known to go wrong with comparisons, beside what each run's own lints say.

#include "suite/comparison.h"

#include <string>
#include <utility>
#include <vector>

namespace minillm {

/// Of a comparison whose verdicts are there. Each finding with its group's name, "" = about all.
std::vector<std::pair<std::string, Finding>> lint_comparison(const Comparison& comparison);

}  // namespace minillm
