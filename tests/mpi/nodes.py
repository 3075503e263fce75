# SPDX-License-Identifier: BSD-3-Clause
"""Several ranks on each of several hosts, which are network namespaces. MPI's names of the processors tell which ranks
share a host, also where the ranks of a host are not consecutive. Results are right, and the bytes that leave a host are
counted: under a node-aware algorithm a vector leaves each host twice at most in an allreduce, and once in a reduce or a
bcast. Without the right to create network namespaces the test says so and passes."""
import json
import pathlib
import re
import subprocess
import sys

from common import a, check, finish, folder, open_mpi

sys.path.append(a.root + "/tests/support")
from hosts import Hosts, run_until_profile
from profiles import calls_by_algorithm

HOSTS, PER_HOST, CALLS, FLOATS = 3, 3, 40, 65536
hosts = Hosts("lcnode", HOSTS)
if not hosts.able:
    hosts.remove()
    print("skipped: this machine does not allow network namespaces")
    sys.exit(0)


def sent():
    """Bytes that have left each host."""
    out = []
    for r in range(HOSTS):
        text = subprocess.run(["ip", "-n", f"{hosts.name}{r}", "-s", "-j", "link", "show", "eth0"], capture_output=True, text=True).stdout
        out.append(json.loads(text)[0]["stats64"]["tx"]["bytes"])
    return out


def run(name, launch, op, use, *program):
    policy, profile = folder / f"{name}.policy.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": op}, "use": use}]}))
    before = sent()
    found, said = run_until_profile([*hosts.inside, a.cli, "run", "--policy", policy, "--output", profile, "--overwrite", "--", *launch, *program], profile,
                                    dict(LD_PRELOAD=a.support, **hosts.environment_of_nodes))
    return said, calls_by_algorithm(found, op), max(y - x for x, y in zip(before, sent()))


try:
    launch = hosts.launch(folder / "start", PER_HOST, open_mpi=open_mpi)
    in_turn = hosts.launch(folder / "start", PER_HOST, open_mpi=open_mpi, in_turn=True)  # ranks 0, 3, 6 share the first host
    for placement, words in (("blocks", launch), ("in turn", in_turn)):
        for op, use, passes in (("allreduce", "arrival_trees", 2), ("allreduce", "slt", 2), ("reduce", "arrival_trees", 1), ("bcast", "arrival_trees", 1)):
            said, ran, most = run(f"{op}.{use}.{placement.split()[0]}", words, op, {"algorithm": use, "segments": 16}, pathlib.Path(a.bin) / "wire_bench", op, CALLS, FLOATS, "0," * 8 + "5")
            check(" 0 wrong" in said, f"{op}/{use}, {placement}: results are right: {said[-200:]}")
            check(ran.get(use, 0) >= CALLS, f"{op}/{use}, {placement}: it ran: {ran}")
            # TCP's headers and acknowledgements, connections and logs take up to a tenth more.
            times = most / (CALLS * FLOATS * 4)
            check(0.5 * passes < times < passes * 1.1 + 0.1, f"{op}/{use}, {placement}: the vector left a host {times:.2f} times per call, {passes} allowed")
        said, ran, _ = run(f"shapes.{placement.split()[0]}", words, "allreduce", "arrival_trees", pathlib.Path(a.bin) / "shapes", 20)
        # MPICH 4.0.2's own reduce is wrong here for some roots, also without latecomer.
        wrong = [line for line in said.split("\n") if re.search("differ|off by", line) and "reduce to" not in line]
        check(not wrong and "failures" in said and ran.get("arrival_trees", 0) > 20, f"shapes, {placement}: {ran} {wrong[:3]}")
        for op, program in (("gather", "blocks"), ("scatter", "blocks"), ("gatherv", "irregular"), ("scatterv", "irregular")):
            said, ran, _ = run(f"{op}.{placement.split()[0]}", words, op, "two_level", pathlib.Path(a.bin) / program, 20)
            check(re.search("^0 failures", said, re.M) and ran.get("two_level", 0) > 20, f"{op}/two_level, {placement}: {ran} {said[-200:]}")
finally:
    hosts.remove()
finish()
