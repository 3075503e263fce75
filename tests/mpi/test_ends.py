# SPDX-License-Identifier: BSD-3-Clause
"""The time in MPI_Init and in MPI_Finalize: both are parts of a rank's run, and the parts add up to it."""
import json

import pytest

from common import a, folder, run

program = a.bin + "/ends"
PARTS = ("computing_ns", "kernel_ns", "runnable_ns", "blocked_ns", "messages_ns", "io_ns", "other_mpi_ns", "collectives_ns")
S = 1e9


def observe(name, *words, **keys):
    policy, output = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, **keys}))
    done = run(a.cli, "run", "--policy", policy, "--output", output, "--", "-n", 3, program, *words)
    assert done.returncode == 0, (done.stdout, done.stderr)
    report = run(a.cli, "report", output)
    assert report.returncode == 0, report.stderr
    findings = json.loads(run(a.cli, "report", "--json", output).stdout)["verdict"]  # all of them, also on busy cores
    return json.loads(output.read_text()), " ".join([*findings, *report.stdout.split()])


def test_waits_at_both_ends_have_a_part():
    profile, said = observe("ends", 700, 1000, 1500)
    late, *others = sorted(profile["processes"], key=lambda p: p["rank"] != 1)
    for p in profile["processes"]:
        assert sum(p[part] for part in PARTS) == pytest.approx(p["wall_ns"], rel=1e-6)
    assert late["end_ns"] < 0.5 * S and all(p["end_ns"] > S for p in others), profile["processes"]
    assert all(p["init_ns"] > late["init_ns"] + 0.3 * S for p in others), profile["processes"]
    assert "Ranks wait in MPI_Finalize until rank 1 has come: " in said, said
    assert "Ranks spend their time in MPI_Init: " in said, said
    # Ranks enter MPI_Init at different times, so their runs differ by that, and end together.
    runs = [sum(p[part] for part in ("init_ns", "wall_ns", "end_ns")) for p in others]
    assert max(runs) - min(runs) < 0.5 * S, runs


def test_without_causes_there_are_no_parts():
    profile, said = observe("off", 0, 10, 300, causes=False)
    assert all(p["wall_ns"] == 0 for p in profile["processes"])
    assert "MPI_Finalize" not in said and "MPI_Init" not in said, said
