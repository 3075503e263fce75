# SPDX-License-Identifier: BSD-3-Clause
"""The roll call: a rank without the preload, and name services that misbehave. Every rank observes alone, and one line says
why."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

from common import a, built, check, finish, folder, open_mpi, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from processes import end_tree

# A job with one rank without preload observes locally: same result, one warning, no hang.
for missing in (0, 1, 2, 3):
    parts, words = [], []
    for rank in range(4):
        preload = a.support if rank == missing else a.library + ":" + a.support
        words += ([":"] if rank else []) + ["-n", "1", *(["-x", f"LD_PRELOAD={preload}"] if open_mpi else ["-env", "LD_PRELOAD", preload]), a.bin + "/breakers", "divergent"]
    started = time.time()
    done = run(a.mpiexec, *words, LATECOMER_OUTPUT=folder / f"partial{missing}.json")
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

# The name service misbehaves, or a rank answers late: every rank observes alone, and one line says why.
quick = folder / "quick.json"
quick.write_text(json.dumps({"version": 1, "mode": "apply", "roll_call_timeout_s": 1, "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))
service = built("name_service")
for how, says in (("forgets", "does not show a rank its own name"), ("invents", "answers names that nobody published"), ("refuses", "has no name service"),
                  ("delays", "rank 1 is not preloaded with this build of latecomer, or it answers more than 1 s late (policy key roll_call_timeout_s)")):
    done = run(a.mpiexec, "-n", 4, a.bin + "/breakers", "divergent", LD_PRELOAD=f"{a.library}:{a.support}:{service}", NAME_SERVICE=how, LATECOMER_POLICY=quick, LATECOMER_OUTPUT=folder / f"{how}.json")
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    check(done.returncode == 0 and "right" in done.stdout, f"a name service that {how}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
    check(len(warnings) == 1 and says in warnings[0] and "every rank observes alone" in warnings[0], f"a name service that {how}: one warning: {warnings}")
    check(run(a.cli, "recover", folder / f"{how}.json.parts").returncode == 0, "and what the ranks saw can be recovered")

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
            return [a.mpiexec, "-nameserver", f"localhost:{port}", "-genv", "LATECOMER_POLICY", str(quick), "-genv", "LATECOMER_OUTPUT", str(folder / f"{name}.json"), *map(str, words)]

        both = a.library + ":" + a.support
        for job in range(3):
            done = run(*served(f"served{job}", "-genv", "LD_PRELOAD", both, "-n", 4, a.bin + "/breakers", "divergent"))
            check(done.returncode == 0 and "right" in done.stdout and "warning" not in done.stderr, f"-nameserver, job {job}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
            check((folder / f"served{job}.json").exists(), f"-nameserver, job {job}: the ranks observe together")
        words = served("lacking", "-n", 1, "-env", "LD_PRELOAD", both, a.bin + "/breakers", "divergent", ":", "-n", 1, "-env", "LD_PRELOAD", a.support, a.bin + "/breakers", "divergent")
        done = run(*words)
        warnings = [line for line in done.stderr.splitlines() if "warning" in line]
        check(done.returncode == 0 and "right" in done.stdout and len(warnings) == 1 and "rank 1 did not answer through mpiexec -nameserver" in warnings[0], f"-nameserver, rank 1 without preload: {done.returncode} {warnings}")
        jobs = [subprocess.Popen(served(f"at_once{i}", "-genv", "LD_PRELOAD", both, "-n", 2 + i, a.bin + "/breakers", "divergent"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) for i in range(2)]
        for i, running in enumerate(jobs):
            out, err = running.communicate(timeout=patience * 120)
            check(running.returncode == 0 and "right" in out and "warning" not in err and (folder / f"at_once{i}.json").exists(), f"-nameserver, job {i} of two at once: {running.returncode} {out[-200:]} {err[-300:]}")
    finally:
        end_tree(serving)
elif not open_mpi:
    print("skipped mpiexec -nameserver: hydra_nameserver is not here")
finish()
