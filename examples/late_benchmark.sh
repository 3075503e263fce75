#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The publications' benchmark (examples/late_benchmark.cpp) with native and every algorithm of a collective. Has a
# random late rank, a grid of delays and sizes, and interleaved rounds. Prints the median of the mean elapsed times and
# the ratio native / algorithm. All ranks share one machine and its memory; the papers had a node per process.
# Usage: examples/late_benchmark.sh [BUILD [OP [RANKS [ITERATIONS [SIZES [DELAYS [ROUNDS [MODE [ALGORITHMS]]]]]]]]]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
op=${2:-allreduce} ranks=${3:-4} iterations=${4:-64} sizes=${5:-131072,1048576} delays=${6:-0,1,5,10,50} rounds=${7:-3} mode=${8:-randomlate}
latecomer=$build/bin/latecomer
algorithms=${9:-$("$latecomer" algorithms --op "$op" | sed -n "s|^$op/||p")}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_PRELOAD=$build/lib/libyield_progress.so  # native then waits as courteously as latecomer (tests/support)
echo '{"version": 1, "mode": "observe"}' > "$out/native.policy.json"
for name in $algorithms; do
  echo '{"version": 1, "mode": "apply", "background": {"enabled": true}, "rules": [{"match": {"op": "'"$op"'"}, "use": "'"$name"'"}]}' > "$out/$name.policy.json"
done
for round in $(seq "$rounds"); do
  for way in native $algorithms; do
    "$latecomer" run --policy "$out/$way.policy.json" --output "$out/$way.$round.json" -- -n "$ranks" "$build/bin/late_benchmark" "$op" "$mode" "$iterations" "$sizes" "$delays" > "$out/$way.$round.txt"
  done
done
# The median over rounds of WAY's elapsed time in a cell, in ms.
elapsed() { # WAY FLOATS DELAY
  sed -nE "s/^$2 floats, $3 ms: elapsed ([0-9.]+) ms.*/\1/p" "$out/$1".*.txt | sort -g | sed -n "$(((rounds + 1) / 2))p"
}
wrong=$(cat "$out"/*.txt | sed -nE 's/.* ([0-9]+) wrong/\1/p' | awk '{n += $1} END {print n + 0}')
echo "$op, $mode, $ranks processes, $iterations iterations, $rounds interleaved rounds: mean elapsed time in ms (native / algorithm), $wrong wrong results"
for floats in ${sizes//,/ }; do
  printf '\n%-22s' "$floats floats"
  for delay in ${delays//,/ }; do printf '%18s' "$delay ms"; done
  for way in native $algorithms; do
    printf '\n%-22s' "$way"
    for delay in ${delays//,/ }; do
      awk -v e="$(elapsed "$way" "$floats" "$delay")" -v n="$(elapsed native "$floats" "$delay")" 'BEGIN {printf "%10.3f (%5.2f)", e, n / e}'
    done
  done
  printf '\n'
done
[ "$wrong" -eq 0 ]
