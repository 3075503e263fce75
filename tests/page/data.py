# SPDX-License-Identifier: BSD-3-Clause
"""Checks the figures of `latecomer report --html` without a browser: they are those of the terminal report, under the
same titles, on 4, 64 and 10,000 ranks. Usage: data.py LATECOMER RECORDED_PROFILE"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from profiles import communicators, write_profile

command, recorded = sys.argv[1:3]
failures = 0


def check(condition, what):
    global failures
    print("ok    " if condition else "FAILED", str(what)[:400], flush=True)
    failures += not condition


def run(*words):
    done = subprocess.run([command, "report", *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def data_of(page):
    return json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S)[1])


def close(a, b):
    return abs(a - b) <= 6e-4 * abs(b) + 1e-9


def look_at_time(what, data, text, profile):
    """The stacked bars: whole, and equal to the profile's processes and to the waits of the table."""
    heading = re.search(r"\n +ranks? +host +(computes.*)", text)[1]
    parts = [title for title, _ in data["parts"]]
    columns = re.findall(r"no core|other MPI|in coll\.|\S+", heading)
    columns = columns[: columns.index("waits")]
    check(parts[:-3] == [c for c in columns if c != "in coll."] and parts[-3:] == ["waits", "after last", "rest"], f"{what}: bars and terminal have the same titles: {parts}")
    bars = [b for b in data["time"]["bars"] if b]
    shares = [s for bar in bars for s in bar[2:]]
    wrong = [s for s in shares if abs(sum(s) - 1) > 2e-3 or min(s) < 0]
    check(shares and not wrong, f"{what}: the parts of each of {len(bars)} bars are 100% of the run time: {wrong[:1]}")
    tables = {r[1]: r for r in data["tables"]["ranks"]}
    wrong = [b for b in bars if b[2][parts.index("waits")] != min(tables[b[0]][4], tables[b[0]][3][columns.index("in coll.")])]
    check(not wrong, f"{what}: their waits are those of the table of ranks: {wrong[:1]}")
    if data["time"]["ranks_per_bar"] == 1:
        keys = ["computing_ns", "kernel_ns", "runnable_ns", "blocked_ns", "messages_ns", "io_ns", "other_mpi_ns", "ends_ns"]
        for p in profile["processes"]:
            p["ends_ns"] = p["init_ns"] + p["end_ns"]
        run = lambda p: p["wall_ns"] + p["ends_ns"]
        wrong = [(p, b) for p, b in zip(profile["processes"], bars) if not all(close(b[2][k], p[key] / run(p)) for k, key in enumerate(keys))
                 or not close(b[2][-3] + b[2][-2], p["collectives_ns"] / run(p))]
        check(len(bars) == len(profile["processes"]) and not wrong, f"{what}: one bar per rank, with the times of its process: {wrong[:1]}")


def look_at_communicators(what, data, text, profile):
    table = text.split("\ncommunicators, ", 1)[1].splitlines()
    titles = data["communicators"]["titles"]
    check(re.split(r"  +", table[1].strip()) == titles or table[1].split() == " ".join(titles).split(), f"{what}: communicators on the page and in the terminal have the same titles: {titles}")
    rows = data["communicators"]["rows"]
    expected = sorted((c for c in profile["communicators"] if c["comm_size"] != 1), key=lambda c: -c["waited_ns"])
    check([r[0] for r in rows] == [c["comm_size"] for c in expected] and all(close(r[2], c["waited_ns"]) and close(r[4], c["imbalance_ns"]) and r[6] in line for r, c, line in zip(rows, expected, table[2:])),
          f"{what}: communicators, longest wait first: {rows[:2]}")


def look_at_callers(what, data, text):
    site = data["sites"][0]
    lines = text.split("callers, with their share of the calls and of the waiting:\n", 1)[1].splitlines()
    share = lambda v: f"{100 * v:.1f}%" if v < 0.0995 else f"{100 * v:.0f}%"
    expected = [f"{share(calls)} {share(waits)} {data['places'][place]}" for level, place, calls, waits in site["callers"]]
    check(len(expected) == 4 and [" ".join(line.split()) for line in lines[:len(expected)]] == expected, f"{what}: the callers of a site, as in the terminal: {expected}")
    check([c[0] for c in site["callers"]] == [0, 1, 1, 0], f"{what}: a caller comes before its own callers")


def look_at_stretches(what, data, profile):
    """The bars of the Gantt chart are calls of the record."""
    stretches = data["arrivals"]["stretches"]
    events, groups = profile["arrivals"]["events"], profile["arrivals"]["groups"]
    known = {}
    for e in events:
        for i, rank in enumerate(groups[e["group"]]):
            known[e["site"], rank, e["arrival_ns"][i]] = e["exit_ns"][i]
    wrong, bars = [], 0
    for s in stretches:
        for row, call, arrival, wait_end, leaves, awaited in s["bars"]:
            bars += 1
            exit_ns = known.get((s["calls"][call][0], s["rows"][row], arrival + s["begin_ns"]))
            if exit_ns is None or (leaves is not None and (leaves + s["begin_ns"] != exit_ns or not arrival <= wait_end <= leaves)) or (awaited >= 0 and awaited == s["rows"][row]):
                wrong.append((s["rows"][row], arrival, exit_ns))
    check(1 <= len(stretches) <= 3 and bars > 20 and not wrong, f"{what}: {len(stretches)} stretches with {bars} bars, all of the record: {wrong[:2]}")
    check(all(len(s["rows"]) <= 40 and len(s["bars"]) <= 4096 and s["rows"] == sorted(set(s["rows"])) for s in stretches), f"{what}: at most 40 ranks, in order")
    waits = [s["waited_ns"] for s in stretches]
    check(waits == sorted(waits, reverse=True), f"{what}: the longest wait first: {waits}")
    missing = []
    for s in stretches:  # nothing that a shown rank did in the stretch is left out
        drawn = {(s["calls"][b[1]][0], s["rows"][b[0]], b[2] + s["begin_ns"]) for b in s["bars"]}
        for (site, rank, arrival), leaves in known.items():
            if rank in s["rows"] and arrival < s["begin_ns"] + s["span_ns"] and max(arrival, leaves) > s["begin_ns"] and (site, rank, arrival) not in drawn:
                missing.append((rank, arrival))
    check(not missing, f"{what}: all calls of the shown ranks: {missing[:3]}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for ranks, sites, record in (4, 6, 400), (64, 40, 0), (10000, 300, 60):
        path, out, what = folder / "profile.json", folder / "page.html", f"{ranks} ranks"
        write_profile(path, ranks, sites, record=record)
        check(run("--html", out, path) == f"{out}\n", f"{what}: the command prints the path of the page")
        page = out.read_text()
        data = data_of(page)
        check(len(page) < 6_000_000, f"{what}: the page has {len(page):,} bytes")
        text = run("--all", "--top", "10", path)
        profile = json.loads(path.read_text()) if ranks < 1000 else {"communicators": communicators(ranks, 500)}
        look_at_time(what, data, text, profile)
        look_at_communicators(what, data, text, profile)
        look_at_callers(what, data, text)
        if not record:
            check(data["arrivals"] is None, f"{what}: without a record, the page has no arrivals")
        elif ranks < 1000:
            look_at_stretches(what, data, profile)
        else:
            late = [r for r in data["time"]["bars"] if r and r[0] == "3333-3335"]
            check(len(data["time"]["bars"]) == 477 and len(late) == 1 and late[0][2] != late[0][3], f"{what}: the late row of ranks has a bar of its own: {late}")
            check(all(3333 in s["rows"] and len(s["rows"]) == 40 for s in data["arrivals"]["stretches"]), f"{what}: the late rank is a row of the recorded calls")
        if ranks == 4:
            piped = run("--html", "-", path)
            check(piped.startswith("<!DOCTYPE html>") and piped.endswith("</html>\n"), "a page on stdout is alone there")
            profile["processes"].pop()
            part = folder / "part.json"
            part.write_text(json.dumps(profile))
            marks = [re.findall('<span class="partial">(.*?)</span>', text) for text in (page, run("--html", "-", part))]
            check(marks == [[], ["without rank 3"] * 11], f"each figure of a profile that lacks a rank says so: {marks}")

    # Several communicators, non-blocking calls, and rooted ones.
    path = folder / "recorded.json"
    subprocess.run([recorded, path], check=True)
    profile = json.loads(path.read_text())
    data = data_of(run("--html", "-", path))
    look_at_stretches("several communicators", data, profile)
    check(any(b[4] is None for s in data["arrivals"]["stretches"] for b in s["bars"]), "a call without an exit has no end")
    # A record with gaps of 1 ms before every eighth call: no stretch crosses one, unless no window is left out.
    for i, e in enumerate(profile["arrivals"]["events"]):
        e["arrival_ns"] = [t + 1_000_000 * (i // 8) for t in e["arrival_ns"]]
        e["exit_ns"] = [t + 1_000_000 * (i // 8) if t >= 0 else t for t in e["exit_ns"]]
    for stride in (1, 3):
        profile["arrivals"]["stride"], profile["arrivals"]["window_ns"] = stride, 250_000
        path.write_text(json.dumps(profile))
        stretches = data_of(run("--html", "-", path))["arrivals"]["stretches"]
        gaps = [b[1] - a[1] for s in stretches for a, b in zip(s["calls"], s["calls"][1:])]
        check(gaps and (max(gaps) < 500_000) == (stride > 1), f"one of {stride} windows: the longest gap in a stretch is {max(gaps)} ns")
    # A job whose ranks sent no time, and whose profile names no communicator.
    profile.pop("communicators", None), profile.pop("processes", None), profile.pop("arrivals")
    path.write_text(json.dumps(profile))
    data = data_of(run("--html", "-", path))
    check(data["time"] is None and data["communicators"]["rows"] == [] and data["arrivals"] is None, "a profile without times, communicators and a record")
print(f"{failures} failures")
sys.exit(bool(failures))
