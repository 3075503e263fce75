# SPDX-License-Identifier: BSD-3-Clause
"""The background engine in running jobs: streams of mixed collectives under three kinds of policy, all kinds of ends
in the middle of calls, thread levels, the limit on memory. Results are right and no job hangs. No times are
checked."""
import json
import os
import pathlib
import re

from common import a, built, check, finish, folder, run

mixed = a.bin + "/mixed"
ON = {"background": {"enabled": True}}
NAMED = [{"match": {"op": "scatter"}, "use": "bsbn"}, {"match": {"op": "gather"}, "use": "bsls"}, {"match": {"op": "bcast"}, "use": "background_binomial"},
         {"match": {"op": "reduce"}, "use": "clairvoyant"}, {"match": {"op": "allreduce"}, "use": "prr"}]
POLICIES = {"named": {"rules": NAMED, **ON},
            "by_size": {"rules": [{"match": {"op": "scatter", "bytes": {"min": 4096}}, "use": "bsln"}, {"match": {"op": "scatter"}, "use": "sbn"}, {"match": {"op": "gather", "bytes": {"max": 65536}}, "use": "bsbn"},
                                  {"match": {"op": "gather"}, "use": "native"}, {"match": {"op": "bcast", "root": {"min": 0, "max": 0}}, "use": "background_binomial"}, {"match": {"op": "bcast"}, "use": "scatter_ring"}], **ON},
            "auto": {"rules": [{"match": {}, "use": "auto"}], "network": "eth1g", **ON}}


def policy(name, **content):
    path = folder / f"{name}.policy.json"
    path.write_text(json.dumps({"version": 1, "mode": "apply", **content}))
    return path


def job(name, chosen, ranks, *words, output=True, timeout=300, **environment):
    out = folder / f"{name}.json"
    environment.setdefault("LD_PRELOAD", a.support)
    done = run(a.cli, "run", "--policy", chosen, "--output", out, "--overwrite", "--", "-n", ranks, *words, timeout=timeout, **environment)
    return done, json.loads(out.read_text()) if out.exists() else None


def dispatched(profile, name):
    return sum(s["dispatch"].get(name, {"calls": 0})["calls"] for s in profile["sites"])


def early(done):
    """The number of runs that engines began before their process arrived, from the final message of every rank."""
    return sum(int(n) for n in re.findall(r"background engine: .*? (\d+) calls begun before", done.stderr))


# A stream of mixed calls; TEST_CALLS=100000 for a long run by hand.
calls = int(os.environ.get("TEST_CALLS", "3000"))
for name, content in POLICIES.items():
    chosen = policy(name, **content)
    for ranks in (2, 3, 5, 8) if name == "named" else (2, 5):
        done, profile = job(f"{name}{ranks}", chosen, ranks, mixed, calls, ranks, timeout=3000, LATECOMER_VERBOSE="1")
        check(done.returncode == 0 and done.stdout == "right\n", f"{name}, {ranks} ranks: {done.returncode} {done.stdout[-200:]} {done.stderr[-400:]}")
        check("UCX" not in done.stderr, f"{name}, {ranks} ranks: no message is left over: {done.stderr[-300:]}")
        if name == "by_size" and profile:
            ran = {n: dispatched(profile, n) for n in ("bsln", "sbn", "bsbn", "background_binomial", "scatter_ring")}
            check(all(ran.values()), f"all of them ran: {ran}")
        if name == "named" and profile:
            ran = {n: dispatched(profile, n) for n in ("bsbn", "bsls", "background_binomial", "clairvoyant", "prr")}
            check(all(ran.values()), f"all of them ran: {ran}")
            check(early(done) > 0, f"the engine began calls before their process came: {done.stderr[-300:]}")
            print(f"{ranks} ranks: {ran}, {early(done)} begun early")

# Ends in the middle of calls.
named = folder / "named.policy.json"
for end, status in (("abort", 3), ("leave", None), ("exit", None), ("finalize", 0)):
    for n in (400, 1501):
        done, _ = job(f"{end}{n}", named, 4, mixed, n, n, end, timeout=120)
        check(status is None or done.returncode == status, f"{end} after {n} calls: status {done.returncode}: {done.stderr[-300:]}")

# The program gets the thread level that it would get without latecomer. If a rank grants no more, all ranks run without
# engine.
threads = a.bin + "/thread_level"
for asked in ("init", "0", "1", "2", "3"):
    done, profile = job("level" + asked, named, 2, threads, asked)
    native = run(a.mpiexec, "-n", 2, threads, asked, LD_PRELOAD=a.support)
    check(done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(native.stdout.splitlines()), f"asked for {asked}: {done.stdout!r} natively {native.stdout!r} {done.stderr[-200:]}")
less = str(built("grant_less"))
for who in ("all", "1"):
    done, profile = job("less" + who, named, 2, mixed, 800, 1, LD_PRELOAD=f"{a.support}:{less}", GRANT_LESS=who)
    check(done.returncode == 0 and done.stdout == "right\n", f"less granted to {who}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
    check(done.stderr.count("MPI_THREAD_MULTIPLE is not to be had") == 1, f"one line says so: {done.stderr[-400:]}")
    check(profile is not None and dispatched(profile, "bsls") > 0, "the algorithms run in the foreground")
# The system grants no thread on some rank: no rank has an engine, and all of them know.
for who in ("all", "0", "2"):
    done, profile = job("no_thread" + who, named, 3, mixed, 800, 1, LD_PRELOAD=f"{a.support}:{less}", GRANT_NO_THREAD=who, LATECOMER_VERBOSE="1")
    check(done.returncode == 0 and done.stdout == "right\n", f"no thread on {who}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
    said = [line for line in done.stderr.splitlines() if "no thread can be made on this rank" in line]
    check(len(said) == 1 and f"[{0 if who == 'all' else who}/3]" in said[0], f"one line names the first such rank: {done.stderr[-400:]}")
    check("background engine" not in done.stderr, f"no rank has an engine: {done.stderr[-400:]}")
    check(profile is not None and dispatched(profile, "bsls") > 0, "the algorithms run in the foreground")

# The ranks exchange their edge calls and must all use the same values, or the job would hang or give wrong results.
edges = policy("edges", rules=[{"match": {"op": "allreduce"}, "use": "prr"}], **ON)
for mode in ("", "forgetful", "breaking"):
    for ranks in (2, 5):
        done, profile = job(f"edge{mode}{ranks}", edges, ranks, a.bin + "/edge", 400, mode, LATECOMER_VERBOSE="1")
        exchanged = [int(n) for n in re.findall(r"(\d+) patterns of single calls", done.stderr)]
        check(done.returncode == 0 and done.stdout == "right\n", f"edge {mode}, {ranks} ranks: {done.returncode} {done.stdout} {done.stderr[-300:]}")
        check(len(set(exchanged)) == 1 and len(exchanged) == ranks, f"all ranks used as many patterns of single calls: {exchanged}")
        if mode == "":
            check(exchanged[0] > 200, "most calls had one")
    without = policy("without", rules=[{"match": {"op": "allreduce"}, "use": "prr"}])
    done, profile = job(f"without{mode}", without, 3, a.bin + "/edge", 200, mode)
    check(done.returncode == 0 and done.stdout == "right\n", f"edge {mode} without an engine: {done.returncode} {done.stdout} {done.stderr[-300:]}")

# Predictions for a call that no process makes leave no message behind: UCX would write a line to the program's output.
# Without Edges::stop_sending() about every third of these runs fails.
for attempt in range(12):
    done, profile = job(f"edgeunused{attempt}", edges, 3, a.bin + "/edge", 100, "unused")
    check(done.returncode == 0 and done.stdout == "right\n", f"edge unused, run {attempt}: {done.returncode} {done.stdout} {done.stderr[-300:]}")

# The messages exceed the limit. A message that does not fit waits for its process.
tight = policy("tight", rules=NAMED, background={"enabled": True, "max_buffer_mib": 1})
done, profile = job("tight", tight, 4, a.bin + "/blocks", 60, 3000)
check(done.returncode == 0 and done.stdout == "0 failures\n", f"a tight bound: {done.returncode} {done.stdout} {done.stderr[-300:]}")
finish()
