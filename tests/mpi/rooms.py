# SPDX-License-Identifier: BSD-3-Clause
"""The roll call in shared memory: the requests to the process manager, counted with and without it, and the ways in which
the ranks of a host do not find each other. Then each of them is a room of one, and they are together all the same."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import threading
import time

from common import RANK, a, built, check, finish, folder, open_mpi, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from hosts import Hosts
from processes import end_tree

service = built("name_service")
support = "" if open_mpi else f":{a.support}"
program = [a.bin + "/meet"]
alone = ["env", "-u", "MPI_LOCALNRANKS", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"]  # the ranks know nothing of their host

# Several hosts on one machine: Hydra starts this instead of ssh, once per name of a host.
local = folder / "here"
local.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec sh -c "$*"\n')
local.chmod(0o755)


def rooms():
    return sorted(p.name for p in pathlib.Path("/dev/shm").glob("latecomer-room-*"))


def words(name, ranks, *command, hosts=(), preload=a.library):
    """Words that start a job whose requests are counted in the folder `name`."""
    counts = folder / name
    counts.mkdir(exist_ok=True)
    environment = {"LD_PRELOAD": f"{preload}{support}:{service}", "NAME_SERVICE": "counts", "NAME_SERVICE_COUNTS": counts, "LATECOMER_OUTPUT": folder / f"{name}.json", "LATECOMER_VERBOSE": 2,
                   "LATECOMER_POLICY": policy}
    given = [w for key, value in environment.items() for w in (("-x", f"{key}={value}") if open_mpi else ("-genv", key, value))]
    where = ["-launcher", "ssh", "-launcher-exec", local, "-hosts", ",".join(f"127.0.0.{h + 1}:{n}" for h, n in enumerate(hosts))] if hosts else []
    return [*map(str, (a.mpiexec, *where, *given, "-n", ranks, *command))]


def counted(name):
    return {int(f.name): int(f.read_text()) for f in (folder / name).iterdir()}


def job(name, ranks, *command, **how):
    done = run(*words(name, ranks, *(command or program), **how), timeout=300)
    together = f"{ranks} ranks, together" in done.stderr
    check(done.returncode == 0 and "right" in done.stdout and together and "warning" not in done.stderr, f"{name}: together: {done.returncode} {done.stdout[-200:]} {done.stderr[-400:]}")
    return done, counted(name)


policy = folder / "policy.json"


def roll_call_takes(seconds):
    policy.write_text(json.dumps({"version": 1, "roll_call_timeout_s": seconds}))


roll_call_takes(40)
before = rooms()

# The requests per rank and in all. A rank that does not speak for its host makes none.
print("ranks hosts | each rank alone: in all, most of a rank | by hosts: in all, most of a rank, of a rank that does not speak")
for ranks, hosts in ((4, 1), (16, 1), (64, 1), (16, 2), (4, 4), (16, 4)):
    if open_mpi and hosts > 1:
        continue
    placement = [ranks // hosts] * hosts if hosts > 1 else ()
    done, single = job(f"alone{ranks}_{hosts}", ranks, *alone, *program, hosts=placement)
    check(f"met in {ranks} rooms" in done.stderr, f"{ranks} ranks on {hosts} hosts, each alone: {done.stderr[-300:]}")
    done, requests = job(f"rooms{ranks}_{hosts}", ranks, hosts=placement)
    speakers = {} if hosts == 1 else {r: requests.pop(r, 0) for r in range(0, ranks, ranks // hosts)}
    rest = sum(requests.values())
    print(f"{ranks:5} {hosts:5} | {sum(single.values()):6} {max(single.values()):6} | {sum(speakers.values()) + rest:6} {max(speakers.values(), default=0):6} {rest:6}")
    check(f"met in {hosts} room" in done.stderr and rest == 0, f"{ranks} ranks on {hosts} hosts meet in rooms: {requests}")
    check(len(single) == ranks and min(single.values()) >= 8, f"{ranks} ranks on {hosts} hosts: each rank alone asks: {single}")
    check(all(n >= 6 for n in speakers.values()), f"{ranks} ranks on {hosts} hosts: the ranks that speak: {speakers}")

# Uneven hosts, and hosts that take turns.
if not open_mpi:
    job("uneven", 9, hosts=(1, 5, 3))
    done = job("turns", 12, hosts=(1, 1, 1))[0]
    check("met in 3 rooms" in done.stderr, f"hosts take turns: {done.stderr[-300:]}")
    done = job("irregular", 8, hosts=(1, 2, 1))[0]
    check("met in 3 rooms" in done.stderr, f"ranks of a room without a pattern: {done.stderr[-300:]}")

# Several jobs at once, of one size: each has its own room.
jobs = [subprocess.Popen(words(f"beside{i}", 6, *program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(4)]
for i, one in enumerate(jobs):
    out, err = one.communicate(timeout=patience * 300)
    check(one.returncode == 0 and "right" in out and "met in 1 room" in err, f"four jobs at once, job {i}: {one.returncode} {err[-300:]}")

# The ranks of a host are told wrong numbers of ranks. They meet in several rooms, or are alone after a quarter of the
# time-out.
roll_call_takes(20 * patience)
told = "OMPI_COMM_WORLD_LOCAL_SIZE" if open_mpi else "MPI_LOCALNRANKS"
for number in (1, 2, 3):
    done, requests = job(f"told{number}", 4, "env", f"{told}={number}", *program)
    check(("met in 4 rooms" in done.stderr if number == 1 else "met in 1 room" not in done.stderr) and requests, f"each rank is told that {number} of 4 are here: {requests}")
done, requests = job("told_apart", 4, "sh", "-c", f'test "${RANK}" = 2 && export {told}=3; exec "$@"', "sh", *program)
check("met in 4 rooms" in done.stderr and len(requests) == 4, f"one rank is told another number: each alone: {requests}")
done = run(*words("told_more", 4, "env", f"{told}=5", *program))
check(done.returncode == 0 and "4 ranks, together" in done.stderr and len(counted("told_more")) == 4, f"a number that is too large is none: {done.stderr[-300:]}")

# A rank comes late: after the room has been given up, in time for the verdict.
late = ["sh", "-c", f'test "${RANK}" = 1 && export NAME_SERVICE_LATE=%d; exec "$@"' % (7 * patience), "sh"]
done, requests = job("late", 3, *late, *program)
check("met in 3 rooms" in done.stderr and len(requests) == 3, f"a late rank: each alone: {requests}")

# Ranks cannot make a room, or one of them cannot enter it.
roll_call_takes(8 * patience)
on_rank = f'test "${RANK}" = %d && export %s; exec "$@"'
done, requests = job("full", 4, "env", "NAME_SERVICE_ROOM=full", *program)
check("met in 4 rooms" in done.stderr and len(requests) == 4, f"shared memory is full: each alone: {requests}")
done, requests = job("closed", 4, "sh", "-c", on_rank % (2, "NAME_SERVICE_ROOM=closed"), "sh", *program)
check("met in 4 rooms" in done.stderr and len(requests) == 4, f"one rank cannot enter: each alone: {requests}")
if not open_mpi:
    done, requests = job("mixed", 7, "sh", "-c", on_rank % (4, "NAME_SERVICE_ROOM=closed"), "sh", *program, hosts=(2, 3, 2))
    check("met in 5 rooms" in done.stderr and sorted(requests) == [0, 2, 3, 4, 5], f"one rank of one host cannot enter: its host alone: {requests}")

# Rank 0 comes after the time-out. It is named once, by rank 1 or, if it has met that, by itself.
roll_call_takes(2)
for name, first, hosts in (("late0", 1, ()), *((("late_host", 2, (2, 1)),) if not open_mpi else ())):
    done = run(*words(name, 3, "sh", "-c", f'test "${RANK}" -lt {first} && export NAME_SERVICE_LATE=5; exec "$@"', "sh", *program, hosts=hosts))
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    check(done.returncode == 0 and "right" in done.stdout and len(warnings) == 1 and "rank 0 is not preloaded" in warnings[0], f"{name}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")

# Ranks without the preload, on one host and on the second of two: the others notice it at the time-out and name them.


def without(*lacking):
    """The launcher gives the preload to all ranks: the shell of these takes it away."""
    return f'case "${RANK}" in {"|".join(map(str, lacking))}) export LD_PRELOAD={a.support if support else ""} ;; esac; exec "$@"'


for name, lacking, hosts in (("lacks", [2], ()), ("lacks_two", [1, 2], ()), *((("lacks_there", [2], (2, 2)),) if not open_mpi else ())):
    done = run(*words(name, 4, "sh", "-c", without(*lacking), "sh", *program, hosts=hosts))
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    named = len(warnings) == len(lacking) and all(f"rank {rank} is not preloaded" in line for rank, line in zip(lacking, warnings))
    check(done.returncode == 0 and "right" in done.stdout and named, f"{name}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")

# Another build of the library in one rank.
other = folder / "other"
other.mkdir()
libraries = pathlib.Path(a.library).parent
for file in libraries.glob("liblatecomer*.so"):
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", file, other / file.name], check=True)
second = f'test "${RANK}" = 2 && export LD_PRELOAD={other / pathlib.Path(a.library).name}{support}:{service}; exec "$@"'
done = run(*words("build", 4, "sh", "-c", second, "sh", *program))
warnings = [line for line in done.stderr.splitlines() if "warning" in line]
check(done.returncode == 0 and "right" in done.stdout and any("rank 2 is not preloaded with this build" in line for line in warnings), f"another build: {done.returncode} {done.stderr[-400:]}")

# The launcher is killed while ranks wait for one that does not come: nothing of the job is left, and the next job
# removes the room.
roll_call_takes(600)
waiting = subprocess.Popen(words("killed", 3, "sh", "-c", without(2), "sh", *program), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
deadline = time.time() + 30 * patience
while time.time() < deadline and rooms() == before:
    time.sleep(0.01)
check(end_tree(waiting), "a job that is killed in its room: all of it has ended")
for name in set(rooms()) - set(before):
    path = pathlib.Path("/dev/shm") / name
    check(stat.S_IMODE(path.stat().st_mode) == 0o600, f"a room is its user's: {name}")
    os.utime(path, (time.time() - 3600,) * 2)
roll_call_takes(40)
job("next", 3)
check(rooms() == before, f"no room is left: {rooms()}")

# Hosts that are network namespaces, each with its own shared memory.
hosts = Hosts("lcrooms", 0 if open_mpi else 2)
try:
    if hosts.able and not open_mpi:
        launch = hosts.launch(folder / "start", 3, own_memory=True)
        counts = folder / "far"
        counts.mkdir()
        far = [*hosts.inside, *launch[:-2], "-genv", "LD_PRELOAD", f"{a.library}{support}:{service}", *launch[-2:], *program]
        environment = {**hosts.environment_of_nodes, "NAME_SERVICE": "counts", "NAME_SERVICE_COUNTS": counts, "LATECOMER_OUTPUT": folder / "far.json", "LATECOMER_VERBOSE": "2", "LATECOMER_POLICY": policy}
        running = subprocess.Popen(list(map(str, far)), env={**os.environ, **{k: str(v) for k, v in environment.items()}}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        limit = threading.Timer(120 * patience, end_tree, [running])
        limit.start()
        said = []
        for line in running.stdout:
            said.append(line)
            if "profile written to" in line:
                break
        limit.cancel()
        end_tree(running)  # MPI_Finalize over TCP may hang, see run_until_profile()
        requests = counted("far")
        check(any("met in 2 rooms" in line for line in said) and sorted(requests) == [0, 3], f"two namespaces: {said[-5:]} {requests}")
    else:
        print("skipped two namespaces: this machine does not allow them")
finally:
    hosts.remove()
finish()
