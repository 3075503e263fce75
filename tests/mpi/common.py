# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the script tests: arguments, running commands, reporting failures. A file `NAME.py` is a script that calls
`check` and ends with `finish()`. A file `test_NAME.py` holds pytest functions, which use `assert`; ctest hands their
arguments over in LATECOMER_TEST."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from open_mpi import ENVIRONMENT

parser = argparse.ArgumentParser()
for name in ("cli", "mpiexec", "root", "library", "build", "support", "allocations", "spy", "bin", "mpi"):
    parser.add_argument("--" + name, required=True)
a = parser.parse_args(shlex.split(os.environ.pop("LATECOMER_TEST")) if "LATECOMER_TEST" in os.environ else None)  # no variable of latecomer
folder = pathlib.Path(tempfile.mkdtemp(prefix="latecomer-test-"))
failures = []
patience = 1  # factor of time-outs
open_mpi = ".openmpi" in pathlib.Path(a.mpiexec).name  # the library of the programs
if open_mpi:
    os.environ.update(ENVIRONMENT)
launcher = [a.mpiexec] if open_mpi else []  # before a command that is no program of MPI itself
RANK = "OMPI_COMM_WORLD_RANK" if open_mpi else "PMI_RANK"  # the launcher's variable


def check(condition, what):
    print("ok    " if condition else "FAILED", what)
    if not condition:
        failures.append(what)


def run(*words, timeout=120, cwd=None, **extra):
    environment = dict(os.environ)
    environment.update(extra)
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, errors="replace", timeout=patience * timeout, cwd=cwd, env=environment)


def rows_of(profile, site):
    """The rows of ranks of an element of `sites`, of a profile or of `report --json`."""
    return site["ranks"] if "ranks" in site else profile["rank_rows"][profile["sites"].index(site)]


def natively(ranks, *words, preload=None if open_mpi else a.support):
    """Words that run a program without latecomer. Waiting ranks of MPICH give their cores away, as those of Open MPI do."""
    preloads = [] if preload is None else ["-x", f"LD_PRELOAD={preload}"] if open_mpi else ["-genv", "LD_PRELOAD", preload]
    return [a.mpiexec, *preloads, "-n", ranks, *words]


def starts_two_programs():
    """Whether the launcher starts two programs in one job. That of Open MPI 5.0.7 crashes."""
    return run(*natively(1, a.bin + "/meet", ":", "-n", 1, a.bin + "/meet")).returncode == 0


def ends_natively(ranks, *words):
    """What a program does without latecomer; None if it does not end."""
    try:
        return run(*natively(ranks, *words), timeout=60)
    except subprocess.TimeoutExpired:
        return None


def built(name):
    """A library of the tests, of the family if it has one of its own."""
    libraries = pathlib.Path(a.build) / "lib"
    own = libraries / "openmpi" / f"lib{name}.so"
    return own if open_mpi and own.exists() else libraries / f"lib{name}.so"


# The sanitizer that the library was built with, libasan or libtsan, or None. It has its own allocator and is slow.
sanitized = next(iter(re.findall(r"lib[at]san", run("readelf", "-d", a.library).stdout)), None)
if sanitized:
    patience = 5


def one_session():
    """A launcher whose ranks share a session, so that a core that one gives away goes to the others."""
    path = folder / pathlib.Path(a.mpiexec).name
    path.write_text(f'#!/bin/sh\nLD_PRELOAD={built("one_session")} exec {a.mpiexec} "$@"\n')
    path.chmod(0o755)
    return path


def finish():
    print(f"{len(failures)} failures")
    if not failures:  # otherwise the files are evidence
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bool(failures))
