# SPDX-License-Identifier: BSD-3-Clause
"""A rule whose algorithm never ran gets one line at the end of the run and one in the report."""
import json

from common import a, check, finish, folder, run


def lines(text, words):
    return [line for line in text.splitlines() if words in line]


# The job is too short for a plan, which gives trees their sizes. The second algorithm needs no plan.
for name in ("sorted", "adaptive"):
    policy, profile = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": op}, "use": name} for op in ("gatherv", "scatterv")]}))
    done = run(a.cli, "run", "--policy", policy, "--output", profile, "--", "-n", 2, a.bin + "/irregular", 2, LD_PRELOAD=a.support)
    check(done.returncode == 0, f"{name}: the program runs: {done.stderr[-300:]}")
    said = lines(done.stderr, "never ran")
    report = run(a.cli, "report", profile).stdout
    warnings = [w for w in json.loads(profile.read_text())["warnings"] if "0 of" in w]
    if name == "adaptive":
        check(not said and not warnings, f"{name}: nothing to say: {said} {warnings}")
        continue
    rules = {w.split(":")[0] for w in warnings}  # on a busy machine, the plan of one of them may come into force
    check(rules and rules <= {"gatherv sorted", "scatterv sorted"} and len(rules) == len(warnings), f"{name}: in the profile: {warnings}")
    check(len(said) == 1 and all(f"{rule}: 0 of" in said[0] for rule in rules), f"{name}: one line: {said}")
    # Where calls are slow, the leader decides before the end of the job, and no call is left for the plan.
    check(all("sizes" in w or "before the plan came into force" in w for w in warnings), f"{name}: and why: {warnings}")
    check(len(lines(report, "sorted: 0 of")) == len(rules), f"{name}: in the report")
finish()
