# SPDX-License-Identifier: BSD-3-Clause
"""Epochs that are not logged within the policy's `budget`: calls and bytes stay exact, logged epochs stand for the
others, and nothing hangs, whatever the ranks leave out. No times are checked."""
import json
import re

import pytest

from common import a, folder, rows_of, run

program = a.bin + "/budget"
TINY = 0.0001  # from the first epochs on, most calls rest


def profile(name, ranks, *words, budget=None, **policy):
    policy_file, output = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy_file.write_text(json.dumps({"version": 1, **({} if budget == "default" else {"budget": budget}), **policy}))
    done = run(a.cli, "run", "--policy", policy_file, "--output", output, "--", "-n", ranks, program, *words, timeout=300, LD_PRELOAD=a.support)
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-600:])
    said = done.stderr.replace("calls have no arrival patterns: the logs kept until the end were full", "")  # where no call depends on all ranks
    assert "patterns" not in said, done.stderr
    return json.loads(output.read_text())


def exact(p):
    """What must not depend on the budget."""
    return {(s["op"], s["comm_size"], s["id"]): (s["calls"], s["rank_calls"], s["bytes"]) for s in p["sites"]}


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(8, marks=pytest.mark.long)])
def test_calls_and_bytes_are_exact_for_all_collectives(ranks):
    logged = profile(f"null{ranks}", ranks, "every", 1500)
    rests = profile(f"tiny{ranks}", ranks, "every", 1500, budget=TINY)
    assert all("logged" not in s for s in logged["sites"])
    # A mean of many sizes is a quotient of floating-point sums, whose order differs.
    wanted, got = exact(logged), exact(rests)
    assert wanted.keys() == got.keys()
    for key, (calls, rank_calls, sizes) in wanted.items():
        assert got[key][:2] == (calls, rank_calls), key
        assert (sizes is None) == (got[key][2] is None), key
        if sizes:
            assert got[key][2] == pytest.approx(sizes), key


@pytest.mark.parametrize("ranks", [2, 3])
def test_few_calls_are_logged_and_stand_for_the_others(ranks):
    p = profile(f"few{ranks}", ranks, "late", 1_000_000, 0, budget=0.003)  # time for some logs
    site = max(p["sites"], key=lambda s: s["calls"])
    assert site["calls"] == 1_000_000 and site["patterns"] == site["calls"] and site["rested"] == 0
    assert 0 < site["logged"] < site["calls"] / 3, site["logged"]
    assert site["waited_error_ns"] >= 0
    assert site["dispatch"]["native"]["calls"] == site["calls"]
    # Logged epochs stand for those before them, and none counts twice.
    assert site["logged"] * ranks < sum(site["elapsed_ns"]["counts"]) <= site["rank_calls"]
    assert site["logged"] < sum(site["imbalance_ns"]["counts"]) <= site["calls"]


def test_without_a_budget_every_call_is_logged():
    p = profile("whole", 2, "late", 30_000, 0)
    site = max(p["sites"], key=lambda s: s["calls"])
    assert site["patterns"] == site["calls"] == sum(site["imbalance_ns"]["counts"]) and "logged" not in site


def test_the_first_calls_are_all_logged_by_default():
    p = profile("default", 2, "late", 2000, 0, budget="default")
    assert all("logged" not in s for s in p["sites"])


def test_communicators_with_rooted_calls_only_rest_and_keep_their_counts():
    p = profile("rooted", 4, "rooted", 20_000, budget=TINY)
    calls = {(s["op"], s["comm_size"]): s["rank_calls"] for s in p["sites"]}
    assert calls == {(op, size): 80_000 for op in ("bcast", "gather") for size in (2, 4)}, calls


def test_late_rank_after_calls_that_rest_is_found():
    for _ in range(3):  # where other processes use the cores, a log takes longer, and more epochs rest
        p = profile("late", 2, "late", 400_000, 400, 3, budget=0.01)
        fast, slow = sorted((s for s in p["sites"] if s["op"] == "allreduce"), key=lambda s: -s["calls"])[:2]
        if slow["waited_ns"] > 3e6 * (400 - 256):
            break
    assert fast["logged"] < fast["calls"], "the fast calls rest"
    assert sum(r["last_count"] for r in rows_of(p, slow)) <= slow["calls"]
    last = max(rows_of(p, slow), key=lambda r: r["awaited_ns"])
    assert last["rank"] == 1 and last["awaited_ns"] > 0.8 * slow["waited_ns"]
    # Rank 0 waits 3 ms in each call. Up to two epochs of 128 calls may pass before ranks log again.
    assert slow["waited_ns"] > 3e6 * (400 - 256), slow["waited_ns"]


def test_time_without_logged_calls_is_said():
    p = profile("unlogged", 2, "late", 100_000, 400, 3, budget=TINY)
    unlogged = [r["unlogged_ns"] for r in p["processes"]]
    assert all(0.02 * r["wall_ns"] < r["unlogged_ns"] <= r["wall_ns"] for r in p["processes"]), unlogged
    said = " ".join(run(a.cli, "report", "--all", folder / "unlogged.json").stdout.split())
    assert "Waiting is not known for a part of the run" in said and "too few of its short calls were logged" in said, said
    assert "in calls that were not logged" in said, said


def test_price_is_named():
    p = profile("price", 2, "late", 400_000, 0, budget="default")
    cost = p["cost"]
    assert cost["log_ns"] > 0 and cost["exchange_ns"] > 0 and cost["count_ns"] > 0
    assert sum(r["cost_ns"] for r in p["processes"]) == pytest.approx(sum(v for k, v in cost.items() if k != "share"))
    said = " ".join(run(a.cli, "report", folder / "price.json").stdout.split())
    assert re.search(r"Latecomer took [0-9.]+ [mu]s per rank to start and to find call sites, then [0-9.]+% of the ranks' time(, most of it [a-z' ]+)?[.] It logged [0-9.]+% of the calls [(]policy key `budget`[)], so times and waits are estimates[.]", said), said


def test_budget_must_be_a_share():
    bad = folder / "bad.json"
    for text in ("2", '"1%"', "-0.1"):
        bad.write_text('{"version": 1, "budget": %s}' % text)
        done = run(a.cli, "check", bad)
        assert done.returncode == 1 and "budget: expected null or a number" in done.stdout + done.stderr, done
