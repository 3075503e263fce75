#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of Proficz 2020, section 6: observes it, makes a policy, applies it, and prints the changes against
# linear_sync beside table 5 of the paper. The paper ran 8 processes on 8 nodes with 1 Gbit/s Ethernet, and its native
# gather was linear_sync.
# Usage: examples/fft.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
program=fft build=${1:-} ranks=${2:-8} iterations=${3:-300} rounds=${4:-3}
. "$(dirname "${BASH_SOURCE[0]}")/application.sh"
observe_and_advise
for name in linear_sync sls bsls; do
  background=
  [ $name = bsls ] && background='"background": {"enabled": true}, '
  echo '{"version": 1, "mode": "apply", '"$background"'"rules": [{"match": {"op": "gather"}, "use": "'$name'"}]}' > "$out/$name.policy.json"
done
in_turns linear_sync sls bsls
# Table 5 in percent of linear_sync: elapsed time of the gather (4, 2 and 2 ms), total time (64.854, 62.728 and 62.813
# s).
paper() { case $1 in linear_sync) echo 0.0% 0.0% ;; sls) echo -50% -3.3% ;; bsls) echo -50% -3.1% ;; *) echo - - ;; esac; }
printf '\n%-12s %14s %12s %9s %9s %9s %9s\n' "" "gather, mean" "total" "gather" "total" "paper" "paper"
for way in "${ways[@]}"; do
  awk -v n="$way" -v g="$(figure "$way" gather)" -v t="$(figure "$way" total)" -v ng="$(figure linear_sync gather)" -v nt="$(figure linear_sync total)" -v p="$(paper "$way")" \
    'BEGIN {split(p, of, " "); printf "%-12s %11.3f ms %10.3f s %+8.1f%% %+8.1f%% %9s %9s\n", n, 1e3 * g, t, 100 * (g / ng - 1), 100 * (t / nt - 1), of[1], of[2]}'
done
echo "gather: mean elapsed time of a process, against linear_sync; total: the program's. paper: Proficz 2020, table 5, against its LS"
echo "(the paper's run time of the gather, first arrival to last exit: -16.7%); $ranks processes here, 8 nodes there"
