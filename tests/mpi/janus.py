# SPDX-License-Identifier: BSD-3-Clause
"""Janus Quicksort on ranges and on MPI communicators: every shape of input, 1 to 17 ranks, on Open MPI some of them."""
import re

from common import a, check, finish, open_mpi, run

for ranks in (2, 5, 8) if open_mpi else range(1, 18):
    done = run(a.mpiexec, "-n", ranks, a.bin + "/janus_quicksort", "check", timeout=300, LD_PRELOAD=a.support)
    check(done.returncode == 0 and "sorted and in balance: 225 cases" in done.stdout, f"{ranks} ranks: {done.returncode} {done.stdout[-500:]} {done.stderr[-500:]}")
    most = [int(n) for n in re.findall(r"greedy (\d+), deterministic (\d+)", done.stdout)[0]]
    # The order of arriving elements changes the pivots, so counts vary: 10 compared with 4 or 5 on 16 and more ranks, 5
    # or 6 compared with 4 to 6 on 13 ranks.
    check(ranks < 16 or most[1] < most[0], f"{ranks} ranks: deterministic assignment spreads nothing: {most}")
done = run(a.mpiexec, "-n", 2, a.bin + "/janus_quicksort", "tme", LD_PRELOAD=a.support)
check(done.returncode == 2 and "valid: check time" in done.stderr, f"a misspelled word: {done.returncode} {done.stderr[-300:]}")
finish()
