# SPDX-License-Identifier: BSD-3-Clause
"""The report's sentences about the set-up, on profiles made for each finding and for its absence."""
import json
import os
import shlex
import subprocess

import pytest
from page.profiles import write_profile

COMMAND, GENERATE = shlex.split(os.environ.pop("LATECOMER_TEST"))
SECOND = 1e9
KINDS = {"standstill", "different_calls", "partial_data", "cores_taken", "binding", "slow_core", "imbalance", "wait_at_start_or_end", "message_wait", "message_cycle", "files", "other_mpi", "transfer",
         "too_short", "no_problem"}


def run(*words):
    return subprocess.run([COMMAND, "report", *words], capture_output=True, text=True)


def process(rank, host, cores, host_cores, waiting="spin", computing=0.5, runnable=0.0, blocked=0.0, messages=0.0, other_mpi=0.0, wall=1.0, waits_for=None, **more):
    """`cores`: a list as in the profile. `more`: values that replace those of the process, where None removes one."""
    count = sum(int(part.split("-")[-1]) - int(part.split("-")[0]) + 1 for part in cores.split(","))
    times = {"wall_ns": wall, "computing_ns": computing, "runnable_ns": runnable, "blocked_ns": blocked, "kernel_ns": 0, "messages_ns": messages, "io_ns": 0,
             "other_mpi_ns": other_mpi, "collectives_ns": wall - computing - runnable - blocked - messages - other_mpi}
    its = {"rank": rank, "host": host, "cores": count, "host_cores": host_cores, "core_list": cores, "waiting": waiting, "faults": 0, "preempted": 0,
           "waits_for": None if waits_for is None else [{"rank": waits_for, "wait_ns": 0.9 * SECOND * messages}],
           **{key: SECOND * value for key, value in times.items()}, **more}
    return {key: value for key, value in its.items() if value is not None}


def ranks(count, host="h", first=0, **values):
    """`values`: each is one for all ranks, or a tuple with one for each."""
    of = lambda value, r: value[r] if isinstance(value, tuple) else value
    return [process(first + r, host, **{key: of(value, r) for key, value in {"cores": "0-1", "host_cores": 2, **values}.items()}) for r in range(count)]


def bound(count=4, host_cores=4, **values):
    return ranks(count, cores=tuple(map(str, range(count))), host_cores=host_cores, **values)


def interval(samples, wall_ns, computing_ns):
    return {"samples": samples, "wall_ns": wall_ns, "computing_ns": computing_ns, "collectives_ns": 0, "messages_ns": 0, "io_ns": 0, "kernel_ns": 0, "runnable_ns": 0, "blocked_ns": 0, "faults": 0, "preempted": 0}


def report(folder, processes, computing=(), samples=10, scale=1e4, site={}, job={}, **parts):
    """The answer about one site with 10 calls in 1 s. `computing`: mean time per rank before its calls, in units of `scale` ns. `site`, `job`, `parts`: values that replace those of the profile."""
    path = folder / "p.json"
    subprocess.run([GENERATE, str(len(processes)), "1", "10", path], check=True)
    profile = json.loads(path.read_text())
    profile.update(processes=processes, **parts)
    profile["job"].update(hosts=sorted({p["host"] for p in processes}), **job)
    for row in profile["rank_rows"][0] if computing else ():
        row["before"] = interval(samples, computing[row["rank"]] * scale, computing[row["rank"]] * scale)
    profile["sites"][0].update({key: value for key, value in site.items() if key != "ranks"})
    profile["rank_rows"][0] = site.get("ranks", profile["rank_rows"][0])
    path.write_text(json.dumps(profile))
    done = run("--json", path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    text = " ".join(run("--all", path).stdout.split())
    assert all(sentence in text for sentence in found["setup"]), (found["setup"], text)
    assert all(sentence.startswith("No rank is bound") or any(sentence in one["text"] for one in found["findings"]) for sentence in found["setup"]), found["findings"]
    assert set() < {one["id"] for one in found["findings"]} <= KINDS
    return found


def assert_sentences(found, wanted):
    """As many sentences as `wanted` has entries, and each holds the words of its entry."""
    assert len(found) == len(wanted), found
    assert [word for sentence, words in zip(found, wanted) for word in words if word not in sentence] == [], found


def assert_said(found, wanted, unwanted):
    """Some sentence holds each of `wanted`, and none holds any of `unwanted`."""
    said = lambda word: any(word in sentence for sentence in found)
    assert [word for word in wanted if not said(word)] == [word for word in unwanted if said(word)] == [], found


def cases(names, rows):
    return pytest.mark.parametrize(names, rows.values(), ids=rows.keys())


@cases("processes, wanted", {
    # Each of 4 ranks computes for 0.5 s of 1 s: with half a core each, its own work takes 1 s.
    "courteous": (ranks(4, waiting="courteous"), [["Host h runs 4 ranks on 2 cores", "give their core away", "at least 1.5 times as long by estimate"]]),
    # Time that a rank waited for a core does not come on top, and ranks asleep want no core.
    "busy cores": (ranks(4, waiting="courteous", computing=0.5, runnable=0.5), [["4 ranks on 2 cores, so ranks had no core for 50% of their time; waiting ranks give their core away."]]),
    "asleep": (ranks(4, waiting="courteous", computing=0.5, blocked=0.5), [["4 ranks on 2 cores, so ranks share cores; waiting ranks give their core away."]]),
    "not measured": (ranks(4, waiting="courteous", computing=0, wall=0), [["Host h runs 4 ranks on 2 cores", "share cores; waiting ranks give their core away."]]),
    "spins": (ranks(4), [["Host h runs 4 ranks on 2 cores", "keep their core", "policy key `waiting`"]]),
    "a part of the cores": (ranks(5, cores="0", host_cores=4), [["runs 5 ranks on 1 of its 4 cores", "A rank can compute for at most 20% of the time"]]),
    "an older profile": (ranks(4, core_list=None), [["Host h runs 4 ranks on 2 cores"]]),
    "the worse host is named": (ranks(4) + ranks(6, "i", 4), [["Host i runs 6 ranks on 2 cores", "as on 1 other host; waiting"]]),
    # Ranks that share cores while the host has enough.
    "one core for two": (ranks(2, cores="1"), [["Ranks 0, 1 share core 1 of host h, which has a core for each of its 2 ranks", "bind"], ["Waiting ranks keep their core"]]),
    "three on two cores, in masks that overlap": (ranks(4, cores=("0", "0-1", "1", "4-7"), host_cores=8), [["Ranks 0-2 share cores 0, 1 of host h"]]),
    "a chain that has a solution": (ranks(3, cores=("0-1", "0", "1-2"), host_cores=8), []),
    "bound well": (bound(2, 2), []),
    "unbound": (ranks(2), [["No rank is bound to a core"]]),
    "unbound, an older profile": (ranks(2, core_list=None), [["No rank is bound to a core"]]),
    "foreign load": (bound(2, 2, runnable=0.14), [["Ranks of host h were ready to run but had no core for 14% of their time, although it has a core for each of its 2 ranks"]]),
    "a little of it": (bound(2, 2, runnable=0.01), []),
})
def test_ranks_and_their_cores(tmp_path, processes, wanted):
    assert_sentences(report(tmp_path, processes)["setup"], wanted)


@cases("hosts, computing, more, wanted", {
    "slow host": ("aabbcc", [2000, 2000, 3100, 2900, 2100, 1900], {}, [["All 2 ranks of host b compute 1.5 times as long"]]),
    "one rank of it is not": ("aabbcc", [2000, 2000, 3100, 2100, 2100, 1900], {}, []),
    "within the differences of cores": ("aabbcc", [2000, 2000, 2150, 2150, 2000, 2000], {}, []),
    "too few samples": ("aabbcc", [2000, 2000, 3100, 2900, 2100, 1900], {"samples": 4}, []),
    "a small part of the run": ("aabbcc", [2000, 2000, 3100, 2900, 2100, 1900], {"scale": 100}, []),
    "one rank per host": ("abc", [2000, 4000, 2000], {}, []),
    "one host": ("aaaa", [2000, 4000, 2000, 2000], {}, []),
})
def test_one_host_is_slower_than_the_others(tmp_path, hosts, computing, more, wanted):
    processes = [process(r, host, str(r % 4), 8) for r, host in enumerate(hosts)]
    assert_sentences(report(tmp_path, processes, computing, **more)["setup"], wanted)


def loaded(hosts, processes=None, runnable=0.0, **job):
    """A job on hosts where something runs beside it. `hosts`: by name, values that replace those of an idle host of 4 cores in a run of 10 s."""
    idle = {"ranks": 2, "cores": 4, "usable_cores": 4, "span_ns": 10 * SECOND, "ranks_ns": 20 * SECOND, "others_ns": 0.0, "others_error_ns": SECOND / 3, "others_share": 0.0,
            "steal_ns": 0, "pressure_ns": 0, "throttled_ns": 0}
    return {"processes": processes or [process(2 * i + r, name, "0-3", 4, runnable=runnable) for i, name in enumerate(hosts) for r in range(2)],
            "job": job, "hosts": [{"host": name, "load": {**idle, **its}} for name, its in hosts.items()]}


# The error of the measurement is 0.33 s: of 40 s, others took 2.3 s for sure, or only 1.9 s.
@cases("changes, wanted", {
    "others": (loaded({"n": {"others_ns": 12.4 * SECOND, "pressure_ns": 4 * SECOND}}), [["Other processes took 31% of the cores of host n during the run (pressure: for 40% of that time, some process waited for a core)."]]),
    "others on two hosts": (loaded({"m": {"others_ns": 3 * SECOND}, "n": {"others_ns": 8 * SECOND, "pressure_ns": None, "usable_cores": 2}, "o": {"others_ns": 2.5 * SECOND}}),
                            [["Other processes took 20% of the cores of host n during the run, and more than 5.0% on 1 other host. The ranks there may use 2 of its 4 cores."]]),
    "others until a snapshot": (loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None}}, unfinished=1), [["took 30% of the cores of host n in the first 10.000 s of the run."]]),
    "a little of others": (loaded({"n": {"others_ns": 2.5 * SECOND}}), [["No rank is bound"]]),
    "not measured": (loaded({"n": {"others_ns": None, "others_error_ns": None, "others_share": None, "throttled_ns": None}}), [["No rank is bound"]]),
    "no time": (loaded({"n": {"span_ns": 0, "others_ns": 0, "others_error_ns": 0}}), [["No rank is bound"]]),
    "a little of a quota": (loaded({"n": {"throttled_ns": 0.19 * SECOND}}), [["No rank is bound"]]),
    # A quota stops both ranks for half of the time. With threads, it stops more cores than there are ranks.
    "quota": (loaded({"n": {"throttled_ns": 10 * SECOND}}), [["A quota limits the control group of the job on host n: its processes were held back for 50% of the time of 2 cores during the run."]]),
    "quota with threads": (loaded({"n": {"throttled_ns": 30 * SECOND}}), [["held back for 30.000 s of processor time during the run."]]),
    "both": (loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None, "throttled_ns": 10 * SECOND}}), [["took 30% of the cores of host n during the run."], ["A quota limits"]]),
    # Where a quota keeps cores from the ranks, nothing says that other processes use them.
    "no core by a quota": (loaded({"n": {"throttled_ns": 10 * SECOND}}, runnable=0.3), [["although it has a core for each of its 2 ranks."], ["A quota limits"]]),
    "no core by others": (loaded({"n": {"others_ns": 12 * SECOND, "pressure_ns": None}}, runnable=0.3), [["its 2 ranks: other processes or threads use its cores."], ["Other processes took 30%"]]),
})
def test_what_ran_beside_the_job(tmp_path, changes, wanted):
    assert_sentences(report(tmp_path, **changes)["setup"], wanted)


CHAIN = {"messages": (0.6, 0, 0.65, 0.7), "waits_for": (1, None, 1, 2)}
PIPELINE = {"computing": 0.2, "messages": (0.1, 0.1, 0.7, 0.1)}


@cases("processes, wanted, unwanted", {
    "no wait": (bound(), ["No wait takes 1% of the time."], ["lacks", "other MPI calls"]),
    "pipeline": (bound(**PIPELINE), ["Ranks wait for messages: 25% of the ranks' time. Rank 2 waits most, for 70% of its time."], []),
    "a small error": (bound(**PIPELINE, messages_error_ns=(None, None, int(0.08 * SECOND), None)), ["in messages 25% (+- 2.0%)", "Rank 2 waits most, for 70% of its time."], []),
    "a large error": (bound(**PIPELINE, messages_error_ns=(None, None, int(0.4 * SECOND), None)), [], ["Ranks wait for messages"]),
    "other MPI": (bound(other_mpi=(0, 0.1, 0.2, 0.3)), ["Ranks spend their time in other MPI calls, such as those that make communicators: 15% of the ranks' time."], ["wait for messages"]),
    "chain": (bound(computing=(0.25, 0.9, 0.3, 0.25), **CHAIN), ["Ranks wait for messages of rank 1: 49%", "Rank 3 waits most, for 70% of its time, mostly for rank 2, which waits for rank 1, which computes for 90% of the run, others for 27%."], []),
    "its end is in collectives": (bound(computing=(0.25, 0.3, 0.3, 0.25), **CHAIN), ["Ranks wait for messages: ", "mostly for rank 2, which waits for rank 1."], ["which is in collectives"]),
    "all wait as long as the others": (bound(computing=0.3, messages=(0.2, 0.2, 0.21, 0.2)), ["Ranks wait for messages: 20% of the ranks' time."], ["waits most"]),
    "all but one wait nearly as long as the mean": (bound(24, 24, computing=(*5 * [0.2], 0.9, *18 * [0.2]), messages=(*5 * [0.7], 0, *18 * [0.7])), ["Rank 0 waits most, for 70% of its time"], []),
    # The start and the end of the run are parts of it. Rank 3 came last to MPI_Finalize.
    "both ends": (ranks(4, init_ns=0.3 * SECOND, end_ns=(*3 * [0.7 * SECOND], 0.0)), ["Ranks wait in MPI_Finalize until rank 3 has come: 29% of the ranks' time.", "Ranks spend their time in MPI_Init: 16% of the ranks' time."], []),
    "a little of both ends": (ranks(4, init_ns=0.02 * SECOND, end_ns=0.01 * SECOND), [], ["Ranks spend their time in MPI_Init", "Ranks wait in MPI_Finalize"]),
})
def test_ranks_hardly_wait_in_collectives(tmp_path, processes, wanted, unwanted):
    assert_said(report(tmp_path, processes)["verdict"], wanted, unwanted)


@cases("changes, wanted, unwanted", {
    "records": ({"processes": bound(3), "site": {"patterns": 0, "waited_ns": 0}}, ["Waiting is not known for a part of the calls. For 100% of the calls, the record of some rank is missing."], ["too short", "No wait"]),
    "a rank": ({"processes": [p for p in bound() if p["rank"] != 1], "job": {"ranks": 4}}, ["The profile lacks rank 1. Arrivals count only where all ranks of a call are observed.", "preload"], ["too short", "No wait"]),
    # A profile that ends with snapshots cannot say that nothing is wrong.
    "the end": ({"processes": bound(), "job": {"unfinished": 4}}, ["until the last snapshots, after 1.000 s.", "Until then, no wait took 1% of the time.", "`latecomer run` keeps it of one that is killed"], ["No wait", "stood still"]),
    "an idle machine": (loaded({"h": {"others_ns": 12 * SECOND, "throttled_ns": 10 * SECOND}}, ranks(4)), ["Host h runs 4 ranks on 2 cores", "Other processes took 30%", "A quota limits", "partly those of other programs"], []),
})
def test_the_verdict_names_what_the_profile_lacks(tmp_path, changes, wanted, unwanted):
    assert_said(report(tmp_path, **changes)["verdict"], wanted, unwanted)


def test_few_arrivals_without_a_wait_say_nothing_about_the_other_calls(tmp_path):
    found = report(tmp_path, ranks(2), site={"calls": 10_000, "patterns": 10, "waited_ns": 0})["verdict"]
    assert_sentences(found[:2], [["in collectives (how much of it is waiting is not known)"], ["For 100% of the calls, the record of some rank is missing."]])


def stood(rank, inside="collective", call=5, **more):
    return {"rank": rank, "host": "h", "pid": 100 + rank, "state": "running", "inside": inside, "op": "allreduce", "call": call, "communicator": "0x1", "comm_size": 4, "root": None, "bytes": 8,
            "site": "0x5", "since_ns": 9000000000, "in_message": False, "message_ns": None, "watched_ns": 8000000000, **more}


@cases("rank_2, others, wanted, unwanted", {
    "one computes": ([stood(2, "outside", 4)], {}, ["The job stood still when last seen. Ranks 0, 1, 3 wait in allreduce of 8 B at solve (solve.c:7) (call 5 on MPI_COMM_WORLD) for 9.000 s, for rank 2, which computes, outside collectives for 9.000 s, after"],
                     ["is not known", "`latecomer run`"]),
    "one has ended": ([stood(2, "outside", 4, state="gone")], {}, ["Rank 2 is gone: process 102 has ended."], []),
    "one is not seen": ([], {}, ["3 of 4 ranks stood still when last seen.", "Where rank 2 was is not known: that takes `latecomer relay` on every host."], []),
    "one comes": ([stood(2, watched_ns=100)], {}, ["3 of 4 ranks stood still when last seen. All 4 ranks of MPI_COMM_WORLD are in allreduce"], ["for rank 2"]),
    "all move": ([stood(2, "outside", 4, watched_ns=100)], {"watched_ns": 100}, ["Until then"], ["stood still", "wait in allreduce"]),
    "nobody looked twice": ([], {"watched_ns": None, "since_ns": None, "state": "?"}, ["Not known: whether the job stood still when it ended: `latecomer run`"], ["stood still when last seen", "wait in allreduce"]),
})
def test_the_job_stood_still(tmp_path, rank_2, others, wanted, unwanted):
    place = {"site": "0x5", "frames": [{"module": "/bin/solve", "build_id": "", "offset": "0x10", "function": "solve", "file": "solve.c", "line": 7}]}
    states = [stood(0, **others), stood(1, **others), *rank_2, stood(3, **others)]
    assert_said(report(tmp_path, bound(), job={"unfinished": 4}, last_state={"states": states, "places": [place]})["verdict"], wanted, unwanted)


def row(rank, offset_ns, awaited_ns):
    """A rank of four, of which rank 3 comes last in each of 10 calls."""
    last = rank == 3
    return {"rank": rank, "mean_offset_ns": offset_ns * last, "stddev_ns": 0, "last_count": 10 * last, "waited_ns": awaited_ns / 3 * (not last), "awaited_ns": awaited_ns * last,
            "histogram": {"unit": "ns", "scale": "log", "edges": [], "counts": [], "mean": 0, "p50": 0, "p90": 0, "p99": 0, "max": 0}}


def late(processes=None, samples=10, base=0, team=0, **parts):
    """Rank 3 is 20 ms late in each of ten calls in a second. `parts`: its times before a call, less `base` ns. `team`: the time of each rank's threads. Without a record of arrivals, no gain is said."""
    rows = [{**row(r, 2e7, 0.6e9), "before": {**interval(samples, 1e7 + 2e7 * (r == 3), 1e7), "threads_ns": team, **{key: value + base for key, value in parts.items() if r == 3}}} for r in range(4)]
    return {"processes": processes or bound(), "site": {"waited_ns": 0.6e9, "before": interval(40, 1.5e7, 1e7), "ranks": rows}}


def few(own, wall=1.0):
    """Two samples of ten calls say nothing. Rank 3 computes this much longer than the others in a second: 0.2 s is as long as they wait for it."""
    return late(bound(computing=(*3 * [wall * 0.3], wall * 0.3 + own), wall=wall), samples=2, computing_ns=2e7)


def little(awaited_ns):
    """Of waits of half a per cent in all, nothing is said. 20 ms of lateness in 0.2 s per rank say that something is missing."""
    return {"processes": bound(), "site": {"waited_ns": 0.06e9, "ranks": [row(r, 2e6, awaited_ns) for r in range(4)]}}


@cases("changes, wanted, unwanted", {
    "sleep": (late(blocked_ns=2e7), ["Rank 3 is late: waits there take 15% of the ranks' time.", "last in 10 of 10 calls. It is asleep or stopped for 20.000 ms before a call, others for 0 ns (100% of its lateness).",
                                     "Not known: what less waiting would save. The profile holds no record of arrivals"], ["could save"]),
    "sleep and work": (late(blocked_ns=1.5e7, computing_ns=5e6), ["It is asleep or stopped for 15.000 ms before a call, others for 0 ns (75% of its lateness)."], []),
    "other MPI": (late(other_mpi_ns=2e7), ["It is in other MPI calls, such as those that make communicators for 20.000 ms before a call, others for 0 ns (100% of its lateness)"], ["wait for messages"]),
    # It sleeps while other threads of its process compute or are in MPI. Their work can only move.
    "its threads": (late(blocked_ns=2e7, threads_ns=1.1e7), ["It waits for its own threads (100% of its lateness)"], ["is asleep"]),
    "its threads in MPI": (late(blocked_ns=2e7, threads_ns=1.1e7, threads_in_mpi_ns=1.1e7), ["It waits for its own threads, which are in MPI calls (100% of its lateness)"], ["is asleep"]),
    "its threads for less than half": (late(blocked_ns=2e7, threads_ns=9e6, threads_in_mpi_ns=9e6), ["is asleep or stopped"], ["own threads"]),
    "all ranks have threads that compute": (late(blocked_ns=2e7, team=9e7), ["is asleep or stopped"], ["own threads"]),
    "work": (late(computing_ns=2e7, base=1e7), ["It computes for 30.000 ms before a call, others for 10.000 ms"], []),
    "no part": (late(computing_ns=3e5, base=1e7), ["Not known: no part of the intervals before these calls explains it."], []),
    "work in the run": (few(0.2), ["It computes for 50% of the run, others for 30%."], ["not known:"]),
    "too little work in the run": (few(0.1), ["Not known: too few intervals before these calls were sampled, and a longer run samples more."], ["of the run,"]),
    "without parts of the run": (few(0, wall=0), ["Not known: the policy key `causes` is off, or the kernel has no /proc/self/schedstat."], ["of the run,"]),
    # The intervals are equal. That all of them are is known only if all were sampled.
    "equal intervals": (late(wall_ns=1e7), ["Not known: all intervals before these calls were sampled, and they are hardly longer than those of the others."], ["earlier"]),
    "equal intervals in a sample": (late(wall_ns=1e7, samples=8), ["Not known: the sampled intervals before these calls are hardly longer than those of the others."], ["earlier"]),
    "no core in the run": (late(bound(computing=0.3, runnable=(0, 0, 0, 0.2)), wall_ns=1e7, samples=8), ["It is ready to run but has no core for 20% of the run, others for 0.0%."], []),
    "a little": (little(0.06e9), ["Not known: too few intervals before these calls were sampled, and a longer run samples more."], []),
    "less": (little(0.037e9), ["Rank 3 is late: waits there take 1.5% of the ranks' time."], []),
    # The last rank leaves late: all ranks together still spend no more than their time in collectives.
    "the last rank leaves": ({"processes": bound(), "site": {"waited_ns": 0, "dispatch": {"native": {"calls": 10, "mean_after_last_ns": 0.9e9, "mean_elapsed_ns": 0.9e9, "predicted_ns": None, "reason": ""}}}},
                             [", in collectives 50%", "No wait takes 1% of the time."], ["900%", "could be faster"]),
})
def test_a_rank_is_late(tmp_path, changes, wanted, unwanted):
    assert_said(report(tmp_path, **changes)["verdict"], wanted, unwanted)


def test_a_caller_without_samples_has_the_cause_of_its_site(tmp_path):
    write_profile(tmp_path / "p.json", 4, sites=6)
    done = run("--json", tmp_path / "p.json")
    assert done.returncode == 0, done.stderr
    assert_said(json.loads(done.stdout)["verdict"], ["called from residual (time.cpp:10), last in 375 of 375 calls", "Rank 1 is late", "It computes for"], ["of the run,", "not known: too few", "Not known: too few"])
