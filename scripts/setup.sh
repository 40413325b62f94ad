#!/usr/bin/env bash
# Installs the Debian packages minillm is built from. Debian 12 and 13; as root, or as a user with sudo.
#
#   scripts/setup.sh [--dev] [--list]
#
# Says first what it will install; what is there already is left alone, so it is safe to run again.
# --dev adds what the project's own checks use (clang, clang-format, clang-tidy, Google Benchmark, gdb, chromium for the
# report's page). --list prints the packages.
set -euo pipefail

# ocl-icd-opencl-dev: Debian 12's libdnnl-dev only recommends it, but CMake cannot find oneDNN without it.
packages=(g++ cmake ninja-build python3
          libdnnl-dev ocl-icd-opencl-dev libhdf5-dev libsentencepiece-dev libpcre2-dev libssl-dev zlib1g-dev
          libfmt-dev libcxxopts-dev libtomlplusplus-dev nlohmann-json3-dev doctest-dev
          libjs-dygraphs gnuplot-nox)  # for the figures of `minillm report`, which does without them too
dev_packages=(clang clang-format clang-tidy libomp-dev libbenchmark-dev gdb git chromium)

list_only=0
while [ $# -gt 0 ]; do
  case $1 in
    --dev) packages+=("${dev_packages[@]}") ;;
    --list) list_only=1 ;;
    --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "setup.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done
if [ $list_only = 1 ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "setup.sh: this is not Debian (no apt-get). Install the equivalents of: ${packages[*]}" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

how="as root"
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: needs root, and there is no sudo. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  how="with sudo"
  as_root=(sudo)
  [ -t 0 ] || as_root=(sudo -n)  # nobody is there to type a password
fi
as_root+=(env DEBIAN_FRONTEND=noninteractive)

echo "setup: installing with apt-get, $how: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  "$@" >"$log" 2>&1 </dev/null || { tail -n 30 "$log" >&2; return 1; }
}
apt=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300)
# Old lists may do: the installation decides.
quietly "${apt[@]}" update || echo "setup: apt-get update failed; trying with the lists that are there" >&2
if ! quietly "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "setup.sh: apt-get could not install the packages (its last lines are above)" >&2
  exit 1
fi
echo "setup: done"
