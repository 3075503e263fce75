# SPDX-License-Identifier: BSD-3-Clause
"""A run in mode observe measures the network at its end, for its profile. It does so only after the profile is on disk,
and a rank that ends meanwhile neither damages the profile nor makes the others wait."""
import json
import os
import pathlib
import re
import subprocess
import sys

from common import a, check, finish, folder, patience, run, sanitized

sys.path.append(a.root + "/tests/support")
from processes import end_tree

program = a.bin + "/leave"
LONG, SHORT = 5000 * patience, 200  # ms


def observed(name, how, ms, ranks=2, policy=None, launcher=(), **environment):
    """Runs the program, and ends it if it hangs. Returns its profile, its messages and its status."""
    out, options = folder / f"{name}.json", []
    if policy is not None:
        (folder / f"{name}.policy").write_text(json.dumps({"version": 1, **policy}))
        options = ["--policy", folder / f"{name}.policy"]
    words = [a.cli, "run", "--verbose", 1, "--output", out, "--overwrite", *options, "--", *launcher, "-n", ranks, program, how, ms]
    preload = ":".join(filter(None, [environment.pop("LD_PRELOAD", ""), a.support]))
    job = subprocess.Popen([str(w) for w in words], env={**os.environ, "LD_PRELOAD": preload, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        text = job.communicate(timeout=patience * 60)[0]
        status = job.returncode
    except subprocess.TimeoutExpired:
        end_tree(job)
        text, status = job.communicate()[0], "a hang"
    if "the run is too short" in text and LONG <= ms < 8 * LONG:  # writing the profile took long, on busy cores
        return observed(name, how, 2 * ms, ranks, policy, launcher, LD_PRELOAD=preload, **environment)
    return (json.loads(out.read_text()) if out.exists() else None), text, status


def network(profile):
    return profile["job"]["network"], profile["job"]["network_from"]


# What is measured, and who uses it.
for ranks in (2, 4):
    profile, text, status = observed(f"end{ranks}", "finalize", LONG, ranks)
    check(status == 0 and profile and "right" in text, f"{ranks} ranks: ends as natively: {status} {text[-300:]}")
    figures, source = network(profile)
    # Busy cores may give figures that cannot be right: then the profile has none, and a line says why.
    doubted = "measure again" in text or "network is not measured: it is too slow" in text
    check((source == "end") != doubted and (figures is None) == doubted, f"{ranks} ranks: the profile has the figures: {figures} {source} {text[-600:]}")
    left = [f.name for f in folder.iterdir() if f.name.startswith(f"end{ranks}.json.")]
    check(not left, f"{ranks} ranks: nothing else is left: {left}")
    if figures is None:
        continue
    check(0 < figures["beta_ns_per_byte"] < 100 and figures["latency_us"] < 1000 and figures["ranks_per_host"] == 1, f"{ranks} ranks: {figures}")
    path = folder / f"end{ranks}.json"
    said = "measured at the end of this job in the shared memory of its host"
    for words in (["advise"], ["whatif"], ["report", "--all"]):
        done = run(a.cli, *words, path)
        check(said in " ".join(done.stdout.split()), f"{words[0]} says where the figures come from: {done.returncode} {done.stdout[-500:]} {done.stderr}")
    check(json.loads(run(a.cli, "advise", "--json", path).stdout)["network_from"] == "end", "advise --json, too")
    given = run(a.cli, "advise", "--network", "hdr", path).stdout
    check(said not in given and json.loads(run(a.cli, "advise", "--json", "--network", "hdr", path).stdout)["policy"]["network"]["beta_ns_per_byte"] < 0.05, "the user's figures come first")

# Not measured: a short run, a policy that forbids it, figures of a policy, and mode apply.
for name, ms, policy, source in (("short", SHORT, None, None), ("forbidden", LONG, {"measure_network": False}, None), ("given", LONG, {"network": "hdr"}, "policy"),
                                 ("applies", LONG, {"mode": "apply", "rules": [{"match": {"op": "bcast"}, "use": "binomial"}]}, None), ("start", SHORT, {"network": "measure"}, "start")):
    profile, text, status = observed(name, "finalize", ms, policy=policy)
    check(status == 0 and network(profile)[1] == source and (network(profile)[0] is None) == (source is None), f"{name}: {network(profile)} {text[-300:]}")
    check("network measured" not in text or source == "start", f"{name}: nothing is measured at the end: {text[-300:]}")
refused = run(a.cli, "advise", folder / "short.json")
check(refused.returncode == 2 and "2.5 s" in refused.stderr, f"advise names the remedy: {refused.stderr}")

# Ranks that leave in other ways.
for how, ranks in (("late", 3), ("communicators", 4)):
    profile, text, status = observed(how, how, LONG, ranks)
    check(status == 0 and profile and re.search("network measured: |network is not measured: it is too slow", text), f"{how}: {status} {text[-400:]}")
profile, text, status = observed("exit", "exit", SHORT, 3)
check(status != "a hang" and not re.search("network .*measured", text), f"exit: a rank that never comes: {status} {text[-400:]}")

# A rank is killed while it measures: at its first message, in the midst, and beside rank 0's other partners. The profile
# is whole, and the launcher ends the job.
killer = str(pathlib.Path(a.build) / "lib/libend_while_measuring.so")
killed = 0
for rank, at in ((0, 1), (0, 40), (1, 5), (2, 2)):
    name = f"killed{rank}.{at}"
    profile, text, status = observed(name, "finalize", LONG, 3, LD_PRELOAD=killer, END_RANK=str(rank), END_AT=str(at))
    killed += status != 0
    # On busy cores, rank 0 has no time for its second partner.
    check(status != "a hang" and (status != 0 or rank == 2), f"{name}: the job ends: {status} {text[-300:]}")
    check(profile is not None and sum(s["calls"] for s in profile["sites"]) == 20 and (status == 0 or network(profile) == (None, None)), f"{name}: its profile is whole: {profile and network(profile)}")
    check(run(a.cli, "report", folder / f"{name}.json").returncode == 0, f"{name}: the report reads it")

check(killed >= 3, f"{killed} ranks were killed")

finish()
