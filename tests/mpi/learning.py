# SPDX-License-Identifier: BSD-3-Clause
"""The learning loop in running jobs: patterns per call site in one binary, rules by site and imbalance, auto,
history, the agreement check. Results are right and no job hangs under any decision. No times are checked."""
import json
import os
import pathlib
import re

from common import a, check, finish, folder, run

learn = a.bin + "/learn"


def policy(name, rules, **more):
    path = folder / f"{name}.policy.json"
    path.write_text(json.dumps({"version": 1, "mode": "apply", "rules": rules, **more}))
    return path


def job(name, ranks, *words, policy=None, **environment):
    options = ["--policy", policy] if policy else []
    done = run(a.cli, "run", *options, "--output", folder / f"{name}.json", "--overwrite", "--", "-n", ranks, *words, timeout=300, LD_PRELOAD=a.support, **environment)
    check(done.returncode == 0, f"{name}: exit status {done.returncode}: {done.stdout[-200:]} {done.stderr[-300:]}")
    return json.loads((folder / f"{name}.json").read_text()) if done.returncode == 0 else {"plans": [], "sites": [], "warnings": []}


def last_ranks(plan):
    return [s["last_rank"] for s in plan["slots"]]


# One binary, two call sites of one size and operation, two patterns.
prr = policy("prr", [{"match": {"op": "allreduce"}, "use": "prr"}])
profile = job("two_sites", 4, learn, "two_sites", 300, 20000, 20000, policy=prr)
plans = [p for p in profile["plans"] if p["period"] == 2]
check(len(plans) >= 1, f"plans with two slots: {len(plans)} of {len(profile['plans'])}")
check(any(sorted(last_ranks(p), key=str) == [1, 3] and len(p["patterns_ns"]) == 2 for p in plans), f"with two patterns and different last ranks: {[last_ranks(p) for p in plans]}")
by_place = {}
for line in run(a.cli, "report", "--all", folder / "two_sites.json").stdout.split("\n\n"):
    for place in ("first_place", "second_place"):
        if line.startswith(f"  {place}"):
            by_place[place] = line
check("rank 1 last" in by_place.get("first_place", "") and "rank 3 last" in by_place.get("second_place", ""), f"the report shows both: {by_place}")
check(all(s["dispatch"].get("prr", {"calls": 0})["calls"] > 200 for s in profile["sites"]), "both sites run PRR")

if pathlib.Path(a.bin + "/wrapper").exists():
    deep = policy("deep", [{"match": {"op": "allreduce"}, "use": "slt"}], sites={"depth": 2})
    profile = job("wrapper", 4, a.bin + "/wrapper", 300, 20000, 20000, policy=deep)
    check(any(sorted(last_ranks(p), key=str) == [1, 3] for p in profile["plans"] if p["period"] == 2), f"inside one Fortran wrapper: {[last_ranks(p) for p in profile['plans']]}")
    report = run(a.cli, "report", "--all", folder / "wrapper.json").stdout
    check("rank 1 last" in report and "rank 3 last" in report and "called by" in report, "the report shows both callers of the wrapper")

# Rules by place and by imbalance. Names of places are read while the job runs, so the rules come into force later.
byplace = policy("byplace", [{"match": {"op": "allreduce", "site": "second_place"}, "use": "ring"}, {"match": {"op": "allreduce", "site": "learn.c:*"}, "use": "linear"}])
profile = job("byplace", 2, learn, "two_sites", 1000, 1000, 100, policy=byplace)
check({tuple(sorted(s["dispatch"])) for s in profile["sites"]} == {("native", "ring"), ("linear", "native")}, f"each place its rule: {[s['dispatch'].keys() for s in profile['sites']]}")
wait = policy("imbalance", [{"match": {"op": "allreduce", "imbalance_factor": {"min": 3}}, "use": "ring"}], network="fdr")
profile = job("imbalance", 4, learn, "two_sites", 200, 1000, 10000, policy=wait)
check(all(s["dispatch"].get("ring", {"calls": 0})["calls"] > 100 for s in profile["sites"]), "imbalance_factor comes into force")
never = policy("never", [{"match": {"op": "allreduce", "imbalance_factor": {"min": 1e9}}, "use": "ring"}], network="fdr")
profile = job("never", 4, learn, "two_sites", 100, 1000, 1000, policy=never)
check(all(set(s["dispatch"]) == {"native"} for s in profile["sites"]) and profile["plans"] == [], "and does not where it does not match")

# If the pattern moves, schedules are built before their plan comes into force, and inside a call only the first time.
clairvoyant = policy("clairvoyant", [{"match": {"op": "allreduce"}, "use": "clairvoyant"}])
done = run(a.cli, "run", "--policy", clairvoyant, "--verbose", 2, "--output", folder / "ahead.json", "--", "-n", 4, learn, "moving", 2000, 4000, 3000, timeout=300, LD_PRELOAD=a.support)
built = re.search(r"schedules built: (\d+) ahead of their plan, (\d+) inside a call", done.stderr)
check(done.returncode == 0 and built and int(built[1]) >= 3 and int(built[2]) <= 2, f"schedules are built ahead: {built and built[0]} {done.stderr[-200:] if not built else ''}")

# auto follows the late rank; every decision has a reason.
auto = policy("auto", [{"match": {}, "use": "auto"}], network="measure")
profile = job("moving", 4, learn, "moving", 2000, 4000, 3000, policy=auto)
site = next(s for s in profile["sites"] if s["op"] == "allreduce")
check(all(d["reason"].startswith("auto") and d["error_ns"] >= 0 for d in site["decisions"]) and site["decisions"], f"auto says why: {[d['reason'] for d in site['decisions']]}")
moving = job("moving_prr", 4, learn, "moving", 2000, 4000, 3000, policy=prr)
seen = [last_ranks(p)[0] for p in moving["plans"] if p["slots"][0]["pattern"] is not None]
check(seen and len(set(seen)) >= 3, f"forecasts follow the late rank: {seen}")
done = run(a.cli, "run", "--auto", "--output", folder / "auto_flag.json", "--", "-n", 2, learn, "two_sites", 100, 1000, 100, LD_PRELOAD=a.support)
check(done.returncode == 0 and json.loads((folder / "auto_flag.json").read_text())["job"]["mode"] == "apply", f"run --auto: {done.stderr}")

# If no rule can change the algorithm, epochs are idle. Every call is still counted, and the following calls are served.
for ranks in (2, 3):
    rests = policy("rests", [{"match": {"op": "allreduce", "site": "second_place"}, "use": "ring"}])
    profile = job(f"rests{ranks}", ranks, learn, "later", 20000, 100, 100, policy=rests)
    quiet = [s for s in profile["sites"] if "ring" not in s["dispatch"]]
    check(len(quiet) == 2 and all(s["rested"] for s in quiet) and sum(s["calls"] for s in quiet) == 15000, f"{ranks} ranks: the first place and the non-blocking call rest: {[(s['calls'], s['rested']) for s in profile['sites']]}")
    check(all(s["patterns"] + s["rested"] == s["calls"] == s["dispatch"]["native"]["calls"] and s["rank_calls"] == ranks * s["calls"] for s in quiet), f"{ranks} ranks: and nothing is lost: {quiet}")
    check(sum(s["dispatch"].get("ring", {"calls": 0})["calls"] for s in profile["sites"]) > 3000, f"{ranks} ranks: the second place has its rule: {[s['dispatch'] for s in profile['sites']]}")
    awake = policy("awake", [{"match": {"op": "reduce"}, "use": "auto"}], rest=False)
    profile = job(f"awake{ranks}", ranks, learn, "later", 5000, 100, 0, policy=awake)
    check(all(s["rested"] == 0 and s["patterns"] == s["calls"] for s in profile["sites"]), f"{ranks} ranks: `rest: false` looks at every call")

for ranks in (2, 3):
    output = folder / f"resting{ranks}.json"
    done = run(a.cli, "run", "--policy", policy("rests", [{"match": {"op": "allreduce", "site": "second_place"}, "use": "ring"}]), "--output", output, "--", "-n", ranks, learn, "resting", 60000, 200, ranks,
               timeout=300, LD_PRELOAD=a.support)
    check(done.returncode == 0, f"resting, {ranks} ranks: exit status {done.returncode}: {done.stdout[-200:]} {done.stderr[-300:]}")
    said = {(words := line.split())[0]: (int(words[1]), int(words[2])) for line in done.stdout.splitlines() if re.fullmatch(r"[a-z]+ \d+ \d+", line)}
    said["allreduce"] = tuple(x + y for x, y in zip(said["allreduce"], said.pop("iallreduce")))  # the profile's `op` is the operation
    paired = said.pop("pair")
    sites = json.loads(output.read_text())["sites"]
    pairs = [s for s in sites if s["comm_size"] == 2 and ranks > 2]
    check(sum(s["rank_calls"] for s in pairs) == 2 * paired[0] and all(s["rested"] for s in pairs), f"{ranks} ranks: of each size of communicator by itself: {[(s['comm_size'], s['rank_calls'], s['rested']) for s in sites]}, the program says {paired}")
    sites = [s for s in sites if s not in pairs]
    held = {op: (sum(s["rank_calls"] for s in sites if s["op"] == op) // ranks, round(sum((s["bytes"] or {"mean": 0})["mean"] * s["rank_calls"] for s in sites if s["op"] == op) / ranks)) for op in said}
    check(held == said, f"{ranks} ranks: what rests is counted by place, with its bytes: {held}, the program says {said}")
    check(sum(s["rested"] for s in sites) > 20000 and all(s["patterns"] + s["rested"] == s["calls"] for s in sites if s["dispatch"].keys() <= {"native"} and s["divergent_calls"] == 0),
          f"{ranks} ranks: most of it rests, nothing is lost: {[(s['op'], s['calls'], s['patterns'], s['rested']) for s in sites]}")
    check(any(s["dispatch"].get("ring", {"calls": 0})["calls"] > 100 for s in sites), f"{ranks} ranks: and the second place has its rule: {[s['dispatch'] for s in sites]}")

# Ranks reach the same operation from random places. All ranks must make the same decisions.
mixed = policy("mixed", [{"match": {"op": "allreduce", "site": "second_place"}, "use": "ring"}, {"match": {"op": "allreduce", "site": "*place"}, "use": "auto"}])
for ranks in (2, 3, 5, 8):
    profile = job(f"divergent{ranks}", ranks, learn, "divergent", 100000 if ranks == 2 else 6000, 60, 5 + ranks, policy=mixed)
    check(sum(s["divergent_calls"] for s in profile["sites"]) > 1000, f"{ranks} ranks: divergences counted")
    profile = job(f"varying{ranks}", ranks, learn, "varying", 4000, 60, 5 + ranks, policy=mixed)
    profile = job(f"divergent_fixed{ranks}", ranks, learn, "divergent", 8000, 60, 9 + ranks, policy=prr)
    check(sum(s["dispatch"].get("prr", {"calls": 0})["calls"] for s in profile["sites"]) > 3000, f"{ranks} ranks: PRR ran")
profile = job("checked", 3, learn, "divergent", 3000, 60, 4, policy=prr, LATECOMER_CHECK="1")
named = [w for w in profile["warnings"] if "check: ranks reach one allreduce on 3 ranks from sites" in w]
check(len(named) >= 2, f"LATECOMER_CHECK names the sites: {named[:1]}")
ids = {s["id"] for s in profile["sites"]}
check(all(w.split("sites ")[1][:16] in ids for w in named), "by the ids of the report")
check(not any("native from here on" in w for w in profile["warnings"]), "and finds no rank at odds")
check(not any("not available" in w for w in profile["warnings"]), f"and nothing says that it is not there: {profile['warnings']}")

# The bits are the same with any late rank.
same = policy("same_bits", [{"match": {"op": "allreduce"}, "use": "linear"}], reproducible="run")
for ranks in (3, 4, 8):
    hashes = set()
    for late in (0, 1, ranks - 1):
        output = folder / f"bits{ranks}_{late}.json"
        done = run(a.cli, "run", "--policy", same, "--output", output, "--", "-n", ranks, learn, "bits", 100, 3000, late, 8000, timeout=300, LD_PRELOAD=a.support)
        profile = json.loads(output.read_text())
        ran = {name: d["calls"] for s in profile["sites"] for name, d in s["dispatch"].items()}
        check(done.returncode == 0 and ran == {"linear": 100}, f"{ranks} ranks: from the first call on: {ran} {done.stderr[-200:]}")
        hashes.add(done.stdout)
    check(len(hashes) == 1, f"{ranks} ranks: the same bits whoever is late: {hashes}")

# The last plan of a profile is the plan in force, with verdicts and without rotas, whenever the job ends.
network = {"beta_ns_per_byte": 8.0, "latency_us": 50}
fast = policy("fast", [{"match": {"op": "allreduce"}, "use": "auto"}], network=network, rest=False)
for calls in (80, 120):
    profile = job(f"outcome{calls}", 4, learn, "moving", calls, 100_000, 8000, policy=fast)
    plans = profile["plans"]
    check(not any("rota" in slot for p in plans[-1:] for slot in p["slots"]), f"{calls} calls: the last plan has no rota: {[[(s['algorithm'], s.get('rota')) for s in p['slots']] for p in plans]}")
    rotas = [slot["rota"] for p in plans for slot in p["slots"] if "rota" in slot]
    check(rotas and all(2 <= len(r) <= 4 and r[0]["algorithm"] == "native" for r in rotas), f"{calls} calls: native and candidates take turns: {rotas}")
    check(set(profile["learned"]) == {"program", "ranks", "hosts", "placement", "mpi_library", "catalogue", "sites"} and profile["learned"]["program"] == "learn", f"the profile says what was learned, and where: {profile['learned']}")

# A later run is served from its first call on by what has won. Here the file says what has won.
kept = folder / "kept.json"


def learning(name, ranks, *words):
    """A job of `run --auto --learn`, and what its report says of the history."""
    output = folder / f"{name}.json"
    done = run(a.cli, "run", "--auto", "--learn", kept, "--output", output, "--overwrite", "--", "-n", ranks, *words, timeout=300, LD_PRELOAD=a.support)
    check(done.returncode == 0, f"{name}: exit status {done.returncode}: {done.stderr[-300:]}")
    profile = json.loads(output.read_text())
    ran = {}
    for site in profile["sites"]:
        for algorithm, d in site["dispatch"].items():
            ran[algorithm] = ran.get(algorithm, 0) + d["calls"]
    return profile, ran, " ".join(run(a.cli, "report", output).stdout.split())


profile, _, said = learning("first", 4, learn, "two_sites", 30, 20_000, 4000)
check(profile["job"]["history"]["why_not"] == "it does not exist yet" and "not used, it does not exist yet" in said, f"the first run has no history, and says so: {profile['job']['history']} {said[:600]}")
setup = json.loads(kept.read_text())
check(setup["format"] == "latecomer-learned" and [r["ranks"] for r in setup["runs"]] == [4], f"and leaves its own: {setup}")
slots = json.loads((folder / "two_sites.json").read_text())["plans"][-1]["slots"]
winners = [{"site": s["site"], "signature": s["signature"], "op": "allreduce", "algorithm": "prr", "segments": 0, "overlap": True, "pattern_ns": [20_000_000 if r == s["last_rank"] else 0 for r in range(4)],
            "sizes_bytes": None, "measured_ns": 1e6, "native_measured_ns": 8e12, "calls": 1000} for s in slots]
check(len(winners) == 2, f"two sites: {winners}")
kept.write_text(json.dumps({**setup, "runs": [{**setup["runs"][0], "sites": winners}]}))
for name in ("second", "third"):
    profile, ran, said = learning(name, 4, learn, "two_sites", 30, 20_000, 4000)
    check(ran.get("prr", 0) >= 58 and sum(ran.values()) == 60, f"{name}: a program of 60 calls is served: {ran}")
    served = profile["job"]["history"]
    check(served["calls"] >= 58 and served["why_not"] is None and f"its winners served {served['calls']} calls" in said, f"{name}: the report says which calls: {served} {said[:600]}")
    check(all("an earlier run measured that prr wins" in d["reason"] for site in profile["sites"] for d in site["decisions"]), f"{name}: and why: {[d['reason'] for site in profile['sites'] for d in site['decisions']]}")
    passed = json.loads(kept.read_text())["runs"][0]["sites"]
    check([(w["algorithm"], w["native_measured_ns"]) for w in passed] == 2 * [("prr", 8e12)], f"{name}: and the run passes it on: {passed}")
# One more call before the loop changes nothing: winners do not depend on call numbers. Another program, or other ranks,
# have winners of their own.
profile, ran, said = learning("other_ranks", 3, learn, "two_sites", 30, 20_000, 4000)
check(profile["job"]["history"]["why_not"] == "its latest run is of 4 ranks, not of 3" and "not of 3" in said, f"other ranks: {profile['job']['history']}")
check(sorted(r["ranks"] for r in json.loads(kept.read_text())["runs"]) == [3, 4], "the file keeps both")
_, ran, _ = learning("again", 4, learn, "two_sites", 30, 20_000, 4000)
check(ran.get("prr", 0) >= 58, f"the winners of 4 ranks are still there: {ran}")
named = policy("named", [{"match": {"op": "allreduce"}, "use": "auto"}], network=network, history=str(folder / "again.json"))
profile = job("named", 4, learn, "two_sites", 30, 20_000, 4000, policy=named)
check(profile["job"]["history"]["calls"] >= 58, f"a profile is a history, too: {profile['job']['history']}")
done = run(a.cli, "run", "--learn", kept, "--", "-n", 2, learn)
check(done.returncode == 2 and "--learn goes with --auto" in done.stderr, f"--learn alone: {done.stderr}")
important = folder / "important.txt"
important.write_text("not to be lost")
done = run(a.cli, "run", "--auto", "--learn", important, "--output", folder / "important.json", "--", "-n", 2, learn, "two_sites", 30, 100, 100, LD_PRELOAD=a.support)
check(done.returncode == 0 and important.read_text() == "not to be lost" and "another file" in done.stderr, f"another file stays: {done.stderr[-400:]}")

earlier = json.loads((folder / "auto_flag.json").read_text())
site = {**winners[0], "pattern_ns": None}
endless = {**earlier, "learned": {**earlier["learned"], "sites": [{**site, "algorithm": "slt", "segments": 2**31 - 1}]}}
for text, says in [("{}", "is not a latecomer profile"), (None, "cannot read"), ('{"format": 5}', "is not a latecomer profile"), ("\n" + "[" * 600_000, "line 2: arrays and objects are nested"),
                   (json.dumps(endless), "segments: expected a whole number from 0 to")]:
    bad = folder / "bad_history.json"
    bad.unlink(missing_ok=True)
    if text is not None:
        bad.write_text(text)
    broken = policy("broken", [{"match": {"op": "allreduce"}, "use": "auto"}], network=network, history=str(bad))
    profile = job("bad_history", 2, learn, "two_sites", 50, 100, 100, policy=broken)
    check(any(says in w for w in profile["warnings"]), f"a history that cannot be used is named: {profile['warnings']}")
profile = job("other_size", 2, learn, "two_sites", 50, 100, 100, policy=named)
check(any("holds a job of 4 ranks, but this job has 2 ranks" in w for w in profile["warnings"]), "a history of another number of ranks is named")

# advise: makes a policy for the sites that wait, and check accepts it.
observe = folder / "observe.policy.json"
observe.write_text(json.dumps({"version": 1, "network": {"beta_ns_per_byte": 1.0, "latency_us": 2}}))
job("observed", 4, learn, "two_sites", 100, 50000, 30000, policy=observe)
# A network on which the model gives native half of the measured time, however busy this machine is: the model counts as
# valid and predicts a gain.
seen = json.loads(run(a.cli, "advise", folder / "observed.json", "--json").stdout)["sites"]
beta = min(s["native_ns"] for s in seen) / max(s["native_modelled_ns"] for s in seen) / 2
done = run(a.cli, "advise", folder / "observed.json", "--network", f"beta={beta:.3f}ns/B,latency=2us", "-o", folder / "advised.json", "--json")
check(done.returncode == 0, f"advise: {done.stderr}")
answer = json.loads(done.stdout)
check(len(answer["policy"]["rules"]) == 2 and answer["gain_ns"] > 0 and all(r["gain_ns"] > 0 for r in answer["sites"]), f"advise names both sites: {answer['sites']}")
check(all(r["gain_least_ns"] < r["gain_ns"] < r["gain_most_ns"] for r in answer["sites"]), f"advise gives a range: {answer['sites']}")
wall = json.loads((folder / "observed.json").read_text())["job"]["wall_time_s"] * 1e9
promised = answer["policy"]["promised"]
check(abs(promised["least"] * wall - answer["gain_least_ns"]) < 2 and abs(promised["most"] * wall - answer["gain_most_ns"]) < 2, f"the policy keeps it as shares of the run time: {promised}")
check(run(a.cli, "check", folder / "advised.json").returncode == 0, f"check accepts it: {run(a.cli, 'check', folder / 'advised.json').stdout}")
profile = job("applied", 4, learn, "two_sites", 100, 50000, 30000, policy=folder / "advised.json")
check(all(sum(d["calls"] for n, d in s["dispatch"].items() if n != "native") > 20 for s in profile["sites"]), f"applied: {[s['dispatch'] for s in profile['sites']]}")
both = json.loads(run(a.cli, "diff", "--json", folder / "observed.json", folder / "applied.json").stdout)
check(profile["job"]["promised"] == both["promised"] == promised and abs(both["gain"] - (1 - both["wall_time_s"]["ratio"])) < 1e-9, f"diff holds the promise beside the gain: {both['promised']} {both['gain']}")
text = run(a.cli, "diff", folder / "observed.json", folder / "applied.json").stdout
check("The policy of the second run promised " in text and "promised" not in run(a.cli, "diff", folder / "observed.json", folder / "observed.json").stdout, f"in words, where there is a promise: {text[:400]}")
rows = both["sites"]
check(all(r["predicted_ns"]["after"] and r["predicted_ns"]["before"] for r in rows), "diff holds the prediction against the measurement")
(folder / "no_network.json").write_text((folder / "two_sites.json").read_text())
done = run(a.cli, "advise", folder / "two_sites.json")
check(done.returncode == 2 and "--network" in done.stderr, f"advise without figures says what to do: {done.stderr}")
check(run(a.cli, "advise", folder / "two_sites.json", "--network", "eth1g").returncode in (0, 1), "advise --network")
finish()
