# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the script tests: arguments, running commands, reporting failures."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
for name in ("cli", "mpiexec", "root", "library", "build", "support", "allocations", "spy", "bin", "mpi"):
    parser.add_argument("--" + name, required=True)
a = parser.parse_args()
folder = pathlib.Path(tempfile.mkdtemp(prefix="latecomer-test-"))
failures = []
patience = 1  # factor of time-outs
openmpi = pathlib.Path(a.bin).name == "openmpi"  # the MPI library of a.mpiexec and of the programs in a.bin


def check(condition, what):
    print("ok    " if condition else "FAILED", what)
    if not condition:
        failures.append(what)


def run(*words, timeout=120, cwd=None, **extra):
    environment = dict(os.environ)
    environment.update(extra)
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, errors="replace", timeout=patience * timeout, cwd=cwd, env=environment)


# The sanitizer that the library was built with, libasan or libtsan, or None. It has its own allocator and is slow.
sanitized = next(iter(re.findall(r"lib[at]san", run("readelf", "-d", a.library).stdout)), None)
if sanitized:
    patience = 5


def finish():
    print(f"{len(failures)} failures")
    if not failures:  # otherwise the files are evidence
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bool(failures))
