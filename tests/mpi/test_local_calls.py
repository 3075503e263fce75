# SPDX-License-Identifier: BSD-3-Clause
"""Calls that wait for nobody but take long are timed by a sample (local_calls.c)."""
import json

import pytest
from common import a, folder, launcher, open_mpi, run, sanitized


def test_sends_that_copy_have_the_time_that_the_program_measures():
    profile = folder / "local.json"
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 2, a.bin + "/local_calls", **yielding)
    assert done.returncode == 0, done.stderr[-600:]
    measured, calls = map(float, done.stdout.split())
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    (site,) = [one for one in report["timed_sites"] if one["call"] == "MPI_Ibsend"]
    print(measured, site)
    assert (site["calls"], site["part"]) == (calls, "messages")
    # All of the long ones are timed, and one in 64 of the others, where no other process has the core.
    assert 0.4 * calls < site["timed"] <= calls or sanitized
    assert site["time_ns"] == pytest.approx(measured, rel=0.25) or sanitized
    process = report["processes"][0]
    sums = sum(row["time_ns"] for one in report["timed_sites"] if one["part"] == "messages" for row in one["by_rank"] if row["rank"] == 0)
    assert 0.8 * process["messages_ns"] - 1e5 <= sums <= 1.001 * process["messages_ns"] + 1e5
