#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm of two nodes: `latecomer run -- srun ...`, the line for srun that docs/guide/observe_on_slurm.md shows, and a
batch script. Slurm and MPICH talk by PMI. Skipped where the packages or network namespaces are missing."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from hosts import Hosts, apart
from processes import end_tree
from slurm_cluster import Slurm, missing

if reason := missing():
    print(f"skipped: {reason}")
    sys.exit(77)
if os.environ.get("LATECOMER_TEST_APART") != "1" and subprocess.run(["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--net", "true"], capture_output=True).returncode != 0:
    print("skipped: this machine does not allow namespaces")
    sys.exit(77)
apart()

from common import a, built, check, finish, folder, run  # after apart(): it makes a folder

os.chmod(folder, 0o755)
cluster = Slurm(folder)
if cluster.why:
    print(f"FAILED the cluster does not start: {cluster.why}")
    cluster.stop()
    sys.exit(1)
# MPICH between the nodes, with shared memory inside a node.
wires = {**Hosts.environment_of_nodes, "LATECOMER_VERBOSE": "2"}


class Ended:
    def __init__(self, returncode, stdout, stderr):
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def user(*command, until=None, timeout=120, **environment):
    """Runs a command on the head node, as a user would. MPICH over TCP may hang in MPI_Finalize: where the text `until` has
    come, the job has five more seconds, and is then cancelled, which counts as a good end."""
    words = cluster.words("env", *(f"{k}={v}" for k, v in {**wires, **environment}.items()), *command)
    out, err = folder / "out", folder / "err"
    with open(out, "w") as to_out, open(err, "w") as to_err:
        job = subprocess.Popen(words, stdout=to_out, stderr=to_err, stdin=subprocess.DEVNULL, cwd=folder)
    deadline, seen, cancelled = time.time() + timeout, 0, False
    while job.poll() is None and time.time() < deadline:
        time.sleep(0.1)
        if until and not seen and until in out.read_text(errors="replace") + err.read_text(errors="replace"):
            seen = time.time()
        if seen and not cancelled and time.time() > seen + 5:
            cancelled = True
            subprocess.run(cluster.words("scancel", "--signal=KILL", "-u", "root"), capture_output=True, timeout=60)
    if job.poll() is None:
        end_tree(job)
        subprocess.run(cluster.words("scancel", "-u", "root"), capture_output=True, timeout=60)
        return Ended("a hang", out.read_text(errors="replace"), err.read_text(errors="replace"))
    hung = [line for line in err.read_text(errors="replace").splitlines() if not line.startswith(("srun: ", "slurmstepd: "))]
    return Ended(0 if cancelled else job.returncode, out.read_text(errors="replace"), "\n".join(hung) if cancelled else err.read_text(errors="replace"))


WRITTEN = "profile written to"
RECOVER = "latecomer recover"


def profile_of(name, done, ranks, how):
    path = folder / name
    said = done.stdout + done.stderr
    whole = json.loads(path.read_text()) if path.exists() else None
    check(done.returncode == 0 and "right" in done.stdout, f"{name}: the program runs: {done.returncode} {said[-800:]}")
    check(f"{ranks} ranks, together" in said and how in said and "warning" not in said, f"{name}: the ranks find each other: {said[-800:]}")
    check(whole and whole["job"]["ranks"] == ranks and len(whole["clock"]) == ranks and not list(folder.glob(f"{name}*.parts")), f"{name}: one whole profile: {sorted(p.name for p in folder.iterdir())}")
    return whole


def hosts_of(profile):
    return sorted(profile["job"]["hosts"]) if profile else None


program, many = str(pathlib.Path(a.bin) / "meet"), [str(pathlib.Path(a.bin) / "gather"), "sums"]
preload = f"{a.library}:{a.support}"
requests = folder / "requests"
requests.mkdir()
try:
    versions = subprocess.run(cluster.words("srun", "--version"), capture_output=True, text=True).stdout.strip()
    print(f"{versions}, {run('mpichversion').stdout.splitlines()[:1]}")

    # latecomer run, as the guide says.
    done = user(a.cli, "run", "--output", folder / "run.json", "--", "srun", "--mpi=pmi2", "-N", 2, "-n", 6, *many, until=WRITTEN, LD_PRELOAD=a.support)
    whole = profile_of("run.json", done, 6, "found each other through latecomer run")
    check(hosts_of(whole) == ["node0", "node1"], f"run.json: both nodes: {hosts_of(whole)}")
    check(whole and sum(s["calls"] for s in whole["sites"]) == 300, "run.json: every call is in it")

    # The line for srun without latecomer run, and the report.
    line = f"srun --mpi=pmi2 -n 2 --export=ALL,LD_PRELOAD={a.library},LATECOMER_OUTPUT={folder}/slurm.json {' '.join(map(shlex.quote, many))}"
    whole = profile_of("slurm.json", user("sh", "-c", line, until=WRITTEN), 2, "met in 1 room")
    check(hosts_of(whole) in (["node0"], ["node1"]), f"slurm.json: one node: {hosts_of(whole)}")
    check(run(a.cli, "report", folder / "slurm.json").returncode == 0, "slurm.json: the report reads it")
    # On both nodes. Slurm does not serve the names of PMI to MPICH, so the ranks of several nodes need latecomer run.
    service = built("name_service")
    done = user("srun", "--mpi=pmi2", "-N", 2, "-n", 5, f"--export=ALL,LD_PRELOAD={preload}:{service},LATECOMER_OUTPUT={folder}/nodes.json,NAME_SERVICE=counts,NAME_SERVICE_COUNTS={requests}", program, until=RECOVER)
    counts = {int(f.name): int(f.read_text()) for f in requests.iterdir()}
    print(f"requests to Slurm by rank: {counts}")
    warnings = [text for text in done.stderr.splitlines() if "warning" in text]
    check(done.returncode == 0 and "right" in done.stdout and len(warnings) == 1 and "Slurm's srun has no name service (latecomer run would help)" in warnings[0], f"nodes.json: one warning: {warnings}")
    recovered = run(a.cli, "recover", folder / "nodes.json")
    check(recovered.returncode == 0 and "5 of 5 ranks" in recovered.stdout, f"nodes.json: recover has all ranks: {recovered.stdout} {recovered.stderr}")

    # Without an output, the name has the job and the step.
    done = user("srun", "--mpi=pmi2", "-n", 2, f"--export=ALL,LD_PRELOAD={preload}", program, until=WRITTEN)
    named = sorted(p.name for p in folder.glob("latecomer.*.json"))
    check(done.returncode == 0 and len(named) == 1 and named[0].count(".") == 3, f"latecomer.JOB.STEP.json: {named} {done.stderr[-300:]}")

    # A batch script with two steps: the second has a number.
    script = folder / "batch.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks=4\n{''.join(f'export {k}={v}' + chr(10) for k, v in wires.items())}"
                      f"for step in 1 2; do {a.cli} run --output \"$SLURM_SUBMIT_DIR/batch.%j.json\" -- srun --mpi=pmi2 {program}; done\n")
    done = user("sbatch", "--wait", "--parsable", script)
    job = done.stdout.strip().partition(";")[0]
    said = (folder / f"slurm-{job}.out").read_text() if job else ""
    check(done.returncode == 0 and said.count("right") == 2 and said.count("4 ranks, together") == 2, f"a batch script: {done.returncode} {done.stderr} {said[-600:]}")
    check((folder / f"batch.{job}.json").exists() and (folder / f"batch.{job}-2.json").exists(), f"its profiles: {sorted(p.name for p in folder.glob('batch.*'))}")

    # A rank without the preload: it is named, and the program runs.
    policy = folder / "policy.json"
    policy.write_text('{"version": 1, "roll_call_timeout_s": 2}')
    bare = 'test "$SLURM_PROCID" = 3 && unset LD_PRELOAD; exec "$@"'
    done = user(a.cli, "run", "--policy", policy, "--output", folder / "lacks.json", "--", "srun", "--mpi=pmi2", "-N", 2, "-n", 4, "sh", "-c", bare, "sh", program, until=RECOVER, LD_PRELOAD=a.support)
    warnings = [text for text in done.stderr.splitlines() if "warning" in text]
    check("right" in done.stdout and len(warnings) == 1 and "rank 3 is not preloaded" in warnings[0], f"a rank without the preload: {done.returncode} {warnings} {done.stderr[-300:]}")
    recovered = run(a.cli, "recover", folder / "lacks.json")
    check(recovered.returncode == 0, f"its snapshots: {recovered.stderr}")

    # A step that Slurm cancels: the snapshots stay.
    done = user("srun", "--mpi=pmi2", "-n", 3, f"--export=ALL,LD_PRELOAD={preload},LATECOMER_OUTPUT={folder}/limit.json", str(pathlib.Path(a.bin) / "traps"), "run_on", until="together")
    recovered = run(a.cli, "recover", folder / "limit.json")
    check(recovered.returncode == 0 and "3 of 3 ranks" in recovered.stdout, f"a step that Slurm cancels: {done.stderr[-400:]} {recovered.stdout} {recovered.stderr}")

    # The wrong kind of PMI: each rank is alone in a world of its own, and nothing hangs.
    done = user("srun", "--mpi=none", "-n", 2, f"--export=ALL,LD_PRELOAD={preload},LATECOMER_OUTPUT={folder}/none.json", program)
    print(f"--mpi=none: {done.returncode} {done.stdout.split()} {done.stderr[-300:]}")
    check(done.stdout.count("right") == 2, "with --mpi=none, each process is rank 0 of 1")
finally:
    cluster.stop()
finish()
