# SPDX-License-Identifier: BSD-3-Clause
"""Lateness that a program injects is attributed to the right rank and to the right cause."""
import json
import os
import pathlib

from common import a, check, finish, folder, run

LATE = 1
# What each cause must be found as. `neighbour`: the late rank waits in MPI_Recv for a rank that is asleep. `pipe`: the
# kernel does not say for what a process sleeps.
CAUSES = {"work": "computing", "sleep": "blocked", "stop": "blocked", "faults": "page_faults", "burner": "off_cpu", "neighbour": "mpi_wait",
          "file": "io", "pipe": "blocked", "threads": "off_cpu"}
CHAINS = ("chain", "requests")
PINNED = ("burner", "threads")  # they need two cores
two_cores = len(os.sched_getaffinity(0)) >= 2


def observed(cause, ranks, calls):
    profile = folder / f"{cause}.{ranks}.json"
    ran = run(a.cli, "run", "--output", profile, "--overwrite", "--", "-n", ranks, pathlib.Path(a.bin) / "causes", cause, LATE, calls, 8, folder)
    check(ran.returncode == 0, f"{cause}, {ranks} ranks: runs {ran.stderr[-300:] if ran.returncode else ''}")
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    print("      " + " ".join(report["verdict"]))
    return report


def shares(causes):
    return ", ".join(f"{k} {v:.3f}" for k, v in (causes or {}).items() if v > 0)


def check_blame(report, cause, ranks, part):
    """At least 95% of the waiting is blamed on the right rank, and 90% of that on the right cause."""
    row = next(r for r in report["ranks"] if r["rank"] == LATE)
    share = row["blamed_ns"] / sum(r["blamed_ns"] for r in report["ranks"])
    print(f"      {cause}, {ranks} ranks: rank {LATE} is blamed for {share:.1%} of the waiting: {shares(row['blamed_causes'])}")
    check(share >= 0.95, f"{cause}, {ranks} ranks: 95% of the waiting is blamed on rank {LATE}")
    check(bool(row["blamed_causes"]) and row["blamed_causes"][part] >= 0.9, f"{cause}, {ranks} ranks: 90% of that on {part}")


# The machine may have 2 cores. Then burners delay 4 ranks inside the collective, too, and with 8 ranks the time of a
# stop is the time of a call, and a rank that has more to do also waits longer for a core.
for ranks, causes in ((2, CAUSES), (4, set(CAUSES) - {"burner"}), (8, {"work", "sleep", "faults", "neighbour", "file", "pipe"})):
    for cause in sorted(causes):
        part = CAUSES[cause]
        if cause in PINNED and not two_cores:
            print(f"skipped {cause}: it needs two cores")
            continue
        report = observed(cause, ranks, 24 if cause in PINNED else 120)
        row = next(r for r in report["ranks"] if r["rank"] == LATE)
        share = row["awaited_ns"] / sum(r["awaited_ns"] for r in report["ranks"])
        found = row["causes"] or {}
        print(f"      {cause}, {ranks} ranks: rank {LATE} has {share:.1%} of the waiting, causes {shares(found)}")
        # The process is stopped for a part of the calls only.
        check(share > (0.9 if ranks <= 4 and cause != "stop" else 0.5), f"{cause}, {ranks} ranks: rank {LATE} is awaited most")
        check(bool(found) and abs(sum(found.values()) - 1) < 1e-6, f"{cause}, {ranks} ranks: the shares add up to 1")
        check(bool(found) and max(found, key=found.get) in ((part,) if ranks <= 4 else (part, "off_cpu")), f"{cause}, {ranks} ranks: the largest cause is {part}")
        if cause == "threads":
            check("its own threads" in " ".join(report["verdict"]), f"{cause}, {ranks} ranks: the verdict names the rank's own threads")
        # The late rank of `neighbour` also works, and a stop may fall into a call.
        if ranks <= 4 and cause not in ("neighbour", "stop"):
            check_blame(report, cause, ranks, part)

# Rank 1 sleeps, rank 2 waits for a message of rank 1, and rank 3 for one of rank 2.
for ranks in (4, 8):
    for cause in CHAINS:
        report = observed(cause, ranks, 120)
        check_blame(report, cause, ranks, "blocked")
        awaited = max(report["ranks"], key=lambda r: r["awaited_ns"])["rank"]
        hops = {1: "Rank 1 is asleep", 2: "Rank 2 waits for messages from rank 1", 3: "Rank 3 waits for messages from rank 2, which waits for rank 1"}
        check(hops.get(awaited, "?") in " ".join(report["verdict"]) and "rank 1 is asleep" in " ".join(report["verdict"]).lower(),
              f"{cause}, {ranks} ranks: the verdict leads from rank {awaited} to rank 1")

# Balanced ranks: waits for a processor are real where ranks share cores. No other cause takes 5% of rank-time.
for ranks in (2, 4):
    report = observed("none", ranks, 120)
    time = report["job"]["wall_time_s"] * 1e9 * ranks
    causes = {}
    for row in report["ranks"]:
        for cause, share in (row["blamed_causes"] or {}).items():
            causes[cause] = causes.get(cause, 0) + share * row["blamed_ns"] / time
    print(f"      none, {ranks} ranks: {report['wait_share']:.1%} of rank-time: {shares(causes)}")
    check(all(share < 0.05 for cause, share in causes.items() if cause not in ("off_cpu", "unexplained")), f"none, {ranks} ranks: no false cause")

finish()
