# SPDX-License-Identifier: BSD-3-Clause
"""The end of a job in which a rank cannot make its part of the profile, or the profile holds text that is not UTF-8. No
rank waits for ever, the program ends as natively, and what was observed is in the profile or in the snapshots."""
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from common import a, check, finish, folder, patience, run, sanitized

sys.path.append(a.root + "/tests/support")
from processes import end_tree

program = a.bin + "/gather"
CAFE = "caf\udce9"  # 0xe9, which alone is not UTF-8


def bounded(name, words, seconds=90, **environment):
    """Runs in a process group of its own, which is ended after `seconds`: without the mend some of these jobs hang."""
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        job = subprocess.Popen(list(map(str, words)), stdout=out, stderr=err, env={**os.environ, "LD_PRELOAD": a.support, **environment}, start_new_session=True)
        try:
            status = job.wait(timeout=patience * seconds)
        except subprocess.TimeoutExpired:
            end_tree(job)
            status = "a hang"
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    check(status == 0 and "right" in texts[0], f"{name}: ends as natively: {status} {texts[0][-200:]} {texts[1][-400:]}")
    return texts[1]


def loaded(file):
    return json.loads(file.read_bytes().decode("utf-8"))  # fails where the file is not UTF-8


# Arguments, folders and names of files that are not UTF-8: each text is replaced where it is written.
strange = folder / CAFE
strange.mkdir()
shutil.copy(program, strange / "gather")
for name, words, output in [("argument", (program, "sums", CAFE), folder / "argument.json"), ("module", (strange / "gather", "sums"), folder / "module.json"),
                            ("output", (program, "sums"), strange / "output.json")]:
    bounded(name, (a.cli, "run", "--output", output, "--", "-n", 3, *words))
    check(output.exists() and not pathlib.Path(str(output) + ".parts").exists(), f"{name}: there is a profile, and nothing else")
    profile = loaded(output)
    check(sum(s["calls"] for s in profile["sites"]) == 300 and len(profile["clock"]) == 3, f"{name}: it is whole")
    check(name != "argument" or "caf\ufffd" in profile["job"]["command_line"], f"{name}: the byte is replaced: {profile['job']['command_line']}")
    for words in (["report", "--json"], ["report", "--tsv"], ["report"], ["report", "--html", folder / "page.html"], ["diff", "--json", output], ["whatif", "--json"], ["report", "--redact", "--json"]):
        done = subprocess.run([str(w) for w in (a.cli, *words, output)], capture_output=True, timeout=patience * 120)
        check(done.returncode in (0, 1, 2) and b"json.exception" not in done.stderr and b"invalid UTF-8" not in done.stderr, f"{name}: {words[0]}: {done.returncode} {done.stderr[-200:]}")
        done.stdout.decode("utf-8")
        check(name != "output" or words != ["report"] or "$'" in done.stdout.decode(), "the next command names the file as a shell takes it")
    report = json.loads(run(a.cli, "report", "--json", output).stdout)
    check(name == "module" or any((f["file"] or "").endswith("caf\ufffd.c") for s in report["sites"] for f in s["frames"]), f"{name}: the name of a source file: {report['sites'][0]['frames']}")

# A warning that is cut inside a character: one of two texts of characters of two bytes.
warnings = []
for name in ("even", "odd"):
    bounded(name, (a.mpiexec, "-n", 2, program, "sums"), LD_PRELOAD=f"{a.library}:{a.support}", LATECOMER_POLICY="x" * (name == "odd") + "é" * 400, LATECOMER_OUTPUT=str(folder / f"{name}.json"))
    warnings += loaded(folder / f"{name}.json")["warnings"]
check(any("\ufffd" in w for w in warnings), "a warning is cut inside a character")

# The same texts in snapshots, for recover and top.
(folder / "alone").mkdir()
with_snapshots = folder / "recovered.json"
stopped = subprocess.Popen([a.cli, "run", "--output", with_snapshots, "--", "-n", "2", a.bin + "/traps", "run_on", CAFE], env={**os.environ, "LD_PRELOAD": a.support}, stdout=subprocess.PIPE)
stopped.stdout.readline()
live = subprocess.run([a.cli, "who", "--json", "--seconds", "0.1", str(with_snapshots)], capture_output=True, timeout=patience * 120)
check(live.returncode in (0, 1) and json.loads(live.stdout)["ranks"], f"who: {live.returncode} {live.stderr[-200:]}")
top = subprocess.run([a.cli, "top", "--once", str(with_snapshots)], capture_output=True, timeout=patience * 120)
check(top.returncode == 0 and "caf\ufffd" in top.stdout.decode("utf-8"), f"top: {top.returncode} {top.stdout[:200]} {top.stderr[-200:]}")
metrics = folder / "top.prom"
top = run(a.cli, "top", "--once", "--prometheus", metrics, with_snapshots)
check(top.returncode == 0 and metrics.read_bytes().decode("utf-8"), f"top --prometheus: {top.returncode} {top.stderr[-200:]}")
end_tree(stopped)
done = run(a.cli, "recover", with_snapshots)
check(done.returncode == 0 and "caf\ufffd" in loaded(with_snapshots)["job"]["command_line"], f"recover: {done.returncode} {done.stderr[-200:]}")

# One rank is out of memory in MPI_Finalize: one allocation fails, or all from there on. The other ranks do not wait for
# it, and the job says what the profile lacks. Without such a line the profile is whole.
seen = {"whole": 0, "lacks": 0}
for rank, first, all_later in itertools.product((0, 2), (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987), (False, True)):
    if sanitized:  # has its own operator new
        break
    if rank == 0 and all_later and first > 200:  # inside nlohmann/json, whose destructors allocate; rank 0 looks ahead for memory before
        continue
    name = f"memory {rank} {first} {'on' if all_later else 'once'}"
    output = folder / f"memory-{rank}-{first}-{int(all_later)}.json"
    said = bounded(name, (a.mpiexec, "-n", 3, program, "memory", rank, first, 10**9 if all_later else first), LD_PRELOAD=f"{a.library}:{a.allocations}:{a.support}", LATECOMER_OUTPUT=str(output))
    parts = pathlib.Path(str(output) + ".parts")
    lines = [line for line in said.splitlines() if "warning" in line and "arrival patterns are lost: out of memory" not in line]
    profile = loaded(output) if output.exists() else None
    whole = profile is not None and len(profile["clock"]) == 3 and sum(s["calls"] for s in profile["sites"]) == 300
    seen["lacks" if lines else "whole"] += 1
    if not lines:
        check(whole and not parts.exists(), f"{name}: no warning, so the profile is whole and the snapshots are gone: {whole} {parts.exists()}")
        continue
    why = ("out of memory", "could not send", *(["the logs of some ranks are missing"] if rank != 0 and "lost: out of memory" in said else []))
    check(all(any(w in line for w in why) for line in lines), f"{name}: says why: {lines}")
    if whole:
        continue
    check(parts.exists(), f"{name}: the snapshots stay: {lines}")
    done = run(a.cli, "recover", output, "-o", folder / "again.json", "--force")
    check(done.returncode == 0, f"{name}: recover: {done.stderr}")
check(sanitized or all(seen.values()), f"some allocations matter, and some do not: {seen}")

# A locale with a decimal comma, a relative folder for Prometheus, and a program that changes its directory.
locales, elsewhere = folder / "locales", folder / "elsewhere"
locales.mkdir(), elsewhere.mkdir()
made = shutil.which("localedef") and run("localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", locales / "xx_XX.UTF-8")
if not made or not (locales / "xx_XX.UTF-8/LC_NUMERIC").exists():  # localedef of glibc 2.41 makes the folder in any case
    print("no locale with a decimal comma can be made here (localedef and the sources of package `locales`)")
else:
    policy, texts = folder / "policy.json", folder / "texts"
    texts.mkdir()
    policy.write_text(json.dumps({"version": 1, "prometheus": "texts", "network": {"beta_ns_per_byte": 0.5, "latency_us": 2.5}}))
    output = folder / "locale.json"
    job = subprocess.Popen([a.cli, "run", "--policy", policy, "--verbose", "2", "--output", output, "--", "-n", "2", program, "locale", elsewhere], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           errors="replace", env={**os.environ, "LD_PRELOAD": a.support, "LOCPATH": str(locales), "LC_ALL": "xx_XX.UTF-8"}, start_new_session=True)
    deadline, text = time.time() + patience * 60, ""
    while time.time() < deadline and "latecomer_site_waited_seconds_total{" not in text and job.poll() is None:
        files = list(texts.glob("latecomer-*-0.prom"))
        text = files[0].read_text() if files else ""
        time.sleep(0.05)
    (elsewhere / "stop").write_text("")
    try:
        said = job.communicate(timeout=patience * 60)
    except subprocess.TimeoutExpired:
        end_tree(job)
        said = ("a hang", "")
    check(job.returncode == 0 and "right" in said[0], f"locale: {job.returncode} {said[0][-200:]} {said[1][-300:]}")
    values = [line.rpartition("} ")[2] for line in text.splitlines() if not line.startswith("#")]
    check(values and any("." in v for v in values) and all(re.fullmatch(r"[-+.0-9e]+", v) for v in values), f"locale: figures with points: {values[:8]}")
    check(not list(texts.iterdir()) and not (elsewhere / "texts").exists(), f"locale: the job removes its file: {list(texts.iterdir())}")
    network = loaded(output)["job"]["network"]
    check((network["beta_ns_per_byte"], network["latency_us"]) == (0.5, 2.5), f"locale: the policy's figures are read: {network}")
    check(not re.search(r"\d,\d+ (us|ms|ns)", said[1]), f"locale: lines with points: {said[1][-500:]}")
finish()
