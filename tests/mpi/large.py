# SPDX-License-Identifier: BSD-3-Clause
"""Vectors of 2.2 GiB. The program checks the results. Two ranks with the copies of MPI take up to 10 GiB, and the thread
sanitizer adds four bytes to each. Without counts of MPI_Count, such calls stay native."""
import json
import pathlib
import re

from common import a, check, finish, folder, launcher, open_mpi, run, sanitized

free = int(re.search(r"MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]) >> 20
needed = 60 if sanitized == "libtsan" else 14
if free < needed:
    print(f"skipped: {free} GiB of memory are free, and vectors of 2.2 GiB need {needed}")
    finish()
wide = folder / "wide.json"
wide.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce", "bytes": {"min": 4096}}, "use": "ring"}, {"match": {"op": "bcast"}, "use": "binomial"}]}))
for policy, wanted in ((None, "native"), (wide, "native" if open_mpi else "binomial")):
    output = folder / f"{wanted}{policy is None}.json"
    done = run(a.cli, "run", *(["--policy", policy] if policy else []), "--output", output, "--", *launcher, "-n", 2, a.bin + "/traps", "large", timeout=300, LD_PRELOAD=a.support)
    ran = {name for s in json.loads(output.read_text())["sites"] if s["op"] == "bcast" for name in s["dispatch"]} if output.exists() else None
    check(done.returncode == 0 and "right" in done.stdout and ran == {wanted}, f"vectors of 2.2 GiB, {ran}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}")
finish()
