# SPDX-License-Identifier: BSD-3-Clause
"""What a profile leaves out of some figures is in it, in numbers: a program makes each kind of such calls."""
import json
import re

from common import a, folder, run

program = a.bin + "/not_counted"


def observe(case, ranks, **keys):
    """The profile, its key `not_counted` as {kind: (calls, ranks)}, the whole report, and what the program printed."""
    policy, output = folder / f"{case}.policy.json", folder / f"{case}.json"
    policy.write_text(json.dumps({"version": 1, **keys}))
    done = run(a.cli, "run", "--policy", policy, "--output", output, "--", "-n", ranks, program, case)
    assert done.returncode == 0, (done.stdout, done.stderr)
    report = run(a.cli, "report", "--all", output)
    assert report.returncode == 0, report.stderr
    profile = json.loads(output.read_text())
    kinds = {one["what"]: (one["calls"], one["ranks"]) for one in profile["not_counted"]}
    assert len(kinds) == len(profile["not_counted"])
    return profile, kinds, " ".join(report.stdout.split()), done.stdout


def test_each_kind_of_call_is_counted():
    _, kinds, said, printed = observe("kinds", 4)
    threads, version = map(int, re.search(r"level (\d), version (\d)", printed).groups())
    if not threads:
        return
    persistent = {"neighbours": (12, 4), "persistent": (12, 4)} if version >= 4 else {}
    assert kinds == {"outside": (20, 4), "nonblocking": (44, 4), **persistent, "other_threads": (5, 1)}
    assert "Not counted: arrivals of collectives on inter-communicators or with processes of other jobs (20 calls of 4 ranks); " in said
    assert "polls of threads that had no row of their own (5 calls of 1 rank)." in said


def test_requests_beyond_a_table_are_counted():
    # The table holds 1,024 of 1,100 requests, and one call looks at 256. The others end unseen: those that the table does not hold are counted at their site without an end. A log
    # holds 1,024 calls, too.
    profile, kinds, *_ = observe("requests", 2)
    assert kinds == {"nonblocking": (2 * (256 + 76), 2), "requests": (2 * (768 + 76), 2), "logs": (2 * 76, 2)}
    assert sum(site["rank_calls"] for site in profile["sites"]) == kinds["nonblocking"][0]


def test_sites_beyond_the_limit_are_counted():
    profile, kinds, *_ = observe("sites", 2)
    assert kinds["sites"] == (2 * 104, 2) and sum(site["rank_calls"] for site in profile["sites"]) == 2 * 4200


def test_calls_beyond_a_log_are_counted():
    profile, kinds, *_ = observe("logs", 2, exchange="finalize", budget=None)
    (site,) = profile["sites"]
    assert kinds == {"logs": (site["rank_calls"] - 2 * site["patterns"], 2)} and kinds["logs"][0] > 0


def test_nothing_is_left_out_of_plain_calls():
    _, kinds, said, _ = observe("none", 2)
    assert kinds == {} and "Not counted" not in said
