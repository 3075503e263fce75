# SPDX-License-Identifier: BSD-3-Clause
"""Writes profiles of imaginary jobs for the tests and the pictures of the HTML page. One rank of each job is late, and
the other ranks drift slowly around each other. Usage: from profiles import write_profile"""
import json
import math
import random

HOSTILE = "</script><b id=injected>bold</b><!--"
LONG = ("fem::assembly::Assembler<fem::elements::Tetrahedron<double, 2>, std::vector<fem::Field<double>, std::allocator<fem::Field<double> > > >::"
        "reduce_residual(std::vector<fem::Field<double>, std::allocator<fem::Field<double> > > const&, fem::Norm)")
FUNCTIONS = ["cg_solve", "dot_product", LONG, "exchange_norms", HOSTILE, "time_step", "write_checkpoint", "balance_particles", "pressure_correction", "spectral_transform"]
FILES = ["solver.cpp", "vector.cpp", "assembler.hpp", "norms.f90", "odd & name.c", "main.cpp", "io.cpp", "particles.cpp", "pressure.f90", "fft.cpp"]
OPS = [("allreduce", 8), ("allreduce", 64), ("allreduce", 1 << 20), ("barrier", 0), ("bcast", 4096), ("alltoall", 65536), ("reduce", 800), ("allgather", 2048)]


def histogram(centre, count, rng):
    """Counts around a centre, in half octaves."""
    edges = [round(centre * 2 ** (k / 2), 1) for k in range(-5, 5)]
    weights = [math.exp(-((k - 4) / 2) ** 2) * rng.uniform(0.7, 1.3) for k in range(9)]
    counts = [int(count * w / sum(weights)) for w in weights]
    counts[4] += count - sum(counts)
    return {"unit": "ns", "scale": "log", "edges": edges, "counts": counts, "mean": centre, "p50": 0.9 * centre, "p90": 2 * centre, "p99": 3 * centre, "max": 4 * centre}


def intervals(wall, computing, blocked, samples):
    return {"samples": samples, "wall_ns": wall, "collectives_ns": 0, "messages_ns": 0.05 * wall, "io_ns": 0, "other_mpi_ns": 0, "computing_ns": computing, "kernel_ns": 0.01 * wall,
            "runnable_ns": 0, "blocked_ns": blocked, "faults": 3, "preempted": 1}


LARGE = 512  # ranks from which sites share the texts of their rows


def callers(number, wait, ranks, calls, late):
    """Two callers of the site: one waits nine times as long as the other, and has two callers of its own."""
    frame = lambda function, line: {"module": "/opt/simulate/bin/simulate", "build_id": "00", "offset": f"{number * 64 + line:#x}", "function": function, "file": "/home/user/simulate/src/time.cpp", "line": line}
    ways = [(["residual", "implicit_step"], 0.5, 0.6), (["residual", "explicit_step"], 0.25, 0.3), (["assemble"], 0.25, 0.1)]
    waited = 0.9 * wait * calls * (ranks - 1)
    return [{"frames": [frame(f, 10 * (k + 1)) for k, f in enumerate(frames)], "calls": round(part * calls), "rank_calls": round(part * calls) * ranks, "patterns": round(part * calls),
             "bytes": {"min": 8, "mean": 8, "max": 8}, "mean_imbalance_ns": wait, "mean_after_last_ns": 12e3, "waited_ns": share * waited,
             "awaited": [{"rank": late, "mean_offset_ns": wait, "last_count": round(part * calls), "waited_ns": 0, "awaited_ns": share * waited}]} for frames, part, share in ways]


def communicators(ranks, calls):
    """All ranks, rows of the ranks, and one group beyond the limit of the profile. One rank is left out."""
    half = ranks // 2
    row = lambda size, members, waited: {"comm_size": size, "members": members, "calls": calls, "waited_ns": waited, "imbalance_ns": waited / calls / max(1, size), "after_last_ns": 15e3}
    return [row(half, f"0-{half - 1}", 3e9), row(ranks, f"0-{ranks - 1}", 40e9), row(1, "0", 0), row(half, f"{half}-{ranks - 1}", 1e9), row(0, "", 5e8)]


def like(number, ranks):
    """The number of the site whose rows of ranks this site has."""
    return number if ranks <= LARGE or number < 25 else 25 + number % 3


def wait_of(number, ranks):
    """The mean time from the first to the last arrival, in nanoseconds."""
    number = like(number, ranks)
    return (4e6 if ranks <= LARGE else 2e6) / (1 + number * (1 if ranks <= LARGE or number < 25 else 150)) ** 0.8


def site(number, ranks, calls, rng, late):
    """One site, as text."""
    op, size = OPS[number % len(OPS)]
    wait = wait_of(number, ranks)
    name, file = FUNCTIONS[number % len(FUNCTIONS)], FILES[number % len(FILES)]
    if number >= len(FUNCTIONS):
        name = name + f"_{number}" if "<" not in name else name
    frames = [{"module": "/opt/simulate/bin/simulate", "build_id": "00", "offset": f"{number * 64:#x}", "function": f, "file": f"/home/user/simulate/src/{file}", "line": 100 + number + k}
              for k, f in enumerate([name, "advance(Mesh&, double)", "main"])]
    head = {"id": f"{number + 1:016x}", "frames": frames, "op": op, "comm_size": ranks, "calls": calls, "rank_calls": calls * ranks, "patterns": calls, "rested": 0,
            "bytes": {"min": size, "mean": size, "max": size}, "imbalance_ns": histogram(wait, calls, rng), "elapsed_ns": histogram(wait * 0.8, calls * ranks, rng),
            "after_last_ns": histogram(12e3 + size / 10, calls, rng), "imbalance_factor": None, "waited_ns": 0.9 * wait * calls * (ranks - 1),
            "before": intervals(8e6, 7e6, 0, 40 * ranks),
            "decisions": [{"bytes": size, "calls": calls, "rule_line": None, "reason": "no algorithm is expected to be faster", "predictor": "median", "spread_ns": int(wait), "error_ns": 1000,
                           "last_rank": late, "predicted_ns": None, "native_predicted_ns": None, "measured_ns": None, "native_measured_ns": 12000.0, "algorithm": "native"}] if number < 3 else [],
            "dispatch": {"native": {"calls": calls, "mean_elapsed_ns": wait * 0.8, "mean_after_last_ns": 12e3 + size / 10, "predicted_ns": None, "reason": "no rule in force"}}, "divergent_calls": 0}
    if number % 2 == 0:
        head["callers"] = callers(number, wait, ranks, calls, late)
    return json.dumps(head)


def rows_of(ranks, pool):
    """The rows of ranks as text. For large jobs, the same texts serve several sites."""
    def body(number, wait, late, calls, per_row):
        key = like(number, ranks)
        if key in pool:
            return pool[key]
        rng, out = random.Random(key), []
        for first in range(0, ranks, per_row):
            here = min(per_row, ranks - first)
            mine = first <= late < first + here
            offset = wait * (0.95 if mine else 0.05 + 0.04 * math.sin(first / ranks * 12 + key) + 0.03 * rng.random())
            row = {"rank": first, **({"ranks": here} if per_row > 1 else {}), "mean_offset_ns": round(offset), "stddev_ns": round(offset / 5), "last_count": calls if mine else 0,
                   "waited_ns": 0 if mine else round((wait - offset) * calls * here), "awaited_ns": round(0.9 * wait * calls * (ranks - 1)) if mine else 0}
            if ranks <= LARGE:
                row["before"] = intervals(8e6 + (wait if mine else 0), 7e6 + (0.9 * wait if mine else 0), 0, 40)
            row["histogram"] = {"unit": "ns", "scale": "log", "edges": [1, 2], "counts": [1], "mean": 1, "p50": 1, "p90": 1, "p99": 1, "max": 1}
            out.append(json.dumps(row, separators=(",", ":")))
        text = ",\n".join(out)
        pool[key] = text
        return text
    return body


def arrivals(ranks, sites, events, late, window_ns=1_000_000_000, stride=1):
    """The record of calls: rank `late` falls behind more and more, and a second rank is late for a while."""
    rng, out, now = random.Random(7), [], 0
    for e in range(events):
        now += int(rng.uniform(8e6, 12e6))
        number = e % sites
        wait = 4e6 / (1 + number) ** 0.8
        offsets = [int(wait * (0.08 + 0.05 * math.sin(r * 0.7 + e / 40)) * rng.random()) for r in range(ranks)]
        offsets[late] = int(wait * (0.5 + e / events) * rng.uniform(0.9, 1.1))
        if events // 3 < e < events // 2:
            offsets[(late + 1) % ranks] = int(wait * rng.uniform(0.8, 1.2))
        first = min(offsets)
        times = [now + o - first for o in offsets]
        done = max(times) + 20000
        out.append({"site": f"{number + 1:016x}", "group": 0, "algorithm": "native", "bytes": 8, "root": -1, "arrival_ns": times, "exit_ns": [done + rng.randrange(5000) for _ in times]})
    origin = min(out[0]["arrival_ns"])
    for e in out:
        e["arrival_ns"], e["exit_ns"] = [t - origin for t in e["arrival_ns"]], [t - origin for t in e["exit_ns"]]
    return {"window_ns": window_ns, "stride": stride, "calls": events * stride, "calls_kept": events, "groups": [list(range(ranks))], "events": out}


def write_profile(path, ranks, sites, calls=500, record=0):
    """Writes a profile of `ranks` and `sites`; `record`: calls in the record of arrivals, 0 for none."""
    rng, late, per_row = random.Random(ranks), ranks // 3, -(-ranks // 4096)
    per_host = 2 if ranks <= 8 else 16 if ranks <= 64 else 128
    hosts = [f"node{h:03}" for h in range(-(-ranks // per_host))]
    wall = 60e9
    processes = []
    for r in range(ranks):
        collectives = wall * (0.04 if r == late else 0.25 + 0.05 * rng.random())
        parts = {"collectives_ns": collectives, "messages_ns": 0.08 * wall, "io_ns": 0.01 * wall, "other_mpi_ns": 0.015 * wall, "kernel_ns": 0.02 * wall, "runnable_ns": 0.005 * wall, "blocked_ns": 0.01 * wall}
        processes.append({"rank": r, "host": hosts[r // per_host], "cores": 1, "host_cores": per_host, "waiting": "spin", "wall_ns": wall, "init_ns": 0.01 * wall, "end_ns": 0.02 * wall, **parts,
                          "computing_ns": wall - sum(parts.values()), "faults": 1000, "preempted": 20})
    head = {"format": "latecomer-profile", "version": 2, "job_key": "0123456789abcdef",
            "job": {"program": "/opt/simulate/bin/simulate", "command_line": "simulate --mesh wing.msh --steps 500 --title '<b>&amp; wing</b>'", "ranks": ranks, "hosts": hosts, "start": "2026-01-01T00:00:00Z",
                    "wall_time_s": wall / 1e9, "mpi_library": "MPICH Version: 4.0.2", "mode": "observe", "network": None, "edges": None},
            "clock": [{"rank": r, "host": hosts[r // per_host], "offset_ns": 0, "uncertainty_ns": 0, "looks": 0} for r in range(ranks)], "processes": processes, "communicators": communicators(ranks, calls)}
    tail = {"plans": [], "warnings": ["recovered: 1 ranks did not finish, the first of them rank 0; the profile holds only what they wrote before the end"] +
            ([f"ranks are grouped by {per_row}: the job has more than 4096"] if per_row > 1 else [])}
    if record:
        tail["arrivals"] = arrivals(ranks, min(sites, 4), record, late, stride=1 if ranks < 1000 else 4)
    body = rows_of(ranks, {})
    with open(path, "w") as out:
        out.write(json.dumps(head)[:-1] + ',\n"sites": [')
        out.write(",".join("\n" + site(number, ranks, calls, rng, late) for number in range(sites)))
        out.write("],\n" + json.dumps(tail)[1:-1] + ',\n"rank_rows": [')
        for number in range(sites):
            out.write(("," if number else "") + "\n[" + body(number, wait_of(number, ranks), late, calls, per_row) + "]")
        out.write("\n]}\n")
