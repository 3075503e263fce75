# SPDX-License-Identifier: BSD-3-Clause
"""Lateness that a program injects is attributed to the right rank and to the right cause."""
import json
import os
import pathlib
import re

from common import a, check, finish, folder, one_session, open_mpi, run, sanitized

LATE, CALLS, MS = 1, 120, 8
# What each cause must be found as. `neighbour`: the late rank waits in MPI_Recv for a rank that is asleep. `pipe`: the
# kernel does not say for what a process sleeps.
CAUSES = {"work": "computing", "sleep": "blocked", "stop": "blocked", "faults": "page_faults", "burner": "off_cpu", "neighbour": "mpi_wait",
          "file": "io", "pipe": "blocked", "threads": "off_cpu"}
CHAINS = ("chain", "requests")
PINNED = ("burner", "threads")  # they need two cores
cores = len(os.sched_getaffinity(0))
launcher = one_session()


def observed(cause, ranks, calls):
    profile = folder / f"{cause}.{ranks}.json"
    unbound = {"OMPI_MCA_hwloc_base_binding_policy": "none"} if open_mpi else {}  # the program places its ranks
    ran = run(a.cli, "run", "--output", profile, "--overwrite", "--launcher", launcher, "--", "-n", ranks, pathlib.Path(a.bin) / "causes", cause, LATE, calls, MS, folder, **unbound)
    check(ran.returncode == 0, f"{cause}, {ranks} ranks: runs {ran.stderr[-300:] if ran.returncode else ''}")
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    printed = re.search(r"^[\d.]+$", ran.stdout, re.M)  # `faults` prints its time in the kernel; UCX may print warnings
    report["injected_ns"] = float(printed[0] if printed else calls * MS) * 1e6
    print("      " + " ".join(report["verdict"]))
    return report


def shares(causes):
    return ", ".join(f"{k} {v:.3f}" for k, v in (causes or {}).items() if v > 0)


def check_blame(report, cause, ranks, part, injected=None):
    """At least 95% of the injected waiting is blamed on the right rank, and 90% of it on the right cause. `injected`: nanoseconds that other ranks wait. Without it, and where ranks waited less because they were late themselves, all waiting counts."""
    row = next(r for r in report["ranks"] if r["rank"] == LATE)
    blamed, causes = row["blamed_ns"], row["blamed_causes"] or {}
    all_ranks = sum(r["blamed_ns"] for r in report["ranks"])
    injected = min(injected or all_ranks, all_ranks)
    # Where ranks share cores, a rank that wakes up or works longer also waits for a core. With more than two per core,
    # other ranks are late for that, too.
    right = blamed * sum(causes.get(k, 0) for k in {part, "off_cpu" if ranks > cores else part})
    least = 0.95 if ranks <= 2 * cores else 0.85
    print(f"      {cause}, {ranks} ranks: of {injected / 1e6:.0f} ms injected, {blamed / injected:.1%} are blamed on rank {LATE} ({blamed / all_ranks:.1%} of the waiting): {shares(causes)}")
    check(blamed >= least * injected, f"{cause}, {ranks} ranks: {least:.0%} of the waiting is blamed on rank {LATE}")
    check(right >= 0.9 * min(injected, blamed), f"{cause}, {ranks} ranks: 90% of it on {part}")


if sanitized:  # its slowness changes the shares of time, so the programs only have to run
    for cause in sorted({*CAUSES, *CHAINS}):
        observed(cause, 4 if cause in CHAINS else 2, 24)  # a chain has four links
    print("skipped the shares of time: a sanitizer changes them")
    finish()

# The machine may have 2 cores. Then burners delay 4 ranks inside the collective, too, and with 8 ranks the time of a
# stop is the time of a call, and a rank that has more to do also waits longer for a core.
for ranks, causes in ((2, CAUSES), (4, set(CAUSES) - {"burner"}), (8, {"work", "sleep", "faults", "neighbour", "file", "pipe"})):
    for cause in sorted(causes):
        part = CAUSES[cause]
        if cause in PINNED and cores < 2:
            print(f"skipped {cause}: it needs two cores")
            continue
        for attempt in range(3):
            report = observed(cause, ranks, 24 if cause in PINNED else CALLS)
            row = next(r for r in report["ranks"] if r["rank"] == LATE)
            share = row["awaited_ns"] / sum(r["awaited_ns"] for r in report["ranks"])
            found = row["causes"] or {}
            print(f"      {cause}, {ranks} ranks: rank {LATE} has {share:.1%} of the waiting, causes {shares(found)}")
            # Stops come at random moments, so in a run most may fall into calls or into intervals that are not sampled.
            if cause != "stop" or share > 0.5 and max(found, key=found.get, default="") == part:
                break
        # The process is stopped for a part of the calls only.
        check(share > (0.9 if ranks <= 4 and cause != "stop" else 0.5), f"{cause}, {ranks} ranks: rank {LATE} is awaited most")
        check(bool(found) and abs(sum(found.values()) - 1) < 1e-6, f"{cause}, {ranks} ranks: the shares add up to 1")
        check(bool(found) and max(found, key=found.get) in ((part,) if ranks <= 4 else (part, "off_cpu")), f"{cause}, {ranks} ranks: the largest cause is {part}")
        if cause == "threads":
            check("its own threads" in " ".join(report["verdict"]), f"{cause}, {ranks} ranks: the verdict names the rank's own threads")
        # The late rank of `neighbour` also works, and a stop may fall into a call.
        if cause not in ("neighbour", "stop"):
            check_blame(report, cause, ranks, part, None if cause in PINNED else report["injected_ns"] * (ranks - 1))

# Rank 1 sleeps, rank 2 waits for a message of rank 1, and rank 3 for one of rank 2.
for ranks in (4, 8):
    for cause in CHAINS:
        report = observed(cause, ranks, CALLS)
        check_blame(report, cause, ranks, "blocked", report["injected_ns"] * (ranks - 3))
        awaited = max(report["ranks"], key=lambda r: r["awaited_ns"])["rank"]
        said = " ".join(report["verdict"])
        hops = {1: "It is asleep", 2: r"It waits [^;]*for rank 1\b", 3: r"It waits [^;]*for rank 2, which waits [^;]*for rank 1\b"}
        check(f"Rank {awaited} is late" in said and re.search(hops.get(awaited, "^$"), said) and (awaited == 1 or "rank 1 is asleep" in said),
              f"{cause}, {ranks} ranks: the verdict leads from rank {awaited} to rank 1")

# Balanced ranks: waits for a core are real where ranks share cores. No other cause takes 5% of rank-time.
for ranks in (2, 4):
    report = observed("none", ranks, 10 * CALLS)  # a second: the start of the run is no cause
    time = report["job"]["wall_time_s"] * 1e9 * ranks
    causes = {}
    for row in report["ranks"]:
        for cause, share in (row["blamed_causes"] or {}).items():
            causes[cause] = causes.get(cause, 0) + share * row["blamed_ns"] / time
    print(f"      none, {ranks} ranks: {report['wait_share']:.1%} of rank-time: {shares(causes)}")
    check(all(share < 0.05 for cause, share in causes.items() if cause not in ("off_cpu", "unexplained")), f"none, {ranks} ranks: no false cause")

finish()
