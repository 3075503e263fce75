# SPDX-License-Identifier: BSD-3-Clause
"""Runs one MPI program natively and under the preload with a list of policies, and compares the runs.

A policy's name is none (observe), resting (observe, with the smallest budget), finalize (observe, exchange at the end), nonblocking (native waits in the
non-blocking forms), off, auto, or an algorithm. An algorithm applies to every collective that has one of that name.
Exit status and, with --same-output, standard output must equal native's. The profile must be complete and conform
to its schema. With --dispatches the algorithm must have run."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from open_mpi import ENVIRONMENT

parser = argparse.ArgumentParser()
for name in ("cli", "mpiexec", "root", "np", "policies", "support"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--family", default="mpich", choices=["mpich", "openmpi"], help="the MPI library of the program and of --mpiexec")
parser.add_argument("--dispatches", action="store_true")
parser.add_argument("--background", action="store_true", help="the background engine is on")
parser.add_argument("--without-native", action="store_true", help="natively it crashes: status 0 is wanted")
parser.add_argument("--same-output", action="store_true")
parser.add_argument("--count", help="regular expression: lines of output counted and compared")
parser.add_argument("--cwd")
parser.add_argument("--network", help="policy's network, a name or an object, for the imbalance factor and plans")
parser.add_argument("--beside", type=int, default=1, help="runs at one time, where ranks sleep")
parser.add_argument("--timeout", type=float, default=120)
parser.add_argument("command", nargs=argparse.REMAINDER)
a = parser.parse_args()
command = a.command[1:] if a.command[0] == "--" else a.command
folder = pathlib.Path(tempfile.mkdtemp(prefix="latecomer-test-"))
open_mpi = a.family == "openmpi"
# Open MPI yields its cores by itself where ranks share them.
environment = {**os.environ, **(ENVIRONMENT if open_mpi else {"LD_PRELOAD": a.support})}


def run(words, extra={}):
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=a.timeout, cwd=a.cwd, env={**environment, **extra})
    return done.returncode, done.stdout, done.stderr


def facts(result):
    status, out, _ = result
    seen = {"status": status}
    if a.same_output:
        seen["output"] = sorted(out.splitlines())
    if a.count:
        seen["lines"] = len(re.findall(a.count, out, re.M))
    return seen


if a.without_native:
    want = {"status": 0}
native_environment = {k: v for k, v in environment.items() if k != "LD_PRELOAD"}
if not a.without_native:
    native = subprocess.run([a.mpiexec, *([] if open_mpi else ["-genv", "LD_PRELOAD", a.support]), "-n", a.np, *command], capture_output=True, text=True,
                            errors="replace", timeout=a.timeout, cwd=a.cwd, env=native_environment)
    want = facts((native.returncode, native.stdout, native.stderr))
    print("native:", {k: v for k, v in want.items() if k != "output"})
try:
    import jsonschema
    validator = jsonschema.Draft202012Validator(json.loads((pathlib.Path(a.root) / "docs/schema/profile.schema.json").read_text()))
except ImportError:
    validator = None

catalogue = json.loads(subprocess.run([a.cli, "algorithms", "--json"], capture_output=True, text=True, check=True).stdout)
catalogue = [row for row in catalogue if row["restrictions"] != "range communicators only"]


def under(name):
    """Runs the program under a policy. Returns what to print, and what is wrong."""
    failures = []
    served = [row["op"] for row in catalogue if row["name"] == name]
    policy = {"version": 1}
    if name == "resting":
        policy["budget"] = 0.0001
    elif name == "finalize":
        policy["exchange"] = "finalize"
    elif name == "nonblocking":  # courteous native waits in the non-blocking forms
        policy.update(mode="apply", waiting="courteous", courteous_by="nonblocking")
    elif name == "off":
        policy["mode"] = "off"
    elif name == "auto":
        policy.update(mode="apply", rules=[{"match": {}, "use": "auto"}])
    elif name != "none":
        policy.update(mode="apply", rules=[{"match": {"op": op}, "use": name} for op in served or ["allreduce"]])
    if a.background:
        policy["background"] = {"enabled": True}
    if a.network:
        policy["network"] = json.loads(a.network) if a.network.startswith("{") else a.network
    policy_file, profile_file = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy_file.write_text(json.dumps(policy))
    options = [] if name == "none" and not a.network else ["--policy", policy_file]
    result = run([a.cli, "run", *map(str, options), "--output", str(profile_file), "--", "-n", a.np, *command])
    got = facts(result)
    said = f"{name}: { {k: v for k, v in got.items() if k != 'output'} }"
    if got != want:
        failures.append(f"{name}: {got} instead of {want}\n{result[1][-2000:]}\n{result[2][-2000:]}")
        return said, failures
    if name == "off":
        return said, failures
    if not profile_file.exists():
        failures.append(f"{name}: no profile\n{result[2][-1000:]}")
        return said, failures
    profile = json.loads(profile_file.read_text())
    if validator:
        failures += [f"{name}: schema: {e.json_path}: {e.message[:200]}" for e in validator.iter_errors(profile)][:3]
    ran = {}
    for site in profile["sites"]:
        if site["op"] in {row["op"] for row in catalogue}:
            for algorithm, d in site["dispatch"].items():
                calls = ran.setdefault(site["op"], {})
                calls[algorithm] = calls.get(algorithm, 0) + d["calls"]
    said += f"\n   {ran} warnings: {[w for w in profile['warnings'] if 'imbalance_factor' not in w]}"
    for op in served if a.dispatches else []:
        if op in ran and not ran[op].get(name):
            failures.append(f"{name}: never ran for {op}: {ran}")
    return said, failures


failures = []
with concurrent.futures.ThreadPoolExecutor(a.beside) as pool:
    for said, failed in pool.map(under, a.policies.split(",")):
        print(said)
        failures += failed
for f in failures:
    print("FAILED", f)
print(f"{len(failures)} failures")
if not failures:  # otherwise the files are evidence
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(bool(failures))
