# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Open MPI under latecomer run: the launcher follows the program, calls of MPI's own plugins do not count, the verdict names the late rank, a killed job leaves its observations, and `auto` serves."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mpi"))
from common import a, check, finish, folder, run

binaries = pathlib.Path(a.bin)
launcher = pathlib.Path(a.mpiexec).name
PLUGINS = ["ompio", *sorted(set(re.findall(r"romio\d+", run("ompi_info").stdout)))]  # for files; Debian's Open MPI 6 has the first alone


def observed(name, *words, options=(), **extra):
    profile = folder / f"{name}.json"
    done = run(a.cli, "run", "--output", profile, "--overwrite", *options, "--", *words, **extra)
    return done, json.loads(profile.read_text()) if profile.exists() else None


def warned(done):
    return [line for line in done.stderr.splitlines() if "warning" in line]


# The launcher is that of the program's library, and words for the other library's are refused with the right ones.
done, profile = observed("work", "-n", 4, binaries / "causes", "work", 2, 100, 6)
check(done.returncode == 0 and profile and profile["job"]["ranks"] == 4 and "Open MPI v" in profile["job"]["mpi_library"], f"-n 4 PROGRAM: {done.returncode} {done.stderr[-400:]}")
check(not warned(done), f"no warning: {warned(done)}")
said = json.loads(run(a.cli, "report", "--json", folder / "work.json").stdout)["verdict"]
check(any(s.startswith("Rank 2 is late") and re.search("It computes|is that it computes", s) for s in said), f"the verdict: {said}")
mpich = binaries.parent / "patterns"
for words, says in (((launcher, "-np", 2), f"-- mpiexec.mpich -np 2 {mpich}"), ((launcher, "--map-by", "core", "-np", 2), "-- mpiexec.mpich -n RANKS PROGRAM")):
    done = run(a.cli, "run", "--", *words, mpich)
    check(done.returncode == 2 and "is Open MPI's launcher" in done.stderr and "is linked against MPICH" in done.stderr and says in done.stderr, f"a program of MPICH with {words}: {done.stderr}")
done = run(a.cli, "run", "--", "mpiexec.mpich", "-n", 2, binaries / "causes", "none", 0, 1, 1)
check(done.returncode == 2 and "is MPICH's launcher" in done.stderr and f"-- {launcher} -n 2 {binaries}/causes" in done.stderr, f"a program of Open MPI with MPICH's launcher: {done.stderr}")
# Behind another program, too. A script does not show its library: where the launcher is wrong, each process is a job.
done, profile = observed("behind", "-n", 3, "env", "-u", "NOTHING", binaries / "causes", "none", 0, 20, 1)
check(done.returncode == 0 and profile and profile["job"]["ranks"] == 3 and not warned(done), f"env PROGRAM: {done.returncode} {done.stderr[-400:]}")
script = folder / "script"
for program, wrong, right in ((binaries / "causes", "mpiexec.mpich", "Open MPI"), (mpich, launcher, "MPICH")):
    script.write_text(f"#!/bin/sh\nexec {program} {'none 0 20 1' if right == 'Open MPI' else 1}\n")
    script.chmod(0o755)
    if run(wrong, "-n", 3, script).returncode != 0:  # MPICH 5.0.2 under the launcher of Open MPI 6.0.0rc2
        continue
    done, profile = observed("singles", wrong, "-n", 3, script)
    check(len(warned(done)) == 1 and "started 3 processes" in warned(done)[0] and f"with {right}'s launcher" in warned(done)[0], f"{right} in a script, {wrong}: {warned(done)} {done.stderr[-400:]}")
info = run(a.cli, "info", binaries / "causes")
check(info.returncode == 0 and "Open MPI v" in info.stdout and "liblatecomer-openmpi.so" in info.stdout and launcher in info.stdout, f"info: {info.stdout}")
check(run(a.cli, "info", mpich).stdout.count("liblatecomer-mpich.so") == 1 and run(a.cli, "info", "/bin/ls").returncode == 1, "info: MPICH, and no MPI")

# The front finds the family beside the file behind a link. Without the family, one line says so and the program runs.
alone = folder / "alone"
alone.mkdir()
(alone / "link.so").symlink_to(a.library)
shutil.copy(a.library, alone / "liblatecomer.so")
for name, lines in (("link.so", 0), ("liblatecomer.so", 1)):
    done = run(a.mpiexec, "-n", 2, "-x", f"LD_PRELOAD=./{name}", "-x", "LATECOMER_OUTPUT", binaries / "causes", "none", 0, 20, 1, cwd=alone, LATECOMER_OUTPUT=alone / f"{name}.json")
    check(done.returncode == 0 and len(warned(done)) == lines and (alone / f"{name}.json").exists() == (lines == 0), f"{name}: {done.stderr[-400:]}")
    check(lines == 0 or "liblatecomer-openmpi.so cannot be used" in warned(done)[0], f"{name}: {warned(done)}")

# Each plugin for files calls MPI's collectives. Only those of the program count, and the ranks agree on their numbers.
for plugin in PLUGINS:
    done, profile = observed(plugin, "-n", 3, "--mca", "io", plugin, binaries / "files", folder / "written", LATECOMER_CHECK="1")
    calls = {s["op"]: s["calls"] for s in profile["sites"]} if profile else None
    check(done.returncode == 0 and "right" in done.stdout and calls == {"allreduce": 5, "barrier": 5}, f"{plugin}: {calls} {done.stderr[-300:]}")
    check(profile and all(s["patterns"] == s["calls"] for s in profile["sites"]), f"{plugin}: all calls have records of all ranks")

# The engine's thread leaves the program's non-blocking file operations alone: Open MPI polls them without a lock, and 300 gathers with 20 writes each crashed.
policy = folder / "background.json"
policy.write_text(json.dumps({"version": 1, "mode": "apply", "background": {"enabled": True}, "rules": [{"match": {"op": "gather"}, "use": "bsbn"}]}))
for plugin in PLUGINS:
    done, profile = observed(f"background_{plugin}", "-n", 2, "--mca", "io", plugin, binaries / "files", folder / "written", "nonblocking", options=("--policy", policy))
    ran = {name: d["calls"] for s in profile["sites"] if s["op"] == "gather" for name, d in s["dispatch"].items()} if profile else None
    kept = any("algorithms are not tried beside threads inside Open MPI 6" in line for line in warned(done))
    check(done.returncode == 0 and "right" in done.stdout and ran == {"native" if kept else "bsbn": 300}, f"non-blocking writes beside the engine, {plugin}: {done.returncode} {ran} {done.stderr[-300:]}")

# `auto` learns and serves.
done, profile = observed("auto", "-n", 4, binaries / "causes", "work", 1, 20, 1, options=("--auto",))
check(done.returncode == 0 and profile and profile["job"]["mode"] == "apply" and not warned(done), f"auto runs: {done.stderr[-300:]}")
policy = folder / "ring.json"
policy.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))
done, profile = observed("ring", "-n", 3, binaries / "causes", "none", 0, 40, 1, options=("--policy", policy))
ran = {name: d["calls"] for s in profile["sites"] if s["op"] == "allreduce" for name, d in s["dispatch"].items()} if profile else None
check(done.returncode == 0 and ran and ran.get("ring", 0) >= 39, f"a rule: {ran} {done.stderr[-300:]}")

# A killed job leaves what it observed.
profile = folder / "killed.json"
job = subprocess.Popen([a.cli, "run", "--output", str(profile), "--", "-n", "3", str(binaries / "causes"), "work", "1", "100000", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
deadline = time.time() + 100
while time.time() < deadline and len(list(folder.glob("killed.json.parts/*"))) < 3:
    time.sleep(0.2)
time.sleep(2)
os.killpg(job.pid, signal.SIGKILL)
job.communicate(timeout=60)
recovered = run(a.cli, "recover", profile)
while time.time() < deadline and not profile.exists():  # the ranks end after the launcher
    time.sleep(1)
    recovered = run(a.cli, "recover", profile)
whole = json.loads(profile.read_text()) if profile.exists() else None
check(whole is not None and sum(s["calls"] for s in whole["sites"] if s["op"] == "allreduce") > 0, f"a killed job is recovered: {recovered.stdout} {recovered.stderr}")
finish()
