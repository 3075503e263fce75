# SPDX-License-Identifier: BSD-3-Clause
"""`latecomer who` names the ranks and the places of seeded hangs."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

from common import a, check, finish, folder, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from processes import end_tree

# What a finding must say. {line}: a line of hang.c.
HANGS = {
    "missing": ["Ranks 0, 1, 3 wait in allreduce", "call 5 on MPI_COMM_WORLD", "for rank 2, which is asleep, outside collectives", "after allreduce", "call 4"],
    "loop": ["Ranks 0, 1, 3 wait in allreduce", "for rank 2, which computes, outside collectives"],
    "syscall": ["Ranks 0, 1, 3 wait in allreduce", "for rank 2, which is asleep, outside collectives"],
    # MPICH's launcher ends the other ranks, too.
    "killed": ["The job is over", "Ranks 0, 1, 3 wait in allreduce", "for rank 2, which is gone, outside collectives"],
    "collectives": ["The program makes different calls as call 5 on MPI_COMM_WORLD", "rank 2 barrier at main (hang.c:", "ranks 0, 1, 3 allreduce of 4 B at main (hang.c:"],
    "roots": ["The program makes different calls as call 5 on MPI_COMM_WORLD", "rank 2 bcast to or from root 2", "ranks 0, 1, 3 bcast to or from root 1"],
    "order": ["Ranks 0, 1 wait in barrier", "Ranks 2, 3 wait in barrier", "rank 2, which", "in barrier at main (hang.c:"],
    "messages": ["Ranks 2, 3 wait in allreduce", "for rank 0, which", "in MPI_Recv at main (hang.c:35) with rank 1 and tag 0", "and for rank 1, which", "with rank 0 and tag 0"],
    "others": ["Ranks 0, 1, 3 wait in allreduce", "for rank 2, which", "in MPI_Comm_dup at main (hang.c:"],
    "polls": ["Ranks 2, 3 wait in allreduce", "for rank 0, which", "and for rank 1, which", "in MPI_Iprobe at main (hang.c:"],
}


def look(way, calls, wanted):
    """Starts the program, waits for findings, ends it. Returns the findings and the table."""
    profile = folder / f"{way}{calls}.json"
    job = subprocess.Popen([a.cli, "run", "--output", profile, "--overwrite", "--", "-n", "4", pathlib.Path(a.bin) / "hang", way, str(calls)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline, text = time.time() + patience * 60, ""
        while time.time() < deadline:
            answer = run(a.cli, "who", "--json", "--seconds", "0.5", profile)
            text = " ".join(json.loads(answer.stdout)["findings"]) if answer.returncode in (0, 1) and answer.stdout else answer.stderr
            if all(w in text for w in wanted):
                break
        table = run(a.cli, "who", "--seconds", "0.2", profile)
    finally:
        end_tree(job)
    return text, answer, table


def live_files(profile):
    """The contents of the complete files of a job. Other jobs may begin and end meanwhile."""
    found = []
    for file in pathlib.Path("/dev/shm").glob("latecomer-live-*"):
        try:
            found.append(file.read_bytes())
        except FileNotFoundError:
            continue
    return [data for data in found if data.startswith(b"latecomer live\0") and str(profile).encode() + b"\0" in data]


for way, wanted in HANGS.items():
    text, answer, table = look(way, 5, wanted)
    check(answer.returncode == 1, f"{way}: exit status {answer.returncode}, expected 1")
    check(all(w in text for w in wanted), f"{way}: {text}")
    check("hang.c" in table.stdout and table.stdout.count("\n") >= 6, f"{way}: the table shows every rank: {table.stdout[-600:] if 'hang.c' not in table.stdout else ''}")
# The files of the killed job stay when other jobs start, so that somebody can look.
run(a.cli, "run", "--output", folder / "other.json", "--", "-n", "2", pathlib.Path(a.bin) / "hang", "none", "5")
answer = run(a.cli, "who", folder / "killed5.json")
check(answer.returncode == 1 and all(w in answer.stdout for w in HANGS["killed"]), f"killed, and another job has started since: {answer.stdout[:300]} {answer.stderr}")
# In an idle epoch calls are only counted. The number of the call is known all the same.
text, answer, _ = look("missing", 3000, ["call 3000 on MPI_COMM_WORLD", "for rank 2"])
check("Ranks 0, 1, 3 wait in allreduce" in text and "call 3000 on MPI_COMM_WORLD" in text, f"missing in an idle epoch: {text}")

# A job that moves, a job that is over, and no shared memory.
profile = folder / "moves.json"
job = subprocess.Popen([a.cli, "run", "--output", profile, "--overwrite", "--", "-n", "4", pathlib.Path(a.bin) / "hang", "none", "100000000"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
try:
    deadline = time.time() + patience * 60
    while time.time() < deadline:
        answer = run(a.cli, "who", profile)
        if answer.returncode == 0:
            break
    while time.time() < deadline:
        top = run(a.cli, "top", "--looks", "1", profile)
        if "wait, sum" in top.stdout:
            break
    check(top.returncode == 0 and "of the job are in its snapshots" in top.stdout and "hang.c:" in top.stdout and "load balance" in top.stdout and re.search(r"^ +[0-3] \S+ .*% +[1-9][0-9.]* (ns|us|ms|s) ", top.stdout, re.M), f"top of a job that moves: {top.stdout[-300:]} {top.stderr}")
    metrics = folder / "job.prom"
    top = run(a.cli, "top", "--looks", "1", "--prometheus", metrics, profile)
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    samples = [line for line in lines if not line.startswith("#")]
    check(top.returncode == 0 and top.stdout == "" and samples and all(re.fullmatch(r'latecomer_\w+\{\w+="[^"]*"(,\w+="[^"]*")*\} [-+.0-9e]+', s) for s in samples), f"the figures for Prometheus: {samples[:3]} {top.stdout[-200:]} {top.stderr}")
    check(any(s.startswith("latecomer_site_waited_seconds_total{") and "hang.c:" in s for s in samples) and any('rank="3"' in s for s in samples), "they name call sites and ranks")
    report = run(a.cli, "report", profile)
    check(report.returncode == 2 and "No such file" in report.stderr and "its job is still running: latecomer top" in report.stderr, f"the report of a running job: {report.stderr}")
    check(answer.returncode == 0 and "No rank stood still" in answer.stdout and "(moves)" in answer.stdout, f"a job that moves: {answer.stdout[:300]} {answer.stderr}")
finally:
    end_tree(job)
report = run(a.cli, "report", profile)
check(report.returncode == 2 and "its job has left snapshots: if it has ended, latecomer recover" in report.stderr, f"the report of a killed job: {report.stderr}")
run(a.cli, "run", "--output", profile, "--overwrite", "--", "-n", "2", pathlib.Path(a.bin) / "hang", "none", "5")
top = run(a.cli, "top", profile)
check(top.returncode == 0 and "The job has ended" in top.stdout, f"top of a job that is over: {top.stdout[-300:]} {top.stderr}")
answer = run(a.cli, "who", profile)
check(answer.returncode == 2 and "is visible on this host" in answer.stderr, f"a job that is over: {answer.returncode} {answer.stderr}")
run(a.cli, "run", "--output", profile, "--overwrite", "--", "-n", "2", pathlib.Path(a.bin) / "hang", "none", "5")
check(not live_files(profile), "a job removes its files")

# Other users can put files into /dev/shm. Here it is another one, so that no other command sees them.
LIVE = "/dev/shm/latecomer-live-"


def planted(make, *words):
    """Words that run a command with a /dev/shm in which the shell commands `make` have put files."""
    return [*private, "sh", "-ec", f"mount -t tmpfs memory /dev/shm; {make}; exec \"$@\"", "sh", *map(str, words)]


# A real file of a process that has ended since. Rank and ranks follow the magic and the version.
job = subprocess.Popen([a.cli, "run", "--output", folder / "planted.json", "--", "-n", "2", pathlib.Path(a.bin) / "hang", "none", "100000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
real = b""
try:
    while job.poll() is None and not real:
        seen = run(a.cli, "who", "--json", "--seconds", "0.1", folder / "planted.json").stdout
        if seen and len(json.loads(seen)["ranks"]) == 2:  # their files are complete
            real = next(iter(live_files(folder / "planted.json")), b"")
finally:
    end_tree(job)
output = str(folder / "planted.json").encode()


def live_file(rank, ranks, more=0):
    path = folder / f"live-{rank}-{ranks}-{more}"
    data = real[:20] + struct.pack("=ii", rank, ranks) + real[28:].replace(output, b"/planted/job.json".ljust(len(output), b"\0"))
    path.write_bytes((data + b"\0" * max(more, 0))[:len(real) + more])
    return path


private = next((words for words in (["unshare", "-m"], ["unshare", "-rm"]) if run(*words, "mount", "-t", "tmpfs", "memory", "/dev/shm").returncode == 0), None)
if private:
    good = live_file(1, 2)
    who = a.cli, "who", "--seconds", "0.1", "/planted/job.json"
    answer = run(*planted(f"cp {good} {LIVE}5", *who))
    check(answer.returncode == 1 and "The job is over" in answer.stdout and "R" in answer.stdout, f"a file of this layout is read: {answer.returncode} {answer.stdout} {answer.stderr}")
    cases = {"a pipe": f"mkfifo {LIVE}5", "a link": f"ln -s {good} {LIVE}5", "a rank beyond the ranks": f"cp {live_file(2, 2)} {LIVE}5", "no ranks": f"cp {live_file(0, 0)} {LIVE}5",
             "ranks that no job has": f"cp {live_file(1, 2 ** 31 - 1)} {LIVE}5", "too large": f"cp {live_file(1, 2, 1)} {LIVE}5", "too small": f"cp {live_file(1, 2, -1)} {LIVE}5"}
    if os.geteuid() == 0:
        cases["a file of another user"] = f"cp {good} {LIVE}5; chown 65534 {LIVE}5"
    for name, make in cases.items():
        answer = run(*planted(make, *who), timeout=60)
        check(answer.returncode == 2 and "no process of" in answer.stderr, f"who: {name}: {answer.returncode} {answer.stdout} {answer.stderr}")
    for number in (signal.SIGTERM, signal.SIGINT):
        relay = subprocess.Popen(planted(f"mkfifo {LIVE}5", a.cli, "relay", "--wait", "3600", "/planted/job.json"), stderr=subprocess.PIPE, text=True)
        try:
            while pathlib.Path(f"/proc/{relay.pid}/comm").read_text() != "latecomer\n" and relay.poll() is None:
                time.sleep(0.05)
            time.sleep(0.5)
            relay.send_signal(number)
            check(relay.wait(patience * 60) in (0, -number), f"relay beside a pipe ends on {number.name}: {relay.returncode}")
        except subprocess.TimeoutExpired:
            check(False, f"relay beside a pipe ends on {number.name}")
        finally:
            end_tree(relay)
else:
    print("skipped planted files: this machine does not allow mount namespaces")
finish()
