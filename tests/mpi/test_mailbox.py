# SPDX-License-Identifier: BSD-3-Clause
"""The mailbox: messages of latecomer stop no program whose ranks are outside MPI, take no way of MPI that the program
does not take, and leave nothing behind."""
import json
import os
import pathlib
import shutil
import stat
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
AS_GIVEN = {}
program = a.bin + "/mailbox"
root = os.geteuid() == 0
needs_root = pytest.mark.skipif(not root, reason="only root can give up its rights")

automatic = folder / "auto.json"
automatic.write_text(json.dumps({"version": 1, "mode": "apply", "network": "eth1g", "rules": [{"match": {}, "use": "auto"}]}))
ring = folder / "ring.json"
ring.write_text(json.dumps({"version": 1, "mode": "apply", "network": "eth1g", "rules": [{"match": {"op": "allreduce"}, "use": "prr"}]}))


def observed(ranks, *words, policy=None, before=(), command=program, output=folder / "out.json", seconds=30, **extra):
    """Runs the program under latecomer. A job that hangs is ended, with its ranks."""
    options = ["--overwrite", "--output", output] + (["--policy", policy] if policy else [])
    return run("timeout", "-k", 2, patience * seconds, *before, a.cli, "run", *options, "--", *launcher, "-n", ranks, command, *words, LD_PRELOAD=a.support, **extra)


def check(done):
    assert done.returncode == 0 and "right" in done.stdout, (done.returncode, done.stdout[-500:], done.stderr[-1000:])
    assert "warning" not in done.stderr and "Read -1" not in done.stderr, done.stderr[-1000:]


@pytest.mark.parametrize("way", [AS_GIVEN, NO_CMA, SMALL], ids=["as_given", "no_cma", "small"])
@pytest.mark.parametrize("policy", [None, automatic, ring], ids=["observe", "auto", "prr"])
def test_ranks_that_wait_for_each_other_outside_mpi_never_hang(way, policy):
    check(observed(4, "flag", 700, policy=policy, **way))


@needs_root
def test_a_program_that_gives_up_its_rights_ends_as_natively():
    native = run(*natively(4, program, "setuid", 600))
    assert native.returncode == 0, native.stderr
    output = pathlib.Path(tempfile.mkdtemp(dir=folder))
    output.chmod(0o777)
    check(observed(4, "setuid", 600, output=output / "out.json"))


@needs_root
@pytest.mark.skipif(not open_mpi, reason="its lines are Open MPI's")
def test_an_executable_that_its_user_cannot_read_draws_no_lines():
    place = pathlib.Path(tempfile.mkdtemp())
    place.chmod(0o777)
    try:
        unreadable = place / "mailbox"
        shutil.copy(program, unreadable)
        unreadable.chmod(0o711)
        nobody = ["setpriv", "--reuid", 65534, "--regid", 65534, "--clear-groups", "env", f"HOME={place}", f"TMPDIR={place}"]
        check(observed(4, "plain", 600, before=nobody, command=unreadable, output=place / "out.json"))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_program_that_may_not_read_other_processes_ends():
    native = run(*natively(4, program, "seccomp", 600))
    assert native.returncode == 0, native.stderr
    check(observed(4, "seccomp", 600))


@pytest.mark.parametrize("policy", [None, automatic], ids=["observe", "auto"])
def test_a_freed_communicator_leaves_nothing(policy):
    done = observed(4, "churn", 400, policy=policy, seconds=60, LATECOMER_VERBOSE="2")
    check(done)
    native = run(*natively(4, program, "churn", 400))
    of = lambda text: int(text.split(" bytes")[0].splitlines()[-1])
    assert of(done.stdout) < of(native.stdout) + (2048 if not sanitized else 1 << 20)
    assert "trees of communicators that are gone: 0" in done.stderr, done.stderr[-1000:]
