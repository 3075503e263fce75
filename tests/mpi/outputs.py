# SPDX-License-Identifier: BSD-3-Clause
"""No program is stopped and no profile is lost: steps with one output, a requeue, jobs side by side, a folder that cannot
be written, a full disk, a kill. Parts that need mounts are skipped where these are not allowed."""
import atexit
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from common import a, check, finish, folder, patience, run

sys.path.append(a.root + "/tests/support")
from processes import end_tree

patterns, hang = a.bin + "/patterns", a.bin + "/hang"
short = ["--", "-n", 2, patterns, 200, 10]
plain = {name: "" for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "LATECOMER_OUTPUT")}


def key(profile):
    return json.loads(profile.read_text())["job"]["key"]


def preloaded(output, *words, **environment):
    """Without `latecomer run`."""
    return run(a.mpiexec, *words, LD_PRELOAD=a.library + ":" + a.support, LATECOMER_OUTPUT=output, **environment)


def observed(*options, **environment):
    return run(a.cli, "run", *options, *short, LD_PRELOAD=a.support, **{**plain, **environment})


def until(condition, seconds=60):
    deadline = time.time() + patience * seconds
    while not (good := condition()) and time.time() < deadline:
        time.sleep(0.05)
    return good


class Endless:
    """A job that runs until it is ended, with snapshots of all ranks on disk."""

    def __init__(self, parts, *options, preloaded=None):
        words = [a.mpiexec] if preloaded else [a.cli, "run", *options, "--"]
        environment = dict(os.environ, LD_PRELOAD=a.library + ":" + a.support, LATECOMER_OUTPUT=str(preloaded)) if preloaded else dict(os.environ, LD_PRELOAD=a.support)
        self.job = subprocess.Popen(list(map(str, [*words, "-n", 2, hang, "none", 100000000])), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(lambda: self.job.poll() is None and end_tree(self.job))
        self.parts = parts
        check(until(lambda: all((parts / f"rank{r}.b").exists() and (parts / f"rank{r}.b").stat().st_size > 1000 for r in range(2))), f"{parts.name}: the job writes snapshots")

    def files(self):
        return {f.name: f.stat().st_ino for f in self.parts.iterdir()}

    def end(self):
        check(end_tree(self.job), f"{self.parts.name}: the job has ended")


def loop():
    script = f"set -e; for i in 1 2 3 4 5 6 7 8 9 10; do '{a.cli}' run --output loop.json -- -n 2 '{patterns}' 50 10; done; echo all"
    done = run("sh", "-c", script, cwd=folder, LD_PRELOAD=a.support)
    names = ["loop.json"] + [f"loop-{i}.json" for i in range(2, 11)]
    check(done.returncode == 0 and "all" in done.stdout, f"ten steps with set -e: {done.returncode} {done.stderr[-300:]}")
    check(sorted(names) == sorted(f.name for f in folder.glob("loop*")) and len({key(folder / n) for n in names}) == 10, "ten steps: a profile each, and nothing else")
    check(all(f"profile {n}; next" in done.stderr for n in names) and "'%s' exists; the profile is loop-2.json" % (folder / "loop.json") in done.stderr, "each step names its profile")
    before = key(folder / "loop.json")
    done = observed("--output", folder / "loop.json", "--overwrite")
    check(done.returncode == 0 and key(folder / "loop.json") != before and not (folder / "loop-11.json").exists(), f"--overwrite replaces: {done.stderr}")
    done = preloaded(folder / "loop.json", "-n", 2, patterns, 50, 10)
    check(done.returncode == 0 and (folder / "loop-11.json").exists() and "loop-11.json" in done.stderr and "warning" not in done.stderr, f"without run, rank 0 takes the next number: {done.stderr}")
    for strict in range(2):
        done = observed("--strict", "--output", folder / "strict.json")
        check(done.returncode == 0, f"a number loses nothing, so --strict allows it: {done.stderr}")


def names():
    here = folder / "names"
    here.mkdir()
    for step in (3, 3, 4):
        done = run(a.mpiexec, "-n", 2, patterns, 50, 10, cwd=here, LD_PRELOAD=a.library + ":" + a.support, **{**plain, "SLURM_JOB_ID": "78", "SLURM_STEP_ID": str(step)})
        check(done.returncode == 0, f"step {step}: {done.stderr}")
    found = sorted(f.name for f in here.iterdir())
    check(found == ["latecomer.78.3-2.json", "latecomer.78.3.json", "latecomer.78.4.json"], f"the default name holds job and step: {found}")
    host, name = os.uname().nodename, "of.%h.%j.%p.100%%.json"
    for _ in range(2):
        done = run(a.cli, "run", "--output", here / name, *short, LD_PRELOAD=a.support, **{**plain, "PBS_JOBID": "9"})
        said = re.search(r"profile (\S+?)(?:; next.*)?$", done.stderr, re.M)
        check(done.returncode == 0 and said and re.fullmatch(rf"of\.{re.escape(host)}\.9\.\d+\.100%\.json", pathlib.Path(said[1]).name) and pathlib.Path(said[1]).exists(), f"%h, %j, %p and %%: {done.stderr}")


def requeue():
    here = folder / "requeue"
    here.mkdir()
    ids = {**plain, "SLURM_JOB_ID": "77"}
    words = [a.cli, "run", "--", "-n", "4", a.bin + "/traps", "run_on"]
    job = subprocess.Popen(words, env=dict(os.environ, LD_PRELOAD=a.support, **ids), cwd=here, stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    check(end_tree(job), "the first try has ended")
    kept = sorted((here / "latecomer.77.json.parts").iterdir())
    done = run(a.cli, "run", *short, cwd=here, LD_PRELOAD=a.support, **ids)
    check(done.returncode == 0 and (here / "latecomer.77-2.json").exists() and sorted((here / "latecomer.77.json.parts").iterdir()) == kept, f"the second try has a profile of its own: {done.stderr}")
    check("holds the snapshots of a job that was cut short" in done.stderr, f"it says why: {done.stderr}")
    done = run(a.cli, "recover", "latecomer.77.json", cwd=here)
    check(done.returncode == 0 and "4 of 4 ranks" in done.stdout and key(here / "latecomer.77.json") != key(here / "latecomer.77-2.json"), f"a kill, then recover: {done.stdout} {done.stderr}")


def side_by_side():
    for way in ("run", "preload"):
        output = folder / f"{way}_at_once.json"
        words = [a.cli, "run", "--output", output, "--"] if way == "run" else [a.mpiexec]
        environment = dict(os.environ, LD_PRELOAD=a.support) if way == "run" else dict(os.environ, LD_PRELOAD=a.library + ":" + a.support, LATECOMER_OUTPUT=str(output))
        jobs = [subprocess.Popen(list(map(str, [*words, "-n", 2, patterns, 300, 100])), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        ends = [(job.communicate(timeout=patience * 300)[1], job.returncode) for job in jobs]
        profiles = sorted(folder.glob(f"{way}_at_once*"))
        check(all(code == 0 for _, code in ends), f"{way}: four jobs at once: {ends}")
        check(len(profiles) == 4 and all(p.suffix == ".json" for p in profiles) and len({key(p) for p in profiles}) == 4, f"{way}: four profiles: {profiles}")

    # A job ends beside one that runs, and another is told to replace its profile.
    output = folder / "beside.json"
    first = Endless(folder / "beside.json.parts", "--output", output)
    before = first.files()
    for options in ((), ("--overwrite",)):
        done = observed("--output", output, *options)
        check(done.returncode == 0 and "a running job uses" in done.stderr and "discard" not in done.stderr, f"beside a running job {options}: {done.stderr}")
        check(first.files() == before, f"its files stay as they are {options}: {first.files()}")
    check((folder / "beside-2.json").exists() and (folder / "beside-3.json").exists() and not output.exists(), "the jobs beside it have profiles of their own")
    second = Endless(folder / "beside-4.json.parts", preloaded=output)
    seen = run(a.cli, "who", "--json", "--seconds", "0.3", output)
    ranks = json.loads(seen.stdout)["ranks"] if seen.stdout else []
    check([r["rank"] for r in ranks] == [0, 1], f"who shows one of them: {seen.stdout[:300]} {seen.stderr}")
    second.end()
    check(first.files() == before, "a job that is killed leaves the other's files")
    first.end()

    # Both were killed. --overwrite discards the snapshots only for something new.
    failing = ["--", "-n", "1", "false"]
    done = run(a.cli, "run", "--overwrite", "--output", output, *failing)
    check(done.returncode != 0 and first.files() == before and not list(folder.glob("beside.json.replaced*")), f"a job without any observation replaces nothing: {done.stderr}")
    done = observed("--output", output, "--overwrite")
    check(done.returncode == 0 and output.exists() and not first.parts.exists() and not list(folder.glob("beside.json.replaced*")), f"--overwrite replaces the snapshots of an ended job: {done.stderr}")

    # A folder of which nothing is known.
    unknown = folder / "unknown.json.parts"
    unknown.mkdir()
    (unknown / "rank0.a").write_bytes(b"")
    for options in ((), ("--overwrite",)):
        done = observed("--output", folder / "unknown.json", *options)
        check(done.returncode == 0 and os.listdir(unknown) == ["rank0.a"] and "unknown.json.parts" in done.stderr, f"a folder of unknown origin stays {options}: {done.stderr}")
    check((folder / "unknown-2.json").exists() and (folder / "unknown-3.json").exists(), "and the profiles have numbers")


def alone():
    # One rank is not preloaded. Every rank has a launcher of its own, so only rank 0 can say which job it is.
    output = folder / "alone.json"
    shell = ["/bin/sh", "-c", '"$0" divergent; true', a.bin + "/breakers"]
    words = ["-n", 3, "-env", "LD_PRELOAD", a.library + ":" + a.support, *shell, ":", "-n", 1, "-env", "LD_PRELOAD", a.support, *shell]
    for job in range(2):
        done = run(a.mpiexec, *words, LATECOMER_OUTPUT=output)
        check(done.returncode == 0 and "rank 3 is not preloaded" in done.stderr, f"each rank alone: {done.stderr}")
    for parts in ("alone.json.parts", "alone-2.json.parts"):
        ranks = sorted(f for f in os.listdir(folder / parts) if f.startswith("rank"))
        check(ranks == [f"rank{r}.{x}" for r in range(3) for x in "ab"], f"{parts}: all ranks of one job: {ranks}")
    check(len(list(folder.glob("alone*"))) == 2, "and no other folder")


def unwritable():
    # A folder that no user can write to, not even root.
    (folder / "file").write_text("")
    native = run(a.mpiexec, "-n", 2, a.bin + "/breakers", "divergent", LD_PRELOAD=a.support)
    output = folder / "file/x.json"
    for way in ("run", "preload"):
        done = run(a.cli, "run", "--output", output, "--", "-n", 2, a.bin + "/breakers", "divergent", LD_PRELOAD=a.support) if way == "run" else preloaded(output, "-n", 2, a.bin + "/breakers", "divergent")
        lines = [line for line in done.stderr.splitlines() if "Not a directory" in line]
        check(done.returncode == 0 and sorted(done.stdout.split()) == sorted(native.stdout.split()) and len(lines) == 1 and "lost" in lines[0] + "lost" * (way == "preload"), f"{way}: an unwritable folder: {done.returncode} {done.stderr}")
    done = run(a.cli, "run", "--strict", "--output", output, "--", "-n", 2, "touch", folder / "ran")
    check(done.returncode == 2 and "Not a directory" in done.stderr and not (folder / "ran").exists(), f"--strict stops it: {done.returncode} {done.stderr}")

    # The output is a folder.
    for way in ("run", "preload", "overwrite"):
        output = folder / f"{way}_folder.json"
        (output / "inside").mkdir(parents=True)
        done = preloaded(output, "-n", 2, patterns, 200, 10) if way == "preload" else observed("--output", output, *(["--overwrite"] if way == "overwrite" else []))
        check(done.returncode == 0 and (folder / f"{way}_folder-2.json").is_file() and (output / "inside").is_dir(), f"{way}: the output is a folder: {done.stderr}")
    # A folder of that name appears while the job runs.
    output = folder / "late.json"
    job = subprocess.Popen(list(map(str, [a.cli, "run", "--overwrite", "--output", output, "--", "-n", 2, patterns, 100, 10000])), env=dict(os.environ, LD_PRELOAD=a.support), stderr=subprocess.PIPE, text=True)
    check(until(lambda: (folder / "late.json.parts").exists()), "a job runs")
    output.mkdir()
    said = job.communicate(timeout=patience * 300)[1]
    check(job.returncode == 0 and (folder / "late-2.json").is_file() and "late-2.json" in said and not (folder / "late.json.parts").exists(), f"a folder appears under the profile's name: {said}")


def policies():
    mistakes = {
        "observes": ('{"version": 1, "sites": {"depht": 2}}', False),
        "observes, with rules": ('{"version": 1, "mode": "observe", "sites": {"depht": 2}, "rules": [{"match": {}, "use": "auto"}]}', False),
        "applies native": ('{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {}, "use": "native"}]}', False),
        "applies": ('{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {"op": "bcast"}, "use": "binomial"}]}', True),
        "applies auto": ('{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {}, "use": {"algorithm": "auto"}}]}', True),
        "means to apply": ('{"version": 1, "mode": "aply", "rules": [{"match": {}, "use": "auto"}]}', True),
        "means to apply, syntax": ('{"version": 1, "mode": "apply", "rules": [{"match": {}, "use": "auto"}]', True),
    }
    for name, (text, stops) in mistakes.items():
        policy = folder / "policy.json"
        policy.write_text(text)
        done = observed("--policy", policy, "--output", folder / "p.json", "--overwrite")
        lines = [line for line in done.stderr.splitlines() if "policy.json:" in line]
        check(done.returncode == (2 if stops else 0) and len(lines) >= 1, f"a mistake in a policy that {name}: {done.returncode} {done.stderr}")
        check(stops or (len(lines) == 1 and "observing only" in lines[0]), f"{name}: one line: {lines}")
        check(observed("--strict", "--policy", policy, "--output", folder / "p.json", "--overwrite").returncode == 2, f"{name}: --strict stops it")
        check(observed("--force", "--policy", policy, "--output", folder / "p.json", "--overwrite").returncode == 0, f"{name}: --force runs it")


def swept():
    shm = pathlib.Path("/dev/shm")
    space = os.stat("/proc/self/ns/pid").st_ino
    gone = subprocess.Popen(["true"])
    gone.wait()
    other, mine = shm / f"latecomer-live-{space + 1:x}-{gone.pid}-1", shm / f"latecomer-live-{space:x}-{gone.pid}-1"
    many = [shm / f"latecomer-live-{space:x}-{gone.pid}-{started:x}" for started in range(0x10000, 0x10000 + 2200)]
    try:
        for file in (other, mine):
            file.write_text("")
            os.utime(file, (0, 0))
        observed("--output", folder / "swept.json")
        check(other.exists() and mine.exists() and mine.stat().st_mtime > 0, "live files of ended processes stay for somebody to look at")
        os.utime(mine, (time.time() - 2 * 86400,) * 2)
        observed("--output", folder / "swept.json")
        check(other.exists() and not mine.exists(), f"a day later they go, those of other containers stay: {other.exists()} {mine.exists()}")
        for file in many:
            file.touch()
        observed("--output", folder / "swept.json")
        check(0 < sum(file.exists() for file in many) <= 2048, f"and no more than 2,048 stay: {sum(file.exists() for file in many)}")
    finally:
        for file in (other, mine, *many):
            file.unlink(missing_ok=True)


def mounted(script):
    """Runs a shell script in a mount namespace of its own."""
    return run("unshare", "-m", "sh", "-ec", script, LD_PRELOAD="")


def mounts():
    disk = folder / "disk"
    disk.mkdir()
    if mounted(f"mount -t tmpfs -o size=1m none '{disk}'").returncode:
        print("skipped a full disk and a read-only folder: mounts are not allowed here")
        return
    start = f"LD_PRELOAD='{a.support}' '{a.cli}' run --output '{disk}/out.json'"
    fill = f"cat /dev/zero > '{disk}/filler' 2> /dev/null || true"
    program = f"-- -n 2 '{patterns}' 200 10"
    done = mounted(f"mount -t tmpfs -o size=1m none '{disk}'; {fill}; {start} {program}; echo ran; ls -A '{disk}'; {start} --strict {program}; echo not reached")
    lines = [line for line in done.stderr.splitlines() if "No space left" in line and "strict" not in line]
    check(done.returncode == 2 and done.stdout.split() == ["ran", "filler"] and len(lines) == 1, f"a full disk: {done.returncode} {done.stdout} {done.stderr}")

    # The disk fills up while the job runs, and has room again later.
    slow = f"-- -n 2 '{patterns}' 300 1000"
    wait = f"for i in $(seq 600); do [ -s '{disk}/out.json.parts/rank1.b' ] && break; sleep 0.1; done"
    done = mounted(f"mount -t tmpfs -o size=1m none '{disk}'; {start} {slow} & {wait}; {fill}; wait $!; echo $? ran; rm '{disk}/filler'; '{a.cli}' recover '{disk}/out.json'; '{a.cli}' report --json '{disk}/out.json' > /dev/null")
    check(done.returncode == 0 and "0 ran" in done.stdout and "2 of 2 ranks" in done.stdout, f"a disk that fills up: {done.returncode} {done.stdout} {done.stderr}")
    check("run latecomer recover" in done.stderr and "is an MPI program?" not in done.stderr, f"it says how to get the profile: {done.stderr}")

    done = mounted(f"mkdir '{disk}/ro'; mount -t tmpfs none '{disk}/ro'; mount -o remount,ro '{disk}/ro'; cd '{disk}/ro'; LD_PRELOAD='{a.support}' '{a.cli}' run {program}; echo ran")
    lines = [line for line in done.stderr.splitlines() if "Read-only file system" in line]
    check(done.returncode == 0 and "ran" in done.stdout and len(lines) == 1, f"a read-only folder: {done.returncode} {done.stderr}")

    # Two containers with files of one name and one shared memory.
    jobs = []
    for number in range(2):
        script = f"mount -t tmpfs none '{disk}'; exec '{a.cli}' run --output '{disk}/same.json' -- -n 2 '{hang}' none 100000000"
        jobs.append(subprocess.Popen(["unshare", "-m", "sh", "-ec", script], env=dict(os.environ, LD_PRELOAD=a.support), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        def both():
            seen = run(a.cli, "who", "--json", "--seconds", "0.3", disk / "same.json")
            answer[0] = json.loads(seen.stdout) if seen.stdout else {"ranks": [], "limits": []}
            return "Another job" in " ".join(answer[0]["limits"])
        answer = [None]
        until(both)
        check([r["rank"] for r in answer[0]["ranks"]] == [0, 1] and "Another job" in " ".join(answer[0]["limits"]), f"who shows one job and names the other: {answer[0]}")
    finally:
        for job in jobs:
            end_tree(job)

    # A container with pids of its own, and a job outside that looks for live state to remove.
    script = f"echo 30000 > /proc/sys/kernel/ns_last_pid; exec '{a.cli}' run --output '{folder}/inside.json' -- -n 2 '{hang}' none 100000000"
    job = subprocess.Popen(["unshare", "-p", "-m", "--mount-proc", "--fork", "sh", "-ec", script], env=dict(os.environ, LD_PRELOAD=a.support), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def ranks():
            seen = run(a.cli, "who", "--json", "--seconds", "0.3", folder / "inside.json")
            return [r["rank"] for r in json.loads(seen.stdout)["ranks"]] if seen.stdout else []
        check(until(lambda: ranks() == [0, 1]), "who shows a job of another container")
        done = observed("--output", folder / "inside.json", "--overwrite")
        check(done.returncode == 0 and "belongs to a job that may be running" in done.stderr and (folder / "inside-2.json").exists(), f"a job of another container counts as running: {done.stderr}")
        check(ranks() == [0, 1], "and its live state stays")
    finally:
        end_tree(job)
        for file in pathlib.Path("/dev/shm").glob("latecomer-live-*"):  # no process outside may remove them
            if f"{folder}/inside.json".encode() in file.read_bytes():
                file.unlink()


def site():
    """The configuration of a site: folders by user and job, a mistake, a user's policy, nodes with different files, and two ways out."""
    here = folder / "site"
    here.mkdir()
    config, ids = here / "config.json", {**plain, "JOB_ID": "5", "USER": "ada", "LATECOMER_CONFIG": str(here / "config.json")}
    program = [a.bin + "/breakers", "divergent"]

    def written(**keys):
        config.write_text(json.dumps({"version": 1, "output": str(here / "%u/of %j/%h.json"), **keys}, indent=1))

    def profile(number=1):
        file = here / "ada/of 5" / f"{os.uname().nodename}{'' if number == 1 else f'-{number}'}.json"
        return json.loads(file.read_text()) if file.exists() else {"job": {"mode": "no profile"}, "sites": []}

    def job(*more, **environment):
        return run(a.mpiexec, *more, "-n", 2, *program, cwd=here, LD_PRELOAD=a.library + ":" + a.support, **{**ids, **environment})

    def launched(*options, **environment):
        return run(a.cli, "run", *options, "--", "-n", 2, *program, cwd=here, LD_PRELOAD=a.support, **{**ids, **environment})

    def files():
        return sorted(str(f.relative_to(here)) for f in here.rglob("*.json*") if f != config)

    written(mode="observe")
    done = job()
    check(done.returncode == 0 and profile()["job"]["mode"] == "observe" and done.stderr == "", f"the profile is in a new folder of the user and the job: {files()} {done.stderr}")
    done = launched()
    check(done.returncode == 0 and profile(2)["job"]["mode"] == "observe", f"with latecomer run as well: {files()} {done.stderr}")
    done = job(LATECOMER_POLICY='{"version":1,"mode":"apply","rules":[{"match":{"op":"allreduce"},"use":"ring"}]}')
    check(done.returncode == 0 and profile(3)["job"]["mode"] == "apply", f"a user's policy counts, and the site's folder: {files()} {done.stderr}")
    done = launched("--output", here / "mine.json")
    check(done.returncode == 0 and (here / "mine.json").exists(), f"--output counts: {files()} {done.stderr}")
    done = job(LATECOMER_POLICY=json.dumps({"version": 1, "output": str(here / "policy.json")}))
    check(done.returncode == 0 and (here / "policy.json").exists(), f"the output of a user's policy counts: {files()} {done.stderr}")

    before = files()
    done = job(LATECOMER_DISABLE="1")
    check(done.returncode == 0 and done.stderr == "" and files() == before, f"LATECOMER_DISABLE: {files()} {done.stderr}")
    done = job(LATECOMER_CONFIG="")
    check(done.returncode == 0 and (here / "latecomer.5.json").exists(), f"an empty LATECOMER_CONFIG: {files()} {done.stderr}")
    shell = run("/bin/sh", "-c", "echo hello; exit 3", LD_PRELOAD=a.library, **{**ids, "LATECOMER_CONFIG": str(here / "nowhere")})
    check(shell.returncode == 3 and shell.stdout == "hello\n" and shell.stderr == "", f"a program without MPI never reads it: {shell.stderr}")
    written(mode="off")
    before = files()
    done = job()
    check(done.returncode == 0 and done.stderr == "" and files() == before, f"mode off: {files()} {done.stderr}")
    done = launched()
    check(done.returncode == 0 and files() == before and "config.json turns observation off" in done.stderr, f"latecomer run says that it is off: {files()} {done.stderr}")

    # Nodes with different files: rank 0's decides. Whether each rank may need an engine is a question to each file.
    written(mode="apply", rules=[{"match": {"op": "allreduce"}, "use": "ring"}])
    other = here / "other"
    for text in ('{"version":1,"mode":"off"}', '{"version":1,"mode":"apply","background":{"enabled":true},"rules":[{"match":{"op":"allreduce"},"use":"slt"}]}', "", None):
        if text is not None:
            other.write_text(text)
        (here / "both.json").unlink(missing_ok=True)
        done = run(a.mpiexec, *[word for rank in range(3) for word in ([":"] if rank else []) + ["-n", 1, "-env", "LATECOMER_CONFIG", other if rank == 1 else config, *program]],
                   cwd=here, LD_PRELOAD=a.library + ":" + a.support, **{**ids, "LATECOMER_OUTPUT": str(here / "both.json")})
        ran = {name for s in json.loads((here / "both.json").read_text())["sites"] if s["op"] == "allreduce" for name in s["dispatch"]} if (here / "both.json").exists() else None
        check(done.returncode == 0 and "right" in done.stdout and ran == {"ring"}, f"rank 1 reads {text!r}: {ran} {done.stderr}")
        other.unlink(missing_ok=True)

    # A mistake stops no job, however it is started, even if the site asks to replace calls.
    config.write_text(json.dumps({"version": 1, "output": str(here / "wrong/%u/%j.json"), "mode": "apply", "rulse": [{"match": {"op": "allreduce"}, "use": "ring"}]}, indent=1))
    for number, done in enumerate((job(), launched()), 1):
        said = [line for line in done.stderr.splitlines() if str(config) in line]
        check(done.returncode == 0 and "right" in done.stdout and len(said) == 1 and f"{config}:5: rulse: unknown key, did you mean 'rules'?" in said[0], f"a mistake is named once: {done.stderr}")
    check(not (here / "wrong").exists(), "a folder above the pattern is not made")
    (here / "wrong").mkdir()
    done = job()
    check(done.returncode == 0 and (here / "wrong/ada/5.json").exists(), f"the output counts beside a mistake: {files()} {done.stderr}")
    done = job(LATECOMER_POLICY='{"version":1}')
    check(done.returncode == 0 and (here / "wrong/ada/5-2.json").exists() and "the policy is not used, LATECOMER_POLICY names another" in done.stderr, f"a mistake beside a user's policy: {files()} {done.stderr}")
    done = launched("--strict")
    check(done.returncode == 2 and done.stdout == "" and "rulse" in done.stderr, f"--strict refuses it: {done.returncode} {done.stderr}")


for part in (loop, names, site, requeue, side_by_side, alone, unwritable, policies, swept, mounts):
    part()
finish()
