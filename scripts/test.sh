#!/usr/bin/env bash
# Builds minillm and runs its tests. Installs missing packages first (scripts/setup.sh).
#
#   scripts/test.sh [--everyday] [--preset NAME] [--werror] [ctest arguments...]
#
# --everyday runs the tests a change is checked with, without the slow ones. --preset takes a name of
# CMakePresets.json (release). --werror makes warnings errors, as for every change. The last line is ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=release
werror=OFF
ctest_arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --everyday) ctest_arguments+=(--label-regex everyday) ;;
    --werror) werror=ON ;;
    --preset) preset=${2:?--preset needs a name, as in CMakePresets.json}; shift ;;
    --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) ctest_arguments+=("$1") ;;
  esac
  shift
done

scripts/setup.sh
jobs=$(nproc)
source scripts/build_choices.sh
echo "test: building build/$preset with $jobs jobs"
cmake --preset "$preset" -DMINILLM_WERROR=$werror -DMINILLM_BUILD_TESTS=ON "${build_choices[@]}" >/dev/null
cmake --build "build/$preset" --parallel "$jobs"

# Tests share the cores; threads that wait must not spin.
export OMP_WAIT_POLICY=passive
export UBSAN_OPTIONS=print_stacktrace=1
echo "test: running the tests of build/$preset"
log=build/$preset/ctest.log
status=0
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$jobs" \
  ${ctest_arguments[@]+"${ctest_arguments[@]}"} 2>&1 | tee "$log" || status=$?
summary=$(grep -E '^[0-9]+% tests passed' "$log" || echo "no tests were run")
echo "$summary"
exit $status
