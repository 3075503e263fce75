# SPDX-License-Identifier: BSD-3-Clause
"""The profile contains the patterns that the program constructs: the ranks that come last, their delays and their
lines. Site ids are equal in two runs under address randomisation. No call is lost between epochs, finalize and
freed communicators."""
import json
import pathlib
import re

from common import a, check, finish, folder, rows_of, run

source = (pathlib.Path(a.root) / "tests/mpi/patterns.c").read_text().splitlines()
line_of = 1 + next(i for i, text in enumerate(source, 1) if "staircase(const" in text)
profiles = {}
for name, extra in (("epoch", {}), ("again", {}), ("finalize", {"exchange": "finalize"}), ("network", {"network": "eth1g"})):
    policy = folder / "p.json"
    policy.write_text(json.dumps({"version": 1, **extra}))
    out = folder / f"{name}.json"
    done = run(a.cli, "run", "--policy", policy, "--output", out, "--", "-n", 4, a.bin + "/patterns", 40, 10000, LD_PRELOAD=a.support)
    check(done.returncode == 0 and all(line.startswith("latecomer: ") for line in done.stderr.splitlines()), f"{name}: {done.stderr[:300]}")
    resolved = run(a.cli, "report", "--json", out)
    check(resolved.returncode == 0, f"report of {name}")
    profiles[name] = json.loads(resolved.stdout)
for name, profile in profiles.items():
    sites = {s["frames"][0]["function"]: s for s in profile["sites"]}
    check(set(sites) == {"staircase", "one_late"}, f"{name}: the two sites by name: {set(sites)}")
    stairs, late = sites["staircase"], sites["one_late"]
    check(stairs["calls"] == stairs["patterns"] == late["calls"] == 40, f"{name}: every call has its pattern")
    check(stairs["rank_calls"] == 160, f"{name}: calls of all ranks")
    # Load can hold any rank back longer than a sleep lasts. One rank comes last in each call.
    last = [[r["last_count"] for r in rows_of(profile, site)] for site in (stairs, late)]
    check([sum(counts) for counts in last] == [40, 40] and last[0][3] > 20 and last[1][1] > 20, f"{name}: who comes last {last}")
    check(stairs["frames"][0]["file"].endswith("patterns.c") and stairs["frames"][0]["line"] == line_of, f"{name}: file and line {stairs['frames'][0]}")
    means = [r["mean_offset_ns"] for r in rows_of(profile, stairs)]
    # A sleep lasts at least its time, and load only lengthens it. Medians would hide that: compare the order and the
    # minimum.
    check(all(means[r] - means[0] >= 0.8 * r * 10e6 for r in range(1, 4)), f"{name}: the staircase {[round(m / 1e6, 2) for m in means]} ms")
    check(stairs["imbalance_ns"]["p50"] >= 0.8 * 30e6 and late["imbalance_ns"]["p50"] >= 0.8 * 10e6, f"{name}: imbalance")
    check(stairs["bytes"] == {"min": 800, "mean": 800, "max": 800}, f"{name}: bytes")
check({s["id"] for s in profiles["epoch"]["sites"]} == {s["id"] for s in profiles["again"]["sites"]}, "the same ids in two runs")
factors = {name: next(s["imbalance_factor"] for s in p["sites"] if s["frames"][0]["function"] == "staircase") for name, p in profiles.items()}
check(factors["epoch"] is None, "no network figures: no imbalance factor")
factor = factors["network"]
check(factor is not None and factor["p50"] >= 0.8 * 30e6 / 56_400, f"imbalance factor on eth1g: {factor and factor['p50']}")

text = run(a.cli, "report", "--all", folder / "epoch.json").stdout
check(f"staircase (patterns.c:{line_of})" in text and "comes last: 3 (" in text and "latest on average: rank 3" in text, "the report for people")
rows = [line.split("\t") for line in run(a.cli, "report", "--tsv", "--sort", "imbalance", folder / "epoch.json").stdout.splitlines()]
check(len(rows) == 3 and rows[1][8].startswith("staircase") and float(rows[1][4]) > float(rows[2][4]), "sorted by imbalance, tab-separated")
one = json.loads(run(a.cli, "report", "--json", "--site", "one_late*", folder / "epoch.json").stdout)
check([s["frames"][0]["function"] for s in one["sites"]] == ["one_late"], "one site by its name")
page = folder / "report.html"
check(run(a.cli, "report", "--html", page, folder / "epoch.json").returncode == 0, "an HTML page")
html = page.read_text()
body = html[html.index("<body>"):]
check("staircase" in body and "default-src 'none'" in html and not re.search(r"""<[^<>]*\b(src|href|action)\s*=\s*(?!["']?#)""", html), "the page is self-contained")
done = run(a.cli, "report", "--site", "nowhere", folder / "epoch.json")
check(done.returncode == 2 and "no site matches 'nowhere'" in done.stderr, "a site that is not there")
done = run(a.cli, "report", "--sort", "wiat", folder / "epoch.json")
check(done.returncode == 2 and "did you mean 'wait'" in done.stderr, "a sort key that is not there")
finish()
