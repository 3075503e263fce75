# SPDX-License-Identifier: BSD-3-Clause
"""Reports for 10,000 ranks and 1,000 sites. Checks the limits of a profile: rows of several ranks and folded sites,
with `warnings` about both."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

command, generate = sys.argv[1:3]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    failures = []

    def check(condition, what):
        print("ok    " if condition else "FAILED", what)
        if not condition:
            failures.append(what)

    def run(*words, limit_gib=None):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_gib << 30,) * 2)) if limit_gib else None
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600, preexec_fn=limit)

    run(generate, 4, 1200, 2, folder / "sites.json")
    profile = json.loads((folder / "sites.json").read_text())
    folded = profile["sites"][-1]
    check(len(profile["sites"]) == 1000 and folded["op"] == "several", f"1,000 sites, the last of them folded: {folded['op']}")
    check(folded["calls"] == 2 * 201 and folded["rank_calls"] == 4 * folded["calls"] and sum(s["calls"] for s in profile["sites"]) == 2400, "no call is lost")
    check(sum(folded["imbalance_ns"]["counts"]) == folded["calls"] and folded["ranks"] == [], "the folded site's histograms hold all its calls")
    check(any("201 smallest of 1200 sites" in w for w in profile["warnings"]), f"it says so: {profile['warnings']}")
    shortest = min(s["elapsed_ns"]["mean"] for s in profile["sites"][:-1])
    check(folded["elapsed_ns"]["mean"] <= shortest, "the folded sites are those with the least time")

    run(generate, 5000, 3, 4, folder / "ranks.json")
    profile = json.loads((folder / "ranks.json").read_text())
    rows = profile["sites"][0]["ranks"]
    check(len(rows) == 2500 and all(r["ranks"] == 2 for r in rows) and [r["rank"] for r in rows] == list(range(0, 5000, 2)), "5,000 ranks in rows of two")
    check(rows[-1]["last_count"] == 4 and sum(r["last_count"] for r in rows) == 4 and sum(rows[0]["histogram"]["counts"]) == 8, "a row adds up its ranks")
    check(any("grouped by 2" in w for w in profile["warnings"]), f"it says so: {profile['warnings']}")
    done = run(command, "report", "--json", folder / "ranks.json")
    again = json.loads(done.stdout)
    for site in (*again["sites"], *profile["sites"]):
        site["frames"] = None
    key = lambda s: s["id"]
    check(sorted(again["sites"], key=key) == sorted(profile["sites"], key=key) and again["clock"] == profile["clock"] and again["job"] == profile["job"], "--json passes every row on")
    check("4998-4999 (100%)" in run(command, "report", folder / "ranks.json").stdout, "the report names the row that comes last")

    running = folder / "running.json"
    parts = folder / "running.json.parts"
    parts.mkdir(mode=0o700)

    def copies(ranks):
        """What the relays of 64 ranks each would write: all ranks but 777 are in one allgather."""
        now = time.time()
        for host in range((ranks + 63) // 64):
            rows = [{"rank": r, "ranks": ranks, "pid": 1000 + r, "started": 5, "communicator": 99, "n": 400 + (r != 777), "site": 1234, "bytes": 8, "since": int((now - 300) * 1e9), "message": 0,
                     "looked": int(now * 1e9), "root": -1, "comm_size": ranks, "op": 0, "inside": int(r != 777), "watched": 1, "state": "S", "alive": "S"} for r in range(64 * host, min(ranks, 64 * host + 64))]
            file = parts / f"live-node{host}.json"
            file.with_suffix(".new").write_text(json.dumps({"format": "latecomer-live", "version": 2, "host": f"node{host}", "output": str(running), "job": 77, "number": int(now * 1e9), "time_s": now, "ranks": rows, "frames": []}))
            file.with_suffix(".new").rename(file)

    def who(*words):
        ended = threading.Event()
        relays = threading.Thread(target=lambda: [copies(10000) for _ in iter(lambda: ended.wait(0.4), True)])
        copies(10000)
        relays.start()
        try:
            return run(command, "who", *words, running)
        finally:
            ended.set(), relays.join()

    done = who()
    lines = done.stdout.splitlines()
    check(done.returncode == 1 and lines[0].startswith("Ranks 0-776, 778-9999 wait in allgather") and "for rank 777 on node12, which is asleep" in lines[0], f"who, 10,000 ranks: {done.stdout[:300]} {done.stderr[-200:]}")
    check(len(lines) == 5 and "rank 777, process 1777 on node12" in lines[3] and lines[4].startswith("    9999  asleep"), f"its table has a line per place: {lines[1:]}")
    check(len(who("--all").stdout.splitlines()) == 10003, "and with --all a line per rank")
    time.sleep(6)
    done = run(command, "who", running)
    check(len(done.stdout.splitlines()) < 10 and "ranks 0-9999 on 157 hosts" in done.stdout, f"old copies of many hosts are one sentence: {done.stdout[:300]}")
    done = run(command, "top", "--once", running)
    check("the states of 157 hosts are old" in done.stdout and len(done.stdout) < 1000, f"top: {done.stdout[:300]} {done.stderr[-200:]}")

    run(generate, 200, 1, 20, folder / "many.json")
    done = run(command, "advise", folder / "many.json")
    check(done.returncode == 1 and done.stdout.startswith("No rule: no gain is expected at any of 1 sites"), f"advice without a rule says so first and exits 1: {done.returncode} {done.stdout[:200]}")
    check("does not describe this machine: native modelled" in done.stdout and "only some of their rows" not in done.stdout, f"200 ranks are modelled, and where native takes far longer nothing is advised: {done.stdout[-400:]}")
    done = run(command, "diff", folder / "many.json", folder / "many.json")
    check(done.returncode == 0 and done.stdout.startswith("Both runs used the same algorithms at every common site") and "noise" in done.stdout, f"diff of one policy with itself says what it is: {done.stdout[:200]}")
    done = run(generate, 10000, 1000, 1, folder / "large.json")
    check(done.returncode == 0, f"10,000 ranks and 1,000 sites: {(folder / 'large.json').stat().st_size >> 20} MiB")
    done = run(command, "report", "--all", "--patience", 2, folder / "large.json", limit_gib=3)
    check(done.returncode == 0 and done.stdout.count("\nallreduce ") == 1000 and "9999 (100%)" in done.stdout, f"its report, in 3 GiB with the file mapped: {done.stderr[-200:]}")
    check("reading" in done.stderr, f"progress: {done.stderr[:80]!r}")
    done = run(command, "report", "--tsv", "--patience", 0, folder / "sites.json")
    check("resolving names, sites: 1000 of 1000" in done.stderr and done.stdout.count("\n") == 1001, "progress while names are resolved")
    check(run(command, "report", "--tsv", folder / "sites.json").stderr == "", "and none where it is quick")
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))
