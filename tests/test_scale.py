# SPDX-License-Identifier: BSD-3-Clause
"""Reports for 10,000 ranks and 1,000 sites: the limits of a profile, which are rows of several ranks and folded sites,
with `warnings` about both. The long part takes a minute, since such a profile has 1 GB."""
import json
import os
import resource
import shlex
import subprocess
import threading
import time

import pytest

COMMAND, GENERATE = shlex.split(os.environ.pop("LATECOMER_TEST"))


def run(*words, limit_gib=None):
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_gib << 30,) * 2)) if limit_gib else None
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600, preexec_fn=limit)


def generated(folder, name, *figures):
    """A profile of so many ranks, sites and calls."""
    file = folder / name
    assert run(GENERATE, *figures, file).returncode == 0
    return file


@pytest.fixture(scope="module")
def many_sites(tmp_path_factory):
    return generated(tmp_path_factory.mktemp("sites"), "sites.json", 4, 1200, 2)


@pytest.fixture(scope="module")
def many_ranks(tmp_path_factory):
    return generated(tmp_path_factory.mktemp("ranks"), "ranks.json", 5000, 3, 4)


def test_the_smallest_of_1200_sites_are_folded(many_sites):
    profile = json.loads(many_sites.read_text())
    folded = profile["sites"][-1]
    assert len(profile["sites"]) == 1000 and folded["op"] == "several"
    assert any("201 smallest of 1200 sites" in w for w in profile["warnings"])
    assert folded["elapsed_ns"]["mean"] <= min(s["elapsed_ns"]["mean"] for s in profile["sites"][:-1])


def test_folding_loses_no_call(many_sites):
    profile = json.loads(many_sites.read_text())
    sites = profile["sites"]
    folded = sites[-1]
    assert folded["calls"] == 2 * 201 and folded["rank_calls"] == 4 * folded["calls"] and sum(s["calls"] for s in sites) == 2400
    assert sum(folded["imbalance_ns"]["counts"]) == folded["calls"] and profile["rank_rows"][sites.index(folded)] == []


def test_5000_ranks_share_rows_of_two(many_ranks):
    profile = json.loads(many_ranks.read_text())
    rows = profile["rank_rows"][0]
    assert len(rows) == 2500 and all(r["ranks"] == 2 for r in rows) and [r["rank"] for r in rows] == list(range(0, 5000, 2))
    assert rows[-1]["last_count"] == 4 and sum(r["last_count"] for r in rows) == 4 and sum(rows[0]["histogram"]["counts"]) == 8
    assert any("grouped by 2" in w for w in profile["warnings"])


def test_json_passes_every_row_on(many_ranks):
    profile, again = json.loads(many_ranks.read_text()), json.loads(run(COMMAND, "report", "--json", many_ranks).stdout)
    for site in (*again["sites"], *profile["sites"]):
        site["frames"] = None
    assert sorted(again["sites"], key=lambda s: s["id"]) == sorted(({**site, "ranks": rows} for site, rows in zip(profile["sites"], profile["rank_rows"])), key=lambda s: s["id"])
    assert again["clock"] == profile["clock"] and again["job"] == {"key": profile["job_key"], **profile["job"]}


def test_the_report_names_the_row_that_comes_last(many_ranks):
    assert "4998-4999 (100%)" in run(COMMAND, "report", many_ranks).stdout


class Hosts:
    """What the relays of 64 ranks each would write: all ranks but 777 are in one allgather."""

    def __init__(self, folder, ranks=10000):
        self.job, self.ranks = folder / "running.json", ranks
        self.parts = folder / "running.json.parts"
        self.parts.mkdir(mode=0o700)

    def write(self):
        now = time.time()
        for host in range((self.ranks + 63) // 64):
            rows = [{"rank": r, "ranks": self.ranks, "pid": 1000 + r, "started": 5, "communicator": 99, "n": 400 + (r != 777), "site": 1234, "bytes": 8,
                     "since": int((now - 300) * 1e9), "message": 0, "message_site": 0, "message_call": -1, "message_peer": -1, "message_tag": -1, "looked": int(now * 1e9), "root": -1, "comm_size": self.ranks, "op": 0,
                     "inside": int(r != 777), "watched": 1, "state": "S", "alive": "S"} for r in range(64 * host, min(self.ranks, 64 * host + 64))]
            file = self.parts / f"live-node{host}.json"
            file.with_suffix(".new").write_text(json.dumps({"format": "latecomer-live", "version": 3, "host": f"node{host}", "output": str(self.job),
                                                            "job": 77, "number": int(now * 1e9), "time_s": now, "ranks": rows, "frames": []}))
            file.with_suffix(".new").rename(file)

    def seen_by_who(self, *words):
        ended = threading.Event()
        relays = threading.Thread(target=lambda: [self.write() for _ in iter(lambda: ended.wait(0.4), True)])
        self.write()
        relays.start()
        try:
            return run(COMMAND, "who", *words, self.job)
        finally:
            ended.set()
            relays.join()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return Hosts(tmp_path_factory.mktemp("hosts"))


def test_who_names_one_of_10000_ranks(hosts):
    done = hosts.seen_by_who()
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and lines[0].startswith("Ranks 0-776, 778-9999 wait in allgather")
    assert "for rank 777 on node12, which is asleep" in lines[0]
    assert len(lines) == 5 and "rank 777, process 1777 on node12" in lines[3] and lines[4].startswith("    9999  asleep"), "a line per place"


def test_who_all_has_a_line_per_rank(hosts):
    assert len(hosts.seen_by_who("--all").stdout.splitlines()) == 10003


def test_old_copies_of_many_hosts_are_one_sentence(hosts):
    hosts.write()
    deadline, done = time.time() + 60, None
    while time.time() < deadline:
        done = run(COMMAND, "who", hosts.job)
        if "ranks 0-9999 on 157 hosts" in done.stdout:
            break
        time.sleep(0.5)
    assert len(done.stdout.splitlines()) < 10 and "ranks 0-9999 on 157 hosts" in done.stdout
    done = run(COMMAND, "top", "--once", hosts.job)
    assert "the states of 157 hosts are old" in done.stdout and len(done.stdout) < 1000


@pytest.fixture(scope="module")
def two_hundred_ranks(tmp_path_factory):
    return generated(tmp_path_factory.mktemp("many"), "many.json", 200, 1, 20)


def test_advice_without_a_rule_says_so_first(two_hundred_ranks):
    done = run(COMMAND, "advise", two_hundred_ranks)
    assert done.returncode == 1 and done.stdout.startswith("No rule: no gain is expected at any of 1 sites")
    assert "does not describe this machine: native modelled" in done.stdout and "only some of their rows" not in done.stdout


def test_diff_of_one_policy_with_itself_says_what_it_is(two_hundred_ranks):
    done = run(COMMAND, "diff", two_hundred_ranks, two_hundred_ranks)
    assert done.returncode == 0 and "noise" in done.stdout
    assert done.stdout.startswith("Both runs used the same algorithms at every common site")


def test_progress_shows_while_names_are_resolved(many_sites):
    done = run(COMMAND, "report", "--tsv", "--patience", 0, many_sites)
    assert "resolving names, sites: 1000 of 1000" in done.stderr and done.stdout.count("\n") == 1001
    assert run(COMMAND, "report", "--tsv", many_sites).stderr == "", "none where it is quick"


@pytest.mark.long
def test_report_of_10000_ranks_and_1000_sites_in_3_gib(tmp_path):
    large = generated(tmp_path, "large.json", 10000, 1000, 1)
    done = run(COMMAND, "report", "--all", "--patience", 2, large, limit_gib=3)
    assert done.returncode == 0 and done.stdout.count("\nallreduce ") == 1000 and "9999 (100%)" in done.stdout, done.stderr[-200:]
    assert "reading" in done.stderr, "progress"
