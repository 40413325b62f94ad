#!/usr/bin/env bash
# From a fresh machine to a trained model: packages, build, a corpus, minutes of training, a curve and a sample.
#
#   scripts/quickstart.sh
#
# Safe to run again: what is there is kept, and training goes on where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  "") ;;
  --help | -h) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) echo "quickstart.sh: unknown option $1; see --help" >&2; exit 2 ;;
esac

minillm=build/release/minillm
corpus=corpora/austen.h5
run=runs/quickstart
step=0
say() {
  step=$((step + 1))
  printf '\n[%d/6] %s\n' "$step" "$1"
}

cat <<PLAN
This will
  1. install the packages that are missing (apt-get)
  2. build minillm in build/release
  3. get the novels of Jane Austen, 4 MB, from a Debian package, into corpora/
  4. turn them into tokens: $corpus
  5. train the model of configs/quickstart.toml, some minutes, into $run, and show the curve
  6. let the model write
PLAN

say "packages"
scripts/setup.sh

say "building minillm"
source scripts/build_choices.sh
cmake --preset release "${build_choices[@]}" >/dev/null
cmake --build build/release --parallel "$(nproc)" --target minillm_cli

say "the corpus"
if [ -e "$corpus" ]; then
  echo "$corpus is there"
else
  scripts/get_corpus austen
fi

say "text to tokens, with a vocabulary of 2,048"
if [ -e "$corpus" ]; then
  echo "$corpus is there"
else
  "$minillm" prepare corpora/austen --vocab 2048 --out "$corpus"
fi

say "training; ctrl-c saves and stops, the same command goes on"
if [ -e "$run" ]; then
  echo "$run is there: going on with it (remove it to start again)"
  "$minillm" train --resume "$run"
else
  "$minillm" train configs/quickstart.toml
fi

say "what the model learned: it goes on from \"It is a truth\""
"$minillm" generate "$run" --prompt "It is a truth" --temperature 0.8 --max-tokens 120 --seed 1
cat <<NEXT

What next:
  let it write again
    $minillm generate $run --prompt "My dear Jane" --temperature 0.8
  train the reference model, 270 steps
    $minillm train configs/baseline.toml data.path=$corpus
  see what the residual stream is worth
    $minillm train configs/ablations/no_residual.toml data.path=$corpus
  all commands: $minillm --help; the map of the code: README.md
NEXT
