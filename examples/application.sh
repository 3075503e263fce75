# SPDX-License-Identifier: BSD-3-Clause
# Sourced by training.sh and fft.sh, which set program, ranks and iterations, rounds, and their own arguments. Observes
# the program, makes a policy with `latecomer advise`, runs the program alternately in several ways, and prints medians.
# All ranks share one machine and its memory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${build:-$here/../build}" && pwd)
latecomer=$build/bin/latecomer
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_PRELOAD=$build/lib/libyield_progress.so  # native then waits as courteously as latecomer (tests/support)
say() { printf '\n== %s\n' "$*"; }
declare -A program_of  # of the ways that run another program
run() { # POLICY OUTPUT
  "$latecomer" run --policy "$out/$1.policy.json" --output "$out/$2.json" -- -n "$ranks" "$build/bin/${program_of[$1]:-$program}" "$iterations"
}

observe_and_advise() {
  say "observing: $ranks processes, $iterations iterations"
  echo '{"version": 1, "network": "measure"}' > "$out/native.policy.json"
  run native observed
  "$latecomer" report --top 1 "$out/observed.json"
  say "advising"
  "$latecomer" advise "$out/observed.json" -o "$out/advised.policy.json" || [ $? -eq 1 ]  # status 1: it expects no gain and keeps every call native
}

# Runs every WAY, a policy in $out, alternately with native and advised.
in_turns() { # WAY...
  ways=(native advised "$@")
  for round in $(seq "$rounds"); do
    for way in "${ways[@]}"; do run "$way" "$way.$round" > "$out/$way.$round.txt"; done
  done
  say "applied: $rounds interleaved rounds, medians"
  "$latecomer" diff "$out/native.$rounds.json" "$out/advised.$rounds.json" || true
}

# The median in seconds of the values that WAY's runs print after WORD.
figure() { # WAY WORD
  for round in $(seq "$rounds"); do sed -nE "s/.*$2 ([0-9.e+-]+) s.*/\1/p" "$out/$1.$round.txt"; done | sort -g | sed -n "$(((rounds + 1) / 2))p"
}
