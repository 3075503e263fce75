# SPDX-License-Identifier: BSD-3-Clause
"""Files for other tools and other people: traces agree with the profile, and --redact leaves nothing that names a user
or a machine."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

command, generator, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
folder = pathlib.Path(tempfile.mkdtemp(prefix="latecomer-test-"))
failures = []


def run(*arguments, cwd=None):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=120, cwd=cwd)


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


file, parts = folder / "job.json", folder / "job.json.parts"
done = run(generator, file, parts)
check(done.returncode == 0, f"the generator: {done.stderr}")
profile = json.loads(file.read_text())

# A profile without the record, and damaged ones.
trace_file = folder / "trace.json"
without = folder / "without.json"
without.write_text(json.dumps({key: value for key, value in profile.items() if key != "arrivals"}))
done = run(command, "export", without, "--perfetto", trace_file)
check(done.returncode == 2 and '"record": "arrivals"' in done.stderr and not trace_file.exists(), f"no record: {done.returncode} {done.stderr}")
for change in ({"group": 2}, {"exit_ns": [1]}, {"arrival_ns": "soon"}):
    damaged = json.loads(file.read_text())
    damaged["arrivals"]["events"][3].update(change)
    without.write_text(json.dumps(damaged))
    done = run(command, "export", without, "--perfetto", trace_file)
    check(done.returncode == 2 and "arrivals.events[3]" in done.stderr and not trace_file.exists(), f"{change}: {done.returncode} {done.stderr}")
folded = json.loads(file.read_text())
folded["arrivals"]["events"][3]["site"] = "0" * 16
without.write_text(json.dumps(folded))
done = run(command, "export", without, "--perfetto", trace_file)
check(done.returncode == 0 and "1 of " in done.stderr and "left out" in done.stderr, f"a call of a folded site: {done.returncode} {done.stderr}")
trace_file.unlink()
done = run(command, "export", file)
check(done.returncode == 2 and "--perfetto" in done.stderr, f"no format: {done.stderr}")

# The trace: processes are hosts, threads are ranks, slices nest, and sums are the profile's.
done = run(command, "export", file, "--perfetto", trace_file)
check(done.returncode == 0 and done.stdout == "", f"export: {done.returncode} {done.stderr}")
events = json.loads(trace_file.read_text())["traceEvents"]
hosts = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
ranks = {(e["pid"], e["tid"]): int(e["args"]["name"].split()[1]) for e in events if e["name"] == "thread_name"}
check({r: hosts[pid] for (pid, tid), r in ranks.items()} == {c["rank"]: c["host"] for c in profile["clock"]}, f"tracks: {hosts} {ranks}")
ns = lambda us: round(us * 1000)
slices = {r: [] for r in ranks.values()}
for e in events:
    if e["ph"] == "X":
        slices[ranks[e["pid"], e["tid"]]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e))
calls, waited, awaited, by_site, after_last = {}, {}, {}, {}, {}
for rank, own in slices.items():
    open_ = []
    for begin, end, e in sorted(own, key=lambda s: (s[0], -s[1])):
        while open_ and open_[-1][1] <= begin:
            open_.pop()
        check(not open_ or end <= open_[-1][1], f"rank {rank}: {e['name']} at {begin} does not nest")
        if e["cat"] == "collective":
            check(not open_, f"rank {rank}: a collective inside {open_ and open_[-1][2]['name']}")
            calls.setdefault(e["args"]["site"], {}).setdefault(rank, []).append((begin, end))
        else:
            check(len(open_) == 1, f"rank {rank}: {e['name']} at {begin} is not directly inside a collective")
            site = open_[0][2]["args"]["site"]
            if e["cat"] == "waiting":
                check(e["args"]["awaited_rank"] == open_[0][2]["args"]["awaited_rank"] != rank, f"rank {rank}: awaits {e['args']}")
                by_site[site] = by_site.get(site, 0) + end - begin
                waited[rank] = waited.get(rank, 0) + end - begin
                awaited[e["args"]["awaited_rank"]] = awaited.get(e["args"]["awaited_rank"], 0) + end - begin
            else:
                check(end == open_[0][1], f"rank {rank}: {e['name']} ends before its collective")
                after_last.setdefault(site, {}).setdefault(len(calls[site][rank]) - 1, []).append(end - begin)
        open_.append((begin, end, e))
total = {"waited_ns": {}, "awaited_ns": {}}
for site, rows in zip(profile["sites"], profile["rank_rows"]):
    check(by_site.get(site["id"], 0) == site["waited_ns"], f"{site['op']}: waited {by_site.get(site['id'])}, {site['waited_ns']} in the profile")
    for key, sums in total.items():
        for row in rows:
            sums[row["rank"]] = sums.get(row["rank"], 0) + row[key]
    if site["id"] in calls:
        check(all(len(visits) == site["calls"] for visits in calls[site["id"]].values()), f"{site['op']}: every call is there")
        mean = sum(max(one) for one in after_last[site["id"]].values()) / site["calls"]
        check(abs(mean - site["after_last_ns"]["mean"]) < 1, f"{site['op']}: {mean} ns after the last arrival, {site['after_last_ns']['mean']} in the profile")
check({r: w for r, w in total["waited_ns"].items() if w} == waited and {r: w for r, w in total["awaited_ns"].items() if w} == awaited, f"waiting by rank: {waited} {total}")
check({s["op"] for s in profile["sites"] if by_site.get(s["id"])} == {"allreduce", "bcast", "gather", "scan", "barrier"}, "every kind of waiting occurs")
instants = [e for e in events if e["ph"] == "i"]
check(len(instants) == 3 * sum(s["calls"] for s in profile["sites"] if s["op"] == "allreduce" and s["comm_size"] == 3), "calls without a known end are instants")
flows = {phase: {e["id"]: e for e in events if e["ph"] == phase} for phase in "sf"}
check(flows["s"] and flows["s"].keys() == flows["f"].keys() and len(flows["s"]) == sum(e["ph"] == "s" for e in events), "every arrow has two ends")
starts = {(rank, begin) for rank, own in slices.items() for begin, _, e in own if e["cat"] == "collective"}
check(all((ranks[e["pid"], e["tid"]], ns(e["ts"])) in starts and e["ts"] == flows["f"][i]["ts"] for i, e in flows["s"].items()), "arrows begin at the arrival of the awaited rank")

# The same as an archive of OTF2, read by the library's own tool.
printer, archive = shutil.which("otf2-print"), folder / "archive"
done = run(command, "export", file, "--otf2", archive)
if "built without OTF2" in done.stderr or not printer:
    print(f"skipped OTF2: {done.stderr.strip() or 'no otf2-print'}")
else:
    check(done.returncode == 0 and f"{len(instants)} visits" in done.stderr, f"export --otf2: {done.returncode} {done.stderr}")
    shown, definitions = run(printer, archive / "traces.otf2"), run(printer, "-G", archive / "traces.otf2")
    check(shown.returncode == 0 and definitions.returncode == 0 and not shown.stderr + definitions.stderr, f"otf2-print: {shown.stderr[-300:]} {definitions.stderr[-300:]}")
    total, begun, ends = {}, {}, 0
    for line in shown.stdout.splitlines():
        if match := re.match(r"(ENTER|LEAVE)\s+(\d+)\s+(\d+).*Region: \"(.*?)\"", line):
            kind, location, time, region = match[1], int(match[2]), int(match[3]), match[4]
            if kind == "ENTER":
                begun.setdefault(location, []).append((region, time))
            else:
                opened, at = begun[location].pop()
                check(opened == region, f"otf2: rank {location} leaves {region} inside {opened}")
                total[location, region] = total.get((location, region), 0) + time - at
        ends += line.startswith("MPI_COLLECTIVE_END")
    check(not any(begun.values()) and ends == sum(len(v) for site in calls.values() for v in site.values()), f"otf2: {ends} collectives end")
    check({r: t for (r, region), t in total.items() if region == "waiting"} == waited, f"otf2: waiting by rank is the profile's: {total}")
    check(all(f'"{h}"' in definitions.stdout for h in hosts.values()) and "step.cpp" in definitions.stdout, "otf2: hosts and files are defined")
    done = run(command, "export", file, "--otf2", archive)
    check(done.returncode == 2 and "is there already" in done.stderr, f"otf2: nothing is overwritten: {done.stderr}")

# Redacted: no host, user, directory or argument is left. Without the option they are there.
secrets = ["anubis", "horus", "cluster.example", "jdoe", "/home", "scratch", "secret plans", "my policy", "--input", "case.dat"]
redacted = folder / "redacted.json"


def texts(*options):
    html = folder / "page.html"
    out = {"json": run(command, "report", "--json", *options, file).stdout, "tsv": run(command, "report", "--tsv", *options, file).stdout, "text": run(command, "report", *options, file).stdout}
    run(command, "report", "--html", html, *options, file)
    run(command, "export", file, "--perfetto", trace_file, *options)
    done = run(command, "recover", parts, "-o", redacted, *options)
    check(done.returncode == 0, f"recover {options}: {done.stderr}")
    out |= {"html": html.read_text(), "perfetto": trace_file.read_text(), "recover": redacted.read_text()}
    metrics = folder / "metrics.prom"
    run(command, "top", file, "--looks", 1, "--prometheus", metrics, *options)
    out |= {"top": run(command, "top", file, "--looks", 1, *options).stdout, "metrics": metrics.read_text()}
    archive = folder / f"archive{len(options)}"
    if run(command, "export", file, "--otf2", archive, *options).returncode == 0:
        out["otf2"] = "".join(f.read_text(errors="replace") for f in archive.rglob("*") if f.is_file())
    return out


plain, hidden = texts(), texts("--redact")
for name, text in hidden.items():
    check(len(text) > 200, f"{name}: there is an output")
    check(not [s for s in secrets if s in text], f"{name}: --redact leaves {[(s, text[max(0, text.index(s) - 40):][:100]) for s in secrets if s in text]}")
    check("solver" in text, f"{name}: names of modules stay")
    check(name == "tsv" or any(s in plain[name] for s in secrets), f"{name}: without the option it says more")
for words in (["--json"], ["--format", "mpich"]):
    done = run(command, "advise", file, "--network", "fdr", *words)
    check(done.returncode in (0, 1) and len(done.stdout) > 200 and not [s for s in secrets if s in done.stdout], f"advise {words}: nothing to redact: {done.stdout} {done.stderr}")
report = json.loads(hidden["json"])
check(report["job"]["hosts"] == ["host-1", "host-2"] and [r["host"] for r in report["ranks"]] == ["host-1"] * 4 + ["host-2"] * 2, f"hosts: {report['job']['hosts']}")
check(any(w.endswith("cannot read 'try.json' on host-1; see notes.txt:3") for w in report["warnings"]), f"warnings: {report['warnings']}")
check(json.loads(hidden["recover"])["sites"] == [{**s, "frames": r["frames"]} for s, r in zip(json.loads(plain["recover"])["sites"], json.loads(hidden["recover"])["sites"])], "all figures stay")
done = run(command, "report", redacted)
check(done.returncode == 0 and "step (step.cpp:12)" in done.stdout, f"a redacted profile is a profile: {done.stderr}")

# No command replaces a file that it did not write. "-" is stdout, and a pipe is written into.
for name, words in {"page": ("report", file, "--html"), "trace": ("export", file, "--perfetto"), "policy": ("advise", file, "--network", "fdr", "-o"),
                    "settings": ("advise", file, "--network", "fdr", "--format", "mpich", "-o"), "profile": ("recover", parts, "-o"), "metrics": ("top", file, "--looks", 1, "--prometheus")}.items():
    good = (0, 1) if words[0] == "advise" else (0,)
    target = folder / f"target-{name}"
    for text in ("notes of the user\n", file.read_text() if name != "profile" else file.read_text().replace('"start": "', '"start": "1')):
        target.write_text(text)
        done = run(command, *words, target)
        check(done.returncode == 2 and target.read_text() == text and "--force" in done.stderr and str(target) in done.stderr, f"{name}: a file of others stays: {done.returncode} {done.stderr}")
    check(run(command, *words, target, "--force").returncode in good and target.read_text() != text, f"{name}: --force replaces it")
    written = target.read_text()
    check(run(command, *words, target).returncode in good, f"{name}: the command replaces its own file")
    target.write_text("")
    check(run(command, *words, target).returncode in good and target.read_text(), f"{name}: an empty file is filled")
    done = run(command, *words, "-", cwd=folder)
    check(done.returncode in good and done.stdout == written and not (folder / "-").exists(), f"{name}: - is stdout: {done.returncode} {len(done.stdout)} {len(written)} {done.stderr}")
    target.unlink()
    os.mkfifo(target)
    with open(folder / "read", "w+") as read:
        reader = subprocess.Popen(["cat", target], stdout=read)
        try:
            done = run(command, *words, target)
            check(done.returncode in good and target.is_fifo() and reader.wait(60) == 0 and (folder / "read").read_text() == written, f"{name}: a pipe is written into: {done.returncode} {done.stderr}")
        finally:
            reader.kill()
            reader.wait()
    done = run(command, *words, folder)
    check(done.returncode == 2 and "is a folder" in done.stderr, f"{name}: a folder: {done.returncode} {done.stderr}")

# One line reads them: a dialect of one separator, equal columns, numbers.
rows = list(csv.DictReader(io.StringIO(plain["tsv"]), dialect="excel-tab"))
check(len(rows) == len(profile["sites"]) and not any(None in r or None in r.values() for r in rows), "every row of the table has the columns of its head")
check(sum(float(r["waited_ns"]) for r in rows) == sum(s["waited_ns"] for s in profile["sites"]) and all(int(r["calls"]) > 0 for r in rows), "the table's figures are the profile's")

print(f"{len(failures)} failures")
sys.exit(bool(failures))
