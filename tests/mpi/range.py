# SPDX-License-Identifier: BSD-3-Clause
"""Range communicators on 1 to 10 ranks, with threads, with one message of more than 2 GiB, and under the preload
beside served native collectives. A creation calls no MPI function and allocates nothing."""
import re

from common import a, check, finish, folder, open_mpi, run

program = a.bin + "/range"


def ranges(ranks, *arguments, launch=(), timeout=200, **environment):
    done = run(a.mpiexec, *launch, "-n", ranks, program, *arguments, timeout=timeout, **dict(dict(LD_PRELOAD=a.support), **environment))
    check(done.returncode == 0 and "ranges are right" in done.stdout, f"{ranks} ranks, {arguments}: {done.returncode} {done.stdout[-300:]} {done.stderr[-1500:]}")
    return done.stdout


rounds = 85 if open_mpi else 170
for ranks in (1, 2, 3, 4, 5, 7, 10):
    ranges(ranks, rounds)
said = ranges(8, 2 * rounds)
check(float(re.search(r"creation: ([\d.]+) ns", said)[1]) > 0, "creation is timed")
for ranks in (2, 4):
    ranges(ranks, 85, "threads")
ranges(2, 0, "large")

# The names of RBC.
for ranks in (2, 5, 8):
    done = run(a.mpiexec, "-n", ranks, a.bin + "/rbc", timeout=60, LD_PRELOAD=a.support)
    check(done.returncode == 0 and "the names of RBC are right" in done.stdout, f"RBC, {ranks} ranks: {done.returncode} {done.stdout[-300:]} {done.stderr[-1500:]}")

undefined = [line.split()[-1] for line in run("nm", "-u", f"{a.build}/shim/CMakeFiles/latecomer_range{'_openmpi' if open_mpi else ''}.dir/range/create.cpp.o").stdout.splitlines()]
check(not [name for name in undefined if not name.startswith("__") and name != "_GLOBAL_OFFSET_TABLE_"], f"creation calls nothing: {undefined}")

# Served collectives beside those of ranges.
policy = folder / "ring.json"
policy.write_text('{"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}, {"match": {"op": "gatherv"}, "use": "linear"}]}')
done = run(a.cli, "run", "--policy", policy, "--output", folder / "out.json", "--", "-n", 4, program, rounds, timeout=200, LD_PRELOAD=a.support)
check(done.returncode == 0 and "ranges are right" in done.stdout, f"under the preload: {done.stdout[-300:]} {done.stderr[-1500:]}")
finish()
