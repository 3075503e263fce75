# SPDX-License-Identifier: BSD-3-Clause
"""Gathervs that MPI forbids, and insignificant arguments. If native is right, the result stays right; otherwise the
call returns an error. No result is silently wrong."""
import json

from common import a, check, finish, folder, run

for name in ("native", "linear", "binomial", "adaptive"):
    policy = folder / f"{name}.policy.json"
    policy.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "gatherv"}, "use": name}]}))
    for ranks in (4, 7):
        done = run(a.cli, "run", "--policy", policy, "--output", folder / f"{name}.json", "--overwrite", "--", "-n", ranks, a.bin + "/short_block", LD_PRELOAD=a.support)
        said = done.stdout.split("\n")
        check("across: right" in said, f"{name}, {ranks} ranks: between communicators: {said} {done.stderr[-300:]}")
        check("short: right" in said or "short: an error" in said, f"{name}, {ranks} ranks: a short block: {said} {done.stderr[-300:]}")
        if name in ("binomial", "adaptive"):
            check("a gatherv's blocks have" in done.stderr, f"{name}: and says why: {done.stderr[-300:]}")
finish()
