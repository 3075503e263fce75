# SPDX-License-Identifier: BSD-3-Clause
"""The mailbox: messages of latecomer stop no program whose ranks are outside MPI, take no way of MPI that the program
does not take, and leave nothing behind."""
import json
import os
import pathlib
import re
import shutil
import tempfile

import pytest
from common import a, folder, launcher, natively, open_mpi, patience, run, sanitized

# Without another process's memory, and with a small limit of messages that leave at once.
if open_mpi:
    NO_CMA = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    SMALL = NO_CMA | {"OMPI_MCA_btl_vader_eager_limit": "1024"}
else:
    NO_CMA = {"UCX_TLS": "posix,self", "UCX_RNDV_THRESH": "4k"}
    SMALL = NO_CMA | {"UCX_RNDV_THRESH": "1k"}
program = a.bin + "/mailbox"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")

automatic = folder / "auto.json"
automatic.write_text(json.dumps({"version": 1, "mode": "apply", "network": "eth1g", "rules": [{"match": {}, "use": "auto"}]}))
planned = folder / "prr.json"
planned.write_text(json.dumps({"version": 1, "mode": "apply", "network": "eth1g", "rules": [{"match": {"op": "allreduce"}, "use": "prr"}]}))


def observed(ranks, *words, policy=None, before=(), command=program, output=folder / "out.json", seconds=30, **extra):
    """Runs the program under latecomer. A job that hangs is ended, with its ranks."""
    options = ["--overwrite", "--output", output] + (["--policy", policy] if policy else [])
    return run("timeout", "-k", 2, patience * seconds, *before, a.cli, "run", *options, "--", *launcher, "-n", ranks, command, *words, LD_PRELOAD=a.support, **extra)


def check(done):
    assert done.returncode == 0 and "right" in done.stdout, (done.returncode, done.stdout[-500:], done.stderr[-1000:])
    assert "warning" not in done.stderr and "Read -1" not in done.stderr, done.stderr[-1000:]  # of latecomer, of Open MPI


@pytest.mark.parametrize("way", [{}, NO_CMA, SMALL], ids=["as_given", "no_cma", "small"])
@pytest.mark.parametrize("policy", [None, automatic, planned], ids=["observe", "auto", "prr"])
def test_ranks_that_wait_for_each_other_outside_mpi_never_hang(way, policy):
    check(observed(4, "flag", 700, policy=policy, **way))


@pytest.fixture
def everybodys():
    """A folder for other users."""
    place = pathlib.Path(tempfile.mkdtemp())
    place.chmod(0o777)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@needs_root
@pytest.mark.parametrize("way", [{}, SMALL], ids=["as_given", "small"])
def test_a_program_that_gives_up_its_rights_ends_as_natively(way, everybodys):
    native = run(*natively(4, program, "setuid", 600), **way)
    done = observed(4, "setuid", 600, output=everybodys / "out.json", **way)
    assert (done.returncode, done.stdout) == (native.returncode, native.stdout) == (0, "right\n"), done.stderr[-1000:]


@needs_root
@pytest.mark.skipif(not open_mpi or bool(sanitized), reason="its lines are Open MPI's; a sanitizer's library has to be the first one")
def test_an_executable_that_its_user_cannot_read_draws_no_lines(everybodys):
    unreadable = everybodys / "mailbox"
    shutil.copy(program, unreadable)
    unreadable.chmod(0o711)
    nobody = ["setpriv", "--reuid", 65534, "--regid", 65534, "--clear-groups", "env", f"HOME={everybodys}", f"TMPDIR={everybodys}"]
    if run(*nobody, "test", "-x", a.cli).returncode != 0:
        pytest.skip("the build is in a folder that other users cannot read")
    check(observed(4, "plain", 600, before=nobody, command=unreadable, output=everybodys / "out.json"))


def test_a_program_that_may_not_read_other_processes_ends():
    native = run(*natively(4, program, "seccomp", 600))
    assert native.returncode == 0, native.stderr
    check(observed(4, "seccomp", 600))


def test_a_freed_communicator_leaves_nothing():
    done = observed(4, "churn", 160, seconds=60, LATECOMER_VERBOSE="2")
    check(done)
    native = run(*natively(4, program, "churn", 160))
    left = [int(re.search(r"(-?\d+) bytes", text)[1]) for text in (done.stdout, native.stdout)]
    assert left[0] < left[1] + (2048 if not sanitized else 1 << 20)
    assert set(re.findall(r"trees of communicators that are gone: (\d+)", done.stderr)) == {"0"}, done.stderr[-1000:]
