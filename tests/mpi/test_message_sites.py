# SPDX-License-Identifier: BSD-3-Clause
"""Each call that waits for a message has a site, a time and the ranks that were awaited, as the program measures them."""
import json
import pathlib

import pytest
from common import a, folder, launcher, open_mpi, run, sanitized

PROGRAM = pathlib.Path(a.bin) / "message_sites"


def observe(name, **policy):
    """What rank 0 measured, [function, call, awaited rank, ns, calls] in each row, and the profile."""
    profile, rules = folder / f"{name}.json", folder / f"{name}.policy.json"
    rules.write_text(json.dumps({"version": 1, **policy}))
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--policy", rules, "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 3, PROGRAM, **yielding)
    assert done.returncode == 0, done.stderr[-600:]
    rows = [line.split() for line in done.stdout.splitlines()]
    return [[f, c, int(r), float(ns), int(n)] for f, c, r, ns, n in rows], json.loads(run(a.cli, "report", "--json", profile).stdout)


def row_of(site, rank):
    return next((one for one in site["by_rank"] if one["rank"] == rank), {"calls": 0, "time_ns": 0, "waits_for": []})


def sites_of(profile, functions, calls):
    return [one for one in profile["timed_sites"] if one["frames"][0]["function"] in functions.split(",") and one["call"] in calls.split(",")]


@pytest.fixture(scope="module")
def all_timed():
    return observe("all", budget=None)


def test_sums_are_those_of_the_process(all_timed):
    _, profile = all_timed
    assert all(one["call"] != "several" for one in profile["timed_sites"])
    for process in profile["processes"]:
        for part, key in (("messages", "messages_ns"), ("other", "other_mpi_ns")):
            sums = sum(row_of(one, process["rank"])["time_ns"] for one in profile["timed_sites"] if one["part"] == part)
            # The part also has readings at the ends of waits, in which the rank may lose its core.
            assert 0.8 * process[key] - 1e5 <= sums <= 1.001 * process[key] + 1e5, (process["rank"], part)
    for site in profile["timed_sites"]:
        assert sum(row["time_ns"] for row in site["by_rank"]) == pytest.approx(site["time_ns"], rel=1e-9)
        assert sum(row["calls"] for row in site["by_rank"]) == site["calls"]
        assert (site["timed"] == site["calls"] or site["call"] == "MPI_Irecv") and site["frames"][0]["file"].endswith("message_sites.c")
    times = [one["time_ns"] for one in profile["timed_sites"]]
    assert times == sorted(times, reverse=True)


@pytest.mark.skipif(bool(sanitized), reason="a sanitizer changes the times")
def test_sites_and_peers_are_those_that_the_program_measured(all_timed):
    measured, profile = all_timed
    assert len(measured) == 30
    for functions, calls, peer, ns, count in measured:
        sites = sites_of(profile, functions, calls)
        rows = [row_of(site, 0) for site in sites]
        waited = sum(p["wait_ns"] for row in rows for p in row.get("waits_for", []) if p["rank"] == peer)
        whole = sum(row["time_ns"] for row in rows)
        truth = sum(one[3] for one in measured if one[0] == functions)
        print(functions, calls, peer, round(ns / 1e6, 2), round(waited / 1e6, 2), round(whole / 1e6, 2), round(truth / 1e6, 2))
        assert {site["call"] for site in sites} <= set(calls.split(",")) and sites
        assert all(row["calls"] in (0, count) for row in rows)
        assert whole == pytest.approx(truth, rel=0.1), functions
        # Another process may have a core when the messages come. A wait for several neighbours counts for each.
        together = sum(row.get("together_ns", 0) for row in rows)
        assert together == (pytest.approx(whole, rel=0.05) if functions == "hears_neighbours" else 0), functions
        assert waited == pytest.approx(truth if together else ns, rel=0.25), functions


def test_without_the_look_a_wait_counts_for_all_messages():
    measured, profile = observe("together", budget=None, last_message=False)
    (site,) = sites_of(profile, "waits_for_all", "MPI_Waitall")
    row = row_of(site, 0)
    assert row["together_ns"] == pytest.approx(row["time_ns"], rel=0.05)
    assert {peer["rank"] for peer in row["waits_for"]} == {1, 2}
    if not sanitized:
        assert all(peer["wait_ns"] == pytest.approx(row["together_ns"], rel=0.05) for peer in row["waits_for"])
    text = run(a.cli, "report", "--tsv-calls", folder / "together.json").stdout
    (line,) = [one.split("\t") for one in text.splitlines() if "waits_for_all" in one and one.startswith("MPI_Waitall")]
    assert line[7] == "several"


@pytest.mark.skipif(not open_mpi, reason="MPICH's MPI_Waitall waits for all messages, so natively the program has no end")
def test_a_failure_is_reported_before_all_messages_are_there():
    done = run(a.cli, "run", "--output", folder / "failure.json", "--", *launcher, "-n", 3, PROGRAM, "failure")
    assert (done.returncode, done.stdout) == (0, "pending 1\n"), done.stderr[-600:]


def test_reports_show_the_sites(all_timed):
    _, profile = all_timed
    text = run(a.cli, "report", "--all", folder / "all.json").stdout
    for one in profile["timed_sites"]:
        assert f"{one['frames'][0]['function']} (message_sites.c:{one['frames'][0]['line']})" in text
    page = run(a.cli, "report", "--html", "-", folder / "all.json").stdout
    assert "receives_on_another_communicator (message_sites.c:" in page
    redacted = json.loads(run(a.cli, "report", "--json", "--redact", folder / "all.json").stdout)
    assert all("/" not in one["frames"][0]["module"] for one in redacted["timed_sites"])
