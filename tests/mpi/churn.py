# SPDX-License-Identifier: BSD-3-Clause
"""Programs that change sizes and communicators all the time. Sums are right, each size class and shape gets one
plan, and no message outlives its communicator."""
import json
import re
import sys

from common import a, check, finish, folder, run

sys.path.append(a.root + "/tests/support")
from profiles import calls_by_algorithm


def churn(name, use, ranks, *program):
    policy, profile = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": use}]}))
    done = run(a.cli, "run", "--policy", policy, "--output", profile, "--", "-n", ranks, a.bin + "/churn", *program, LD_PRELOAD=a.support, LATECOMER_VERBOSE="2", timeout=300)
    check(done.returncode == 0 and "wrong" not in done.stdout, f"{name}: the program runs and its sums are right: {done.stdout[-200:]} {done.stderr[-300:]}")
    said = [int(n) for n in re.findall(r"exchanges planned: (\d+)", done.stderr)]
    left = [int(n) for n in re.findall(r"trees of communicators that are gone: (\d+)", done.stderr)]
    data = json.loads(profile.read_text())
    ran = calls_by_algorithm(data, "allreduce")
    print("     ", name, "planned", said, "left", left, "ran", ran)
    return said[0], max(left), ran, data["warnings"]


# 600 sizes from 400 B to 160 kB form 70 classes, each narrower than an eighth. A few learnt patterns are added.
planned, _, ran, _ = churn("sizes", "clairvoyant", 3, "sizes", 600)
check(0 < planned < 400, f"plans are shared by sizes of a class: {planned} for 600 sizes")
check(ran.get("clairvoyant", 0) == 600, f"clairvoyant ran in all calls: {ran}")

# The halves of different ranks have used other sizes. Earlier plans of a process must not matter. Three shapes.
for use in ("clairvoyant", "prr", "arrival_trees"):
    planned, _, _, _ = churn(f"shapes.{use}", use, 4, "shapes", 150)
    check(planned == 0 if use != "clairvoyant" else 0 < planned < 3 * 70, f"{use}: plans are shared by communicators of one shape: {planned}")

# Each communicator is freed between its first announcement and the next boundary.
for use in ("auto", "prr", "clairvoyant"):
    _, left, _, _ = churn(f"short.{use}", use, 4, "short", 400, 19)
    check(left == 0, f"{use}: no tree outlives its communicator at the end: {left} of 400 did")

# A million calls on one communicator.
for use in ("auto", "prr"):
    _, _, ran, _ = churn(f"million.{use}", use, 2, "short", 1, 1000000)
    check(sum(ran.values()) > 990000, f"a million calls under {use}: {ran}")

# The plan is too large to make inside a call: 4 ranks in 700 segments need 5,600 messages. A learnt plan may be larger.
_, _, ran, warnings = churn("inside", {"algorithm": "clairvoyant", "segments": 700}, 4, "short", 1, 30)
check(ran.get("clairvoyant", 0) == 0, f"too few elements for 700 segments, and too many messages: {ran}")
check(any("clairvoyant: 0 of 30 calls" in w and "3,000" in w for w in warnings), f"the profile says why: {warnings}")
_, _, ran, warnings = churn("ahead", {"algorithm": "clairvoyant", "segments": 700}, 4, "short", 1, 400)
check(ran.get("clairvoyant", 0) > 100 and ran.get("prr", 0) >= 16, f"a plan that came may take more messages: {ran}")
check(any("clairvoyant: in" in w and "prr ran instead" in w for w in warnings), f"the profile says what ran before: {warnings}")
finish()
