#pragma once
// Which hand-written loops run: the widest instruction set of the processor, or a narrower one that is asked for. They
// are the register tiles and the probe of the FMA peak; loops that the compiler vectorises are chosen by the loader.

#include <cstdint>

namespace minillm::kernels {

enum class InstructionSet : uint8_t { baseline, avx2, avx512 };

/// Whether the processor has it.
bool has(InstructionSet set);

/// What the processor has, no wider than MINILLM_MAX_ISA in the environment ("avx512", "avx2", "baseline") allows; the
/// same for a process' whole life. Throws an input Error when the variable holds anything else.
InstructionSet widest_instruction_set();

}  // namespace minillm::kernels
