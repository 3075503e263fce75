# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that are killed or abort: every rank that calls MPI leaves snapshots, whatever it calls. A profile of snapshots of
different ages shows no share above 100%, and an abort inside malloc ends as natively."""
import json
import os
import re
import struct
import subprocess
import time

import pytest
from common import a, ends_natively, folder, open_mpi, patience, run, sanitized
from processes import end_tree

KILLED = a.bin + "/killed"


def serials(name, ranks):
    """The number of each rank's last snapshot; 0: it has none."""
    out = [0] * ranks
    for rank in range(ranks):
        for file in (folder / f"{name}.json.parts").glob(f"rank{rank}.[ab]"):
            head = file.read_bytes()[:24]
            if len(head) == 24:
                out[rank] = max(out[rank], struct.unpack("8sQQ", head)[2])
    return out


def killed_when(name, case, ranks, condition, *options):
    """Runs a case until its snapshots are as wanted, kills the job, and returns the profile."""
    words = [a.cli, "run", *options, "--output", folder / f"{name}.json", "--", "-n", ranks, KILLED, case]
    job = subprocess.Popen(list(map(str, words)), env=dict(os.environ, LD_PRELOAD=a.support), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        job.stdout.readline()
        deadline = time.time() + patience * 15
        while not condition(serials(name, ranks)) and time.time() < deadline:
            time.sleep(0.05)
    finally:
        assert end_tree(job)
    return recovered(name)


def recovered(name):
    done = run(a.cli, "recover", folder / f"{name}.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / f"{name}.json").read_text())


def report(name, *options):
    done = run(a.cli, "report", *options, folder / f"{name}.json")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("case", ["blocking", "waited", "tested"])
def test_a_job_of_messages_leaves_snapshots(case):
    profile = killed_when(case, case, 2, all)
    assert [p["rank"] for p in profile["processes"]] == [0, 1]
    assert all(p["wall_ns"] > 9e8 for p in profile["processes"])
    assert profile["processes"][0]["messages_ns"] > 0 or case == "tested"
    (host,) = profile["hosts"]
    assert 9e8 < host["load"]["span_ns"] and 0 < host["load"]["ranks_ns"], host


def test_without_clocks_of_calls_messages_leave_snapshots():
    profile = killed_when("unclocked", "waited", 2, all, "--policy", '{"version": 1, "causes": false}')
    assert len(profile["clock"]) == 2


def test_ranks_with_snapshots_of_different_ages():
    profile = killed_when("ages", "ages", 4, lambda all: min(all[1:]) > 2)
    ends = profile["job"]["snapshots"]
    assert ends["first_end_s"] < ends["last_end_s"] and profile["job"]["wall_time_s"] == ends["last_end_s"]
    shares = [float(s) for s in re.findall(r"([\d.]+)%", report("ages", "--all"))]
    assert len(shares) > 20 and max(shares) <= 100


def test_the_report_says_how_far_the_snapshots_reach():
    killed_when("reach", "ages", 4, lambda all: min(all[1:]) > 2)
    answer = json.loads(report("reach", "--json"))
    assert 0.1 < answer["wait_share"] <= 1  # two of four ranks wait for the third nearly all the time
    assert re.search(r"until the last snapshots, after [\d.]+ (m?)s to [\d.]+ s\..* in collectives", answer["verdict"][0])
    assert "counts and sums are at least those shown" in " ".join(report("reach").split())


# Open MPI 4.1.4 itself waits for the lock of malloc in MPI_Abort, also natively. So do MPICH 4.2.1 and 5.0.2.
@pytest.mark.parametrize("case", ["abort", "abort_late"] if open_mpi else ["abort", "abort_malloc", "abort_corrupted", "abort_late_malloc"])
def test_an_abort_ends_as_natively_and_is_noted(case):
    if sanitized and case == "abort_corrupted":
        pytest.skip("a sanitizer ends the program where it damages its heap")
    for _ in range(3):  # MPICH 5.0.2 ends sometimes
        if not (native := ends_natively(2, KILLED, case)):
            pytest.skip(f"natively {case} does not end")
    done = run(a.cli, "run", "--output", folder / f"{case}.json", "--", "-n", 2, KILLED, case, LD_PRELOAD=a.support, timeout=60)
    assert done.returncode == native.returncode
    profile = recovered(case)
    assert any(re.search("rank 1 called MPI_Abort after .* lost", w) for w in profile["warnings"])
    assert "late" not in case or max(s["calls"] for s in profile["sites"]) >= 16


def test_a_job_that_is_killed_at_once_is_not_said_to_lack_mpi_init():
    done = run(a.cli, "run", "--output", folder / "early.json", "--", "-n", 2, KILLED, "at_once", LD_PRELOAD=a.support)
    assert "a rank writes one after its first collectives, or in an MPI call after a second" in done.stderr and "MPI_Init" not in done.stderr
