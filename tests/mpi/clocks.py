# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine: each rank has a network, time and host-name namespace. Their clocks differ by large
offsets and drift. Offsets and patterns must come back within the stated uncertainty. Needs root, or the right to
create namespaces; without it the test says so and passes."""
import json
import pathlib
import os
import subprocess
import sys
import time

from common import a, built, check, finish, folder, open_mpi, patience, rows_of

sys.path.append(a.root + "/tests/support")
from hosts import Hosts
from processes import end_tree

RANKS = 3
STEP_MS = 3
drift = built("drift_clock")
name = "latecomer-t"


def run_here(out, *words, **extra):
    """Ends the job after the profile is written. MPICH 4.0.2 over UCX's TCP sometimes hangs in MPI_Finalize, also
    without latecomer (1 of 8 runs on a busy machine): two ranks close a connection, and the third no longer
    progresses it."""
    job = subprocess.Popen(list(map(str, words)), env=dict(os.environ, **extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    written = 0
    deadline = time.time() + patience * 100
    while job.poll() is None and time.time() < deadline and not (written and time.time() > written + 5):
        time.sleep(0.1)
        if out.exists() and not written:
            written = time.time()
    if job.poll() is None:
        print("MPI_Finalize hangs over TCP" if written else "hangs")
        end_tree(job)
    _, stderr = job.communicate()
    return stderr


hosts = Hosts(name, RANKS)
if not hosts.able or subprocess.run(["unshare", "-T", "--monotonic", "1000", "--fork", "-u", "true"], capture_output=True).returncode != 0:
    hosts.remove()
    print("skipped: this machine does not allow network namespaces")
    sys.exit(0)
wrapper = folder / "enter"
wrapper.write_text(f"""#!/bin/sh
# Enters the namespaces of this rank. The preload applies to the program only.
preload=$LD_PRELOAD; unset LD_PRELOAD
case $PMI_RANK in 1) ppm=$SLOW_PPM;; 2) ppm=$FAST_PPM;; *) ppm=0;; esac
exec ip netns exec {name}$PMI_RANK unshare -u -T --monotonic $((PMI_RANK * 1000)) --fork --kill-child \\
  sh -c 'hostname host$PMI_RANK; exec env LD_PRELOAD='"$preload"' DRIFT_PPM='"$ppm"' "$@"' sh "$@"
""")
wrapper.chmod(0o755)
launch, network = ["-n", RANKS, wrapper], hosts.environment
if open_mpi:  # one proxy per host, in that host's namespaces
    apart = "-T --monotonic $((host * 1000)) --fork --kill-child"
    drifts = "case $host in 1) export DRIFT_PPM=$SLOW_PPM;; 2) export DRIFT_PPM=$FAST_PPM;; esac; "
    launch = hosts.launch(folder / "start", 1, open_mpi=True, spaces=apart, first=drifts)

try:
    for case, calls, slow, fast in (("shifted", 150, 0, 0), ("drifting", 500, -1000, 1000)):
        out = folder / f"{case}.json"
        said = run_here(out, *(hosts.inside if open_mpi else []), a.cli, "run", "--output", out, "--verbose", 1, "--", *launch, a.bin + "/patterns", calls, STEP_MS * 1000,
                   LD_PRELOAD=f"{drift}:{a.support}", ARRIVALS=folder, SLOW_PPM=str(slow), FAST_PPM=str(fast), **network)
        check(out.exists(), f"{case}: a profile: {said[-800:]}")
        if not out.exists():
            continue
        profile = json.loads(out.read_text())
        check(profile["job"]["hosts"] == [f"host{r}" for r in range(RANKS)] and "3 clocks" in said, f"{case}: three hosts, three clocks")
        clock = {c["rank"]: c for c in profile["clock"]}
        print({r: (c["offset_ns"] + r * 1000 * 10**9, c["uncertainty_ns"], c["looks"]) for r, c in clock.items()})
        # Add the drift since the start of the program. It is known by construction and limited by the program's run
        # time.
        drifted = {1: -slow, 2: -fast}
        wall = profile["job"]["wall_time_s"]
        for r in (1, 2):
            error = clock[r]["offset_ns"] + r * 1000 * 10**9
            low, high = sorted((0, drifted[r] * 1e3 * (wall + 3)))
            check(low - clock[r]["uncertainty_ns"] - 5000 <= error <= high + clock[r]["uncertainty_ns"] + 5000, f"{case}: rank {r}: off by {error} ns, stated {clock[r]['uncertainty_ns']}")
            check(0 < clock[r]["uncertainty_ns"] < 20_000_000, f"{case}: rank {r}: an uncertainty that says something")
        sites = {s["frames"][0]["offset"]: s for s in profile["sites"] if s["op"] == "allreduce"}
        stairs = max(sites.values(), key=lambda s: rows_of(profile, s)[2]["mean_offset_ns"])
        means = [row["mean_offset_ns"] for row in rows_of(profile, stairs)]
        # Where other processes hold the cores, single calls rest or their logs are lost.
        check(0.9 * calls <= stairs["patterns"] <= calls, f"{case}: {stairs['patterns']} patterns of {calls} calls were seen whole")
        # The true arrivals: each rank's notes by the kernel's clock, minus the shift of its namespace.
        notes = [[int(x) - r * 1000 * 10**9 for x in (folder / f"arrivals.{r}").read_text().split()] for r in range(RANKS)]
        truth = [sum(mine[i] - min(n[i] for n in notes) for i in range(calls)) / calls for mine in notes]
        for r in (1, 2):
            tolerance = clock[r]["uncertainty_ns"] + 200_000
            check(abs((means[r] - means[0]) - (truth[r] - truth[0])) <= tolerance, f"{case}: rank {r} comes {means[r] - means[0]:.0f} ns after rank 0, in truth {truth[r] - truth[0]:.0f}, tolerance {tolerance}")
        check(truth[2] - truth[0] > tolerance, f"{case}: rank 2 is late in truth")  # load makes rank 0 late too
        if case == "drifting":
            check(all(clock[r]["looks"] >= 3 for r in (1, 2)), "offsets were renewed while the job ran")
finally:
    hosts.remove()
finish()
