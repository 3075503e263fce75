#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The application of paper 001, section 6: observe, advise, apply, and the verdict beside the paper's, which
# ran 8 nodes on 1 Gbit/s.
# Usage: examples/fft.sh [BUILD [RANKS [ITERATIONS [ROUNDS]]]]
program=fft build=${1:-} ranks=${2:-8} iterations=${3:-300} rounds=${4:-3}
. "$(dirname "${BASH_SOURCE[0]}")/application.sh"
observe_and_advise
rules() { printf '"rules": [{"match": {"op": "gather"}, "use": "%s"}]}\n' "$1"; }
echo '{"version": 1, "mode": "apply",' "$(rules linear_sync)" > "$out/linear_sync.policy.json"
echo '{"version": 1, "mode": "apply", "background": {"enabled": true},' "$(rules bsls)" > "$out/bsls.policy.json"
in_turns linear_sync bsls
printf '\n%-12s %14s %12s %14s %14s\n' "" "gather, mean" "total" "gather" "total"
for way in "${ways[@]}"; do
  awk -v n="$way" -v g="$(figure "$way" gather)" -v t="$(figure "$way" total)" -v ng="$(figure native gather)" -v nt="$(figure native total)" \
    'BEGIN {printf "%-12s %11.3f ms %10.3f s %+13.1f%% %+13.1f%%\n", n, 1e3 * g, t, 100 * (g / ng - 1), 100 * (t / nt - 1)}'
done
printf '%-12s %14s %12s %+13.1f%% %+13.1f%%   (paper 001: SLS and BSLS against linear_sync on 8 nodes; run time, total)\n' paper "" "" -16.7 -3.3
