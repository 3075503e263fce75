# SPDX-License-Identifier: BSD-3-Clause
"""Sites have the messages and bytes that the program sends and receives, and pairs of ranks those between them (message_lengths.c)."""
import collections
import json
import re

import pytest
from common import a, folder, launcher, open_mpi, run

RANKS = 4


@pytest.fixture(scope="module")
def observed():
    """The program's messages, (rank, function, receiver, bytes), and the profile."""
    output, rules = folder / "lengths.json", folder / "lengths.policy.json"
    rules.write_text('{"version": 1, "budget": 0.0001}')  # calls that rest are counted, too
    yielding = {} if open_mpi else {"LD_PRELOAD": a.support}
    done = run(a.cli, "run", "--policy", rules, "--output", output, "--", *(launcher or [a.mpiexec]), "-n", RANKS, a.bin + "/message_lengths", **yielding)
    assert done.returncode == 0, done.stderr[-600:]
    rows = [line.split() for line in done.stdout.splitlines()]
    return [(int(rank), function, int(to), int(size)) for rank, function, to, size in rows], json.loads(run(a.cli, "report", "--json", output).stdout)


def test_sites_have_the_lengths_of_their_messages(observed):
    messages, profile = observed
    for function in {message[1] for message in messages} - {"-"}:
        sizes = [message[3] for message in messages if message[1] == function]
        sites = [site for site in profile["timed_sites"] if site["frames"][0]["function"] == function]
        assert sum(site.get("messages", 0) for site in sites) == len(sizes)
        assert sum(site.get("bytes", 0) for site in sites) == sum(sizes)
        found = collections.Counter()
        for site in sites:
            found.update({one["least"]: one["messages"] for one in site.get("lengths", [])})
        assert found == collections.Counter(1 << size.bit_length() - 1 if size else 0 for size in sizes), function
        assert all("bytes" not in site for site in sites if site["call"] in ("MPI_Wait", "MPI_Waitall", "MPI_Probe", "MPI_Irecv"))
    assert all("bytes" not in site for site in profile["timed_sites"] if site["frames"][0]["function"] == "goes_nowhere")


def test_pairs_have_what_went_between_them(observed):
    messages, profile = observed
    expected = collections.defaultdict(lambda: [0, 0])
    for rank, function, to, size in messages:
        if to >= 0:
            expected[rank, to][0] += size > 0 or function != "-"  # a collective sends no empty messages
            expected[rank, to][1] += size
    assert profile["pairs"]["ranks_per_row"] == 1
    assert {(row["rank"], row["peer"]): [row["messages"], row["bytes"]] for row in profile["pairs"]["rows"] if row["messages"] > 0} == expected
    # A rank waits for its neighbours only.
    assert all((row["rank"] - row["peer"]) % RANKS in (1, RANKS - 1) for row in profile["pairs"]["rows"])


def test_outputs_show_bytes_and_pairs(observed):
    _, profile = observed
    lines = run(a.cli, "report", "--tsv-calls", folder / "lengths.json").stdout.splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    assert sum(int(row["bytes"]) for row in rows) == sum(site.get("bytes", 0) for site in profile["timed_sites"])
    assert "bytes" in run(a.cli, "report", "--all", folder / "lengths.json").stdout
    page = run(a.cli, "report", "--html", "-", folder / "lengths.json").stdout
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
    assert data["pairs"]["rows"] == RANKS and data["pairs"]["ranks_per_row"] == 1
