#include "core/kernels/instruction_set.h"

#include "core/error.h"

#include <algorithm>
#include <cstdlib>

namespace minillm::kernels {

namespace {

InstructionSet of_processor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return InstructionSet::avx2;
  }
#endif
  return InstructionSet::baseline;
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

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline: return "baseline";
    case InstructionSet::avx2: return "AVX2";
    case InstructionSet::avx512: return "AVX-512";
  }
  return "";
}

InstructionSet widest_instruction_set() {
  static const InstructionSet widest = std::min(of_processor(), allowed());
  return widest;
}

}  // namespace minillm::kernels
