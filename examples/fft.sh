#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of paper 001, section 6: observe, advise, apply, and the verdict beside the paper's, which
# ran 8 nodes on 1 Gbit/s; here everything shares one machine and its memory.
# Usage: examples/fft.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
ranks=${2:-8} iterations=${3:-300} rounds=${4:-3}
latecomer=$build/bin/latecomer
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_PRELOAD=$build/lib/libyield_progress.so  # so that native waits as courteously (tests/support)
say() { printf '\n== %s\n' "$*"; }

say "observing: $ranks processes, $iterations iterations"
echo '{"version": 1, "network": "measure"}' > "$out/observe.policy.json"
"$latecomer" run --policy "$out/observe.policy.json" --output "$out/observed.json" -- -n "$ranks" "$build/bin/fft" "$iterations"
"$latecomer" report --top 1 "$out/observed.json"
say "advising"
"$latecomer" advise "$out/observed.json" -o "$out/advised.policy.json"
for way in linear_sync bsls; do
  printf '{"version": 1, "mode": "apply", "background": {"enabled": true}, "rules": [{"match": {"op": "gather"}, "use": "%s"}]}\n' $way > "$out/$way.policy.json"
done
for round in $(seq "$rounds"); do
  for way in native advised linear_sync bsls; do
    policy=(--policy "$out/$way.policy.json")
    [ $way = native ] && policy=(--policy "$out/observe.policy.json")
    "$latecomer" run "${policy[@]}" --output "$out/$way.$round.json" -- -n "$ranks" "$build/bin/fft" "$iterations" > "$out/$way.$round.txt"
  done
done
say "applied: $rounds interleaved rounds, medians"
"$latecomer" diff "$out/native.$rounds.json" "$out/advised.$rounds.json" || true
median() { sort -g | sed -n "$(((rounds + 1) / 2))p"; }
figure() { for round in $(seq "$rounds"); do sed -E "s/.*$2 ([0-9.]+) s.*/\1/" "$out/$1.$round.txt"; done | median; }
printf '\n%-12s %14s %12s %14s %14s\n' "" "gather, mean" "total" "gather" "total"
for way in native advised linear_sync bsls; do
  awk -v n=$way -v g="$(figure $way gather)" -v t="$(figure $way total)" -v ng="$(figure native gather)" -v nt="$(figure native total)" \
    'BEGIN {printf "%-12s %11.3f ms %10.3f s %+13.1f%% %+13.1f%%\n", n, 1e3 * g, t, 100 * (g / ng - 1), 100 * (t / nt - 1)}'
done
printf '%-12s %14s %12s %+13.1f%% %+13.1f%%   (paper 001: SLS and BSLS against linear_sync on 8 nodes; run time, total)\n' paper "" "" -16.7 -3.3
