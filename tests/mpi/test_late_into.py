# SPDX-License-Identifier: BSD-3-Clause
"""Rank 1 is late into a call of MPI that may wait: rank 0 waits in MPI, and rank 1 alone spends its time outside. late_into.c has the cases."""
import collections
import json
import pathlib
import re

import pytest
from common import a, ends_natively, folder, launcher, natively, open_mpi, run, sanitized

PROGRAM = pathlib.Path(a.bin) / "late_into"
INJECTED = 5 * 20e6  # ns, as the program has it
IN_MPI, BUSY = ("collectives_ns", "messages_ns", "io_ns", "other_mpi_ns"), ("computing_ns", "kernel_ns")
PART_OF = {"messages": "messages_ns", "requests": "messages_ns", None: "messages_ns", "files": "io_ns"}  # by section of the table; None: a callback
SECTION = {name: section for section, rows in re.findall(r"^\[(.*)\].*\n((?:.+\n)*)", (pathlib.Path(a.root) / "shim/front/functions.def").read_text(), re.M)
           for name in re.findall(r"^MPI_(\w+)\(", rows, re.M)}
# One of each kind; the others take long together.
FEW = "Comm_split Comm_accept Comm_free Win_create Win_complete Buffer_detach Recv Ineighbor_allgather File_set_view copies_attribute deletes_attribute".split()
WITH_PEER = "Send Ssend Recv Probe Mprobe Sendrecv Sendrecv_replace Wait Waitall Waitany Waitsome Win_lock Ineighbor_allgather".split()
IN_ANOTHER = "Win_lock", "Ineighbor_allgather"  # these may wait in a later call
CASES = [pytest.param(case, marks=() if case in FEW else pytest.mark.long) for case in run(PROGRAM).stdout.split()]


def observed(case, program=PROGRAM):
    """What the two ranks did, or None if the library cannot run the case."""
    profile = folder / f"{program.name}.{case}.json"
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 2, program, case, folder, **yielding)
    if done.returncode != 0:
        native = ends_natively(2, program, case, folder)
        if not native or native.returncode != 0:
            return None
    assert done.returncode == 0, done.stderr
    found = json.loads(profile.read_text())
    ranks = sorted(found["processes"], key=lambda one: one["rank"])
    check_sites(case, found["timed_sites"], ranks)
    return ranks


def check_sites(case, sites, ranks):
    """The sites of rank 0 have its time in MPI but collectives. In a case with a known peer, most of it is for rank 1."""
    rows = [(site, row) for site in sites for row in site["by_rank"] if row["rank"] == 0]
    whole = sum(row["time_ns"] for _, row in rows)
    parts = sum(ranks[0][part] for part in IN_MPI if part != "collectives_ns")
    # The parts also have readings at the ends of waits, in which the rank may lose its core.
    assert 0.8 * parts - 1e5 <= whole <= 1.001 * parts + 1e5
    if case in WITH_PEER and not sanitized:
        peers = collections.Counter()
        for _, row in rows:
            peers.update({peer["rank"]: peer["wait_ns"] for peer in row.get("waits_for", [])})
        called = {site["call"] for site, row in rows if row["time_ns"] > 0.5 * INJECTED}
        print(case, called, peers)
        assert set(peers) == {1} and peers[1] >= 0.8 * INJECTED
        assert f"MPI_{case}" in called or case in IN_ANOTHER, called


def check_parts(case, ranks):
    if not ranks:
        pytest.skip("natively the library does not run it, or has no end")
    waits, late = (sum(one[part] for part in IN_MPI) for one in ranks)
    print(case, [{part: round(one[part] / 1e6) for part in one if part.endswith("_ns")} for one in ranks])
    assert all(sum(one[part] for part in IN_MPI) <= one["wall_ns"] for one in ranks)
    if sanitized:
        return
    assert waits >= 0.8 * INJECTED and ranks[1]["wall_ns"] - late >= 0.8 * INJECTED
    part = PART_OF.get(SECTION.get(case), "other_mpi_ns")
    assert ranks[0][part] + ranks[0]["collectives_ns"] >= 0.8 * INJECTED, part
    if not case.endswith("_attribute"):
        assert sum(ranks[0][part] for part in BUSY) < 0.5 * INJECTED
    else:  # the wait is that of a message in a callback, and no second one of the call around it
        assert ranks[0]["wall_ns"] - waits >= 0.8 * INJECTED
        peers = {peer["rank"]: peer["wait_ns"] for peer in ranks[0]["waits_for"]}
        assert set(peers) == {1} and 0.8 * INJECTED <= peers[1] <= ranks[0]["messages_ns"]


@pytest.mark.parametrize("case", CASES)
def test_waiting_rank_does_not_compute(case):
    check_parts(case, observed(case))


@pytest.mark.parametrize("binding", ["mpi", "f08"])
@pytest.mark.parametrize("case", ["Comm_split", "Probe", "Wait", "Waitany", "Waitsome", "Win_fence", "File_open"])
def test_waiting_rank_does_not_compute_in_fortran(case, binding):
    program = PROGRAM.with_name(f"late_into_{binding}")
    if not program.exists():
        pytest.skip("Fortran is not built")
    check_parts(case, observed(case, program))
