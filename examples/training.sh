#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of paper 002, section 6: observe, advise, apply, and the verdict beside the paper's, which
# ran 48 nodes on 1 Gbit/s; here everything shares one machine and its memory.
# Usage: examples/training.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
ranks=${2:-4} iterations=${3:-100} rounds=${4:-3}
latecomer=$build/bin/latecomer
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_PRELOAD=$build/lib/libyield_progress.so  # so that native waits as courteously (tests/support)
say() { printf '\n== %s\n' "$*"; }

say "observing: $ranks processes, $iterations iterations"
echo '{"version": 1, "network": "measure"}' > "$out/observe.policy.json"
"$latecomer" run --policy "$out/observe.policy.json" --output "$out/observed.json" -- -n "$ranks" "$build/bin/training" "$iterations"
"$latecomer" report --top 1 "$out/observed.json"
say "advising"
"$latecomer" advise "$out/observed.json" -o "$out/advised.policy.json"
echo '{"version": 1, "mode": "apply", "network": "measure", "rules": [{"match": {}, "use": "auto"}]}' > "$out/auto.policy.json"
for round in $(seq "$rounds"); do
  for way in native advised auto; do
    policy=(--policy "$out/$way.policy.json")
    [ $way = native ] && policy=(--policy "$out/observe.policy.json")
    "$latecomer" run "${policy[@]}" --output "$out/$way.$round.json" -- -n "$ranks" "$build/bin/training" "$iterations" > "$out/$way.$round.txt"
  done
done
say "applied: $rounds interleaved rounds, medians"
"$latecomer" diff "$out/native.$rounds.json" "$out/advised.$rounds.json" || true
median() { sort -n | sed -n "$(((rounds + 1) / 2))p"; }
figure() { for round in $(seq "$rounds"); do sed -E "s/.*$2 ([0-9.]+) s.*/\1/" "$out/$1.$round.txt"; done | median; }
printf '\n%-10s %12s %12s %16s %16s\n' "" "allreduce" "total" "allreduce, gain" "total, gain"
for way in native advised auto; do
  awk -v n=$way -v a="$(figure $way allreduce)" -v t="$(figure $way total)" -v na="$(figure native allreduce)" -v nt="$(figure native total)" \
    'BEGIN {printf "%-10s %10.3f s %10.3f s %14.2f x %14.2f x\n", n, a, t, na / a, nt / t}'
done
printf '%-10s %12s %12s %14.2f x %14.2f x   (paper 002: PRR on 48 nodes)\n' paper "" "" 1.12 1.04
grep -h -o 'loss.*' "$out/native.$rounds.txt" "$out/auto.$rounds.txt"
