# SPDX-License-Identifier: BSD-3-Clause
"""A rank that sleeps until a thread of its own has worked, or has come back from MPI, is not said to be asleep (own_threads.c)."""
import json

import pytest
from common import a, folder, launcher, open_mpi, run, sanitized

YIELDS = {} if open_mpi else {"LD_PRELOAD": a.support}  # the thread that sends shares a core with a rank that waits


@pytest.mark.parametrize("way,said", [("computes", "waits for its own threads ("), ("receives", "waits for its own threads, which are in MPI calls ("), ("sleeps", "is asleep or stopped for ")])
def test_sleep_for_a_thread_has_a_name(way, said):
    profile = folder / f"{way}.json"
    done = run(a.cli, "run", "--output", profile, "--", *launcher, "-n", 2, a.bin + "/own_threads", 60, 20, way, **YIELDS)
    assert done.returncode == 0, done.stderr
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    verdict = " ".join(report["verdict"])
    process = json.loads(profile.read_text())["processes"][1]
    print(verdict, {part: round(time / 1e6) for part, time in process.items() if part.endswith("_ns") and isinstance(time, (int, float))})
    assert (process["threads_in_mpi_ns"] > 0.5e9) == (way == "receives") or sanitized
    if way == "computes" and process["threads_ns"] < 0.7 * process["blocked_ns"]:
        pytest.skip("other processes had the core of the thread")
    assert f"It {said}" in verdict or sanitized
