#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of Proficz 2018, section 6: observes it, makes a policy, applies it, and prints the speedups against
# the ring beside the paper's. The paper ran 16 processes on 16 nodes with 1 Gbit/s Ethernet. `training_edge` is the
# same program with edge calls.
# Usage: examples/training.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
program=training build=${1:-} ranks=${2:-4} iterations=${3:-100} rounds=${4:-3}
. "$(dirname "${BASH_SOURCE[0]}")/application.sh"
observe_and_advise
echo '{"version": 1, "mode": "apply", "network": "measure", "rules": [{"match": {}, "use": "auto"}]}' > "$out/auto.policy.json"
for name in ring slt prr; do
  echo '{"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "'$name'"}]}' > "$out/$name.policy.json"
done
cp "$out/prr.policy.json" "$out/prr_edge.policy.json"
program_of[prr_edge]=training_edge
in_turns ring slt prr prr_edge auto
printf '\n%-10s %12s %12s %18s %14s %10s %10s\n' "" "allreduce" "total" "ring / allreduce" "ring / total" "paper" "paper"
paper() { case $1 in ring) echo 1.000 1.000 ;; slt) echo 1.079 1.040 ;; prr) echo 1.121 1.042 ;; *) echo - - ;; esac; }
for way in "${ways[@]}"; do
  awk -v n="$way" -v a="$(figure "$way" allreduce)" -v t="$(figure "$way" total)" -v ra="$(figure ring allreduce)" -v rt="$(figure ring total)" -v p="$(paper "$way")" \
    'BEGIN {split(p, of, " "); printf "%-10s %10.3f s %10.3f s %16.3f x %12.3f x %10s %10s\n", n, a, t, ra / a, rt / t, of[1], of[2]}'
done
echo "paper: Proficz 2018, section 6, allreduce and total against the ring; $ranks processes here, 16 nodes there"
grep -h -o 'loss.*' "$out/native.$rounds.txt" "$out/prr.$rounds.txt"
