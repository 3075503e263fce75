# SPDX-License-Identifier: BSD-3-Clause
"""The roll call where the name service of the process manager fails or lies: with the channel of `latecomer run` the ranks observe together, without it each one alone at once. Servers and ranks that misbehave on that channel stop nobody."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from common import a, built, check, finish, folder, open_mpi, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from hosts import Hosts
from processes import children, end_tree

launcher = "Open MPI's mpiexec" if open_mpi else "MPICH's mpiexec"
service = built("name_service")
support = "" if open_mpi else f":{a.support}"
# The ranks do not know how many are on their host, so they do not meet in shared memory (rooms.py).
by_names = ["env", "-u", "MPI_LOCALNRANKS", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"]
program = [*by_names, a.bin + "/breakers", "divergent"]


def policy(seconds):
    path = folder / f"policy{seconds}.json"
    path.write_text(json.dumps({"version": 1, "mode": "apply", "roll_call_timeout_s": seconds, "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))
    return path


def bare(name, how, *words, seconds=1, **extra):
    """Starts the job without latecomer run."""
    preload = f"{a.library}{support}:{service}"
    words = words or ["-n", 4, *program]
    words = [*(["-x", f"LD_PRELOAD={preload}"] if open_mpi else ["-genv", "LD_PRELOAD", preload]), *words]
    return run(a.mpiexec, *words, NAME_SERVICE=how, LATECOMER_POLICY=policy(seconds), LATECOMER_OUTPUT=folder / f"{name}.json", **extra)


def warned(done):
    return [line for line in done.stderr.splitlines() if "warning" in line]


def right(done):
    return done.returncode == 0 and "right" in done.stdout


def alone(done, name, *says):
    lines = warned(done)
    check(right(done), f"{name}: the program runs: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
    check(len(lines) == 1 and all(s in lines[0] for s in (*says, "every rank observes alone")), f"{name}: one line says why: {lines}")
    check(run(a.cli, "recover", folder / f"{name}.json.parts").returncode == 0, f"{name}: what the ranks saw can be recovered")


# A job with one rank without preload observes locally: same result, one warning, no hang.
def lacking(missing):
    words = []
    for rank in range(4):
        preload = a.support if rank == missing else a.library + ":" + a.support
        words += ([":"] if rank else []) + ["-n", "1", *(["-x", f"LD_PRELOAD={preload}"] if open_mpi else ["-env", "LD_PRELOAD", preload]), a.bin + "/breakers", "divergent"]
    return run(a.mpiexec, *words, LATECOMER_OUTPUT=folder / f"partial{missing}.json")


with concurrent.futures.ThreadPoolExecutor(2) as pool:  # the ranks wait for the time-out
    partial = list(pool.map(lacking, range(4)))
for missing, done in enumerate(partial):
    check(done.returncode == 0 and "right" in done.stdout, f"rank {missing} without preload: {done.returncode} {done.stdout[-200:]}")
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    check(len(warnings) == 1 and f"rank {missing} is not preloaded" in warnings[0], f"one warning: {warnings}")
    parts = folder / f"partial{missing}.json.parts"
    written = sorted(p.name for p in parts.glob("rank*"))
    check(written == [f"rank{r}.{x}" for r in range(4) if r != missing for x in "ab"], f"what each rank saw: {written}")
    check(f"latecomer recover {parts}" in warnings[0], "and the command that brings it together")
    check(run(a.cli, "recover", parts).returncode == 0, "which it does")
    report = run(a.cli, "report", folder / f"partial{missing}.json")
    text = " ".join(report.stdout.split())
    check(report.returncode == 0 and f"it lacks rank {missing}, and" in text and "preload" in text and "too short" not in text and "cannot help" not in text, f"the verdict names it: {report.stdout[:600]} {report.stderr}")

# Without latecomer run, each rank observes alone. No rank waits: the time-out of ten minutes is longer than that of the run.
at_once = {"forgets": "does not show a rank its own name", "invents": "answers names that nobody published", "refuses": "has no name service",
           "empties": "does not show a rank its own name", "deafens": "does not show a rank its own name"}
for how, says in at_once.items():
    alone(bare(how, how, seconds=600), how, says, launcher, "(latecomer run would help)")
# A rank that is late or cannot be seen is a matter of time.
late = "rank 1 is not preloaded with this build of latecomer, or it answers more than 1 s late (policy key roll_call_timeout_s)"
for how in ("delays", "swallows"):
    alone(bare(how, how), how, late, f"or the name service of {launcher} does not show it")

# With latecomer run, all ranks observe together, and a rule is in force.
for how in (*at_once, "swallows"):
    profile = folder / f"{how}_run.json"
    done = run(a.cli, "run", "--policy", policy(5 if how == "swallows" else 600), "--output", profile, "--verbose", 1, "--quiet", "--", "-n", 4, *program, LD_PRELOAD=f"{service}{support}", NAME_SERVICE=how)
    whole = json.loads(profile.read_text()) if profile.exists() else None
    check(right(done) and not warned(done), f"{how}, latecomer run: {done.returncode} {done.stdout[-200:]} {done.stderr[-500:]}")
    check("found each other through latecomer run" in done.stderr and "4 ranks, together" in done.stderr, f"{how}, latecomer run: its channel is used: {done.stderr[-500:]}")
    ran = {name: d["calls"] for s in whole["sites"] if s["op"] == "allreduce" for name, d in s["dispatch"].items()} if whole else None
    check(whole and whole["job"]["ranks"] == 4 and ran.get("ring", 0) > 10 and not list(folder.glob(f"{how}_run*.parts")), f"{how}, latecomer run: one whole profile: {ran}")
# A rank without the preload is named there, too.
profile = folder / "lacking.json"
without = ["env", f"LD_PRELOAD={service}{support}", *program]
done = run(a.cli, "run", "--policy", policy(5), "--output", profile, "--", "-n", 2, *program, ":", "-n", 1, *without, LD_PRELOAD=f"{service}{support}", NAME_SERVICE="refuses")
check(right(done) and len(warned(done)) == 1 and "rank 2 is not preloaded with this build of latecomer, or late" in warned(done)[0], f"a rank without the preload: {done.returncode} {done.stderr[-500:]}")

# latecomer run is killed while ranks wait for one that does not come: the job ends.
job = subprocess.Popen([a.cli, "run", "--policy", str(policy(600)), "--output", str(folder / "killed.json"), "--", "-n", "2", *program, ":", "-n", "1", *without],
                       env=dict(os.environ, LD_PRELOAD=f"{service}{support}", NAME_SERVICE="refuses"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def below(pid):
    return [p for child in children(pid) for p in (child, *below(child))]


def connections(pid):
    return sum(1 for f in pathlib.Path(f"/proc/{pid}/fd").iterdir() if os.path.islink(f) and os.readlink(f).startswith("socket:"))


deadline = time.time() + 60 * patience
while time.time() < deadline and (connections(job.pid) < 3 or len(below(job.pid)) < 4):
    time.sleep(0.05)
pids = below(job.pid)
waiting = connections(job.pid) == 3  # two ranks, and the listener
job.kill()
job.wait()


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


deadline = time.time() + 60 * patience
while time.time() < deadline and any(map(runs, pids)):
    time.sleep(0.1)
left = [pid for pid in pids if runs(pid)]
check(waiting and not left, f"latecomer run is killed in the roll call: {pids}, of which {left} stay")
for pid in left:
    os.kill(pid, signal.SIGKILL)


# Servers that misbehave. `act` gets the file of a connection after the hello of a rank.
class Server:
    def __init__(self, greeting, act=lambda file: file.read()):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.greeting, self.act, self.heard = greeting, act, []
        threading.Thread(target=self.serve, daemon=True).start()

    def offer(self):
        return f"{self.listener.getsockname()[1]}/name/secret/127.0.0.1"

    def serve(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with connection, connection.makefile("rw") as file:
            try:
                file.write(self.greeting), file.flush()
                line = file.readline()
                self.heard.append(line)
                if line:
                    self.act(file)
            except OSError:
                pass


def answers(text):
    def act(file):
        file.write(text), file.flush()
        file.read()
    return act


refused = "has no name service, and latecomer run does not answer"
alone(bare("nobody", "refuses", LATECOMER_ROLL_CALL="1/name/secret/127.0.0.1", seconds=600), "nobody", refused)
alone(bare("no_offer", "refuses", LATECOMER_ROLL_CALL="1/2", seconds=600), "no_offer", refused)
for name, greeting, act, says in (("mute", "", None, refused), ("stranger", "HTTP/1.0 400\n", None, refused), ("endless", "x" * 100000, None, refused),
                                  ("leaves", "latecomer name\n", lambda file: None, refused), ("waits", "latecomer name\n", None, refused)):
    if open_mpi and name != "waits":
        continue  # the rank's side is the same source for both libraries
    server = Server(greeting, *([act] if act else []))
    alone(bare(name, "refuses", LATECOMER_ROLL_CALL=server.offer()), name, says)
    spoken = [line for line in server.heard if line]
    check(len(spoken) == (4 if name in ("leaves", "waits") else 0) and all(line.startswith("secret ") for line in spoken), f"{name}: only the right server hears the secret: {spoken}")
    server.listener.close()
# It ends when the ranks have said that they are ready: no rank can know what the others heard.
server = Server("latecomer name\n", lambda file: (file.write("here\n"), file.flush(), file.readline()))
done = bare("ends", "refuses", LATECOMER_ROLL_CALL=server.offer(), seconds=10)
check(done.returncode != 0 and "latecomer run ended in the roll call" in done.stderr, f"it ends before its verdict: {done.returncode} {done.stderr[-300:]}")
server.listener.close()

# Ranks that misbehave: a program that is none of MPI speaks to latecomer run. (The server is the same for both libraries.)
if not open_mpi:
    talk = folder / "talk.py"
    talk.write_text('''import os, socket
port, name, secret, address = os.environ["LATECOMER_ROLL_CALL"].split("/")[:4]
class Rank:
    def __init__(self, hello):
        self.socket = socket.create_connection((address, int(port)), timeout=60)
        self.file = self.socket.makefile("r")
        assert self.file.readline() == "latecomer " + name + "\\n"
        self.say(hello)
    def say(self, text):
        self.socket.sendall(text.encode() + b"\\n")
    def leave(self):
        self.socket.shutdown(socket.SHUT_WR)
    def hears(self, what, *lines):
        heard = [self.file.readline() for line in lines]
        good = all(h.startswith(l) if l else h == "" for h, l in zip(heard, lines))
        print("good" if good else "BAD", what, heard)
def come(job="j", rank=0, size=2, build="b", word=secret):
    return Rank(f"{word} {job} {rank} {size} {build}")
come(word="x").hears("a wrong secret", "no 0", "")
for bad in ("", "x", secret, f"{secret} j 0", f"{secret} j -1 2 b", f"{secret} j 2 2 b", f"{secret} j 0 99999999999 b"):
    Rank(bad).hears(repr(bad), "no 0", "")
for round in range(2):
    both = [come("twice_yes", r) for r in range(2)]
    for one in both: one.hears("both are here", "here\\n"), one.say("ready")
    for one in both: one.hears("both are ready", "yes\\n", "")
first = come("gone", 0, 3)
second = come("gone", 1, 3)
second.leave()
first.hears("rank 1 leaves", "no 1 rank 2 is not preloaded"), second.hears("and hears so", "no 0", "")
come("gone", 2, 3).hears("and later ones", "no 0", "")
one = come("twice")
come("twice").hears("a rank comes twice", "no 0"), one.hears("the first one", "no 1 rank 0 has come to latecomer run twice")
one = come("build")
come("build", 1, build="c").hears("another build", "no 0"), one.hears("the first one", "no 1 rank 1 is preloaded with another build")
one = come("size")
come("size", 1, 3).hears("another size", "no 0"), one.hears("the first one", "no 1 rank 1")
both = [come("unready", r) for r in range(2)]
for one in both: one.hears("here", "here\\n")
both[0].say("ready")
both[0].hears("a rank is not ready in time", "no 1 a rank is here and does not answer"), both[1].hears("and hears so", "no 0")
both = [come("dies", r) for r in range(2)]
for one in both: one.hears("here", "here\\n")
both[0].say("ready"), both[1].leave()
both[0].hears("a rank leaves before it is ready", "no 1 a rank has left")
# latecomer run may read an end together with the line before it, so the last rank to come is the one that leaves.
other, one = come("part2", 2, 4), come("part1", 0, 4)
one.leave()
one.hears("parts of one job", "no 1 some ranks cannot tell"), other.hears("and the other part", "no 0\\n")
many = [come("many", r, 200) for r in range(100)]
many[99].leave()
many[0].hears("many are missing", "no 1 ranks 100, 101, 102, 103 and 96 more are not")
try:
    come("long", build="x" * 5000).hears("a long line", "")
except ConnectionResetError:
    print("good a long line")
''')
    done = run(a.cli, "run", "--output", folder / "talk.json", "--quiet", "--", "-n", 1, sys.executable, talk)
    lines = done.stdout.splitlines()
    check(done.returncode == 0 and len(lines) > 25 and all(line.startswith("good") for line in lines), f"ranks that misbehave: {done.returncode} {[line for line in lines if not line.startswith('good')]} {done.stderr[-500:]}")

# Several hosts, which are network namespaces: PMIx and Slurm tell the ranks that they are one job.
hosts = Hosts("lcroll", 0 if open_mpi else 2)
try:
    for name in ("told", "untold") if hosts.able and not open_mpi else ():
        profile = folder / f"{name}.json"
        words = [*hosts.inside, a.cli, "run", "--verbose", 1, "--quiet", "--policy", policy(5), "--output", profile, "--", *hosts.launch(folder / "start", 2), *program]
        tell = {"PMIX_NAMESPACE": "job"} if name == "told" else {}
        last = "profile written to" if name == "told" else "every rank observes alone"
        job = subprocess.Popen(list(map(str, words)), env=dict(os.environ, LD_PRELOAD=f"{service}{support}", NAME_SERVICE="refuses", **hosts.environment_of_nodes, **tell), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        limit = threading.Timer(120 * patience, end_tree, [job])
        limit.start()
        said = []
        for line in job.stdout:
            said.append(line)
            if last in line:
                break
        limit.cancel()
        end_tree(job)  # MPI_Finalize over TCP may hang, see run_until_profile()
        says = "found each other through latecomer run" if name == "told" else "some ranks cannot tell latecomer run that they are one job"
        check(any(says in line for line in said) and any(last in line for line in said), f"two hosts, {name}: {said}")
        check(profile.exists() == (name == "told") and sum("warning" in line for line in said) == (name == "untold"), f"two hosts, {name}: one whole profile, or one line")
    if not hosts.able:
        print("skipped two hosts: this machine does not allow network namespaces")
finally:
    hosts.remove()

# mpiexec -nameserver: the server answers unknown names with an empty text, and it keeps the names of earlier jobs.
server = None if open_mpi else shutil.which("hydra_nameserver", path=os.path.dirname(a.mpiexec)) or shutil.which("hydra_nameserver")
if server:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    serving = subprocess.Popen([server, "-port", str(port)], start_new_session=True)
    try:
        for attempt in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("localhost", port)) == 0:
                    break
            time.sleep(0.05)

        def served(name, *words):
            return [a.mpiexec, "-nameserver", f"localhost:{port}", "-genv", "LATECOMER_POLICY", str(policy(5)), "-genv", "LATECOMER_OUTPUT", str(folder / f"{name}.json"), *map(str, words)]

        both = a.library + ":" + a.support
        for job in range(3):
            done = run(*served(f"served{job}", "-genv", "LD_PRELOAD", both, "-n", 4, *program))
            check(done.returncode == 0 and "right" in done.stdout and "warning" not in done.stderr, f"-nameserver, job {job}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
            check((folder / f"served{job}.json").exists(), f"-nameserver, job {job}: the ranks observe together")
        words = served("lacking", "-n", 1, "-env", "LD_PRELOAD", both, *program, ":", "-n", 1, "-env", "LD_PRELOAD", a.support, *program)
        done = run(*words)
        warnings = [line for line in done.stderr.splitlines() if "warning" in line]
        check(done.returncode == 0 and "right" in done.stdout and len(warnings) == 1 and "rank 1 did not answer through mpiexec -nameserver" in warnings[0], f"-nameserver, rank 1 without preload: {done.returncode} {warnings}")
        jobs = [subprocess.Popen(served(f"at_once{i}", "-genv", "LD_PRELOAD", both, "-n", 2 + i, *program), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) for i in range(2)]
        for i, running in enumerate(jobs):
            out, err = running.communicate(timeout=patience * 120)
            check(running.returncode == 0 and "right" in out and "warning" not in err and (folder / f"at_once{i}.json").exists(), f"-nameserver, job {i} of two at once: {running.returncode} {out[-200:]} {err[-300:]}")
    finally:
        end_tree(serving)
elif not open_mpi:
    print("skipped mpiexec -nameserver: hydra_nameserver is not here")
finish()
