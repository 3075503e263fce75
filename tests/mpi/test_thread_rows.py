# SPDX-License-Identifier: BSD-3-Clause
"""Threads that did not start MPI have rows of their own, with the times that the program measures (thread_rows.c)."""
import json

import pytest
from common import a, folder, launcher, open_mpi, run, sanitized


def observe(*words, rank=1):
    """What the rank printed, its process in the profile, and the profile."""
    profile = folder / f"{'-'.join(map(str, words))}.json"
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    rules = folder / "thread_rows.policy.json"
    rules.write_text('{"version": 1, "budget": null}')
    done = run(a.cli, "run", "--policy", rules, "--overwrite", "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 2, a.bin + "/thread_rows", *words, **yielding)
    assert done.returncode == 0, done.stderr[-600:]
    read = json.loads(run(a.cli, "report", "--json", profile).stdout)
    assert "threads" not in read["processes"][1 - rank] and read["not_counted"] == []
    return [list(map(float, line.split())) for line in done.stdout.splitlines()], read["processes"][rank], read


def check_times(found, messages, collectives):
    assert found["messages_ns"] == pytest.approx(messages, rel=0.2) or sanitized
    # Before a collective counts, MPICH may keep its thread from reading the communicator while others wait.
    assert 0 < found["collectives_ns"] <= 1.05 * collectives or sanitized


def check_sums(measured, process):
    assert sum(row["calls"] for row in process["threads"]) == sum(row[0] for row in measured)
    sums = {part: sum(row[part] for row in process["threads"]) for part in ("messages_ns", "collectives_ns")}
    check_times(sums, sum(row[1] for row in measured), sum(row[2] for row in measured))


@pytest.mark.parametrize("words", [("rows", 3), ("serialized", 1)])
def test_each_thread_has_its_own_times(words):
    measured, process, profile = observe(*words)
    rows = process["threads"]
    assert len(rows) == len(measured) == words[1] and all(row["threads"] == 1 and row["calls"] == 20 for row in rows)
    # The times of the threads differ by less than the error of one, so each kind has its own order.
    parts = [sorted(row[part] for row in rows) for part in ("messages_ns", "collectives_ns")]
    for messages, collectives, *own in zip(*parts, *(sorted(row[i] for row in measured) for i in (1, 2))):
        check_times({"messages_ns": messages, "collectives_ns": collectives}, *own)
    (site,) = profile["thread_sites"]
    assert (site["call"], site["calls"], site["frames"][0]["function"]) == ("MPI_Recv", 10 * words[1], "receive")
    assert site["time_ns"] == sum(row["messages_ns"] for row in rows)
    # The parts of the rank are those of the thread that started MPI, which made no such call.
    assert all(one["frames"][0]["function"] != "receive" for one in profile["timed_sites"])
    text = run(a.cli, "report", "--all", folder / f"{'-'.join(map(str, words))}.json").stdout
    assert "threads that did not start MPI" in text and "receive (thread_rows.c" in text


def test_a_later_thread_continues_a_row():
    measured, process, _ = observe("turns", 20)
    assert [row["threads"] for row in process["threads"]] == [20]
    check_sums(measured, process)


def test_threads_beyond_the_rows_share_one():
    measured, process, profile = observe("rows", 12)
    assert [row["threads"] for row in process["threads"]] == [1] * 7 + [5]
    assert [row.get("shared", False) for row in process["threads"]] == [False] * 7 + [True]
    check_sums(measured, process)
    assert sorted((site["call"], site["calls"]) for site in profile["thread_sites"]) == [("MPI_Recv", 70), ("several", 50)]
    # It is not known while some thread has no row.
    assert process["all_threads_in_mpi_ns"] < 0.05 * sum(row["messages_ns"] for row in process["threads"]) or sanitized


def test_the_process_waits_while_all_its_threads_do():
    ((together,),), process, _ = observe("together")
    print(together, process["all_threads_in_mpi_ns"], process["messages_ns"])
    assert process["all_threads_in_mpi_ns"] == pytest.approx(together, rel=0.1) or sanitized


CALLS = {"recv": "MPI_Recv", "recv_any": "MPI_Recv", "wait": "MPI_Wait", "testall": "MPI_Testall", "iprobe": "MPI_Iprobe", "iprobe_any": "MPI_Iprobe"}


@pytest.mark.parametrize("function", CALLS)
def test_a_thread_waits_for_a_late_rank(function):
    ((waited, without_core),), process, profile = observe("late", function, rank=0)
    (row,) = process["threads"]
    (site,) = (site for site in profile["thread_sites"] if site["call"] == CALLS[function])
    print(waited, without_core, row, site["by_rank"])
    # Of a wait by polls, time in which the thread had no core may not count.
    assert 0.9 * (waited - without_core) < row["messages_ns"] < 1.05 * waited or sanitized
    assert 0.9 * row["messages_ns"] < site["time_ns"] <= row["messages_ns"]
    ((rank, peers),) = ((one["rank"], {peer["rank"]: peer["wait_ns"] for peer in one["waits_for"]}) for one in site["by_rank"])
    assert (rank, set(peers)) == (0, {1}) and 0.9 * site["time_ns"] < peers[1] <= site["time_ns"]
    # The thread that started MPI waits outside MPI meanwhile.
    assert process["messages_ns"] < 0.1 * waited or sanitized
