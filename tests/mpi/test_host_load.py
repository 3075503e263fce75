# SPDX-License-Identifier: BSD-3-Clause
"""What other processes took of a host's cores while a job ran, with and without a process that computes beside each
rank. Takes 15 s, because the kernel counts processor time in ticks."""
import json
import os
import pathlib

import pytest

from common import a, folder, run

program = a.bin + "/beside"
RANKS = 2


def judged(output):
    """The load of the only host, and the verdict."""
    report = run(a.cli, "report", "--json", output)
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)
    (host,) = found["hosts"]
    assert host["load"] == json.loads(output.read_text())["hosts"][0]["load"]
    return host["load"], " ".join(found["verdict"])


def observe(name, busy, **keys):
    policy, output = folder / "policy.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, **keys}))
    done = run(a.cli, "run", "--policy", policy, "--output", output, "--", "-n", RANKS, program, 1500, busy)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return output, *map(float, done.stdout.split()[-2:])


@pytest.mark.parametrize("busy", [0, 1])
def test_other_processes_are_told_from_the_ranks(busy):
    output, beside_ns, ranks_ns = observe(f"busy{busy}", busy)
    load, verdict = judged(output)
    assert load["ranks"] == RANKS and load["cores"] == os.cpu_count() and 0 < load["usable_cores"] <= load["cores"]
    time_ns, error_ns = load["cores"] * load["span_ns"], load["others_error_ns"]
    assert ranks_ns / 2 <= load["ranks_ns"] <= 1.01 * time_ns, load
    assert load["others_ns"] + 2 * error_ns >= beside_ns / 2, load
    assert load["others_ns"] + load["ranks_ns"] <= 1.01 * time_ns + 4 * error_ns, load  # no rank counts as another process
    assert load["others_share"] == pytest.approx(load["others_ns"] / time_ns)
    assert ("Other processes took" in verdict) == (load["others_ns"] - 2 * error_ns > 0.05 * time_ns), (load, verdict)
    if pathlib.Path("/proc/pressure/cpu").exists():
        assert ("pressure: for" in verdict) == ("Other processes took" in verdict), verdict
        assert 0 <= load["pressure_ns"] <= 1.01 * load["span_ns"]
    else:
        assert load["pressure_ns"] is None


def test_without_causes_no_host_is_measured():
    output, *_ = observe("off", 0, causes=False)
    assert "hosts" not in json.loads(output.read_text())

