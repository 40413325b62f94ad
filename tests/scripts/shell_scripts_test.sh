#!/usr/bin/env bash
# Every shell script parses, can be run, and stops at the first failed command; the packages that CMake names when a
# library is missing are among those setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0
fail() {
  echo "$1" >&2
  failures=$((failures + 1))
}

count=0
while IFS= read -r script; do
  head -n 1 "$script" | grep -q '^#!.*bash$' || continue
  count=$((count + 1))
  bash -n "$script" || fail "$script does not parse"
  [ -x "$script" ] || [[ $script = tests/* ]] || fail "$script is not executable"
  grep -q '^set -eu' "$script" || fail "$script does not set -eu"
done < <(find scripts .ci tests/scripts -type f)
[ "$count" -ge 6 ] || fail "only $count shell scripts were found"

listed=$(scripts/setup.sh --list)
named=$(sed -n '/^set(MINILLM_PACKAGES/,/)/p' cmake/Dependencies.cmake | tr -d '\\")' | sed 's/^set(MINILLM_PACKAGES//')
[ -n "$named" ] || fail "no packages are named in cmake/Dependencies.cmake"
for package in $named; do
  grep -qx "$package" <<<"$listed" || fail "setup.sh does not install $package, which cmake/Dependencies.cmake names"
done

status=0
scripts/setup.sh --no-such-option >/dev/null 2>&1 || status=$?
[ $status = 2 ] || fail "setup.sh with an unknown option: expected exit status 2, found $status"

[ $failures = 0 ] && echo "shell scripts: $count, all good"
exit $((failures > 0))
