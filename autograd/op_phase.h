#pragma once
// Which phase of a step an op's time is counted in.

#include "core/phase.h"

#include <string_view>

namespace minillm {

/// By the op's name, as the tape shows it; Phase::other for one that the table does not know.
Phase phase_of(std::string_view op);

}  // namespace minillm
