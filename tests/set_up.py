# SPDX-License-Identifier: BSD-3-Clause
"""The report's sentences about the set-up, on profiles made for each finding and for its absence.
Usage: set_up.py LATECOMER GENERATE_PROFILE"""
import json
import pathlib
import subprocess
import sys
import tempfile

cli, generate = sys.argv[1:]
SECOND = 1e9
failures = 0


def process(rank, host, cores, host_cores, waiting="spin", computing=0.5, runnable=0.0, blocked=0.0, wall=1.0):
    """`cores`: a list as in the profile."""
    count = sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in cores.split(","))
    times = {"wall_ns": wall, "computing_ns": computing, "runnable_ns": runnable, "blocked_ns": blocked, "kernel_ns": 0, "messages_ns": 0, "io_ns": 0,
             "collectives_ns": wall - computing - runnable - blocked}
    return {"rank": rank, "host": host, "cores": count, "host_cores": host_cores, "core_list": cores, "waiting": waiting, "faults": 0, "preempted": 0,
            **{key: SECOND * value for key, value in times.items()}}


def sentences(processes, computing=None, samples=10, core_lists=True, scale=1e4):
    """Reads a report on one site with 10 calls in 1 s. `computing`: mean time per rank before its calls, in units of `scale` ns."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "p.json"
        subprocess.run([generate, str(len(processes)), "1", "10", path], check=True)
        profile = json.loads(path.read_text())
        profile["processes"] = processes
        profile["job"]["hosts"] = sorted({p["host"] for p in processes})
        if not core_lists:
            for p in processes:
                del p["core_list"]
        for row in profile["sites"][0]["ranks"]:
            if computing:
                time = computing[row["rank"]] * scale
                row["before"] = {"samples": samples, "wall_ns": time, "computing_ns": time, "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0,
                                 "runnable_ns": 0, "blocked_ns": 0, "faults": 0, "preempted": 0}
        path.write_text(json.dumps(profile))
        report = subprocess.run([cli, "report", "--json", path], capture_output=True, text=True)
        assert report.returncode == 0, report.stderr
        found = json.loads(report.stdout)
        text = " ".join(subprocess.run([cli, "report", "--all", path], capture_output=True, text=True).stdout.split())
        assert len(found["verdict"]) <= 5, found["verdict"]
        assert all(sentence in text for sentence in found["setup"]), (found["setup"], text)
        assert not found["setup"] or found["setup"][0] in found["verdict"], found["verdict"]
        return found["setup"]


def expect(name, found, *wanted):
    """As many sentences as `wanted` has entries, and each holds the words of its entry."""
    global failures
    good = len(found) == len(wanted) and all(all(word in sentence for word in words) for sentence, words in zip(found, wanted))
    print("ok    " if good else "FAILED", name, found)
    failures += not good


def ranks(count, host="h", first=0, **more):
    return [process(first + r, host, **{"cores": "0-1", "host_cores": 2, **more}) for r in range(count)]


# More ranks than cores. Each of 4 ranks computes for 0.5 s of 1 s: with half a core each, its own work takes 1 s.
expect("courteous", sentences(ranks(4, waiting="courteous")), ["Host h runs 4 ranks on 2 cores", "give their core away", "at least 1.5 times as long by estimate"])
# Time that a rank waited for a core does not come on top, and ranks asleep want no core.
expect("busy cores", sentences(ranks(4, waiting="courteous", computing=0.5, runnable=0.5)), ["4 ranks on 2 cores", "does not show how much"])
expect("asleep", sentences(ranks(4, waiting="courteous", computing=0.5, blocked=0.5)), ["4 ranks on 2 cores", "does not show how much"])
expect("not measured", sentences(ranks(4, waiting="courteous", computing=0, wall=0)), ["Host h runs 4 ranks on 2 cores", "give their core away. The profile does not show"])
expect("spins", sentences(ranks(4)), ["Host h runs 4 ranks on 2 cores", "keep their core", "policy key `waiting`"])
expect("a part of the cores", sentences(ranks(5, cores="0", host_cores=4)), ["runs 5 ranks on 1 of its 4 cores"])
expect("an older profile", sentences(ranks(4), core_lists=False), ["Host h runs 4 ranks on 2 cores"])
two = ranks(4) + [process(4 + r, "i", "0-1", 2) for r in range(6)]
expect("the worse host is named", sentences(two), ["Host i runs 6 ranks on 2 cores", "as on 1 other host; waiting"])

# Ranks that share cores while the host has enough.
expect("one core for two", sentences(ranks(2, cores="1")), ["Ranks 0, 1 share core 1 of host h, which has a core for each of its 2 ranks", "bind"], ["Waiting ranks keep their core"])
four = [process(0, "h", "0", 8), process(1, "h", "0-1", 8), process(2, "h", "1", 8), process(3, "h", "4-7", 8)]
expect("three on two cores, in masks that overlap", sentences(four), ["Ranks 0-2 share cores 0, 1 of host h"])
expect("a chain that has a solution", sentences([process(0, "h", "0-1", 8), process(1, "h", "0", 8), process(2, "h", "1-2", 8)]))
expect("bound well", sentences([process(r, "h", str(r), 2) for r in range(2)]))
expect("unbound", sentences(ranks(2)), ["No rank is bound to a core"])
expect("unbound, an older profile", sentences(ranks(2), core_lists=False), ["No rank is bound to a core"])


def hosts(*of):
    return [process(r, host, str(r % 4), 8) for r, host in enumerate(of)]


# One host slower than the others.
slow = hosts("a", "a", "b", "b", "c", "c")
expect("slow host", sentences(slow, [2000, 2000, 3100, 2900, 2100, 1900]), ["All 2 ranks of host b compute 1.5 times as long"])
expect("one rank of it is not", sentences(slow, [2000, 2000, 3100, 2100, 2100, 1900]))
expect("within the differences of cores", sentences(slow, [2000, 2000, 2150, 2150, 2000, 2000]))
expect("too few samples", sentences(slow, [2000, 2000, 3100, 2900, 2100, 1900], samples=4))
expect("a small part of the run", sentences(slow, [2000, 2000, 3100, 2900, 2100, 1900], scale=100))
expect("one rank per host", sentences(hosts("a", "b", "c"), [2000, 4000, 2000]))
expect("one host", sentences(hosts("a", "a", "a", "a"), [2000, 4000, 2000, 2000]))
print(f"{failures} failures")
sys.exit(bool(failures))
