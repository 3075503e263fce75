#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of paper 002, section 6: observe, advise, apply, and the verdict beside the paper's, which
# ran 48 nodes on 1 Gbit/s.
# Usage: examples/training.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
program=training build=${1:-} ranks=${2:-4} iterations=${3:-100} rounds=${4:-3}
. "$(dirname "${BASH_SOURCE[0]}")/application.sh"
observe_and_advise
echo '{"version": 1, "mode": "apply", "network": "measure", "rules": [{"match": {}, "use": "auto"}]}' > "$out/auto.policy.json"
in_turns auto
printf '\n%-10s %12s %12s %16s %16s\n' "" "allreduce" "total" "allreduce, gain" "total, gain"
for way in "${ways[@]}"; do
  awk -v n="$way" -v a="$(figure "$way" allreduce)" -v t="$(figure "$way" total)" -v na="$(figure native allreduce)" -v nt="$(figure native total)" \
    'BEGIN {printf "%-10s %10.3f s %10.3f s %14.2f x %14.2f x\n", n, a, t, na / a, nt / t}'
done
printf '%-10s %12s %12s %14.2f x %14.2f x   (paper 002: PRR on 48 nodes)\n' paper "" "" 1.12 1.04
grep -h -o 'loss.*' "$out/native.$rounds.txt" "$out/auto.$rounds.txt"
