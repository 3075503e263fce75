# SPDX-License-Identifier: BSD-3-Clause
"""`advise --format` writes settings that MPI libraries follow: the messages of their own algorithms are counted."""
import json
import pathlib
import re
import shutil

from common import a, check, finish, folder, run

program, counter = pathlib.Path(a.bin) / "own_algorithms", pathlib.Path(a.build) / "lib/libcount_messages.so"
if not counter.exists():
    counter = next(pathlib.Path(a.build).rglob("libcount_messages.so"))
RANKS = 4
# On the first network a message costs much and a byte nothing, so the fewest rounds win; on the second one bytes cost.
ROUNDS, BYTES = "alpha=50ms", "beta=500ns/B"
# Operation, bytes, network, the algorithm that the model must prefer, its messages by rank.
CASES = [("allreduce", 1 << 20, ROUNDS, "recursive_doubling", [2, 2, 2, 2]),
         ("reduce", 1 << 20, ROUNDS, "binomial", [0, 1, 1, 1]),
         ("reduce", 1 << 11, BYTES, "rabenseifner", [2, 3, 3, 3]),
         ("bcast", 1 << 16, BYTES, "scatter_ring", [5, 3, 4, 3])]


def observed(op, size):
    profile = folder / f"{op}.{size}.json"
    done = run(a.cli, "run", "--overwrite", "--output", profile, "--", "-n", RANKS, program, op, size)
    check(done.returncode == 0, f"{op}: runs {done.stderr[-300:]}")
    return profile


def counted(op, size, settings):
    """Messages of each rank per call, in a shell that has read the settings."""
    words = ["env", f"LD_PRELOAD={counter}:{a.support}", "MPIR_CVAR_NOLOCAL=1", program, op, size]
    script = (f". {settings}\n" if settings else "") + "exec " + " ".join(map(str, [a.mpiexec, "-n", RANKS, *words]))
    done = run("sh", "-c", script)
    check(done.returncode == 0, f"{op}: {done.stderr[-300:]}")
    return [int(word) / 10 for word in done.stdout.split()]


def advised(profile, library, network, file):
    done = run(a.cli, "advise", profile, "--format", library, "--network", network, "-o", file)
    check(done.returncode == 0 and "Modelled gain" in done.stdout, f"{library}: {done.returncode} {done.stdout} {done.stderr}")
    return file.read_text()


for op, size, network, algorithm, messages in CASES:
    profile, settings = observed(op, size), folder / f"{op}.{size}.sh"
    text = advised(profile, "mpich", network, settings)
    check("forecasts of a model" in text and f": {algorithm}, " in text, f"{op}: the reason is given: {text}")
    before, after = counted(op, size, None), counted(op, size, settings)
    check(after == messages and before != messages, f"{op}: MPICH takes {algorithm}: messages per call {before}, then {after}")
    # No own algorithm is better where native is the best one.
    best = BYTES if network == ROUNDS else ROUNDS
    done = run(a.cli, "advise", profile, "--format", "mpich", "--network", best)
    check(done.returncode == 1 and "no setting, because" in done.stdout and "export" not in done.stdout, f"{op}: nothing is better: {done.stdout}")
    rows = json.loads(run(a.cli, "advise", profile, "--format", "mpich", "--network", network, "--json").stdout)
    check(rows["gain_ns"] > 0 and algorithm in [r["algorithm"] for r in rows["sites"]] and rows["text"] == text, f"{op}: --json says the same")
done = run(a.cli, "advise", profile, "--format", "opnmpi", "--network", ROUNDS)
check(done.returncode == 2 and "did you mean 'openmpi'" in done.stderr, f"an unknown format: {done.stderr}")

# Open MPI reads the rules. Its monitoring counts messages between all pairs of ranks.
launcher, compiler = shutil.which("mpirun.openmpi"), shutil.which("mpicc.openmpi")
built = folder / "own_algorithms.openmpi"
if not launcher or not compiler or run(compiler, pathlib.Path(a.root) / "tests/mpi/own_algorithms.c", "-o", built, "-ldl").returncode != 0:
    print("skipped Open MPI: its launcher or its headers are missing")
else:
    for op, size, network, algorithm, messages in CASES:
        rules, counts = folder / f"{op}.{size}.rules", {}
        advised(folder / f"{op}.{size}.json", "openmpi", network, rules)
        for bytes_, ruled in ((size, False), (size, True), (size + 4096, False), (size + 4096, True)):
            out = folder / f"counts.{op}.{bytes_}.{ruled}"
            options = ["--mca", "coll_tuned_use_dynamic_rules", 1, "--mca", "coll_tuned_dynamic_rules_filename", rules] if ruled else []
            done = run(launcher, "--allow-run-as-root", "--oversubscribe", "-n", RANKS, *options, "--mca", "pml_monitoring_enable", 2, "--mca", "pml_monitoring_enable_output", 3,
                       "--mca", "pml_monitoring_filename", out, built, op, bytes_, cwd=folder)
            check(done.returncode == 0, f"Open MPI, {op}: {done.stderr[-300:]}")
            lines = "".join(f.read_text() for f in folder.glob(out.name + "*")).splitlines()
            counts[bytes_, ruled] = sum(int(re.search(r"(\d+) msgs", line)[1]) for line in lines if line.startswith("I\t"))
        # 40 calls, and the gather of the counts.
        check(40 * sum(messages) <= counts[size, True] < 40 * sum(messages) + 40, f"Open MPI, {op}: takes {algorithm}: {counts}")
        check(counts[size + 4096, True] == counts[size + 4096, False], f"Open MPI, {op}: another size is not changed: {counts}")
finish()
