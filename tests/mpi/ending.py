# SPDX-License-Identifier: BSD-3-Clause
"""The end of `latecomer run`: the report's headline and titles, the profile and the next command, in short lines on stderr.
They are those of the report, whatever the size of the profile. The program's output and exit status stay its own,
whatever the profile holds. A launcher of this test writes profiles that no program here would."""
import json
import os
import pathlib
import re
import subprocess

from common import a, check, finish, folder, rows_of, run

generate = pathlib.Path(a.bin) / "generate_profile"
source = folder / "source.json"
launcher = folder / "launcher"
launcher.write_text("""#!/usr/bin/env python3
import os, re, sys
key = os.environ["LATECOMER_CLAIM"].split(":")[0]
text = open(os.environ["SOURCE"], errors="replace").read()
text = re.sub(r'^{"format": "latecomer-profile", "version": 2, "job_key": "[0-9a-f]*",\\s+', f'{{"format": "latecomer-profile", "version": 2, "job_key": "{key}",\\n', text)
open(os.environ["LATECOMER_OUTPUT"], "w").write(text)
print("the program's output")
sys.exit(int(os.environ["STATUS"]))
""")
launcher.chmod(0o755)


def lines_of(done):
    return done.stderr.splitlines()


def said(done):
    """The sentences, in one line, and the last lines."""
    text = " ".join(line.removeprefix("latecomer: ") for line in lines_of(done))
    sentences, _, rest = text.partition("profile ")
    return sentences.strip(), "profile " + rest


def report(profile):
    return json.loads(run(a.cli, "report", "--json", profile).stdout)


def ended(name, text, *options, status=0):
    """A run whose launcher writes this text as the profile."""
    source.write_text(text)
    out = folder / f"{name}.json"
    done = run(a.cli, "run", "--launcher", launcher, "--output", out, "--overwrite", *options, "--", "true", SOURCE=str(source), STATUS=str(status), timeout=300)
    check(done.returncode == status and done.stdout == "the program's output\n", f"{name}: status and output are the program's: {done.returncode} {done.stdout!r} {done.stderr[-300:]}")
    check(all(line.startswith("latecomer: ") for line in lines_of(done)) and all(len(line) <= 100 or str(out) in line for line in lines_of(done)), f"{name}: short lines with a prefix: {done.stderr}")
    return done, out


# A job.
patterns = [a.bin + "/patterns", 40, 10000]
native = run(a.mpiexec, "-n", 4, *patterns, LD_PRELOAD=a.support)
out = folder / "job.json"
done = run(a.cli, "run", "--output", out, "--", "-n", 4, *patterns, LD_PRELOAD=a.support)
verdict = report(out)["verdict"]
check(done.returncode == 0 and done.stdout == native.stdout, f"a job: its output stays: {done.stdout!r}")
check(said(done)[0].startswith(verdict[0]) and verdict[1].split(".")[0] in said(done)[0], f"a job: the headline and titles of the report: {done.stderr} {verdict}")
check(str(out) in done.stderr and re.search(rf"next: \S*latecomer report {out}$", done.stderr), f"a job: then the profile and the report: {lines_of(done)[-2:]}")
done = run(a.cli, "run", "--quiet", "--output", folder / "quiet.json", "--", "-n", 4, *patterns, LD_PRELOAD=a.support)
check(done.returncode == 0 and done.stderr == "" and done.stdout == native.stdout, f"--quiet: {done.stderr!r}")
check('"staircase"' in (folder / "quiet.json").read_text(), "--quiet: the profile has names")
done = run(a.cli, "run", "--quiet", "--output", folder / "quiet.json", "--", "-n", 4, *patterns, LD_PRELOAD=a.support)
check(done.returncode == 0 and done.stderr == "" and (folder / "quiet-2.json").exists(), f"--quiet: also where the name is taken: {done.stderr!r}")
done = run(a.cli, "run", "--output", folder / "none.json", "--", "-n", 2, "true")
check(done.returncode == 0 and len(lines_of(done)) == 1 and "no profile" in done.stderr, f"no profile, no verdict: {done.stderr}")
done = run(a.cli, "run", "--quiet", "--output", folder / "none.json", "--", "-n", 2, "false")
check(done.returncode == 1 and "latecomer: " not in done.stderr, f"--quiet without a profile: {done.returncode} {done.stderr}")

# Profiles of 200 ranks at 8 sites. The worst site is neither the first nor the last.
subprocess.run([generate, "200", "8", "4", folder / "large"], check=True)
large = json.loads((folder / "large").read_text())
worst = large["sites"][5]
worst["waited_ns"] *= 50
for row in rows_of(large, worst):
    row["waited_ns"] *= 50
    row["awaited_ns"] *= 50
large["job"]["wall_time_s"] = 2 * worst["waited_ns"] / 1e9 / 200
for p in large["processes"]:
    p["wall_ns"] = large["job"]["wall_time_s"] * 1e9
large["processes"] = [dict(large["processes"][0], rank=r) for r in range(200)]
done, out = ended("large", json.dumps(large), status=7)
answer = report(out)
check(said(done)[0].startswith(answer["verdict"][0]) and answer["findings"][0]["title"] == "Rank 199 is late" and "Rank 199 is late: waits there take 50% of the ranks' time" in said(done)[0], f"200 ranks: the sentences of the report: {done.stderr} {answer['verdict']}")

# The command that helps most.
check(re.search(r"next: \S+ report ", done.stderr), f"ranks that wait: the report is next: {lines_of(done)[-2:]}")
for site in large["sites"]:
    site["waited_ns"] = 0
    site["bytes"]["mean"] = 1e6
    for row in rows_of(large, site):
        row["waited_ns"] = row["awaited_ns"] = 0
large["sites"][0]["dispatch"]["native"]["mean_after_last_ns"] = 1e9 * large["job"]["wall_time_s"] / 2 / large["sites"][0]["dispatch"]["native"]["calls"]
done, out = ended("transfers", json.dumps(large))
check(re.search(r"next: \S+ advise ", done.stderr), f"transfers that take long: advice is next: {lines_of(done)[-2:]}")
large["job"]["network"] = None
done, out = ended("unknown_network", json.dumps(large))
check(re.search(r"next: \S+ report ", done.stderr), f"advice needs figures of the network: {lines_of(done)[-2:]}")

# Profiles that cannot be read.
text = (folder / "large").read_text()
for name, damaged in {"cut": text[: len(text) // 2], "garbage": text[:300] + "\x00" * 500, "shape": json.dumps({**json.loads(text), "sites": 3}), "nested": text[:300] + "[" * 100000}.items():
    done, out = ended(name, damaged, status=5)
    sentences, rest = said(done)
    check(sentences.startswith("No verdict: ") and str(out) in rest, f"{name}: a line says so: {done.stderr}")
    done, out = ended(name, damaged, "--quiet", status=5)
    check(done.stderr == "", f"{name}: not with --quiet: {done.stderr}")
finish()
