# SPDX-License-Identifier: BSD-3-Clause
"""The time in functions of the program beneath calls of MPI is the program's (callbacks.c)."""
import json

from common import a, folder, launcher, open_mpi, run, sanitized


def test_callbacks_count_as_the_program():
    profile, rules = folder / "callbacks.json", folder / "callbacks.policy.json"
    rules.write_text('{"version": 1, "budget": null}')
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--policy", rules, "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 2, a.bin + "/callbacks", **yielding)
    assert done.returncode == 0, done.stderr[-600:]
    truth = {calls: float(ns) for calls, ns in map(str.split, done.stdout.splitlines())}
    assert len(truth) == 3 and all(ns >= 48e6 for ns in truth.values()), truth
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    process = report["processes"][0]
    print(truth, {key: ns for key, ns in process.items() if key.endswith("_ns")})
    assert sanitized or process["blocked_ns"] > 0.9 * sum(truth.values())
    # Neither of these waits for the other rank.
    for call in ("MPI_Comm_free", "MPI_Wait"):
        spent = sum(row["time_ns"] for site in report["timed_sites"] if site["call"] == call for row in site["by_rank"] if row["rank"] == 0)
        assert sanitized or spent < 0.5 * 48e6, (call, spent)
