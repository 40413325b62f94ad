# All compiler flags live here. minillm_flags carries them to our own targets and is not exported.
add_library(minillm_flags INTERFACE)

# No -ffast-math anywhere: NaN checks must work and sums keep their order. -ffp-contract=off: an fma appears only where
# it is written, so all instruction sets give the same bits.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g3 -fno-omit-frame-pointer" CACHE STRING "" FORCE)
set(step_symbols -g3)
if(MINILLM_SANITIZE)
  set(step_symbols -g1)  # lines, which is what sanitizers report; a third of the compile time
endif()
set(CMAKE_CXX_FLAGS_STEP "-Og ${step_symbols} -fno-omit-frame-pointer" CACHE STRING "" FORCE)
if(CMAKE_BUILD_TYPE STREQUAL "Step" AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "the Step build needs GCC: Clang's -Og optimises most locals out of a debugger's sight")
endif()

# Errors and tapes tell places in the sources from the tree's root: "nn/norm.cpp:20".
target_compile_options(minillm_flags INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_options(minillm_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                               -Wnon-virtual-dtor -Woverloaded-virtual -ffp-contract=off
                                               -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Clang's warning of the same name is also about NAN and INFINITY, which are floats.
  target_compile_options(minillm_flags INTERFACE -Wdouble-promotion)
  # GCC 12 warns about std::string's own code when it inlines (GCC bug 105651).
  target_compile_options(minillm_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # fmt's header compiles its own functions with -Og, even here. Their variables' places are then listed by address,
  # which gdb takes as a sign that all of the file is so, and a breakpoint on a function stops before its arguments are
  # where an unoptimised function has them: garbage is shown.
  target_compile_options(minillm_flags INTERFACE -fno-var-tracking)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Step")
  # With statement frontiers, GCC's default, most lines of optimised code are marked as no place to stop, and gdb walks
  # over a kernel's whole loop in one `next`. The code is the same without, so this is none of the flags that
  # core/build_info.cpp hashes.
  target_compile_options(minillm_flags INTERFACE -gno-statement-frontiers)
endif()
if(MINILLM_WERROR)
  target_compile_options(minillm_flags INTERFACE -Werror)
endif()
if(MINILLM_NATIVE)
  target_compile_options(minillm_flags INTERFACE -march=native)
  target_compile_definitions(minillm_flags INTERFACE MINILLM_NATIVE)
endif()
if(NOT MINILLM_SIMD)
  target_compile_definitions(minillm_flags INTERFACE MINILLM_NO_SIMD)
endif()
if(MINILLM_SANITIZE)
  target_compile_definitions(minillm_flags INTERFACE MINILLM_SANITIZED)
  target_compile_options(minillm_flags INTERFACE -fsanitize=${MINILLM_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer)
  target_link_options(minillm_flags INTERFACE -fsanitize=${MINILLM_SANITIZE})
  if(MINILLM_SANITIZE MATCHES "address")
    # At a fixed place in memory: a million relocations are a third of the time that a program takes to start.
    target_compile_options(minillm_flags INTERFACE -fno-pie)
    target_link_options(minillm_flags INTERFACE -no-pie)
  endif()
  # The check of an object's type opens descriptors to read its memory: with none left, which tests try, it takes
  # objects for wrong ones.
  target_compile_options(minillm_flags INTERFACE -fno-sanitize=vptr)
endif()
if(MINILLM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MINILLM_FUZZ needs Clang, which brings libFuzzer; found ${CMAKE_CXX_COMPILER_ID}")
  endif()
  target_compile_options(minillm_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
