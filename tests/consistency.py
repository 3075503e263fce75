# SPDX-License-Identifier: BSD-3-Clause
"""Every output of one profile gives the same figures: of 4 ranks, of 1,000 ranks of which 200 are late, and of 5,000
ranks, whose rows are of two ranks each, with and without the sums of each rank. The expected figures come from all rows
of the profile, or from the sums, by formulas of their own."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

cli, generate = sys.argv[1:3]
failures = 0
PARTS = {"computing_ns": "computes", "kernel_ns": "kernel", "runnable_ns": "no core", "blocked_ns": "blocked", "messages_ns": "messages", "io_ns": "files", "other_mpi_ns": "other MPI", "collectives_ns": "in coll.", "ends_ns": "ends"}
MS = 1e6


def check(good, what):
    global failures
    print("ok    " if good else "FAILED", str(what)[:400])
    failures += not good


def run(*words):
    done = subprocess.run([str(w) for w in (cli, *words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def check_generated(ranks, calls, rows, sums):
    """The profile as it is written: the last rank is late in each call. The sums are of single ranks."""
    near = lambda a, b: abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    check([s["rank"] for s in sums] == list(range(ranks)) and all(s["calls"] == calls for s in sums), f"{ranks} ranks: the profile has the sums of each")
    per = rows[0].get("ranks", 1)
    for key in ("waited_ns", "awaited_ns", "last_count"):
        check(all(near(row[key], sum(s[key] for s in sums[row["rank"]:row["rank"] + per])) for row in rows), f"{ranks} ranks: the sums add up to the rows' {key}")
    mean = [sum(s["mean_lateness_ns"] for s in sums[row["rank"]:row["rank"] + per]) / per for row in rows]
    total = sum(row["mean_offset_ns"] for row in rows) * per
    # Against all others: of single ranks, n - 1 of n.
    check(all(near(late, (row["mean_offset_ns"] * ranks - total) / (ranks - 1)) for row, late in zip(rows, mean)), f"{ranks} ranks: and their lateness is that of the rows")
    check([s["rank"] for s in sums if s["last_count"]] == [s["rank"] for s in sums if s["awaited_ns"]] == [ranks - 1] and sums[-1]["waited_ns"] == 0 < sums[-2]["waited_ns"] and sums[-1]["mean_lateness_ns"] > 0.9 * MS > 0 > sums[-2]["mean_lateness_ns"],
          f"{ranks} ranks: one rank alone is late: {sums[-2:]}")


def made(folder, ranks, calls, late_from, with_sums):
    """One site: the ranks from `late_from` on sleep 8 ms longer than the others before each call, and the last one is
    the one that is awaited. Without sums it is a profile of an earlier version."""
    path = folder / f"{ranks}.json"
    subprocess.run([generate, str(ranks), "1", str(calls), path], check=True)
    profile = json.loads(path.read_text())
    site = profile["sites"][0]
    rows = site["ranks"]
    check_generated(ranks, calls, rows, profile["rank_sums"])
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
    offset = lambda r: (8 + 0.001 * (r == ranks - 1)) * MS * (r >= late_from)
    everything = sum(map(offset, range(ranks)))
    profile["rank_sums"] = [{"rank": r, "calls": calls, "last_count": calls * (r == ranks - 1), "mean_lateness_ns": offset(r) - (everything - offset(r)) / (ranks - 1), "waited_ns": 0 if r >= late_from else 8 * MS * calls,
                             "awaited_ns": (late_from * 8 * MS * calls) * (r == ranks - 1)} for r in range(ranks)]
    if not with_sums:
        del profile["rank_sums"]
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



def check_choice(folder):
    """What is said about the run does not depend on the sites that are shown. In the table, those that take much of the
    time come first, and every place keeps its function, file and line."""
    path, profile = made(folder, 4, 10, 3, True)
    first, wall = profile["sites"][0], profile["job"]["wall_time_s"] * 1e9

    def site(number, op, waited, inside, function, file, line):
        """`waited`, `inside`: shares of the ranks' time."""
        frame = dict(first["frames"][0], module="/x/libexchange.so", function=function, file=file, line=line)
        return dict(first, id=f"{number:016x}", op=op, callers=[], frames=[frame], waited_ns=int(4 * waited * wall), elapsed_ns=dict(first["elapsed_ns"], mean=inside * wall / 10),
                    ranks=[dict(row, waited_ns=int(waited * wall), awaited_ns=0, last_count=10 * (row["rank"] == 3)) for row in first["ranks"]])

    name = "outer_scope_of_the_exchange::Exchange::"
    profile["sites"] += [site(1001, "reduce", 0.005, 0.006, f"{name}shift(int)", "grid.cpp", 11), site(1002, "alltoallv", 0.0001, 0.085, "exchange_of_all_keys", "buckets_and_their_keys.cpp", 22),
                         site(1003, "bcast", 0, 0.0001, f"{name}start(int)", None, None)]
    profile["timed_sites"] = [{"id": "00000000000003ec", "call": "MPI_Waitall", "part": "messages", "frames": [dict(profile["sites"][1]["frames"][0], function="finish", line=33)], "calls": 40, "timed": 40,
                               "time_ns": 0.2 * wall, "kinds": {"messages": 80, "matched": 60, "late_sender_ns": 3, "late_receiver_ns": 0, "transfer_ns": 1, "not_known_ns": 0},
                               "by_rank": []}]
    path.write_text(json.dumps(profile))
    whole, (text, table) = run("report", path), run("report", path).split("\ncollective ")
    names = ("verdict", "findings", "setup", "wait_share", "ranks", "efficiency")
    answer, verdict = json.loads(run("report", "--json", path)), re.compile('<section id="verdict".*?</section>', re.S)
    for words in (["--site", first["id"]], ["--site", "finish*"], ["--sort", "bytes"], ["--top", 1], ["--sort", "calls", "--site", "*shift*"]):
        check(run("report", *words, path).split("\ncollective ")[0] == text, f"{words}: the same findings")
        found = json.loads(run("report", "--json", *words, path))
        check(all(found[key] == answer[key] for key in names), f"{words}: also in --json")
        pages = [verdict.findall(run("report", "--html", "-", *more, path)) for more in (words, [])]
        check(pages[0] and pages[0] == pages[1], f"{words}: and on the page")
    check("4 ranks on 4 hosts, none, mode observe" in text and text.startswith("generated: 4 ranks, 4 hosts, 200 ms. "), f"one run time, in the headline: {text}")
    check(re.findall(r"^(?:allreduce|reduce|alltoallv|bcast)", table, re.M) == ["allreduce", "alltoallv", "reduce", "bcast"], f"sites that take much time come first: {table}")
    lines = table.splitlines()
    check(re.search(r"^alltoallv .* 0\.0% +8\.5% +3 \(100%\)$", table, re.M) and "    exchange_of_all_keys (buckets_and_their_keys.cpp:22)" in lines, f"a place that is too long has a line of its own: {table}")
    check(re.search(r"^reduce .* 0\.5% +0\.6% +3 \(100%\) +\.\.\.shift \(grid\.cpp:11\)$", table, re.M), f"scopes go first: {table}")
    check(re.search(r"^bcast .* 0 ns +0\.0% +0\.0% +- +\.\.\.start \(libex.*\)$", table, re.M), f"nobody comes last where nobody waits: {table}")
    check(re.search(r"^MPI_Waitall .* late sender 75% of 60( +finish \(grid\.cpp:33\))?$", table, re.M) and "\nkind: " in table, f"the number of messages that have a kind: {table}")
    check(max(map(len, whole.splitlines())) <= 100, f"at most 100 characters: {[line for line in whole.splitlines() if len(line) > 100]}")


def same_time(text, ns):
    """Whether a printed time is this one, to its last digit."""
    found = re.fullmatch(r"(-?)([\d.]+) (ns|us|ms|s)", text.strip())
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    if not found:
        return False
    digits = len(found[2].partition(".")[2])
    return abs((-1 if found[1] else 1) * float(found[2]) - ns / unit[found[3]]) <= 0.51 * 10**-digits


with tempfile.TemporaryDirectory() as name:
    for ranks, late_from, with_sums in ((4, 3, True), (1000, 800, True), (5000, 4000, False), (5000, 4000, True)):
        path, profile = made(pathlib.Path(name), ranks, 10, late_from, with_sums)
        rows = profile["sites"][0]["ranks"]
        per = rows[0].get("ranks", 1)
        calls, members = profile["sites"][0]["patterns"], ranks
        total = sum(r["mean_offset_ns"] * per for r in rows)
        expected = {r["rank"]: {"late": r["mean_offset_ns"] - (total - r["mean_offset_ns"] * per) / (members - per), "waited": r["waited_ns"], "awaited": r["awaited_ns"], "last": r["last_count"],
                                "cause": "blocked" if r["mean_offset_ns"] else None} for r in rows}
        if per > 1 and with_sums:
            causes = {r: e["cause"] for r, e in expected.items()}
            expected = {s["rank"]: {"late": s["mean_lateness_ns"], "waited": s["waited_ns"], "awaited": s["awaited_ns"], "last": s["last_count"], "cause": causes[s["rank"] // per * per]} for s in profile["rank_sums"]}

        answer = json.loads(run("report", "--json", path))
        found = {r["rank"]: r for r in answer["ranks"]}
        check(all(abs(sum(r["parts"].values()) - 1) < 1e-9 and min(r["parts"].values()) >= 0 for r in answer["ranks"]), f"{ranks} ranks: the parts of each rank's time add up to 1: {answer['ranks'][0]['parts']}")
        check(found.keys() == expected.keys(), f"{ranks} ranks: --json has a row for each of {len(expected)} rows")
        shared = {r: f"{r // per * per}-{r // per * per + per - 1}" for r in found if per > 1 and with_sums}
        check(all(one.get("causes_of") == shared.get(r) and one.get("ranks", 1) == (1 if with_sums else per) for r, one in found.items()), f"{ranks} ranks: and names the ranks that share causes: {answer['ranks'][-1]}")
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
        table = text.split("\nranks, those", 1)[1].split("\n\n")[0].splitlines()
        titles = re.findall(r"no core|other MPI|in coll\.|\S+", table[1])
        printed = {}
        for line in table[2:]:
            cells = [c.strip() for c in re.split(r"  +|(?<=%) (?=\d)", line.strip())]
            cells[0:1] = cells[0].split(" ")
            printed[int(cells[0].split("-")[0])] = dict(zip(titles, [c for c in cells if c]))
        check(printed.keys() == expected.keys(), f"{ranks} ranks: the text has every row")
        wrong = [r for r, e in expected.items() if not same_time(printed[r]["late"].replace("early ", "-"), e["late"]) or not same_time(printed[r]["awaited"], e["awaited"]) or printed[r]["last"] != str(e["last"])
                 or (printed[r]["cause"].split(" (")[0] != e["cause"] if e["cause"] else printed[r]["cause"] != "-")]
        check(all(printed[r]["cause"].endswith(f"%) of {name}" if e["cause"] else "-") for r, e in expected.items() for name in [shared.get(r)] if name), f"{ranks} ranks: the text names the ranks that share a cause: {printed[ranks - 1 if with_sums else rows[-1]['rank']]}")
        check(not wrong, f"{ranks} ranks: the text has the same lateness, waits and cause: {[(printed[r], expected[r]) for r in wrong[:1]]}")
        check(re.search(r" 8.000 ms +1.00 us .*< f \(f.c:1\)\n.* - +- .*< f \(f.c:2\)", text), f"{ranks} ranks: callers with and without means")
        check(f"{'Rank' if rows[-1].get('ranks', 1) == 1 else 'The group of ranks'} {rows[-1]['rank']}" in answer["verdict"][1] and answer["verdict"][0] in " ".join(text.split()), f"{ranks} ranks: the verdict names the rank: {answer['verdict']}")

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
        check([c[0] for c in data["tables"]["columns"]] == list(PARTS.values()) == titles[2:11], f"{ranks} ranks: text and page share the titles: {titles}")
        check(all(close(h[4], hosts[h[0]]["awaited_ns"]) for h in data["tables"]["hosts"]) and len(data["tables"]["hosts"]) == 4, f"{ranks} ranks: the page's hosts")
        check({k: round(v, 3) for k, v in data["tables"]["efficiency"].items()} == {k: round(v, 3) for k, v in answer["efficiency"].items()}, f"{ranks} ranks: the page's efficiencies are those of --json")
        site = answer["sites"][0]
        tsv = run("report", "--tsv", path).splitlines()
        row = dict(zip(tsv[0].split("\t"), tsv[1].split("\t")))
        check(int(row["waited_ns"]) == site["waited_ns"] and close(data["sites"][0]["waited"], site["waited_ns"]) and row["last_ranks"] == data["sites"][0]["last"], f"{ranks} ranks: the site in --tsv and on the page: {row}")
    check_choice(pathlib.Path(name))
    # The file that a leader writes while the job runs, against that of `top` from the leader's snapshot.
    samples = lambda text: {(m[1], re.sub(r',host="[^"]*"', "", m[2])): float(m[3]) for m in re.finditer(r"^(latecomer_\w+)\{(.*)\} (\S+)$", text, re.M)}
    for ranks in (4, 1000, 5000):
        parts, metrics = pathlib.Path(name) / f"live{ranks}.json.parts", pathlib.Path(name) / f"{ranks}.prom"
        subprocess.run([generate, "--live", str(ranks), "3", "11", parts, metrics], check=True)
        live, top = samples(metrics.read_text()), samples(run("top", "--once", "--prometheus", "-", "--ranks", 10, "--sites", 10, parts))
        check(len(live) == len(re.findall(r"^latecomer", metrics.read_text(), re.M)), f"{ranks} ranks: no sample of the leader's file occurs twice")
        check({m for m, _ in live} == {m for m, _ in top} - {"latecomer_wait_share", "latecomer_finding_gain"}, f"{ranks} ranks: both files have the same metrics: {[sorted({m for m, _ in x}) for x in (live, top)]}")
        # Of the ranks that never came last at a site, each file may keep others.
        both = [k for k in live if k in top]
        only = [k for k in live.keys() ^ top.keys() if k[0] not in ("latecomer_wait_share", "latecomer_finding_gain") and not (k[0].startswith("latecomer_site_l") and live.get((("latecomer_site_last_total"), k[1]), top.get(("latecomer_site_last_total", k[1]))) == 0)]
        check(len(both) >= 4 * min(ranks, 10) + 12 and not only, f"{ranks} ranks: and the same samples: {len(both)}, {only[:3]}")
        check(all(abs(live[k] - top[k]) <= 1e-7 * abs(top[k]) for k in both), f"{ranks} ranks: with the same values: {[(k, live[k], top[k]) for k in both if abs(live[k] - top[k]) > 1e-7 * abs(top[k])][:3]}")
        late = [m for m, labels in live if m.startswith("latecomer_rank_") and f'rank="{ranks - 1}"' in labels]
        check(len(late) == 4, f"{ranks} ranks: of the last rank alone: {late}")
print(f"{failures} failures")
sys.exit(bool(failures))
