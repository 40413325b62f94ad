#pragma once
// How much memory the machine has: what does not fit is refused before it is taken.

namespace minillm {

/// Bytes of the machine's memory, whoever uses them now.
double physical_memory();

}  // namespace minillm
