# SPDX-License-Identifier: BSD-3-Clause
"""Time without a core counts outside MPI only: rank 1 computes and waits by turns beside a busy process. turns.c asks the kernel what its computing took."""
import json
import os

import pytest
from common import a, folder, launcher, open_mpi, run, sanitized

MS = 1e6
YIELDS = {"OMPI_MCA_mpi_yield_when_idle": "1"} if open_mpi else {"LD_PRELOAD": a.support}
UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none"} if open_mpi else {}  # the program places its ranks


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("yields", [False, True], ids=["spins", "yields"])
@pytest.mark.parametrize("ranks,way", [(2, "reduce"), (2, "receive"), (2, "several"), (4, "reduce")])
def test_waits_in_mpi_are_not_without_core(ranks, way, yields):
    profile = folder / f"{ranks}.{way}.{yields}.json"
    done = run(a.cli, "run", "--output", profile, "--", *launcher, "-n", ranks, a.bin + "/turns", 60, 6, 10, way, **UNBOUND, **(YIELDS if yields else {}))
    assert done.returncode == 0, done.stderr
    own, delay = (float(word) * MS for word in done.stdout.split()[-2:])
    found = json.loads(profile.read_text())["processes"][1]
    print(f"{ranks} {way} {yields}: computing {own / MS:.0f}, without a core {delay / MS:.0f}, reported", {k: round(v / MS) for k, v in found.items() if k.endswith("_ns") and isinstance(v, (int, float))})
    assert found["rank"] == 1
    if sanitized or delay < 100 * MS:  # then the busy process has hardly had the core
        return
    assert 0.6 * delay < found["runnable_ns"] < 1.6 * delay
    assert 0.6 * own < found["computing_ns"] + found["kernel_ns"] < 1.6 * own
