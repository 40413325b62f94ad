#include "core/kernels/instruction_set.h"

#include "core/error.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace minillm::kernels {

namespace {

InstructionSet of_processor() {
  if (has(InstructionSet::avx512)) {
    return InstructionSet::avx512;
  }
  return has(InstructionSet::avx2) ? InstructionSet::avx2 : InstructionSet::baseline;
}

InstructionSet allowed() {
  const char* text = std::getenv("MINILLM_MAX_ISA");
  const std::string_view name = text == nullptr ? "avx512" : text;
  if (name == "avx512") {
    return InstructionSet::avx512;
  }
  if (name == "avx2") {
    return InstructionSet::avx2;
  }
  if (name == "baseline") {
    return InstructionSet::baseline;
  }
  fail_input({.where = "MINILLM_MAX_ISA",
              .what = "no such instruction set",
              .found = fmt::format("\"{}\"", name),
              .expected = "avx512, avx2 or baseline"});
}

}  // namespace

bool has(InstructionSet set) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (set) {
    case InstructionSet::baseline: return true;
    case InstructionSet::avx2: return avx2;
    case InstructionSet::avx512: return avx2 && __builtin_cpu_supports("avx512f");
  }
#endif
  return set == InstructionSet::baseline;
}

InstructionSet widest_instruction_set() {
  static const InstructionSet widest = std::min(of_processor(), allowed());
  return widest;
}

}  // namespace minillm::kernels
