# SPDX-License-Identifier: BSD-3-Clause
"""Every output of one profile gives the same figures: of 4 ranks, of 1,000 ranks of which 200 are late, and of 5,000
ranks in rows of two. The expected figures come from all rows of the profile, by formulas of their own."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

cli, generate = sys.argv[1:3]
failures = 0
PARTS = {"computing_ns": "computes", "kernel_ns": "kernel", "runnable_ns": "no core", "blocked_ns": "blocked", "messages_ns": "messages", "io_ns": "files", "collectives_ns": "in coll."}
MS = 1e6


def check(good, what):
    global failures
    print("ok    " if good else "FAILED", str(what)[:400])
    failures += not good


def run(*words):
    done = subprocess.run([str(w) for w in (cli, *words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def made(folder, ranks, calls, late_from):
    """One site: the ranks from `late_from` on sleep 8 ms longer than the others before each call, and the last one is
    the one that is awaited."""
    path = folder / f"{ranks}.json"
    subprocess.run([generate, str(ranks), "1", str(calls), path], check=True)
    profile = json.loads(path.read_text())
    site = profile["sites"][0]
    rows = site["ranks"]
    wall = 0.02e9 * calls
    profile["processes"] = [dict(profile["processes"][0], rank=r) for r in range(ranks)]
    for p in profile["processes"]:
        late = p["rank"] >= late_from
        p.update(host=f"h{p['rank'] * 4 // ranks}", wall_ns=wall, computing_ns=0.25 * wall, blocked_ns=8 * MS * calls * late, collectives_ns=0.3 * wall, cores=1, host_cores=64)
    last = rows[-1]["rank"]
    for row in rows:
        late, share = row["rank"] >= late_from, row.get("ranks", 1)
        row.update(mean_offset_ns=(8 + 0.001 * (row["rank"] == last)) * MS * late, last_count=calls * (row["rank"] == last), waited_ns=0 if late else 8 * MS * calls * share,
                   awaited_ns=(late_from * 8 * MS * calls) * (row["rank"] == last))
        row["before"] = {"samples": 10, "wall_ns": (5 + 8 * late) * MS, "computing_ns": 5 * MS, "blocked_ns": 8 * MS * late, "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0,
                         "runnable_ns": 0, "faults": 0, "preempted": 0}
    # One caller with records of all ranks, and one without, which has no means.
    caller = lambda line, patterns, **more: {"frames": [dict(site["frames"][0], function="f", file="f.c", line=line)], "calls": calls, "rank_calls": ranks * calls, "patterns": patterns, "bytes": None, "waited_ns": 0,
                                             "awaited": [], **more}
    site["callers"] = [caller(1, calls, mean_imbalance_ns=8 * MS, mean_after_last_ns=1000), caller(2, 0)]
    site["waited_ns"] = sum(r["waited_ns"] for r in rows)
    site["before"] = {k: sum(r["before"][k] for r in rows) / len(rows) for k in rows[0]["before"]}
    site["before"]["samples"] = 10 * len(rows)
    profile["job"].update(wall_time_s=wall / 1e9, hosts=["h0", "h1", "h2", "h3"])
    path.write_text(json.dumps(profile))
    return path, profile



def same_time(text, ns):
    """Whether a printed time is this one, to its last digit."""
    found = re.fullmatch(r"(-?)([\d.]+) (ns|us|ms|s)", text.strip())
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    if not found:
        return False
    digits = len(found[2].partition(".")[2])
    return abs((-1 if found[1] else 1) * float(found[2]) - ns / unit[found[3]]) <= 0.51 * 10**-digits


with tempfile.TemporaryDirectory() as name:
    for ranks, late_from in ((4, 3), (1000, 800), (5000, 4000)):
        path, profile = made(pathlib.Path(name), ranks, 10, late_from)
        rows = profile["sites"][0]["ranks"]
        per = rows[0].get("ranks", 1)
        calls, members = profile["sites"][0]["patterns"], ranks
        total = sum(r["mean_offset_ns"] * per for r in rows)
        expected = {r["rank"]: {"late": r["mean_offset_ns"] - (total - r["mean_offset_ns"] * per) / (members - per), "waited": r["waited_ns"], "awaited": r["awaited_ns"], "last": r["last_count"],
                                "cause": "blocked" if r["mean_offset_ns"] else None} for r in rows}

        answer = json.loads(run("report", "--json", path))
        found = {r["rank"]: r for r in answer["ranks"]}
        check(found.keys() == expected.keys(), f"{ranks} ranks: --json has a row for each of {len(rows)} rows")
        wrong = [r for r, e in expected.items() if abs(found[r]["mean_lateness_ns"] - e["late"]) > 1e-6 * 8 * MS or (found[r]["waited_ns"], found[r]["awaited_ns"], found[r]["times_last"]) != (e["waited"], e["awaited"], e["last"])
                 or (found[r]["causes"] is None) != (e["cause"] is None) or (e["cause"] and abs(found[r]["causes"][e["cause"]] - 1) > 0.01)]
        check(not wrong, f"{ranks} ranks: --json has the lateness against all others: {[(found[r], expected[r]) for r in wrong[:1]]}")
        hosts = {h["host"]: h for h in answer["hosts"]}
        of = {p["rank"]: p["host"] for p in profile["processes"]}
        for key, field in (("waited_ns", "waited"), ("awaited_ns", "awaited")):
            check(all(abs(h[key] - sum(e[field] for r, e in expected.items() if of[r] == host)) < 1 for host, h in hosts.items()), f"{ranks} ranks: the hosts' {key} are the sums of their ranks")
        check(abs(answer["wait_share"] - sum(e["waited"] for e in expected.values()) / (profile["job"]["wall_time_s"] * 1e9 * ranks)) < 1e-9, f"{ranks} ranks: the share of waiting")

        # The text, with every row, by the titles of its columns.
        text = run("report", "--all", "--top", ranks, path)
        table = text.split("\nranks, ", 1)[1].split("\n\n")[0].splitlines()
        titles = re.findall(r"no core|in coll\.|\S+", table[1])
        printed = {}
        for line in table[2:]:
            cells = [c.strip() for c in re.split(r"  +|(?<=%) (?=\d)", line.strip())]
            cells[0:1] = cells[0].split(" ")
            printed[int(cells[0].split("-")[0])] = dict(zip(titles, [c for c in cells if c]))
        check(printed.keys() == expected.keys(), f"{ranks} ranks: the text has every row")
        wrong = [r for r, e in expected.items() if not same_time(printed[r]["late"], e["late"]) or not same_time(printed[r]["awaited"], e["awaited"]) or printed[r]["last"] != str(e["last"])
                 or (printed[r]["cause"].split(" (")[0] != e["cause"] if e["cause"] else printed[r]["cause"] != "-")]
        check(not wrong, f"{ranks} ranks: the text has the same lateness, waits and cause: {[(printed[r], expected[r]) for r in wrong[:1]]}")
        check(re.search(r" 8.000 ms +1.00 us .*< f \(f.c:1\)\n.* - +- .*< f \(f.c:2\)", text), f"{ranks} ranks: callers with and without means")
        check(f"{'for rank' if rows[-1].get('ranks', 1) == 1 else 'for the group of ranks'} {rows[-1]['rank']}" in answer["verdict"][1] and answer["verdict"][0] in " ".join(text.split()), f"{ranks} ranks: the verdict names the rank: {answer['verdict']}")

        # The first screen: ten sites at most, and lines of at most 100 characters.
        short = run("report", path).splitlines()
        check(max(map(len, short)) <= 100 and len(short) < 40, f"{ranks} ranks: the report fits a screen: {len(short)} lines, {[line for line in short if len(line) > 100]}")

        # The page: its data, which the script prints.
        page = run("report", "--html", "-", path)
        data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S)[1])
        shown = {r[0]: r for r in data["tables"]["ranks"]}
        close = lambda a, b: abs(a - b) <= 6e-4 * abs(b) + 1e-9
        wrong = [r for r, e in expected.items() if not close(shown[r][5], e["awaited"]) or not close(shown[r][7], e["late"]) or shown[r][6] != e["last"] or (shown[r][8][0][0] if shown[r][8] else None) != e["cause"]]
        check(shown.keys() == expected.keys() and not wrong, f"{ranks} ranks: the page has the same figures: {[(shown[r], expected[r]) for r in wrong[:1]]}")
        check([c[0] for c in data["tables"]["columns"]] == list(PARTS.values()) == titles[2:9], f"{ranks} ranks: text and page share the titles: {titles}")
        check(all(close(h[4], hosts[h[0]]["awaited_ns"]) for h in data["tables"]["hosts"]) and len(data["tables"]["hosts"]) == 4, f"{ranks} ranks: the page's hosts")
        check({k: round(v, 3) for k, v in data["tables"]["efficiency"].items()} == {k: round(v, 3) for k, v in answer["efficiency"].items()}, f"{ranks} ranks: the page's efficiencies are those of --json")
        site = answer["sites"][0]
        tsv = run("report", "--tsv", path).splitlines()
        row = dict(zip(tsv[0].split("\t"), tsv[1].split("\t")))
        check(int(row["waited_ns"]) == site["waited_ns"] and close(data["sites"][0]["waited"], site["waited_ns"]) and row["last_ranks"] == data["sites"][0]["last"], f"{ranks} ranks: the site in --tsv and on the page: {row}")
print(f"{failures} failures")
sys.exit(bool(failures))
