# SPDX-License-Identifier: BSD-3-Clause
"""The example scripts end on few ranks and print the publications' figures beside theirs. No times are checked."""
import pathlib
import re

from common import a, check, finish, run

examples = pathlib.Path(a.root) / "examples"


def script(name, *words):
    done = run(examples / name, a.build, *words, timeout=600)
    check(done.returncode == 0, f"{name}: {done.returncode} {done.stdout[-800:]} {done.stderr[-800:]}")
    return done.stdout


said = script("training.sh", 2, 12, 1)
for way, figures in (("ring", "1.000 +1.000"), ("slt", "1.079 +1.040"), ("prr", "1.121 +1.042"), ("native", "- +-"), ("prr_edge", "- +-"), ("auto", "- +-")):
    check(re.search(rf"^{way} +[0-9.]+ s +[0-9.]+ s +[0-9.]+ x +[0-9.]+ x +{figures}$", said, re.M), f"training.sh: {way}: {said[-1500:]}")
check("16 nodes" in said and "48" not in said.split("paper: ")[-1].split("loss")[0], "training.sh: the paper ran 16 nodes")
said = script("fft.sh", 2, 20, 1)
for way, figures in (("linear_sync", r"0\.0% +0\.0%"), ("sls", r"-50% +-3\.3%"), ("bsls", r"-50% +-3\.1%"), ("native", "- +-")):
    check(re.search(rf"^{way} +[0-9.]+ ms +[0-9.]+ s +[-+][0-9.]+% +[-+][0-9.]+% +{figures}$", said, re.M), f"fft.sh: {way}: {said[-1500:]}")
check(re.search(r"^linear_sync .* \+0\.0% +\+0\.0% ", said, re.M), "fft.sh: changes are against linear_sync")
said = script("late_benchmark.sh", "allreduce", 3, 4, "64,5000", "0,2", 1, "randomlate", "ring slt prr")
check("0 wrong results" in said, f"late_benchmark.sh: {said[-800:]}")
check(len(re.findall(r"^(?:native|ring|slt|prr) +[0-9.]+ \( *[0-9.]+\) +[0-9.]+ \( *[0-9.]+\)$", said, re.M)) == 8, f"late_benchmark.sh: a row per algorithm and size: {said}")
for op in ("reduce", "scatter", "gather"):
    for mode in ("onelate", "randlate"):
        done = run(a.mpiexec, "-n", 3, a.bin + "/late_benchmark", op, mode, 3, "100", "1", LD_PRELOAD=a.support)
        check(done.returncode == 0 and re.fullmatch(r"100 floats, 1 ms: elapsed [0-9.]+ ms, run [0-9.]+ ms, 0 wrong\n", done.stdout), f"late_benchmark {op} {mode}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
done = run(a.mpiexec, "-n", 2, a.bin + "/late_benchmark", "alreduce", "onelate", 3, "100", "1", LD_PRELOAD=a.support)
check(done.returncode == 2 and "usage" in done.stderr, "late_benchmark: a misspelled collective")
finish()
