# SPDX-License-Identifier: BSD-3-Clause
"""What counts as a call, on all ranks alike: collectives in delete functions of attributes, calls that MPI refuses, datatypes with several names, calls that a jump or an exception leaves, and ranks without memory."""
import json
import pathlib

import pytest

from common import a, folder, open_mpi, run, sanitized, starts_two_programs

bin = pathlib.Path(a.bin)
policies = {
    "observe": {},
    "ring": {"mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]},
    "auto": {"mode": "apply", "network": "eth1g", "rules": [{"match": {}, "use": "auto"}]},
}


def under(policy, ranks, program, *words):
    """Runs a program under a policy. Returns the process and the profile."""
    file, out = folder / f"{policy}.policy.json", folder / "counting.json"
    file.write_text(json.dumps({"version": 1, **policies[policy]}))
    out.unlink(missing_ok=True)
    done = run(a.cli, "run", "--overwrite", "--quiet", "--policy", file, "--output", out, "--", "-n", ranks, bin / program, *words, timeout=60, LD_PRELOAD=a.support)
    return done, json.loads(out.read_text()) if out.exists() else None


def is_right(policy, *words, ranks=3):
    done, profile = under(policy, ranks, *words)
    assert done.returncode == 0 and "right" in done.stdout, f"{done.returncode} {done.stdout[-500:]} {done.stderr[-1000:]}"
    assert profile is not None, done.stderr[-500:]
    return profile


def served(profile, algorithm="ring"):
    """The allreduces per rank, and those that the algorithm ran."""
    sites = [s for s in profile["sites"] if s["op"] == "allreduce" and s["comm_size"] > 1]
    return sum(s["calls"] for s in sites), sum(s["dispatch"].get(algorithm, {"calls": 0})["calls"] for s in sites)


@pytest.mark.parametrize("policy", ["observe", "ring", "auto"])
def test_delete_functions_call_collectives(policy):
    profile = is_right(policy, "counting", "callbacks")
    assert served(profile)[0] == 0 + 3 + 15 + 20 + 40 + 5 * 5


def test_disconnect_runs_delete_functions_too():
    profile = is_right("ring", "counting", "disconnect")
    assert served(profile) == (103, 103)


@pytest.mark.parametrize("policy", ["observe", "ring"])
def test_one_rank_calls_before_the_free_and_others_inside_it(policy):
    profile = is_right(policy, "counting", "before_or_inside")
    assert served(profile)[0] == 0 + 1 + 16 + 31 + 4 * 17


@pytest.mark.parametrize("policy", ["observe", "ring"])
def test_a_communicator_outlives_a_free_that_is_refused(policy):
    is_right(policy, "counting", "refused_free")


@pytest.mark.parametrize("policy", ["observe", "ring"])
def test_fortran_frees_communicators(policy):
    programs = [bin / f"counting_{binding}" for binding in ("mpi", "f08")]
    if not all(p.exists() for p in programs):
        pytest.skip("no Fortran")
    for program in programs:
        is_right(policy, program)
    if starts_two_programs():
        is_right(policy, programs[1], "before", ":", "-n", "2", programs[0], "before", ranks=2)


@pytest.mark.parametrize("policy", ["observe", "auto"])
def test_what_all_ranks_get_refused_proves_nothing(policy):
    is_right(policy, "counting", "refused")


def test_ranks_name_one_datatype_differently():
    calls, by_ring = served(is_right("ring", "counting", "names"))
    assert calls == by_ring > 0


def test_the_table_of_datatypes_is_the_librarys():
    done = run(bin / "type_table")
    assert done.returncode == 0, done.stdout


def test_calls_by_other_names_count_in_finalize():
    assert served(is_right("ring", "counting", "in_finalize")) == (21, 21)


@pytest.mark.parametrize("policy", ["observe", "ring"])
def test_an_error_handler_leaves_a_call_by_a_jump(policy):
    is_right(policy, "counting", "jump")


def test_one_rank_alone_leaves_a_call_by_a_jump():
    is_right("observe", "counting", "jump_alone", ranks=2)


def test_an_operator_throws():
    calls, by_ring = served(is_right("ring", "counting", "exceptions", ranks=2))
    assert calls == by_ring == 20 * 5


@pytest.mark.skipif(open_mpi, reason="it allows one buffer for input and output")
@pytest.mark.parametrize("policy", ["observe", "ring"])
def test_an_error_handler_throws(policy):
    is_right(policy, "counting", "handler_throws", ranks=2)


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer has its own operator new")
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_rank_without_memory_does_as_the_others_or_ends_the_job(at):
    done, _ = under("ring", 2, "counting_memory", "memory", at)
    right = done.returncode == 0 and "right" in done.stdout
    assert "an allocation failed" in done.stdout or "no memory is left" in done.stderr
    assert right or (done.returncode != 0 and "the job ends" in done.stderr), f"{done.returncode} {done.stdout} {done.stderr[-500:]}"
