# SPDX-License-Identifier: BSD-3-Clause
"""Lateness that a program injects is attributed to the right rank and to the right cause."""
import json
import os
import pathlib

from common import a, check, finish, folder, run

LATE = 1
# What each cause must be found as. `neighbour`: the late rank waits in MPI_Recv for a rank that is asleep.
CAUSES = {"work": "computing", "sleep": "blocked", "stop": "blocked", "faults": "kernel", "burner": "runnable", "neighbour": "messages"}


def observed(cause, ranks, calls):
    profile = folder / f"{cause}.{ranks}.json"
    ran = run(a.cli, "run", "--output", profile, "--overwrite", "--", "-n", ranks, pathlib.Path(a.bin) / "causes", cause, LATE, calls, 8)
    check(ran.returncode == 0, f"{cause}, {ranks} ranks: runs {ran.stderr[-300:] if ran.returncode else ''}")
    return json.loads(run(a.cli, "report", "--json", profile).stdout)


# The machine may have 2 cores. Then burners delay 4 ranks inside the collective, too, and with 8 ranks the time of a
# stop is the time of a call, and a rank that has more to do also waits longer for a core.
for ranks, causes in ((2, CAUSES), (4, set(CAUSES) - {"burner"}), (8, {"work", "sleep", "faults", "neighbour"})):
    for cause in sorted(causes):
        part = CAUSES[cause]
        if cause == "burner" and len(os.sched_getaffinity(0)) < 2:
            print("skipped burner: it needs two cores")
            continue
        report = observed(cause, ranks, 24 if cause == "burner" else 120)
        row = next(r for r in report["ranks"] if r["rank"] == LATE)
        share = row["awaited_ns"] / sum(r["awaited_ns"] for r in report["ranks"])
        found = row["causes"] or {}
        print(f"      {cause}, {ranks} ranks: rank {LATE} has {share:.1%} of the waiting, causes " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()))
        print("      " + " ".join(report["verdict"]))
        # The process is stopped for a part of the calls only.
        check(share > (0.9 if ranks <= 4 and cause != "stop" else 0.5), f"{cause}, {ranks} ranks: rank {LATE} is awaited most")
        check(bool(found) and abs(sum(found.values()) - 1) < 1e-6, f"{cause}, {ranks} ranks: the shares add up to 1")
        check(bool(found) and max(found, key=found.get) in ((part,) if ranks <= 4 else (part, "runnable")), f"{cause}, {ranks} ranks: the largest cause is {part}")
report = observed("none", 2, 120)
print(f"      none, 2 ranks: {report['wait_share']:.1%} of rank-time; " + " ".join(report["verdict"]))

finish()
