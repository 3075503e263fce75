# SPDX-License-Identifier: BSD-3-Clause
"""Policy keys of the measurements: `prometheus` writes figures while the job runs, and `causes` switches timing off."""
import json
import pathlib
import re
import subprocess
import sys
import time

from common import a, built, check, finish, folder, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from processes import end_tree
from profiles import calls_by_algorithm

SAMPLE = re.compile(r'(latecomer_\w+)\{(\w+="[^"]*"(?:,\w+="[^"]*")*)\} ([-+.0-9e]+)')


def policy(name, **keys):
    file = folder / f"{name}.policy.json"
    file.write_text(json.dumps({"version": 1, **keys}))
    return file


def job(name, file, *words):
    return [a.cli, "run", "--overwrite", "--output", folder / f"{name}.json", "--policy", file, "--", "-n", *words]


# While the job runs, with and without snapshots. The leader of MPI_COMM_WORLD is rank 0.
for name, keys in (("metrics", {}), ("without_spool", {"spool": False})):
    texts = folder / name
    texts.mkdir()
    running = subprocess.Popen(list(map(str, job(name, policy(name, prometheus=str(texts), **keys), "4", pathlib.Path(a.bin) / "hang", "none", "100000000"))),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline, text = time.time() + patience * 60, ""
        while time.time() < deadline and "latecomer_site_waited_seconds_total{" not in text:
            files = list(texts.glob("latecomer-*-0.prom"))
            text = files[0].read_text() if files else ""
            time.sleep(0.05)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        samples = [SAMPLE.fullmatch(line) for line in lines]
        check(samples and all(samples), f"{name}: samples in the format of Prometheus: {lines[:3]}")
        series = [(s[1], s[2]) for s in samples if s]
        check(len(set(series)) == len(series), f"{name}: no sample occurs twice")
        check(all(re.search(r'program="hang",jobid="[^"]+",leader="0"', labels) for _, labels in series), f"{name}: every sample names its job and its leader")
        for metric in ("rank_waited_seconds_total", "rank_awaited_seconds_total", "rank_last_total", "rank_lateness_seconds", "site_calls_total", "site_waited_seconds_total", "site_last_total", "site_lateness_seconds"):
            check(text.count(f"# TYPE latecomer_{metric} ") == 1 and any(m == "latecomer_" + metric for m, _ in series), f"{name}: {metric}")
        # Every rank writes its own figures.
        own = set()
        while time.time() < deadline and own != set("0123"):
            for rank in "0123":
                for file in texts.glob(f"latecomer-*-{rank}.prom"):
                    own |= {rank} if re.search(rf'latecomer_rank_last_total{{[^}}]*leader="{rank}"[^}}]*,rank="{rank}"', file.read_text()) else set()
            time.sleep(0.05)
        check(own == set("0123"), f"{name}: all ranks are there: {sorted(own)}")
        calls = next(float(s[3]) for s in samples if s[1] == "latecomer_site_calls_total" and 'op="allreduce"' in s[2])
        check(calls > 0, f"{name}: calls are counted")
        # A reader never sees half a file: the last metric always has samples.
        whole = [files[0].read_text().rpartition("# TYPE latecomer_site_lateness_seconds")[2].count("\nlatecomer_site_lateness_seconds{") for _ in range(200)]
        check(all(whole), f"{name}: the file is whole in {sum(map(bool, whole))} of 200 readings")
    finally:
        end_tree(running)

# A job that ends by itself removes its file. A folder that is missing gives one warning, and the job runs.
texts = folder / "ended"
texts.mkdir()
done = run(*job("ended", policy("ended", prometheus=str(texts)), "2", pathlib.Path(a.bin) / "hang", "none", "200000"))
check(done.returncode == 0 and not list(texts.iterdir()), f"a job that ends leaves nothing: {list(texts.iterdir())} {done.stderr[-300:]}")
done = run(*job("missing", policy("missing", prometheus=str(folder / "nowhere")), "2", pathlib.Path(a.bin) / "hang", "none", "2000000"))  # longer than a second, from which on there are snapshots
check(done.returncode == 0 and done.stderr.count("no figures for Prometheus are written") == 1, f"a folder that is missing: {done.stderr[-300:]}")
check((folder / "missing.json").exists() and run(a.cli, "check", policy("none", prometheus="")).returncode == 0, "the profile is written, and \"\" is valid")

# Without causes nothing is timed between collectives, and the verdict does not speak of it.
reports = {}
for name, keys in (("with", {}), ("without", {"causes": False})):
    done = run(*job(name, policy(name, **keys), "2", pathlib.Path(a.bin) / "causes", "sleep", "1", "60", "8"))
    check(done.returncode == 0, f"causes, {name}: runs {done.stderr[-300:]}")
    reports[name] = json.loads(run(a.cli, "report", "--json", folder / f"{name}.json").stdout)
timed = {name: [p["wall_ns"] > 0 for p in report["processes"]] for name, report in reports.items()}
check(timed == {"with": [True, True], "without": [False, False]}, f"times of the processes: {timed}")
check(any("before" in s for s in reports["with"]["sites"]) and not any("before" in s for s in reports["without"]["sites"]), "intervals are sampled only with causes")
check(all(r["causes"] is None for r in reports["without"]["ranks"]) and "Computing or asleep" in reports["with"]["verdict"][0] and "omputing or asleep" not in reports["without"]["verdict"][0], f"the verdict: {reports['without']['verdict']}")
check(reports["without"]["wait_share"] > 0.1, "waiting is known all the same")

# GPU memory: if MPI supports it on one rank, all ranks stay native, and one line says so.
preload = f"{a.support}:{built('device_buffers')}"
ring = {"mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}
for name, query, rank, keys in (("gpu_first", "MPIX_GPU_query_support", 0, {}), ("gpu_last", "MPIX_GPU_query_support", 2, {}), ("gpu_nowhere", "MPIX_GPU_query_support", 3, {}),
                                ("gpu_unused", "MPIX_GPU_query_support", 1, {"device_buffers": "none"})):
    native = name in ("gpu_first", "gpu_last")
    done = run(*job(name, policy(name, **ring, **keys), "3", pathlib.Path(a.bin) / "patterns", "40", "100"), LD_PRELOAD=preload, GPU_QUERY=query, GPU_RANK=str(rank))
    said = [line for line in done.stderr.splitlines() if "MPI reports support for GPU memory" in line]
    check(done.returncode == 0 and len(said) == native and all('"device_buffers": "none"' in line for line in said), f"{name}: runs, and says why it stays native: {done.returncode} {done.stderr[-300:]}")
    ran = calls_by_algorithm(json.loads((folder / f"{name}.json").read_text()), "allreduce")
    check(set(ran) == {"native" if native else "ring"}, f"{name}: {ran}")
finish()
