#pragma once
// Memory of the machine and of this process.

#include <cstdint>

namespace minillm {

/// Bytes of the machine's memory, whoever uses them now: what does not fit is refused before it is taken.
double physical_memory();

/// Bytes this process holds now, and the most it ever held; 0 when the system does not say.
int64_t resident_memory_bytes();
int64_t peak_memory_bytes();

}  // namespace minillm
