# SPDX-License-Identifier: BSD-3-Clause
"""Programs of rooted collectives only. Plans come into force, and their patterns name the late rank, from history
and from edge calls. No rank waits unless the policy asks for it. Every run checks its results."""
import json
import re

from common import a, check, finish, folder, run

program = a.bin + "/rooted_edges"
SORTED = {"gather": "sls", "scatter": "slin", "reduce": "clairvoyant", "bcast": "arrival_binomial", "gatherv": "sorted", "scatterv": "sorted"}
BACKGROUND = {**SORTED, "gather": "bsbn", "scatter": "bsln", "bcast": "background_binomial"}
OPS = list(SORTED)


def job(name, uses, ranks, *words, program=program, background=False, timeout=200, **policy):
    path, out = folder / f"{name}.policy.json", folder / f"{name}.json"
    rules = [{"match": {"op": op}, "use": use} for op, use in uses.items()] if isinstance(uses, dict) else [{"match": {}, "use": uses}]
    path.write_text(json.dumps({"version": 1, "mode": "apply", "rules": rules, **({"background": {"enabled": True}} if background else {}), **policy}))
    done = run(a.cli, "run", "--policy", path, "--output", out, "--overwrite", "--", "-n", ranks, program, *words, timeout=timeout, LD_PRELOAD=a.support, LATECOMER_VERBOSE="1")
    check(done.returncode == 0 and (program.endswith("fft") or "right" in done.stdout), f"{name}, {ranks} ranks: {done.returncode} {done.stdout[-200:]} {done.stderr[-400:]}")
    profile = json.loads(out.read_text())
    return done, [s for s in profile["sites"] if s["comm_size"] > 1 and s["op"] in OPS]


def calls(sites, source):
    return sum(s.get("pattern_sources", {}).get(source, {"calls": 0})["calls"] for s in sites)


# History: the same rank is always late.
for op in OPS:
    # A root that only sends would run ahead without limit: its data are gathered again.
    _, sites = job(f"history.{op}", {op: SORTED[op]}, 4, 300, 2, 0, "world", op, *(["gather"] if op in ("scatter", "bcast", "scatterv") else []))
    named = [d["last_rank"] for s in sites for d in s["decisions"] if s["op"] == op]
    check(calls(sites, "history") > 100 and named == [2], f"{op}: calls ran on a pattern that names rank 2: {calls(sites, 'history')} calls, {named}")
_, sites = job("history.halves", {"gather": "sls"}, 4, 300, 1, 0, "halves", "gather")
check(calls(sites, "history") > 200, f"two halves of the ranks: {calls(sites, 'history')} calls on patterns")
_, sites = job("fft", {"gather": "sls"}, 4, 500, 65536, program=a.bin + "/fft")
check(any(s["op"] == "gather" and any(d["algorithm"] == "sls" and d["calls"] > 50 for d in s["decisions"]) for s in sites), f"a plan serves fft's gathers: {[s['decisions'] for s in sites]}")

# Ranks do not wait here, so no plan comes into force.
for name, uses, extra in (("auto", "auto", {}), ("never", {"gather": "sls"}, {"rooted_waits": False})):
    _, sites = job(name, uses, 4, 200, 2, 0, "world", "gather", **extra)
    check(calls(sites, "history") == 0 and not any(d["last_rank"] is not None and d["algorithm"] != "native" and "pattern" in d for s in sites for d in s["decisions"]), f"{name}: no patterns: {[s.get('pattern_sources') for s in sites]}")
_, sites = job("auto.waits", "auto", 4, 300, 2, 0, "world", "gather", rooted_waits=True, network="eth1g")
check(any(d["reason"].startswith("auto") and d["last_rank"] == 2 for s in sites for d in s["decisions"]), f"auto with rooted_waits looks at gathers: {[s['decisions'] for s in sites]}")

# Ranks run ahead of their root by up to 100 gathers.
for op in ("gather", "reduce", "gatherv"):
    _, sites = job(f"ahead.{op}", {op: SORTED[op]}, 4, 3000, -1, 0, "ahead", op)
    check(sum(s["calls"] for s in sites) == 3000, f"{op} ahead of the root: all calls are there")

# Edge calls: another rank is late every time and states it. All ranks of a communicator must use the same patterns, or
# the job would hang or give wrong results.
for uses, kind in ((SORTED, "sorted"), (BACKGROUND, "background")):
    for where in ("world", "halves"):
        for ranks in (2, 3, 5, 8) if where == "world" else (4, 7):
            done, sites = job(f"edge.{kind}.{where}", uses, ranks, 120, -1, 1, where, *OPS, background=True)
            used = [int(n) for n in re.findall(r"(\d+) patterns of single calls", done.stderr)]
            check(len(used) == ranks and len(set(used)) <= (1 if where == "world" else 2), f"{kind} {where} {ranks}: all ranks used as many patterns: {used}")
            check(calls(sites, "edge") > 0, f"{kind} {where} {ranks}: calls ran on patterns of their own: {calls(sites, 'edge')}")
            messages = [int(n) for n in re.findall(r"(\d+) messages for them", done.stderr)]
            children = 8
            check(max(messages) <= (children + 2) * max(used) + 2 * ranks, f"{kind} {where} {ranks}: messages for each pattern are bounded: {messages} for {used}")
_, sites = job("edge.silent", SORTED, 5, 250, -1, 2, "world", "gather", background=True)
check(calls(sites, "edge") > 100, f"one rank never says anything: {calls(sites, 'edge')} calls on patterns")

# A program that violates MPI's rules, or a very late root, gets a message that names the wait.
done, _ = job("late_root", {"gather": "sls"}, 3, 40, -1, 0, "late_root", "gather")
told = [line for line in done.stderr.splitlines() if "has waited 10 s" in line]
check(told and all("rooted_waits" in line and "rank 0" in line and "call 16" in line for line in told), f"after 10 s a rank says what it waits for: {told} {done.stderr[-300:]}")
finish()
