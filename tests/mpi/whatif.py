# SPDX-License-Identifier: BSD-3-Clause
"""`latecomer whatif` forecasts the gain of a run without the injected lateness."""
import json
import pathlib
import re

from common import a, check, finish, folder, run

LATE, CALLS, MS = 1, 100, 8
program = pathlib.Path(a.bin) / "causes"


def recorded(cause, ranks, calls=CALLS, ms=MS):
    profile = folder / f"{cause}.{ranks}.json"
    ran = run(a.cli, "run", "--record", "--output", profile, "--overwrite", "--", "-n", ranks, program, cause, LATE, calls, ms)
    check(ran.returncode == 0, f"{cause}, {ranks} ranks: runs {ran.stderr[-300:] if ran.returncode else ''}")
    return profile, json.loads(profile.read_text())


for ranks in (2, 4):
    profile, late = recorded("sleep", ranks)
    arrivals = late["arrivals"]
    events = [e for e in arrivals["events"] if e["bytes"] == 4]
    check(arrivals["calls_kept"] == arrivals["calls"] == len(arrivals["events"]), f"{ranks} ranks: a short run is kept whole")
    check(len(events) == CALLS, f"{ranks} ranks: every call is recorded, {len(events)} of {CALLS}")
    check(all(x <= y for e in events for x, y in zip(e["arrival_ns"], e["exit_ns"])), f"{ranks} ranks: exits follow arrivals")
    site = next(s for s in late["sites"] if s["id"] == events[0]["site"])
    mean = sum(max(e["arrival_ns"]) - min(e["arrival_ns"]) for e in events) / len(events)
    check(abs(mean - site["imbalance_ns"]["mean"]) < 1, f"{ranks} ranks: the record has the site's mean imbalance")
    answer = json.loads(run(a.cli, "whatif", "--json", profile).stdout)
    check(abs(answer["replay_error"]) < 1e-6, f"{ranks} ranks: unchanged, the replay gives the recorded time ({answer['replay_error']:.1e})")
    check(answer["calls_replayed"] == len(arrivals["events"]), f"{ranks} ranks: all recorded calls are replayed")
    gains = {(s["kind"], s["rank"]): s["gain"] for s in answer["scenarios"] if s["site"] is None}
    here = {s["kind"]: s for s in answer["scenarios"] if s["site"] == site["id"]}
    _, balanced = recorded("none", ranks)
    span = lambda p: max(x for e in p["arrivals"]["events"] for x in e["exit_ns"])
    print(f"      {ranks} ranks: forecast {gains['on_time', LATE]:.1%}, measured {1 - span(balanced) / span(late):.1%}")
    check(gains["on_time", LATE] > 0.3, f"{ranks} ranks: a large gain if rank {LATE} is on time")
    check(all(gains["on_time", LATE] > g for (kind, rank), g in gains.items() if kind == "on_time" and rank != LATE), f"{ranks} ranks: the late rank has the largest gain")
    check(here["on_time"]["rank"] == LATE, f"{ranks} ranks: the late rank is tried at its site")
    check(here["no_wait"]["bound"] == "upper", f"{ranks} ranks: the gain of a non-blocking call is called an upper bound")
    text = run(a.cli, "whatif", profile).stdout
    check(f"rank {LATE} needed no longer than the others before each call" in text and "at most" in text, f"{ranks} ranks: the text names the rank")

# One rank sets the program up while the others wait at the first call: both commands say so, and what it costs.
profile, job = recorded("setup", 4, calls=20, ms=400)
first = job["job"]["first_call"]
check(first["rank"] == LATE and first["awaited_ns"] == first["waited_ns"] > 0.9e9, f"the first call: {first}")
gains = {(s["kind"], s["rank"]): s["gain"] for s in json.loads(run(a.cli, "whatif", "--json", profile).stdout)["scenarios"] if s["site"] is None}
# On time, the rank's other intervals are those of the others, which may be a little longer.
check(gains["on_time", LATE] + 0.01 > gains["set_up", LATE] > 0.5, f"what the set-up costs: {gains}")
said = json.loads(run(a.cli, "report", "--json", profile).stdout)["verdict"]
share = re.search(rf"Ranks wait at their first collective for rank {LATE}: (\d+)% of the ranks' time", " ".join(said))
run_time = sum(p["init_ns"] + p["wall_ns"] + p["end_ns"] for p in job["processes"])
check(share and abs(int(share[1]) / 100 - first["waited_ns"] / run_time) < 0.01, f"the verdict has the set-up: {said[0]}")

# Logs that only the profile writer matches are recorded, too.
policy, profile = folder / "policy.json", folder / "finalize.json"
policy.write_text('{"version": 1, "record": "arrivals", "exchange": "finalize"}')
run(a.cli, "run", "--policy", policy, "--output", profile, "--", "-n", 2, program, "none", LATE, CALLS, MS)
events = json.loads(profile.read_text())["arrivals"]["events"]
check(sum(e["bytes"] == 4 for e in events) == CALLS, f"exchange at the end: {len(events)} calls are recorded")
ran = run(a.cli, "run", "--record", "--policy", policy, "--", "-n", 2, program)
check(ran.returncode == 2 and '"record": "arrivals"' in ran.stderr, "--record beside a policy names the key")

# Every observed run keeps a sample, whose calls are those of the record. It exchanges nothing for it.
sampled = {}
for name, options in (("sample", ()), ("sample_finalize", {"exchange": "finalize"}), ("record", {"record": "arrivals"}), ("plain", {"record": "none"}), ("applies", {"mode": "apply"})):
    profile = folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, **dict(options)}))
    ran = run(a.cli, "run", "--policy", policy, "--output", profile, "--overwrite", "--", "-n", 4, program, "sleep", LATE, CALLS, MS)
    sampled[name] = json.loads(profile.read_text())
for name in ("sample", "sample_finalize"):
    record = sampled[name]["arrivals"]
    numbers = [e["number"] for e in record["events"]]
    check(record["sample"] == {"calls": 32, "stride": 1} and numbers == list(range(record["calls"])) and record["calls"] == record["calls_kept"] == sampled["record"]["arrivals"]["calls"],
          f"{name}: a short run is there as a whole: {record['calls_kept']} of {record['calls']}")
    check(all(x <= y for e in record["events"] for x, y in zip(e["arrival_ns"], e["exit_ns"])), f"{name}: exits follow arrivals")
    answer = json.loads(run(a.cli, "whatif", "--json", folder / f"{name}.json").stdout)
    gains = {(s["kind"], s["rank"]): s["gain"] for s in answer["scenarios"] if s["site"] is None}
    check(answer["sample"] and abs(answer["replay_error"]) < 1e-6 and gains["on_time", LATE] > 0.3, f"{name}: whatif replays it: {gains}")
    check("on MPI_COMM_WORLD" in (said := " ".join(run(a.cli, "whatif", folder / f"{name}.json").stdout.split())) and "It is the sample that every run keeps" in said, f"{name}: whatif says so: {said[:300]}")
    check(run(a.cli, "export", "--perfetto", folder / f"{name}.trace", folder / f"{name}.json").returncode == 0, f"{name}: a trace")
    check("calls on MPI_COMM_WORLD" in run(a.cli, "report", "--html", "-", folder / f"{name}.json").stdout, f"{name}: the page says so")
check("arrivals" not in sampled["plain"] and "arrivals" not in sampled["applies"] and "sample" not in sampled["record"]["arrivals"], "no sample where the policy says so, in mode apply, and beside a record")

# A long run: stretches of calls from its start to its end, which are replayed apart.
long, profile = 3000, folder / "long.json"
run(a.cli, "run", "--quiet", "--output", profile, "--", "-n", 2, program, "work", LATE, long, 0.05, timeout=300, LD_PRELOAD=a.support)
record, answer = json.loads(profile.read_text())["arrivals"], json.loads(run(a.cli, "whatif", "--json", profile).stdout)
numbers, stride = [e["number"] for e in record["events"]], record["sample"]["stride"]
check(record["calls"] >= long and stride == 4 and 480 <= len(numbers) <= 1024 and all(n // 32 % stride == 0 for n in numbers), f"a long run: {len(numbers)} of {record['calls']} calls, one of {stride} stretches")
check(numbers[:32] == list(range(32)) and numbers[-1] > record["calls"] - 2 * 32 * stride, f"from the start to the end: {numbers[0]} to {numbers[-1]}")
check(abs(answer["replay_error"]) < 1e-6 and answer["recorded_share"] < 0.6 and answer["calls_replayed"] == len(numbers), f"its stretches are replayed apart: {answer['recorded_share']:.1%}")

plain = folder / "plain.json"
ran = run(a.cli, "whatif", plain)
check(ran.returncode == 2 and "--record" in ran.stderr, "a profile without a record is refused with the command that records")

# Damaged records are refused with their place.
for name, change in (("a rank that does not exist", lambda r: r["groups"].append([99])),
                     ("an event with too few exits", lambda r: r["events"][0]["exit_ns"].pop()),
                     ("an unknown group", lambda r: r["events"][0].update(group=1000))):
    damaged = json.loads(profile.read_text())
    change(damaged["arrivals"])
    (folder / "damaged.json").write_text(json.dumps(damaged))
    ran = run(a.cli, "whatif", folder / "damaged.json")
    check(ran.returncode == 2 and "arrivals." in ran.stderr, f"{name}: {ran.stderr.strip()}")

finish()
