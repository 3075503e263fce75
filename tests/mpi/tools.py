# SPDX-License-Identifier: BSD-3-Clause
"""The commands around jobs: syntax of launchers, diff of two runs and of two builds of a program, calibrate and a
policy with its answer, and the errors of recover."""
import json
import os
import pathlib

from common import a, check, finish, folder, run

patterns = a.bin + "/patterns"
fake = str(pathlib.Path(a.root) / "tests/support")
path = fake + ":" + os.environ["PATH"]


def observed(name, *words, **environment):
    done = run(a.cli, "run", "--overwrite", "--output", folder / f"{name}.json", *words, PATH=path, **environment)
    check(done.returncode == 0, f"{name}: {done.returncode} {done.stderr[-300:]}")
    file = folder / f"{name}.json"
    profile = json.loads(file.read_text()) if file.exists() else {"sites": [], "job": {}}
    check(profile["job"].get("ranks") == 2 and len(profile["sites"]) == 2, f"{name}: a profile of 2 ranks with 2 sites")
    return profile


# MPICH's options, its launcher by name, and Slurm's.
before = observed("before", "--", "-n", 2, patterns, 60, 100)
observed("mpiexec", "--", "mpiexec.mpich", "-genv", "X", "1", "-n", 2, patterns, 60, 100)
observed("launcher", "--launcher", a.mpiexec, "--", "-np", 2, patterns, 60, 100)
observed("srun", "--", "srun", "-n", 2, patterns, 60, 100)
observed("srun_long", "--", "srun", "--mpi=pmi2", "--ntasks=2", patterns, 60, 100)
observed("srun_export", "--launcher", "srun", "--", "--export=HOME,USER_SETTING=7", "-n", 2, patterns, 60, 100)
for words, says in [(["srun", "-n", "2"], "no program"), (["mpiexec.mpich"], "no program"), (["-n", "2", "./nothing_here"], None)]:
    done = run(a.cli, "run", "--", *words, PATH=path)
    check(done.returncode == 2 and says in done.stderr if says else done.returncode != 0, f"run -- {' '.join(words)}: {done.returncode} {done.stderr!r}")
done = run(a.cli, "run", "--launcher", "aprun", "--", "-n", 2, patterns)
check(done.returncode == 2 and "aprun" in done.stderr, f"a launcher that is not there: {done.stderr}")
# By hand under Slurm, as documented.
done = run("srun", "--export=ALL,LD_PRELOAD=" + a.library + ",LATECOMER_OUTPUT=" + str(folder / "hand.json"), "-n", 2, patterns, 60, 100, PATH=path)
check(done.returncode == 0 and (folder / "hand.json").exists(), f"srun --export=ALL,LD_PRELOAD=...: {done.stderr}")

# diff: the same program, another algorithm.
after = observed("after", "--policy", pathlib.Path(a.root) / "examples/ring.policy.json", "--", "-n", 2, patterns, 60, 100)
check({s["id"] for s in before["sites"]} == {s["id"] for s in after["sites"]}, "two runs: the same ids")
done = run(a.cli, "diff", "--json", folder / "before.json", folder / "after.json")
answer = json.loads(done.stdout)
check(set(answer) == {"wall_time_s", "promised", "finding", "gain", "sites"} and len(answer["sites"]) == 2, "shape of diff")
row = answer["sites"][0]
check(set(row) == {"id", "place", "op", "comm_size", "calls", "elapsed_ns", "after_last_ns", "imbalance_ns", "predicted_ns", "algorithms", "change_ns"}, f"shape of a row: {set(row)}")
by_id = {s["id"]: s for s in after["sites"]}
check(all(r["calls"] == {"before": 60, "after": 60} and r["elapsed_ns"]["after"] == by_id[r["id"]]["elapsed_ns"]["mean"] for r in answer["sites"]), "figures are the profiles'")
changes = [abs(r["change_ns"]) for r in answer["sites"]]
check(changes == sorted(changes, reverse=True), "largest change first")
done = run(a.cli, "diff", folder / "before.json", folder / "after.json", "--site", "*staircase*")
check(done.returncode == 0 and done.stdout.count("allreduce") == 1 and "staircase" in done.stdout, f"diff --site: {done.stdout}")
done = run(a.cli, "diff", folder / "before.json", folder / "after.json", "--site", "nowhere")
check(done.returncode == 2 and "no site matches 'nowhere'" in done.stderr, "diff --site that matches nothing")

# A new build of a program has other ids, but the same places.
source = pathlib.Path(a.root) / "tests/mpi/patterns.c"
for name, flags in (("built", ["-O1"]), ("rebuilt", ["-O1", "-falign-functions=64", "-DMORE"])):
    done = run("mpicc.mpich", "-g", *flags, "-fno-optimize-sibling-calls", "-fno-ipa-icf", source, "-o", folder / name)
    check(done.returncode == 0, f"{name}: {done.stderr}")
    observed(name, "--", "-n", 2, folder / name, 60, 100)
old, new = (json.loads((folder / f"{n}.json").read_text()) for n in ("built", "rebuilt"))
check(not {s["id"] for s in old["sites"]} & {s["id"] for s in new["sites"]}, "another build, other ids")
rows = json.loads(run(a.cli, "diff", "--json", folder / "built.json", folder / "rebuilt.json").stdout)["sites"]
check(len(rows) == 2 and all(r["calls"] == {"before": 60, "after": 60} for r in rows), f"matched by place: {[(r['place'], r['calls']) for r in rows]}")
rows = json.loads(run(a.cli, "diff", "--json", folder / "before.json", folder / "rebuilt.json").stdout)["sites"]
check(len(rows) == 2 and {r["place"].split()[0] for r in rows} == {"staircase", "one_late"}, "matched across programs by place")

# calibrate: its output is a policy's network, and its figures are measured.
done = run(a.cli, "calibrate", "-n", 2)
network = json.loads(done.stdout)
check(network["beta_ns_per_byte"] > 0 and network["alpha_us"] >= 0 and network["gamma_ns_per_byte"] > 0, f"calibrate: {network}")
policy = folder / "measured.json"
policy.write_text(json.dumps({"version": 1, "network": network}))
done = run(a.cli, "check", policy)
check(done.returncode == 0, f"a policy takes it: {done.stdout}")
profile = observed("measured", "--policy", policy, "--", "-n", 2, patterns, 60, 1000)
check(all(s["imbalance_factor"] and s["imbalance_factor"]["mean"] > 0 for s in profile["sites"]), "with it, imbalance factors are known")
done = run(a.cli, "calibrate", "-n", 1)
check(done.returncode == 2 and "2" in done.stderr, f"calibrate -n 1: {done.stderr}")

done = run(a.cli, "recover", folder / "nothing.json")
check(done.returncode == 2 and "nothing.json" in done.stderr, f"recover of nothing: {done.stderr}")
finish()
