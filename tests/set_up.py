# SPDX-License-Identifier: BSD-3-Clause
"""The report's sentences about the set-up, on profiles made for each finding and for its absence.
Usage: set_up.py LATECOMER GENERATE_PROFILE"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parent / "page"))
from profiles import write_profile

cli, generate = sys.argv[1:]
SECOND = 1e9
KINDS = {"standstill", "different_calls", "partial_data", "cores_taken", "binding", "slow_core", "imbalance", "wait_at_start_or_end", "message_wait", "message_cycle", "files", "other_mpi", "transfer",
         "too_short", "no_problem"}
failures = 0


def process(rank, host, cores, host_cores, waiting="spin", computing=0.5, runnable=0.0, blocked=0.0, messages=0.0, other_mpi=0.0, wall=1.0, waits_for=None):
    """`cores`: a list as in the profile."""
    count = sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in cores.split(","))
    times = {"wall_ns": wall, "computing_ns": computing, "runnable_ns": runnable, "blocked_ns": blocked, "kernel_ns": 0, "messages_ns": messages, "io_ns": 0,
             "other_mpi_ns": other_mpi, "collectives_ns": wall - computing - runnable - blocked - messages - other_mpi}
    return {"rank": rank, "host": host, "cores": count, "host_cores": host_cores, "core_list": cores, "waiting": waiting, "faults": 0, "preempted": 0,
            **({} if waits_for is None else {"waits_for": [{"rank": waits_for, "wait_ns": 0.9 * SECOND * messages}]}),
            **{key: SECOND * value for key, value in times.items()}}


def sentences(processes, computing=None, samples=10, core_lists=True, scale=1e4, part="setup", job=None, last_state=None, hosts=None, **site):
    """`site`: values that replace those of the site. Reads a report on one site with 10 calls in 1 s. `computing`: mean time per rank before its calls, in units of `scale` ns. `job`: values that replace those of the job."""
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
        profile["sites"][0].update(site)
        profile["job"].update(job or {})
        if last_state:
            profile["last_state"] = last_state
        if hosts:
            profile["hosts"] = hosts
        path.write_text(json.dumps(profile))
        report = subprocess.run([cli, "report", "--json", path], capture_output=True, text=True)
        assert report.returncode == 0, report.stderr
        found = json.loads(report.stdout)
        text = " ".join(subprocess.run([cli, "report", "--all", path], capture_output=True, text=True).stdout.split())
        assert all(sentence in text for sentence in found["setup"]), (found["setup"], text)
        assert all(sentence.startswith("No rank is bound") or any(sentence in one["text"] for one in found["findings"]) for sentence in found["setup"]), found["findings"]
        assert [one["id"] for one in found["findings"]] and not {one["id"] for one in found["findings"]} - KINDS, found["findings"]
        return found[part]


def expect(name, found, *wanted):
    """As many sentences as `wanted` has entries, and each holds the words of its entry."""
    global failures
    good = len(found) == len(wanted) and all(all(word in sentence for word in words) for sentence, words in zip(found, wanted))
    print("ok    " if good else "FAILED", name, found)
    failures += not good


def ranks(count, host="h", first=0, **more):
    return [process(first + r, host, **{"cores": "0-1", "host_cores": 2, **more}) for r in range(count)]


def loaded(hosts, part="setup", crowded=False, runnable=0.0, **job):
    """The sentences for what ran on hosts beside the job. `hosts`: by name, values that replace those of an idle host of 4 cores in a run of 10 s."""
    idle = {"ranks": 2, "cores": 4, "usable_cores": 4, "span_ns": 10 * SECOND, "ranks_ns": 20 * SECOND, "others_ns": 0.0, "others_error_ns": SECOND / 3, "others_share": 0.0,
            "steal_ns": 0, "pressure_ns": 0, "throttled_ns": 0}
    processes = [process(2 * i + r, name, "0-3", 4, runnable=runnable) for i, name in enumerate(hosts) for r in range(2)] if not crowded else ranks(4)
    return sentences(processes, part=part, job=job, hosts=[{"host": name, "load": {**idle, **its}} for name, its in hosts.items()])


# More ranks than cores. Each of 4 ranks computes for 0.5 s of 1 s: with half a core each, its own work takes 1 s.
expect("courteous", sentences(ranks(4, waiting="courteous")), ["Host h runs 4 ranks on 2 cores", "give their core away", "at least 1.5 times as long by estimate"])
# Time that a rank waited for a core does not come on top, and ranks asleep want no core.
expect("busy cores", sentences(ranks(4, waiting="courteous", computing=0.5, runnable=0.5)), ["4 ranks on 2 cores, so ranks had no core for 50% of their time; waiting ranks give their core away."])
expect("asleep", sentences(ranks(4, waiting="courteous", computing=0.5, blocked=0.5)), ["4 ranks on 2 cores, so ranks share cores; waiting ranks give their core away."])
expect("not measured", sentences(ranks(4, waiting="courteous", computing=0, wall=0)), ["Host h runs 4 ranks on 2 cores", "share cores; waiting ranks give their core away."])
expect("spins", sentences(ranks(4)), ["Host h runs 4 ranks on 2 cores", "keep their core", "policy key `waiting`"])
expect("a part of the cores", sentences(ranks(5, cores="0", host_cores=4)), ["runs 5 ranks on 1 of its 4 cores", "A rank can compute for at most 20% of the time"])
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
# Other processes on the cores.
busy = [process(r, "h", str(r), 2, runnable=0.14) for r in range(2)]
expect("foreign load", sentences(busy), ["Ranks of host h were ready to run but had no core for 14% of their time, although it has a core for each of its 2 ranks"])
expect("a little of it", sentences([process(r, "h", str(r), 2, runnable=0.01) for r in range(2)]))


def verdict(found, wanted, unwanted=()):
    global failures
    good = all(any(word in sentence for sentence in found) for word in wanted) and not any(word in sentence for sentence in found for word in unwanted)
    print("ok    " if good else "FAILED", wanted, found)
    failures += not good


# What the verdict says where ranks hardly wait in collectives, and where the profile does not know.
bound = [process(r, "h", str(r), 4) for r in range(4)]
verdict(sentences(bound, part="verdict"), ["No wait takes 1% of the time."], ["lacks", "other MPI calls"])
pipeline = [process(r, "h", str(r), 4, computing=0.2, messages=0.7 if r == 2 else 0.1) for r in range(4)]
verdict(sentences(pipeline, part="verdict"), ["Ranks wait for messages: 25% of the ranks' time. Rank 2 waits most, for 70% of its time."])
pipeline[2]["messages_error_ns"] = int(0.08 * SECOND)
verdict(sentences(pipeline, part="verdict"), ["in messages 25% (+- 2.0%)", "Rank 2 waits most, for 70% of its time."])
pipeline[2]["messages_error_ns"] = int(0.4 * SECOND)
verdict(sentences(pipeline, part="verdict"), [], ["Ranks wait for messages"])
verdict(sentences([process(r, "h", str(r), 4, other_mpi=0.1 * r) for r in range(4)], part="verdict"), ["Ranks spend their time in other MPI calls, such as those that make communicators: 15% of the ranks' time."], ["wait for messages"])
chain = [process(r, "h", str(r), 4, computing=(0.25, 0.9, 0.3, 0.25)[r], messages=(0.6, 0, 0.65, 0.7)[r], waits_for=(1, None, 1, 2)[r]) for r in range(4)]
verdict(sentences(chain, part="verdict"), ["Ranks wait for messages of rank 1: 49%", "Rank 3 waits most, for 70% of its time, mostly for rank 2, which waits for rank 1, which computes for 90% of the run, others for 27%."])
chain[1] = process(1, "h", "1", 4, computing=0.3)
verdict(sentences(chain, part="verdict"), ["Ranks wait for messages: ", "mostly for rank 2, which waits for rank 1."], ["which is in collectives"])
verdict(sentences(bound[:3], part="verdict", patterns=0, waited_ns=0), ["Waiting is not known for a part of the calls. For 100% of the calls, the record of some rank is missing."], ["too short", "No wait"])
verdict(sentences([*bound[:1], *bound[2:]], part="verdict", job={"ranks": 4}), ["The profile lacks rank 1. Arrivals count only where all ranks of a call are observed.", "preload"], ["too short", "No wait"])
# A profile that ends with snapshots cannot say that nothing is wrong.
verdict(sentences(bound, part="verdict", job={"unfinished": 4}), ["until the last snapshots, after 1.000 s.", "Until then, no wait took 1% of the time.", "`latecomer run` keeps it of one that is killed"], ["No wait", "stood still"])


def stood(rank, inside, call, **more):
    return {"rank": rank, "host": "h", "pid": 100 + rank, "state": "running", "inside": inside, "op": "allreduce", "call": call, "communicator": "0x1", "comm_size": 4, "root": None, "bytes": 8,
            "site": "0x5", "since_ns": 9000000000, "in_message": False, "message_ns": None, "watched_ns": 8000000000, **more}


place = {"site": "0x5", "frames": [{"module": "/bin/solve", "build_id": "", "offset": "0x10", "function": "solve", "file": "solve.c", "line": 7}]}


def hanging(*states, **more):
    return sentences(bound, part="verdict", job={"unfinished": 4}, last_state={"states": list(states), "places": [place]}, **more)


waiting = [stood(r, "collective", 5) for r in (0, 1, 3)]
verdict(hanging(*waiting[:2], stood(2, "outside", 4), waiting[2]), ["The job stood still when last seen. Ranks 0, 1, 3 wait in allreduce of 8 B at solve (solve.c:7) (call 5 on MPI_COMM_WORLD) for 9.000 s, for rank 2, which computes, outside collectives for 9.000 s, after"], ["is not known", "`latecomer run`"])
verdict(hanging(*waiting[:2], stood(2, "outside", 4, state="gone"), waiting[2]), ["Rank 2 is gone: process 102 has ended."])
verdict(hanging(*waiting), ["3 of 4 ranks stood still when last seen.", "Where rank 2 was is not known: that takes `latecomer relay` on every host."])
verdict(hanging(*waiting[:2], stood(2, "collective", 5, watched_ns=100), waiting[2]), ["3 of 4 ranks stood still when last seen. All 4 ranks of MPI_COMM_WORLD are in allreduce"], ["for rank 2"])
# It moved, or nobody looked twice.
verdict(hanging(*[dict(state, watched_ns=100) for state in waiting], stood(2, "outside", 4, watched_ns=100)), ["Until then"], ["stood still", "wait in allreduce"])
verdict(hanging(*[dict(state, watched_ns=None, since_ns=None, state="?") for state in waiting]), ["Not known: whether the job stood still when it ended: `latecomer run`"], ["stood still when last seen", "wait in allreduce"])
# One rank of four is 20 ms late in each of ten calls in a second. Without a record of arrivals, no gain is said.
late = lambda bound=bound, samples=10, **parts: sentences(bound, part="verdict", waited_ns=0.6e9, before={"samples": 40, "wall_ns": 1.5e7, "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0, "computing_ns": 1e7, "runnable_ns": 0, "blocked_ns": 0, "faults": 0,
                                                                          "preempted": 0}, ranks=[
    {"rank": r, "mean_offset_ns": 2e7 * (r == 3), "stddev_ns": 0, "last_count": 10 * (r == 3), "histogram": {"unit": "ns", "scale": "log", "edges": [], "counts": [], "mean": 0, "p50": 0, "p90": 0, "p99": 0, "max": 0},
     "waited_ns": 0.2e9 * (r != 3), "awaited_ns": 0.6e9 * (r == 3), "before": {"samples": samples, "wall_ns": 1e7 + 2e7 * (r == 3), "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0, "computing_ns": 1e7, "runnable_ns": 0,
     "blocked_ns": 0, "faults": 0, "preempted": 0, "threads_ns": parts.get("team", 0), **{key: value + parts.get("base", 0) for key, value in (parts.items() if r == 3 else ()) if key not in ("base", "team")}}} for r in range(4)])
verdict(late(blocked_ns=2e7), ["Rank 3 is late: waits there take 15% of the ranks' time.", "last in 10 of 10 calls. It is asleep or stopped for 20.000 ms before a call, others for 0 ns (100% of its lateness).", "Not known: what less waiting would save. The profile holds no record of arrivals"], ["could save"])
# Three quarters of the lateness are sleep, and the rest is work.
verdict(late(blocked_ns=1.5e7, computing_ns=5e6), ["It is asleep or stopped for 15.000 ms before a call, others for 0 ns (75% of its lateness)."])
verdict(late(other_mpi_ns=2e7), ["It is in other MPI calls, such as those that make communicators for 20.000 ms before a call, others for 0 ns (100% of its lateness)"], ["wait for messages"])
# It sleeps while other threads of its process compute or are in MPI. Their work can only move.
verdict(late(blocked_ns=2e7, threads_ns=1.1e7), ["It waits for its own threads (100% of its lateness)"], ["is asleep"])
verdict(late(blocked_ns=2e7, threads_ns=1.1e7, threads_in_mpi_ns=1.1e7), ["It waits for its own threads, which are in MPI calls (100% of its lateness)"], ["is asleep"])
verdict(late(blocked_ns=2e7, threads_ns=9e6, threads_in_mpi_ns=9e6), ["is asleep or stopped"], ["own threads"])
verdict(late(blocked_ns=2e7, team=9e7), ["is asleep or stopped"], ["own threads"])  # all ranks have threads that compute
verdict(late(computing_ns=2e7, base=1e7), ["It computes for 30.000 ms before a call, others for 10.000 ms"])
verdict(late(computing_ns=3e5, base=1e7), ["Not known: no part of the intervals before these calls explains it."])
# Two samples of ten calls say nothing. Rank 3 computes 0.2 s longer than the others in a second, which is as long as they wait for it.
few = lambda own, wall=1.0: late(bound=[process(r, "h", str(r), 4, computing=wall * 0.3 + own * (r == 3), wall=wall) for r in range(4)], samples=2, computing_ns=2e7)
verdict(few(0.2), ["It computes for 50% of the run, others for 30%."], ["not known:"])
verdict(few(0.1), ["Not known: too few intervals before these calls were sampled, and a longer run samples more."], ["of the run,"])
verdict(few(0, wall=0), ["Not known: the policy key `causes` is off, or the kernel has no /proc/self/schedstat."], ["of the run,"])
# Of waits of half a per cent in all, nothing is said. 20 ms of lateness in 0.2 s per rank say that something is missing.
little = lambda awaited: sentences(bound, part="verdict", waited_ns=0.06e9, ranks=[{"rank": r, "mean_offset_ns": 2e6 * (r == 3), "stddev_ns": 0, "last_count": 10 * (r == 3), "waited_ns": awaited / 3 * (r != 3), "awaited_ns": awaited * (r == 3),
     "histogram": {"unit": "ns", "scale": "log", "edges": [], "counts": [], "mean": 0, "p50": 0, "p90": 0, "p99": 0, "max": 0}} for r in range(4)])
verdict(little(0.06e9), ["Not known: too few intervals before these calls were sampled, and a longer run samples more."])
verdict(little(0.037e9), ["Rank 3 is late: waits there take 1.5% of the ranks' time."])
# All wait as long as the others for messages, so none is named.
verdict(sentences([process(r, "h", str(r), 4, computing=0.3, messages=0.2 + 0.01 * (r == 2)) for r in range(4)], part="verdict"), ["Ranks wait for messages: 20% of the ranks' time."], ["waits most"])
# One rank of 24 computes and all others wait, nearly as long as the mean.
verdict(sentences([process(r, "h", str(r), 24, computing=0.9 if r == 5 else 0.2, messages=0 if r == 5 else 0.7) for r in range(24)], part="verdict"), ["Rank 0 waits most, for 70% of its time"])
# A caller without samples has the cause of its site.
with tempfile.TemporaryDirectory() as folder:
    write_profile(pathlib.Path(folder) / "p.json", 4, sites=6)
    report = subprocess.run([cli, "report", "--json", pathlib.Path(folder) / "p.json"], capture_output=True, text=True, check=True)
    verdict(json.loads(report.stdout)["verdict"], ["called from residual (time.cpp:10), last in 375 of 375 calls", "Rank 1 is late", "It computes for"], ["of the run,", "not known: too few", "Not known: too few"])
# The intervals are equal. That all of them are is known only if all were sampled.
verdict(late(wall_ns=1e7), ["Not known: all intervals before these calls were sampled, and they are hardly longer than those of the others."], ["earlier"])
verdict(late(wall_ns=1e7, samples=8), ["Not known: the sampled intervals before these calls are hardly longer than those of the others."], ["earlier"])
busier = [process(r, "h", str(r), 4, computing=0.3, runnable=0.2 * (r == 3)) for r in range(4)]
verdict(late(wall_ns=1e7, bound=busier, samples=8), ["It is ready to run but has no core for 20% of the run, others for 0.0%."])
# The last rank leaves late: all ranks together still spend no more than their time in collectives.
verdict(sentences(bound, part="verdict", dispatch={"native": {"calls": 10, "mean_after_last_ns": 0.9e9, "mean_elapsed_ns": 0.9e9, "predicted_ns": None, "reason": ""}}, waited_ns=0), [", in collectives 50%", "No wait takes 1% of the time."], ["900%", "could be faster"])
# The arrivals of one call in a thousand, without a wait among them: they say nothing about the others.
expect("few arrivals", sentences(ranks(2), part="verdict", calls=10_000, patterns=10, waited_ns=0)[:2], ["in collectives (how much of it is waiting is not known)"], ["For 100% of the calls, the record of some rank is missing."])
# The start and the end of the run are parts of it. Rank 3 came last to MPI_Finalize.
ends = [dict(p, init_ns=0.3 * SECOND, end_ns=0.7 * SECOND * (p["rank"] != 3)) for p in ranks(4)]
verdict(sentences(ends, part="verdict"), ["Ranks wait in MPI_Finalize until rank 3 has come: 29% of the ranks' time.", "Ranks spend their time in MPI_Init: 16% of the ranks' time."])
verdict(sentences([dict(p, init_ns=0.02 * SECOND, end_ns=0.01 * SECOND) for p in ranks(4)], part="verdict"), [], ["Ranks spend their time in MPI_Init", "Ranks wait in MPI_Finalize"])
# What ran beside the job. The error of the measurement is 0.33 s: of 40 s, others took 2.3 s for sure, or only 1.9 s.
expect("others", loaded({"n": {"others_ns": 12.4 * SECOND, "pressure_ns": 4 * SECOND}}),
       ["Other processes took 31% of the cores of host n during the run (pressure: for 40% of that time, some process waited for a core)."])
expect("others on two hosts", loaded({"m": {"others_ns": 3 * SECOND}, "n": {"others_ns": 8 * SECOND, "pressure_ns": None, "usable_cores": 2}, "o": {"others_ns": 2.5 * SECOND}}),
       ["Other processes took 20% of the cores of host n during the run, and more than 5.0% on 1 other host. The ranks there may use 2 of its 4 cores."])
expect("others until a snapshot", loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None}}, unfinished=1), ["took 30% of the cores of host n in the first 10.000 s of the run."])
unbound = ["No rank is bound"]
for case in ({"others_ns": 2.5 * SECOND}, {"others_ns": None, "others_error_ns": None, "others_share": None, "throttled_ns": None}, {"span_ns": 0, "others_ns": 0, "others_error_ns": 0}, {"throttled_ns": 0.19 * SECOND}):
    expect(f"nothing is said about {case}", loaded({"n": case}), unbound)
# A quota stops both ranks for half of the time. With threads, it stops more cores than there are ranks.
expect("quota", loaded({"n": {"throttled_ns": 10 * SECOND}}), ["A quota limits the control group of the job on host n: its processes were held back for 50% of the time of 2 cores during the run."])
expect("quota with threads", loaded({"n": {"throttled_ns": 30 * SECOND}}), ["held back for 30.000 s of processor time during the run."])
expect("both", loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None, "throttled_ns": 10 * SECOND}}), ["took 30% of the cores of host n during the run."], ["A quota limits"])
# Where a quota keeps cores from the ranks, nothing says that other processes use them.
expect("no core by a quota", loaded({"n": {"throttled_ns": 10 * SECOND}}, runnable=0.3), ["although it has a core for each of its 2 ranks."], ["A quota limits"])
expect("no core by others", loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None}}, runnable=0.3), ["its 2 ranks: other processes or threads use its cores."], ["Other processes took 30%"])
# The verdict has these sentences, and says that the rest describes the load.
verdict(loaded({"h": {"others_ns": 12 * SECOND, "throttled_ns": 10 * SECOND}}, part="verdict", crowded=True), ["Host h runs 4 ranks on 2 cores", "Other processes took 30%", "A quota limits", "partly those of other programs"])
print(f"{failures} failures")
sys.exit(bool(failures))
