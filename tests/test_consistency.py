# SPDX-License-Identifier: BSD-3-Clause
"""Every output of one profile gives the same figures: of 4 ranks, of 1,000 ranks of which 200 are late, and of 5,000
ranks, whose rows are of two ranks each, with and without the sums of each rank. The expected figures come from all rows
of the profile, or from the sums, by formulas of their own."""
import json
import os
import re
import shlex
import subprocess
import types

import pytest

COMMAND, GENERATE = shlex.split(os.environ.pop("LATECOMER_TEST"))
PARTS = ["computes", "kernel", "no core", "blocked", "messages", "files", "other MPI", "in coll.", "ends"]
SUMS = ["waited_ns", "awaited_ns", "last_count"]
CALLS = 10
MS = 1e6


def run(*words, cwd=None):
    done = subprocess.run([str(w) for w in (COMMAND, *words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def generate(path, ranks):
    subprocess.run([GENERATE, str(ranks), "1", str(CALLS), path], check=True)
    return json.loads(path.read_text())


@pytest.fixture(scope="module", params=[4, 1000, 5000])
def written(request, tmp_path_factory):
    """The profile as it is written: the last rank is late in each call. The sums are of single ranks, and `parts` has those of each row."""
    profile = generate(tmp_path_factory.mktemp("written") / "p.json", request.param)
    rows = profile["rank_rows"][0]
    sums = profile["rank_sums"]
    return types.SimpleNamespace(ranks=request.param, rows=rows, sums=sums, parts=[sums[row["rank"]:row["rank"] + rows[0].get("ranks", 1)] for row in rows])


def test_the_profile_has_the_sums_of_each_rank(written):
    assert [(s["rank"], s["calls"]) for s in written.sums] == [(r, CALLS) for r in range(written.ranks)]


@pytest.mark.parametrize("key", SUMS)
def test_the_sums_add_up_to_the_rows(written, key):
    assert [row[key] for row in written.rows] == pytest.approx([sum(s[key] for s in part) for part in written.parts], rel=1e-6, abs=0)


def test_the_lateness_of_the_sums_is_that_of_the_rows(written):
    total = sum(row["mean_offset_ns"] for row in written.rows) * len(written.parts[0])
    # Against all others: of single ranks, n - 1 of n.
    rows = [(row["mean_offset_ns"] * written.ranks - total) / (written.ranks - 1) for row in written.rows]
    assert [sum(s["mean_lateness_ns"] for s in part) / len(part) for part in written.parts] == pytest.approx(rows, rel=1e-6, abs=0)


def test_one_rank_alone_is_late(written):
    *_, other, last = written.sums
    assert [s["rank"] for s in written.sums if s["last_count"]] == [s["rank"] for s in written.sums if s["awaited_ns"]] == [written.ranks - 1]
    assert last["waited_ns"] == 0 < other["waited_ns"] and last["mean_lateness_ns"] > 0.9 * MS > 0 > other["mean_lateness_ns"]


def make(folder, ranks, late_from, with_sums):
    """One site: the ranks from `late_from` on sleep 8 ms longer than the others before each call, and the last one is
    the one that is awaited. Without sums it is a profile of an earlier version."""
    path = folder / "p.json"
    profile = generate(path, ranks)
    site = profile["sites"][0]
    rows = profile["rank_rows"][0]
    wall = 0.02e9 * CALLS
    profile["processes"] = [dict(profile["processes"][0], rank=r) for r in range(ranks)]
    for p in profile["processes"]:
        late = p["rank"] >= late_from
        p.update(host=f"h{p['rank'] * 4 // ranks}", wall_ns=wall, computing_ns=0.25 * wall, blocked_ns=8 * MS * CALLS * late, collectives_ns=0.3 * wall, cores=1, host_cores=64)
    last = rows[-1]["rank"]
    for row in rows:
        late, share = row["rank"] >= late_from, row.get("ranks", 1)
        row.update(mean_offset_ns=(8 + 0.001 * (row["rank"] == last)) * MS * late, last_count=CALLS * (row["rank"] == last), waited_ns=0 if late else 8 * MS * CALLS * share,
                   awaited_ns=(late_from * 8 * MS * CALLS) * (row["rank"] == last))
        row["before"] = {"samples": 10, "wall_ns": (5 + 8 * late) * MS, "computing_ns": 5 * MS, "blocked_ns": 8 * MS * late, "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0,
                         "runnable_ns": 0, "faults": 0, "preempted": 0}
    offset = lambda r: (8 + 0.001 * (r == ranks - 1)) * MS * (r >= late_from)
    everything = sum(map(offset, range(ranks)))
    profile["rank_sums"] = [{"rank": r, "calls": CALLS, "last_count": CALLS * (r == ranks - 1), "mean_lateness_ns": offset(r) - (everything - offset(r)) / (ranks - 1), "waited_ns": 0 if r >= late_from else 8 * MS * CALLS,
                             "awaited_ns": (late_from * 8 * MS * CALLS) * (r == ranks - 1)} for r in range(ranks)]
    if not with_sums:
        del profile["rank_sums"]
    # One caller with records of all ranks, and one without, which has no means.
    caller = lambda line, patterns, **more: {"frames": [dict(site["frames"][0], function="f", file="f.c", line=line)], "calls": CALLS, "rank_calls": ranks * CALLS, "patterns": patterns, "bytes": None, "waited_ns": 0,
                                             "awaited": [], **more}
    site["callers"] = [caller(1, CALLS, mean_imbalance_ns=8 * MS, mean_after_last_ns=1000), caller(2, 0)]
    site["waited_ns"] = sum(r["waited_ns"] for r in rows)
    site["before"] = {k: sum(r["before"][k] for r in rows) / len(rows) for k in rows[0]["before"]}
    site["before"]["samples"] = 10 * len(rows)
    profile["job"].update(wall_time_s=wall / 1e9, hosts=["h0", "h1", "h2", "h3"])
    path.write_text(json.dumps(profile))
    return path, profile


@pytest.fixture(scope="module", params=[(4, 3, True), (1000, 800, True), (5000, 4000, False), (5000, 4000, True)], ids=["4", "1000", "5000 without sums", "5000"])
def outputs(request, tmp_path_factory):
    """What each output shows, and what is expected of it, by rank."""
    ranks, late_from, with_sums = request.param
    path, profile = make(tmp_path_factory.mktemp("outputs"), ranks, late_from, with_sums)
    rows = profile["rank_rows"][0]
    per = rows[0].get("ranks", 1)
    total = sum(r["mean_offset_ns"] * per for r in rows)
    cause = {r["rank"]: "blocked" if r["mean_offset_ns"] else None for r in rows}
    expected = {r["rank"]: dict({key: r[key] for key in SUMS}, late=r["mean_offset_ns"] - (total - r["mean_offset_ns"] * per) / (ranks - per), cause=cause[r["rank"]]) for r in rows}
    shared = {}  # the ranks that share causes
    if per > 1 and with_sums:
        expected = {s["rank"]: dict({key: s[key] for key in SUMS}, late=s["mean_lateness_ns"], cause=cause[s["rank"] // per * per]) for s in profile["rank_sums"]}
        shared = {r: f"{r // per * per}-{r // per * per + per - 1}" for r in expected}
    # The text, with every row, by the titles of its columns. The page: its data, which the script prints.
    answer = json.loads(run("report", "--json", path))
    text = run("report", "--all", "--top", ranks, path)
    table = text.split("\nranks, those", 1)[1].split("\n\n")[0].splitlines()
    titles = re.findall(r"no core|other MPI|in coll\.|\S+", table[1])
    printed = {}
    for line in table[2:]:
        cells = [c.strip() for c in re.split(r"  +|(?<=%) (?=\d)", line.strip())]
        cells[0:1] = cells[0].split(" ")
        printed[int(cells[0].split("-")[0])] = dict(zip(titles, [c for c in cells if c]))
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', run("report", "--html", "-", path), re.S)[1])
    return types.SimpleNamespace(path=path, profile=profile, last=rows[-1], per=1 if with_sums else per, expected=expected, shared=shared, answer=answer, found={r["rank"]: r for r in answer["ranks"]},
                                 text=text, titles=titles, printed=printed, data=data, shown={r[0]: r for r in data["tables"]["ranks"]})


def test_json_has_every_row(outputs):
    assert all(abs(sum(r["parts"].values()) - 1) < 1e-9 and min(r["parts"].values()) >= 0 for r in outputs.answer["ranks"]), outputs.answer["ranks"][0]["parts"]
    assert outputs.found.keys() == outputs.expected.keys()
    assert {r: (one.get("causes_of"), one.get("ranks", 1)) for r, one in outputs.found.items()} == {r: (outputs.shared.get(r), outputs.per) for r in outputs.expected}


def test_json_has_the_lateness_against_all_others(outputs):
    found = outputs.found
    expected = outputs.expected
    assert {r: one["mean_lateness_ns"] for r, one in found.items()} == pytest.approx({r: e["late"] for r, e in expected.items()}, abs=1e-6 * 8 * MS)
    assert {r: (one["waited_ns"], one["awaited_ns"], one["times_last"]) for r, one in found.items()} == {r: (e["waited_ns"], e["awaited_ns"], e["last_count"]) for r, e in expected.items()}
    assert {r: one["causes"]["blocked"] for r, one in found.items() if one["causes"] is not None} == pytest.approx({r: 1 for r, e in expected.items() if e["cause"]}, abs=0.01)


@pytest.mark.parametrize("key", ["waited_ns", "awaited_ns"])
def test_the_sums_of_hosts_are_those_of_their_ranks(outputs, key):
    of = {p["rank"]: p["host"] for p in outputs.profile["processes"]}
    hosts = outputs.answer["hosts"]
    assert [h[key] for h in hosts] == pytest.approx([sum(e[key] for r, e in outputs.expected.items() if of[r] == h["host"]) for h in hosts], abs=0.99)


def test_the_share_of_waiting(outputs):
    time = outputs.profile["job"]["wall_time_s"] * 1e9 * outputs.profile["job"]["ranks"]
    assert outputs.answer["wait_share"] == pytest.approx(sum(e["waited_ns"] for e in outputs.expected.values()) / time, abs=1e-9)


def same_time(text, ns):
    """Whether a printed time is this one, to its last digit."""
    number, unit = re.fullmatch(r"(-?[\d.]+) (ns|us|ms|s)", text.strip()).groups()
    return abs(float(number) - ns / {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]) <= 0.51 * 10**-len(number.partition(".")[2])


def test_the_text_has_every_row(outputs):
    printed = outputs.printed
    expected = outputs.expected
    assert printed.keys() == expected.keys()
    assert not [(printed[r], e) for r, e in expected.items() if not same_time(printed[r]["late"].replace("early ", "-"), e["late"]) or not same_time(printed[r]["awaited"], e["awaited_ns"]) or printed[r]["last"] != str(e["last_count"])
                or (printed[r]["cause"].split(" (")[0] != e["cause"] if e["cause"] else printed[r]["cause"] != "-")]
    assert not [printed[r] for r, name in outputs.shared.items() if not printed[r]["cause"].endswith(f"%) of {name}" if expected[r]["cause"] else "-")]


def test_the_text_has_callers_with_and_without_means(outputs):
    assert re.search(r" 8.000 ms +1.00 us .*< f \(f.c:1\)\n.* - +- .*< f \(f.c:2\)", outputs.text)


def test_the_verdict_names_the_rank(outputs):
    assert f"{'Rank' if outputs.last.get('ranks', 1) == 1 else 'The group of ranks'} {outputs.last['rank']}" in outputs.answer["verdict"][1]
    assert outputs.answer["verdict"][0] in " ".join(outputs.text.split())


def test_the_report_fits_a_screen(outputs):
    lines = run("report", outputs.path.name, cwd=outputs.path.parent).splitlines()  # ten sites at most
    assert len(lines) < 40 and not [line for line in lines if len(line) > 100]


def close(a, b):
    return abs(a - b) <= 6e-4 * abs(b) + 1e-9


def test_the_page_has_the_same_figures(outputs):
    shown = outputs.shown
    expected = outputs.expected
    assert shown.keys() == expected.keys()
    assert not [(shown[r], e) for r, e in expected.items() if not close(shown[r][5], e["awaited_ns"]) or not close(shown[r][7], e["late"]) or shown[r][6] != e["last_count"] or (shown[r][8][0][0] if shown[r][8] else None) != e["cause"]]


def test_the_page_has_the_same_titles_hosts_and_efficiencies(outputs):
    tables = outputs.data["tables"]
    hosts = {h["host"]: h["awaited_ns"] for h in outputs.answer["hosts"]}
    assert [c[0] for c in tables["columns"]] == PARTS == outputs.titles[2:11]
    assert len(tables["hosts"]) == 4 and all(close(h[4], hosts[h[0]]) for h in tables["hosts"]), hosts
    assert {k: round(v, 3) for k, v in tables["efficiency"].items()} == {k: round(v, 3) for k, v in outputs.answer["efficiency"].items()}


def test_the_site_in_tsv_and_on_the_page(outputs):
    titles, cells = [line.split("\t") for line in run("report", "--tsv", outputs.path).splitlines()[:2]]
    row = dict(zip(titles, cells))
    site = outputs.data["sites"][0]
    waited = outputs.answer["sites"][0]["waited_ns"]
    assert int(row["waited_ns"]) == waited and close(site["waited"], waited) and row["last_ranks"] == site["last"]


@pytest.fixture(scope="module")
def choice(tmp_path_factory):
    """Sites of which a report shows those that are chosen: the findings and the table of the whole report."""
    path, profile = make(tmp_path_factory.mktemp("choice"), 4, 3, True)
    first, wall = profile["sites"][0], profile["job"]["wall_time_s"] * 1e9

    def site(number, op, waited, inside, function, file, line):
        """`waited`, `inside`: shares of the ranks' time."""
        frame = dict(first["frames"][0], module="/x/libexchange.so", function=function, file=file, line=line)
        profile["rank_rows"].append([dict(row, waited_ns=int(waited * wall), awaited_ns=0, last_count=10 * (row["rank"] == 3)) for row in profile["rank_rows"][0]])
        return dict(first, id=f"{number:016x}", op=op, callers=[], frames=[frame], waited_ns=int(4 * waited * wall), elapsed_ns=dict(first["elapsed_ns"], mean=inside * wall / 10))

    name = "outer_scope_of_the_exchange::Exchange::"
    profile["sites"] += [site(1001, "reduce", 0.005, 0.006, f"{name}shift(int)", "grid.cpp", 11), site(1002, "alltoallv", 0.0001, 0.085, "exchange_of_all_keys", "buckets_and_their_keys.cpp", 22),
                         site(1003, "bcast", 0, 0.0001, f"{name}start(int)", None, None)]
    profile["timed_sites"] = [{"id": "00000000000003ec", "call": "MPI_Waitall", "part": "messages", "frames": [dict(profile["sites"][1]["frames"][0], function="finish", line=33)], "calls": 40, "timed": 40,
                               "time_ns": 0.2 * wall, "kinds": {"messages": 80, "matched": 60, "late_sender_ns": 3, "late_receiver_ns": 0, "transfer_ns": 1, "not_known_ns": 0},
                               "by_rank": []}]
    path.write_text(json.dumps(profile))
    return types.SimpleNamespace(path=path, first=first["id"], **dict(zip(("text", "table"), run("report", path).split("\ncollective "))))


@pytest.mark.parametrize("words", [["--site", "FIRST"], ["--site", "finish*"], ["--sort", "bytes"], ["--top", 1], ["--sort", "calls", "--site", "*shift*"]], ids=str)
def test_the_findings_do_not_depend_on_the_sites_that_are_shown(choice, words):
    words = [choice.first if word == "FIRST" else word for word in words]
    assert run("report", *words, choice.path).split("\ncollective ")[0] == choice.text
    found, answer = (json.loads(run("report", "--json", *more, choice.path)) for more in (words, []))
    for key in ("verdict", "findings", "setup", "wait_share", "ranks", "efficiency"):
        assert found[key] == answer[key], key
    chosen, whole = (re.findall('<section id="verdict".*?</section>', run("report", "--html", "-", *more, choice.path), re.S) for more in (words, []))
    assert chosen == whole != []


def test_the_headline_has_one_run_time(choice):
    assert "4 ranks on 4 hosts, none, mode observe" in choice.text and choice.text.startswith("generated: 4 ranks, 4 hosts, 200 ms. ")


def test_sites_that_take_much_time_come_first(choice):
    assert re.findall(r"^(?:allreduce|reduce|alltoallv|bcast)", choice.table, re.M) == ["allreduce", "alltoallv", "reduce", "bcast"]
    assert not [line for line in run("report", choice.path.name, cwd=choice.path.parent).splitlines() if len(line) > 100]


@pytest.mark.parametrize("line", [
    r"alltoallv .* 0\.0% +8\.5% +3 \(100%\)\n    exchange_of_all_keys \(buckets_and_their_keys\.cpp:22\)",
    r"reduce .* 0\.5% +0\.6% +3 \(100%\) +\.\.\.shift \(grid\.cpp:11\)",
    r"bcast .* 0 ns +0\.0% +0\.0% +- +\.\.\.start \(libex.*\)",
    r"MPI_Waitall .* late sender 75% of 60( +finish \(grid\.cpp:33\))?",
    r"kind: .*",
], ids=["a place that is too long has a line of its own", "scopes go first", "nobody comes last where nobody waits", "the number of messages that have a kind", "the kinds"])
def test_a_site_in_the_table(choice, line):
    assert re.search(f"^{line}$", choice.table, re.M)


@pytest.fixture(scope="module", params=[4, 1000, 5000])
def running(request, tmp_path_factory):
    """The file that a leader writes while the job runs, and that of `top` from the leader's snapshot."""
    folder = tmp_path_factory.mktemp("running")
    parts, metrics = folder / "live.json.parts", folder / "live.prom"
    subprocess.run([GENERATE, "--live", str(request.param), "3", "11", parts, metrics], check=True)
    samples = lambda text: {(m[1], re.sub(r',host="[^"]*"', "", m[2])): float(m[3]) for m in re.finditer(r"^(latecomer_\w+)\{(.*)\} (\S+)$", text, re.M)}
    text = metrics.read_text()
    return types.SimpleNamespace(ranks=request.param, text=text, live=samples(text), top=samples(run("top", "--once", "--prometheus", "-", "--ranks", 10, "--sites", 10, parts)))


def test_the_leaders_file_has_the_metrics_of_top(running):
    assert len(running.live) == len(re.findall(r"^latecomer", running.text, re.M)), "no sample occurs twice"
    assert {m for m, _ in running.live} == {m for m, _ in running.top} - {"latecomer_wait_share", "latecomer_finding_gain"}


def test_the_leaders_file_has_the_samples_of_top(running):
    live = running.live
    top = running.top
    both = [k for k in live if k in top]
    # Of the ranks that never came last at a site, each file may keep others.
    never_last = lambda labels: live.get(("latecomer_site_last_total", labels), top.get(("latecomer_site_last_total", labels))) == 0
    assert not [(m, labels) for m, labels in live.keys() ^ top.keys() if m not in ("latecomer_wait_share", "latecomer_finding_gain") and not (m.startswith("latecomer_site_l") and never_last(labels))]
    assert len(both) >= 4 * min(running.ranks, 10) + 12
    assert not [(k, live[k], top[k]) for k in both if not abs(live[k] - top[k]) <= 1e-7 * abs(top[k])]


def test_the_leaders_file_has_the_last_rank_alone(running):
    assert len([m for m, labels in running.live if m.startswith("latecomer_rank_") and f'rank="{running.ranks - 1}"' in labels]) == 4
