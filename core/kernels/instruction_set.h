#pragma once
// Which hand-written loops run: the widest instruction set of the processor, or a narrower one that is asked for.

#include <cstdint>
#include <string_view>

namespace minillm::kernels {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

/// "AVX-512"
std::string_view to_string(InstructionSet set);

/// What the processor has, no wider than MINILLM_MAX_ISA in the environment ("avx512", "avx2", "baseline") allows; the
/// same for a process' whole life. Throws an input Error when the variable holds anything else.
InstructionSet widest_instruction_set();

}  // namespace minillm::kernels
