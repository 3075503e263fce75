# SPDX-License-Identifier: BSD-3-Clause
"""Programs of MPI's standard ABI, compiled on the machine of the build with our own header, on the library of this MPI
that has the ABI. The same files run on MPICH and on Open MPI. Skipped where no library has the ABI."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from common import a, folder, launcher, natively, open_mpi, run

ROOT, BUILD = pathlib.Path(a.root), pathlib.Path(a.build)
sys.path.append(str(ROOT / "tests/abi"))
from header import differences  # noqa: E402

BIN = BUILD / "bin/abi"
FAMILY = "openmpi" if open_mpi else "mpich"
ASKED = "import ctypes, sys; text = ctypes.create_string_buffer(8192); ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(ctypes.c_int())); print(text.value.decode())"
HEADERS = {"mpich": ("*/mpi_abi_mpich/include/mpi.h", "*/mpich/include/mpi_abi.h"), "openmpi": ("*/openmpi/include/openmpi/ompi/mpi/c/abi.h", "*/openmpi/include/standard_abi/mpi.h")}
CALLS = {"allreduce": 300, "barrier": 150}


def library():
    """The library of this MPI with the standard ABI, or None. Debian has both MPICH's and Open MPI's."""
    for path in sorted(pathlib.Path("/usr/lib").glob("*/libmpi_abi*.so.1*")):
        text = run(sys.executable, "-c", ASKED, path).stdout
        if text.startswith("Open MPI" if open_mpi else "MPICH"):
            return path
    return None


found = library()
pytestmark = pytest.mark.skipif(not found, reason="no library of this MPI has the standard ABI")
if found:
    (folder / "abi").mkdir(exist_ok=True)
    (folder / "abi/libmpi_abi.so.1").symlink_to(found.resolve())
    os.environ["LD_LIBRARY_PATH"] = str(folder / "abi")


def observed(name, *words, options=(), ranks=2):
    """Runs it under latecomer run. Returns the job and the profile."""
    profile = folder / f"{name}.json"
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--output", profile, *options, "--", *(launcher or [a.mpiexec]), "-n", ranks, *words, **yielding)
    assert done.returncode == 0, done.stderr
    return done, json.loads(profile.read_text()) if profile.exists() else None


def calls(profile):
    out = {}
    for site in profile["sites"]:
        out[site["op"]] = out.get(site["op"], 0) + site["calls"]
    return out


def test_our_header_is_the_standard_one():
    headers = [path for pattern in HEADERS[FAMILY] for path in pathlib.Path("/usr/lib").glob(pattern)]
    if not headers:
        pytest.skip("the library's header is not installed")
    for header in headers:
        assert differences("gcc", ROOT, BUILD, header, folder) == []


def test_the_library_says_version_1_before_mpi_starts():
    done = run(sys.executable, "-c", f"import ctypes; major = ctypes.c_int(); ctypes.CDLL('{found}').MPI_Abi_get_version(ctypes.byref(major), ctypes.byref(ctypes.c_int())); print(major.value)")
    assert done.stdout == "1\n", done.stderr


def test_sites_and_calls():
    done, profile = observed("observed", BIN / "calls")
    assert done.stdout.split() == ["right"] and "warning" not in done.stderr
    assert calls(profile) == CALLS and profile["job"]["ranks"] == 2
    assert {pathlib.Path(site["frames"][0]["file"]).name for site in profile["sites"]} == {"calls.c"} and len(profile["sites"]) == 3


def test_a_rule():
    policy = {"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}
    done, profile = observed("ring", BIN / "calls", options=("--policy", json.dumps(policy)), ranks=3)
    ran = {name: sum(site["dispatch"].get(name, {"calls": 0})["calls"] for site in profile["sites"]) for name in ("ring", "native")}
    assert done.stdout.split() == ["right"] and calls(profile) == CALLS and ran["ring"] >= 290, (ran, done.stderr)


def test_auto():
    done, profile = observed("auto", BIN / "calls", options=("--auto",), ranks=3)
    assert done.stdout.split() == ["right"] and "warning" not in done.stderr
    assert calls(profile) == CALLS and profile["job"]["mode"] == "apply"


def test_info_says_which_family():
    done = run(a.cli, "info", BIN / "meet")
    assert done.returncode == 0 and "liblatecomer-abi.so" in done.stdout, done.stdout + done.stderr


def test_the_family_can_be_named():
    _, profile = observed("named", BIN / "meet", options=("--mpi", "abi"))
    assert profile["job"]["ranks"] == 2


def test_operators_and_datatypes_are_those_of_the_library():
    done = run(*natively(1, BIN / "type_table"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program, ranks, policies, words", [
    ("shapes", 3, "none,ring,prr,clairvoyant,auto", (60,)),
    ("blocks", 3, "none,binomial,linear,auto", (60,)),
    ("irregular", 2, "none,linear,auto", (60, 500)),
    ("breakers", 4, "none,ring,auto", ("nonblocking",)),
    ("breakers", 4, "none,ring,auto", ("communicators",)),
], ids=lambda value: value if isinstance(value, str) else None)  # fmt: skip
def test_results_are_as_natively(program, ranks, policies, words):
    """Takes 10 s each: a policy is a job of its own."""
    done = subprocess.run([sys.executable, ROOT / "tests/mpi/run.py", "--family", FAMILY, "--cli", a.cli, "--mpiexec", a.mpiexec, "--root", a.root,
                           "--np", str(ranks), "--policies", policies, "--support", a.support, "--", BIN / program, *map(str, words)],
                          capture_output=True, text=True)  # fmt: skip
    native = re.search("native: .'status': ([0-9-]+)", done.stdout)
    if native and native[1] != "0" or not native and "TimeoutExpired" in done.stderr:
        pytest.skip(f"natively {program} of the standard ABI fails, or does not end")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
