# SPDX-License-Identifier: BSD-3-Clause
"""The profile of a large job through the tree: equal to one that rank 0 alone makes of all parts, within a bounded memory
per rank, and read by every command. Prints the messages, the memory and the seconds. With `--large`, up to 16,384 ranks."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

command, gathered = sys.argv[1:3]
large = "--large" in sys.argv
failures = []


def check(condition, what):
    print("ok    " if condition else "FAILED", what)
    if not condition:
        failures.append(what)


def make(path, ranks, sites, per_host, *how):
    done = subprocess.run([gathered, str(ranks), str(sites), str(per_host), str(path), *map(str, how)], capture_output=True, text=True, timeout=600)
    words = done.stdout.split()
    print(done.stdout.strip())
    check(done.returncode == 0, f"{ranks} ranks, {how}: {done.stderr}")
    return {k: float(v) for k, v in zip(words[::2], words[1::2])}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for ranks, per_host in ((1, 1), (33, 8), (34, 34), (300, 7), (1500, 1), (1500, 64)):
        tree, star = folder / "tree.json", folder / "star.json"
        found = make(tree, ranks, 3, per_host)
        make(star, ranks, 3, per_host, "star")
        check(tree.read_bytes() == star.read_bytes(), f"{ranks} ranks, {per_host} per host: the tree's profile is the star's, byte by byte")
        check(found["members"] == ranks and found["messages"] == ranks - 1 and found["children"] <= 32, f"{ranks} ranks: every rank once, and at most 32 children: {found}")

    # An inner node dies: the profile has the others, and names those that are missing.
    lacks = folder / "lacks.json"
    found = make(lacks, 1500, 2, 64, 64)
    profile = json.loads(lacks.read_text())
    there = {c["rank"] for c in profile["clock"]}
    missing = sorted(set(range(1500)) - there)
    check(missing == list(range(64, 128)) and any(f"holds {len(there)} of 1500 ranks" in w for w in profile["warnings"]), f"a node dies: {len(missing)} ranks are missing")
    check(any("it lacks ranks 64-127" in w for w in profile["warnings"]), f"the profile names them: {profile['warnings']}")
    done = subprocess.run([command, "report", str(lacks)], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0 and "64-127" in done.stdout, f"the report names them: {done.stdout[-600:]}")

    # The memory of a node below the root is that of the ranks below it, not of the job.
    sizes = ((1000, 64), (10000, 64), (16384, 64)) if large else ((1000, 64), (4000, 64))
    memory = {}
    for ranks, per_host in sizes:
        path = folder / f"large{ranks}.json"
        memory[ranks] = make(path, ranks, 20, per_host)
        check(memory[ranks]["below_MiB"] < 64 and memory[ranks]["largest_MiB"] < 32, f"{ranks} ranks: the memory of a node: {memory[ranks]}")
        for words in (["report"], ["report", "--json"], ["report", "--html", str(folder / "page.html")], ["whatif"], ["diff", str(path)]):
            begin = time.time()
            done = subprocess.run([command, *words, str(path)], capture_output=True, text=True, timeout=300)
            print(f"{ranks} ranks, 20 sites, {path.stat().st_size >> 20} MiB: latecomer {words[0]} {words[1] if words[1:] and words[1].startswith('-') else ''}: {time.time() - begin:.2f} s")
            check(done.returncode in (0, 1), f"{words[0]} reads it: {done.returncode} {done.stderr[-200:]}")
            check(words != ["report"] or str(ranks - 1) in done.stdout, "the report names the late rank")
print(f"{len(failures)} failures")
sys.exit(bool(failures))
