# SPDX-License-Identifier: BSD-3-Clause
"""Programs of each binding, compiled here by the compilers of the MPI library: their sites and calls, and their results
under a rule and under `auto`. Shows that the library built for one version of MPI serves the version that is there."""
import functools
import json
import pathlib
import shutil
import sys

import pytest
from common import a, ends_natively, folder, launcher, natively, open_mpi, run

SUFFIX = pathlib.Path(a.mpiexec).suffix
SOURCES = pathlib.Path(a.root) / "tests"
FORTRAN = ["mpifort" + SUFFIX, "-g", "-fallow-argument-mismatch", SOURCES / "mpi/fortran.F90", f"-J{folder}"]
COMPILED = {
    "C": ["mpicc" + SUFFIX, "-g", SOURCES / "openmpi/sums.c"],
    "mpif.h": [*FORTRAN, "-DMPIF"],
    "use mpi": FORTRAN,
    "mpi_f08": [*FORTRAN, "-DF08"],
}
CALLS = {"allreduce": 300, "barrier": 150}
PYTHON = """
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
a, b = bytearray(4000), bytearray(4000)
for i in range(150):
    world.Allreduce([a, MPI.DOUBLE], [b, MPI.DOUBLE])
    world.Barrier()
    sum = array("i", [1])
    world.Allreduce(MPI.IN_PLACE, sum)
    if sum[0] != world.size: world.Abort(4)
if world.rank == 0: print(" right")
"""


@functools.cache
def program(binding):
    """The words that run it. They natively print "right"."""
    if binding == "mpi4py":
        library = "libmpi.so.40" if open_mpi else "libmpich.so.12"
        if library not in run(sys.executable, "-c", "from mpi4py import MPI; print(open('/proc/self/maps').read())").stdout:
            pytest.skip("mpi4py for this library is not installed")
        words = (sys.executable, "-c", PYTHON)
    else:
        compiler, *arguments = COMPILED[binding]
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        path = folder / binding.replace(" ", "_")
        done = run(compiler, *arguments, "-o", path)
        assert done.returncode == 0, done.stderr
        words = (path, folder / "written") if binding == "C" else (path,)
    done = run(*natively(2, *words))
    assert (done.returncode, done.stdout.split()) == (0, ["right"]), done.stderr
    return words


def observed(binding, name, *options, ranks=2):
    """Runs it under latecomer run. Returns the profile."""
    profile = folder / f"{binding.replace(' ', '_')}-{name}.json"
    done = run(a.cli, "run", "--output", profile, *options, "--", *launcher, "-n", ranks, *program(binding))
    assert (done.returncode, done.stdout.split()) == (0, ["right"]), done.stderr
    assert all(KEPT_NATIVE in line for line in done.stderr.splitlines() if "warning" in line), done.stderr
    return json.loads(profile.read_text())


KEPT_NATIVE = "algorithms are not tried beside threads inside Open MPI 6"  # mpi4py starts MPI with MPI_THREAD_MULTIPLE


def kept_native(profile):
    return any(KEPT_NATIVE in warning for warning in profile["warnings"])


def calls(profile):
    out = {}
    for site in profile["sites"]:
        out[site["op"]] = out.get(site["op"], 0) + site["calls"]
    return out

BINDINGS = pytest.mark.parametrize("binding", [*COMPILED, "mpi4py"])


@BINDINGS
def test_sites_and_calls(binding):
    profile = observed(binding, "observed")
    assert calls(profile) == CALLS and profile["job"]["ranks"] == 2
    assert len(profile["sites"]) == (2 if binding == "mpi4py" else 3)  # two lines with an allreduce; all lines of Python have one address
    lines = {(pathlib.Path(frame["file"]).name, frame["line"]) for site in profile["sites"] for frame in site["frames"][:1] if frame.get("file")}
    assert binding == "mpi4py" or len(lines) == 3 and {name for name, _ in lines} <= {"sums.c", "fortran.F90"}, profile["sites"]


@BINDINGS
def test_a_rule(binding):
    policy = {"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}
    profile = observed(binding, "ring", "--policy", json.dumps(policy), ranks=3)
    ran = {name: sum(site["dispatch"].get(name, {"calls": 0})["calls"] for site in profile["sites"]) for name in ("ring", "native")}
    assert calls(profile) == CALLS
    assert ran["ring"] == 0 if kept_native(profile) else ran["ring"] >= 290, ran


@BINDINGS
def test_auto(binding):
    profile = observed(binding, "auto", "--auto", ranks=3)
    assert calls(profile) == CALLS and (profile["job"]["mode"] == "apply" or kept_native(profile))


def newer_program(name, *words, ranks=2, arguments=()):
    """A program of MPI 4, which the library may not have. It natively prints "right"."""
    done = run(*words, "-o", folder / name) if shutil.which(words[0]) else None
    if not done or done.returncode != 0:
        pytest.skip("the library lacks it")
    native = ends_natively(ranks, folder / name, *arguments)
    if not native or native.returncode != 0:
        pytest.skip(f"natively {name} fails, or does not end")
    return folder / name


@pytest.mark.parametrize("large", [False, True])
def test_newer_functions_of_fortran(large):
    """Open MPI's mpi_f08 calls PMPI_*_init, and PMPI_*_c where it has large counts."""
    program = newer_program(f"persistent{large}", "mpifort" + SUFFIX, *["-DLARGE"] * large, SOURCES / "mpi/persistent.F90")
    profile = folder / f"persistent{large}.json"
    done = run(a.cli, "run", "--output", profile, "--", *launcher, "-n", 2, program)
    assert done.returncode == 0 and "right" in done.stdout, done.stderr
    assert calls(json.loads(profile.read_text())) == {"allreduce": 20, **({"bcast": 20} if large else {})}


def test_a_session_is_seen():
    program = newer_program("session", "mpicc" + SUFFIX, SOURCES / "mpi/session.c")
    profile = folder / "session.json"
    done = run(a.cli, "run", "--output", profile, "--", *launcher, "-n", 2, program)
    assert done.returncode == 0 and "right" in done.stdout and "MPI sessions: every rank observes alone" in done.stderr, done.stderr
    assert run(a.cli, "recover", f"{profile}.parts", "-o", profile).returncode == 0
    assert calls(json.loads(profile.read_text())) == {"allreduce": 20}  # observation ends with the first session


@pytest.mark.parametrize("asks_run", [False, True])
@pytest.mark.parametrize("one", range(3))
def test_a_session_on_one_rank_before_init_lets_no_rank_wait(one, asks_run, tmp_path):
    """The time-out of the roll call is longer than that of the run."""
    program = newer_program(f"session_on_{one}", "mpicc" + SUFFIX, SOURCES / "mpi/session.c", ranks=3, arguments=[one])
    profile, policy = tmp_path / "one.json", json.dumps({"version": 1, "roll_call_timeout_s": 600})
    if asks_run:
        done = run(a.cli, "run", "--policy", policy, "--output", profile, "--", *launcher, "-n", 3, program, one)
    else:
        done = run(*natively(3, program, one, preload=a.library if open_mpi else f"{a.library}:{a.support}"), LATECOMER_POLICY=policy, LATECOMER_OUTPUT=profile)
    said = [line for line in done.stderr.splitlines() if "latecomer[" in line and "warning" in line]
    assert done.returncode == 0 and "right" in done.stdout, done.stderr
    assert len(said) == 1 and ("MPI sessions" if one == 0 else f"rank {one} has used an MPI session before MPI_Init") in said[0], done.stderr
    assert run(a.cli, "recover", f"{profile}.parts", "-o", profile).returncode == 0
    assert calls(json.loads(profile.read_text())) == {"allreduce": 20}
