#!/bin/bash
# Runs a PyTorch program with Debian 13's python3-torch 2.6 (SDPA, fused AdamW, torch.compile) in a folder of its own.
# The first call makes that folder with debootstrap: about 2 GB, some minutes. Where debootstrap is missing it installs
# that on this machine (apt-get install). Needs root (chroot).
#
# Usage: [TORCH26_ROOT=FOLDER] torch26.sh [PROGRAM.py] ARGUMENTS...
#   torch26.sh --bench 20 --batch 4                         runs torch_minillm.py, which lies beside this script
#   torch26.sh tests/golden/torch_golden.py > curves.json   runs another program, which may import what lies here or
#                                                           beside it
# Files to read or write: put them in FOLDER/io and name them /io/...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=${TORCH26_ROOT:-/var/tmp/torch26}
packages="python3-torch python3-h5py libopenblas0-openmp python3-setuptools python3-dev g++"

if [ "$(id -u)" != 0 ]; then
  echo "torch26.sh: needs root, for chroot; a python3 with torch and h5py runs $here/torch_minillm.py without" >&2
  exit 2
fi

if [ "$(cat "$root/.packages" 2>/dev/null)" != "$packages" ]; then
  if [ ! -e "$root/usr/bin/apt-get" ]; then
    command -v debootstrap >/dev/null || apt-get install -y debootstrap >&2
    mkdir -p "$root"
    debootstrap --variant=minbase trixie "$root" >&2
  fi
  cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  # shellcheck disable=SC2086  # one word a package
  chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -c "apt-get update && apt-get install -y \
    --no-install-recommends $packages" >&2
  echo "$packages" > "$root/.packages"
fi

mkdir -p "$root/peers" "$root/io"

program=$here/torch_minillm.py
case ${1:-} in
  *.py)
    program=$1
    shift
    ;;
esac
cp "$here"/torch_*.py "$root/peers/"
[ "$program" -ef "$here/$(basename "$program")" ] || cp "$(dirname "$program")"/*.py "$root/peers/"
threads=${OMP_NUM_THREADS:-$(nproc)}
# A mount namespace of its own: /proc vanishes with the process, so nothing is left mounted in the folder.
exec unshare --mount --propagation private sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
  env OMP_NUM_THREADS="$threads" python3 "/peers/$(basename "$program")" "$@"
