# SPDX-License-Identifier: BSD-3-Clause
"""A rank that polls for a message of a late rank waits for it, unless it works between the polls."""
import json

import pytest

from common import a, folder, open_mpi, run, sanitized

ITERATIONS, MS = 10, 20
FUNCTIONS = ["test", "testall", "testany", "testsome", "status", "iprobe", "improbe", "win_test", "parrived"]
WAITS = [("spin", 0), ("sleep", 50), ("sleep", 1000)]
WORKS = [("work", 3), ("work", 20), ("work", 1000)]
WAYS = {"": {}, "yielding": {"OMPI_MCA_mpi_yield_when_idle": "1"}} if open_mpi else {"": {}}
POLLS = [(function, way) for way in WAYS for function in FUNCTIONS if not way or function in ("test", "iprobe")]


def observe(name, ranks, *words, **environment):
    """The profile and the report of a run."""
    profile = folder / f"{name}.json"
    ran = run(a.cli, "run", "--output", profile, "--overwrite", "--launcher", a.mpiexec, "--", "-n", ranks, a.bin + "/polls", *words, **environment)
    if ran.returncode != 0 and "parrived" in words and open_mpi:
        pytest.skip("the library has no partitioned communication")
    assert ran.returncode == 0, ran.stderr[-600:]
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    return json.loads(profile.read_text()), " ".join(report["verdict"])


def polled(function, between, us, way, right):
    """Of the time for which rank 1 is late: rank 0's shares in messages and in the program, and its peers. Where other
    processes have the cores for most of the time, there may be few polls to judge, so it tries three times until
    `right`."""
    for _ in range(3):
        found = poll_once(function, between, us, way)
        if right(*found):
            break
    return found


def poll_once(function, between, us, way):
    profile, _ = observe(f"{function}.{between}.{us}.{way}", 2, function, between, us, ITERATIONS, MS, **WAYS[way])
    process = next(p for p in profile["processes"] if p["rank"] == 0)
    late = ITERATIONS * MS * 1e6
    program = process["computing_ns"] + process["kernel_ns"] + process["runnable_ns"]
    peers = {peer["rank"]: peer["wait_ns"] / late for peer in process.get("waits_for", [])}
    print(f"{function} {between} {us} {way}: messages {process['messages_ns'] / late:.3f} program {program / late:.3f} asleep {process['blocked_ns'] / late:.3f} peers {peers}")
    return process["messages_ns"] / late, program / late, peers


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer changes the shares of time")
@pytest.mark.parametrize("between,us", WAITS)
@pytest.mark.parametrize("function,way", POLLS)
def test_polls_without_work_between_are_a_wait_for_the_late_rank(function, between, us, way):
    messages, program, peers = polled(function, between, us, way, lambda messages, *_: messages > 0.9)
    assert messages > 0.9, (messages, program)
    assert set(peers) <= {1}
    assert function in ("win_test", "parrived") or peers[1] > 0.9


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer changes the shares of time")
@pytest.mark.parametrize("between,us", WORKS)
@pytest.mark.parametrize("function,way", POLLS)
def test_work_between_polls_is_computing(function, between, us, way):
    messages, program, _ = polled(function, between, us, way, lambda messages, *_: messages < 0.1)
    assert messages < 0.1, (messages, program)
    assert program > 0.9


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer changes the shares of time")
@pytest.mark.parametrize("function", ["test", "iprobe"])
def test_the_late_rank_is_named_and_not_the_one_that_polls(function):
    # Rank 2 waits in the allreduce for rank 0, which polls for a message of rank 1, which sleeps.
    _, verdict = observe(f"victim.{function}", 3, function, "sleep", 1000, 20, MS)
    assert "Rank 0 waits most" in verdict and "for rank 1, which is asleep" in verdict, verdict


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer changes the shares of time")
def test_workers_that_probe_wait_for_their_master():
    profile, verdict = observe("master", 2, "master", 20, MS)
    worker = next(p for p in profile["processes"] if p["rank"] == 1)
    assert worker["messages_ns"] > 0.7 * worker["wall_ns"]
    assert worker["waits_for"][0]["rank"] == 0
    assert "Rank 1 waits most" in verdict and "for rank 0" in verdict, verdict


def test_the_polls_of_a_long_wait_are_counted_without_a_message():
    profile, _ = observe("never", 2, "never", 300)
    poller, other = sorted(profile["processes"], key=lambda p: p["rank"])
    assert poller["messages_ns"] > 0 and "waits_for" not in poller
    assert sanitized or poller["messages_ns"] > 150e6
