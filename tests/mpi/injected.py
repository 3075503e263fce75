# SPDX-License-Identifier: BSD-3-Clause
"""The verdict names the rank and the cause of waiting that is no steady lateness before collectives: messages, set-up, rare long intervals, foreign load. LATECOMER_ROUNDS repeats each run, and the output counts right and wrong verdicts."""
import json
import os
import pathlib
import re

from common import a, check, finish, folder, one_session, run

LATE = 1
rounds = int(os.environ.get("LATECOMER_ROUNDS", "3"))
least = 0.9 if rounds >= 10 else 0.6  # other processes use the cores of some runs
# Of a rank with more work and a foreign process on its core, both are true.
OWN_OR_FOREIGN = rf"Rank {LATE} is late.*(It computes|It is ready to run but has no core|No single cause)"
# Name: cause, ranks, arguments, and what the verdict says. Other ranks are named only as those that wait for the late one.
INJECTED = {
    "pipeline": ("pipeline", 4, (60, 8), rf"Ranks wait for (?:messages of rank {LATE}|rank {LATE} to receive messages):.* rank {LATE}, which computes"),
    "prepare": ("prepare", 4, (100, 8), rf"Ranks wait at their first collective for rank {LATE}"),
    "burst": ("burst", 2, (12, 100), rf"Rank {LATE} is late.* It computes"),
    # Each long interval follows 300 short calls, so no earlier call announces it. Its own parts say why, not the whole run.
    "bursts": ("bursts", 2, (12, 100), rf"Rank {LATE} is late.* It computes for [\d.]+ m?s before a call"),
    "load": ("load", 4, (30, 20), OWN_OR_FOREIGN),
    # One foreign process and two ranks on two cores: it takes a part of each rank's time, and the verdict names it.
    "load beside 2 ranks": ("load", 2, (60, 20), OWN_OR_FOREIGN),
}
BLAMED = re.compile(r"(?:[Rr]ank (\d+) is late|wait for (?:messages of )?rank (\d+)(?: to receive messages)?:|first collective for rank (\d+))")
launcher = one_session()
for name, (cause, ranks, arguments, wanted) in INJECTED.items():
    right = wrong = 0
    level = {"THREAD_MULTIPLE": "1"} if cause in ("pipeline", "burst") else {}  # only the thread that starts MPI is measured
    for round in range(rounds):
        profile = folder / f"{cause}.json"
        ran = run(a.cli, "run", "--output", profile, "--overwrite", "--launcher", launcher, "--", "-n", ranks, pathlib.Path(a.bin) / "causes", cause, LATE, *arguments, **level)
        check(ran.returncode == 0, f"{name} runs {ran.stderr[-300:] if ran.returncode else ''}")
        said = " ".join(json.loads(run(a.cli, "report", "--json", profile).stdout)["verdict"])
        blamed = {int(rank) for pair in BLAMED.findall(said) for rank in pair if rank}
        right += bool(re.search(wanted, said)) and blamed <= {LATE}
        wrong += bool(blamed - {LATE})
        print("     ", said)
    print(f"{name}: {right} of {rounds} right, {wrong} wrong")
    check(wrong == 0 and right >= least * rounds, f"{name}: the verdict names rank {LATE} and its cause")
finish()
