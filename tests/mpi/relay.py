# SPDX-License-Identifier: BSD-3-Clause
"""`latecomer relay` shows the ranks of a host to `latecomer who` on another one. The hosts are namespaces with a network, a
name and a /dev/shm of their own. Without the right to create them, only the part on one host runs."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from common import RANK, a, check, finish, folder, open_mpi, patience, run

sys.path.append(a.root + "/tests/support")
from hosts import Hosts
from processes import children, end_tree

hang = pathlib.Path(a.bin) / "hang"
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def until(condition, seconds=60):
    deadline = time.time() + patience * seconds
    while not (good := condition()) and time.time() < deadline:
        time.sleep(0.1)
    return good


# One host: the relay waits for the job, and ends with it.
profile, parts = folder / "ends.json", folder / "ends.json.parts"
relay = subprocess.Popen([a.cli, "relay", "--seconds", "0.1", profile], **quiet)
# The copy lies beside the snapshots, and does not keep the ranks from using the folder. The job sleeps for 0.8 s at least.
ran = run(a.cli, "run", "--output", profile, "--overwrite", "--", "-n", 2, pathlib.Path(a.bin) / "causes", "sleep", 1, 100, 8)
check(ran.returncode == 0 and "cannot use" not in ran.stderr, f"a job beside a relay: {ran.stderr[-300:]}")
check(until(lambda: relay.poll() is not None) and relay.returncode == 0, f"the relay ends with the job: {relay.returncode}")
end_tree(relay)
check(until(lambda: not parts.exists(), 5), f"it removes its copy and the folder: {list(parts.glob('*')) if parts.exists() else ''}")
nothing = run(a.cli, "relay", "--wait", 0, profile)
check(nothing.returncode == 2 and "no process of" in nothing.stderr, f"no job to relay: {nothing.returncode} {nothing.stderr}")

hosts = Hosts("lcrelay", 2)
if not hosts.able:
    hosts.remove()
    print("skipped: this machine does not allow network namespaces")
    finish()


class Job:
    """A hang on two hosts with two ranks each, ranks 2 and 3 on host1."""

    def __init__(self, way):
        self.profile = folder / f"{way}.json"
        words = [*hosts.inside, a.cli, "run", "--output", self.profile, "--overwrite", "--", *hosts.launch(folder / "start", 2, own_memory=True, open_mpi=open_mpi), hang, way, "40"]
        self.job = subprocess.Popen(list(map(str, words)), env=dict(os.environ, LD_PRELOAD=a.support, **hosts.environment_of_nodes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.relays = {}
        self.ranks = {}
        until(self.find)

    def find(self):
        """The processes of the program, by host."""
        ahead, self.ranks = [self.job.pid], {}
        while ahead:
            pid = ahead.pop()
            ahead += children(pid)
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "hang\n":
                    number = next(v for v in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if v.startswith(RANK.encode() + b"="))
                    self.ranks.setdefault(int(number.split(b"=")[1]) // 2, []).append(pid)
            except (OSError, StopIteration):
                continue
        return {host: len(pids) for host, pids in self.ranks.items()} == {0: 2, 1: 2}

    def on(self, host, *words):
        return ["nsenter", "-t", str(self.ranks[host][0]), "-r", "-m", "-u", "--", *map(str, words)]

    def relay(self, host):
        self.relays[host] = subprocess.Popen(self.on(host, a.cli, "relay", self.profile), **quiet)

    def who(self, host=None):
        """What `who` says on a host; None: outside of both, where no process of the job is visible."""
        words = [a.cli, "who", "--json", "--seconds", "0.5", self.profile]
        answer = run(*(words if host is None else self.on(host, *words)))
        found = json.loads(answer.stdout) if answer.stdout else {"findings": [], "limits": [], "ranks": []}
        return answer.returncode, " ".join(found["findings"]), " ".join(found["limits"]), found["ranks"], answer.stderr

    def who_says(self, host, condition):
        last = [None]

        def good():
            last[0] = self.who(host)
            return condition(*last[0][:4])
        until(good)
        return last[0]

    def end(self):
        for relay in self.relays.values():
            end_tree(relay)
        end_tree(self.job)


try:
    job = Job("missing")
    try:
        code, findings, limits, ranks, error = job.who_says(0, lambda code, f, l, r: "Ranks 0, 1 wait in allreduce" in f and "host1" in l)
        check(code == 1 and "Ranks 0, 1 wait in allreduce" in findings and "2 members that have not entered it and are not visible here" in findings, f"without a relay, host0 knows its own ranks: {findings} {error}")
        check("Ranks 2, 3 of host1 are not visible here" in limits and f"latecomer relay {job.profile}" in limits and "srun --overlap" in limits, f"and says what shows the others: {limits}")
        check([r["rank"] for r in ranks] == [0, 1], f"it shows two ranks: {[r['rank'] for r in ranks]}")
        code, *_, error = job.who()
        check(code == 2 and "no process of" in error, f"outside of the hosts nothing is visible: {error}")

        job.relay(0), job.relay(1)
        for host in (0, 1, None):
            code, findings, limits, ranks, error = job.who_says(host, lambda code, f, l, r: "Ranks 0, 1, 3 wait" in f and "which is asleep" in f and not l)
            where = "outside" if host is None else f"on host{host}"
            check(code == 1 and "Ranks 0, 1, 3 wait in allreduce of 4 B at main (hang.c:" in findings and "(call 40 on MPI_COMM_WORLD)" in findings and
                  "for rank 2 on host1, which is asleep, outside collectives" in findings and "after allreduce of 4 B at main (hang.c:" in findings, f"with relays, {where}: {findings} {error}")
            check(limits == "" and [(r["rank"], r["host"]) for r in ranks] == [(0, "host0"), (1, "host0"), (2, "host1"), (3, "host1")], f"all ranks are visible {where}: {limits}")
            copied = [r["rank"] for r in ranks if r["copy_age_s"] is not None]
            check(copied == {0: [2, 3], 1: [0, 1], None: [0, 1, 2, 3]}[host], f"copies are of the other hosts only, {where}: {copied}")
        once = run(*job.on(0, a.cli, "top", "--once", job.profile))
        check("Now: ranks 0, 1, 3 in allreduce at main (hang.c:" in once.stdout and "rank 2 outside collectives" in once.stdout and "not visible" not in once.stdout, f"top reads both: {once.stdout[:1500]} {once.stderr}")
        size = max(f.stat().st_size for f in pathlib.Path(f"{job.profile}.parts").glob("live-*.json"))
        check(size < 20000, f"a copy of two ranks takes {size} bytes")

        job.relays[0].send_signal(signal.SIGTERM)
        check(until(lambda: job.relays[0].poll() is not None) and job.relays[0].returncode == 0 and not pathlib.Path(f"{job.profile}.parts/live-host0.json").exists(), "SIGTERM ends a relay, which renews its copy no more")
        check(pathlib.Path(f"{job.profile}.parts/last-host0.json").exists(), "and keeps the last state, because the ranks stood still")
        for pid in job.ranks[1]:
            os.kill(pid, signal.SIGKILL)
        check(until(lambda: job.relays[1].poll() is not None) and job.relays[1].returncode == 0, "a relay ends when the ranks of its host were killed")
        code, findings, *_ = job.who()
        check(code == 1 and "have ended" in findings, f"and their last state stays: {findings}")
        done = run(a.cli, "recover", "-o", folder / "recovered.json", f"{job.profile}.parts")
        check(done.returncode == 0 and "last state of 4" in done.stdout, f"recover reads both: {done.stdout} {done.stderr}")
        verdict = json.loads(run(a.cli, "report", "--json", folder / "recovered.json").stdout)["verdict"]
        check(any(s.startswith("The job stood still when last seen. Ranks 0, 1, 3 wait in allreduce of 4 B at main (hang.c:") and "for rank 2 on host1, which is asleep" in s for s in verdict), f"and the report says it: {verdict}")
    finally:
        job.end()

    job = Job("collectives")
    try:
        job.relay(1)
        differ = "The program makes different calls as call 40 on MPI_COMM_WORLD"
        code, findings, *_ = job.who_says(0, lambda code, f, l, r: differ in f)
        check(differ in findings and "rank 2 barrier at main (hang.c:" in findings and "ranks 0, 1, 3 allreduce of 4 B" in findings, f"different calls on two hosts: {findings}")
        job.relays[1].send_signal(signal.SIGSTOP)
        code, findings, limits, ranks, error = job.who_says(0, lambda code, f, l, r: "not judged" in l)
        check(differ not in findings and "Ranks 0, 1 wait in allreduce" in findings and "for rank 2 on host1, which was last seen" in findings, f"an old state is not judged: {findings} {error}")
        check("The state of ranks 2, 3 on host1 is" in limits and "old and is not judged" in limits and [r["rank"] for r in ranks if r["stale"]] == [2, 3], f"and its age is said: {limits}")
        job.relays[1].send_signal(signal.SIGCONT)
        code, findings, *_ = job.who_says(0, lambda code, f, l, r: differ in f)
        check(differ in findings, f"the relay goes on: {findings}")
    finally:
        job.end()
finally:
    hosts.remove()
finish()
