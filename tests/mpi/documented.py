# SPDX-License-Identifier: BSD-3-Clause
"""Runs every command of README, CONTRIBUTING and docs ("$ " in a code block). README's commands run in order in one
shell, as a reader pastes them into a fresh clone after scripts/quickstart. The others run one by one in a folder
with the files that the text names. A comment "# exits N" after a command gives its exit status; the default is 0."""
import os
import pathlib
import re
import shutil
import subprocess

from common import a, check, finish, folder

root, build = pathlib.Path(a.root), pathlib.Path(a.build)
scalapack = next(pathlib.Path("/usr/lib").glob("*/scalapack/mpich-tests"))
for name, source in (("build", build), ("examples", root / "examples"), ("tests", root / "tests")):
    (folder / name).symlink_to(source)
(folder / "late_process").symlink_to(build / "bin/late_process")
(folder / "program").symlink_to(build / "bin/late_process")
for data in pathlib.Path("/usr/share/scalapack").glob("*.dat"):
    shutil.copy(data, folder)
(folder / "policy.json").write_text('{"version": 1,\n "mode": "aply",\n "rules": [\n  {"match": {"op": "allreduce"}, "use": "rng"}]}\n')
environment = dict(os.environ, PATH=f"{build / 'bin'}:{scalapack}:{root / 'tests/support'}:{os.environ['PATH']}", PRELOAD=a.library, BUILD=str(build))

commands = []
documents = (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md")))
for document in documents:
    text = document.read_text()
    for block in re.findall(r"```.*?\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if line.lstrip().startswith("$ "):
                commands.append((document, line.lstrip()[2:]))
check(len(commands) >= 10, f"{len(commands)} commands")
def expected(line):
    return {int(x) for x in found.groups() if x} if (found := re.search(r"# exits (\d+)(?: or (\d+))?", line)) else {0}


clone, pasted = folder / "clone", [line for document, line in commands if document == documents[0]]
clone.mkdir()
for name, source in (("build", build), ("examples", root / "examples")):
    (clone / name).symlink_to(source)
(folder / "pasted.sh").write_text("".join(f"{line}\necho >&3 $?\n" for line in pasted))
plain = {name: value for name, value in os.environ.items() if name not in ("BUILD", "PRELOAD", "LD_PRELOAD")}
done = subprocess.run(["bash", "-c", f"exec 3> '{folder}/statuses'; . '{folder}/pasted.sh'"], cwd=clone, env=plain, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=550)
statuses = [int(s) for s in (folder / "statuses").read_text().split()]
check(len(statuses) == len(pasted), f"README: {len(statuses)} of {len(pasted)} commands ended: {done.stderr[-300:]}")
for line, status in zip(pasted, statuses):
    check(status in expected(line), f"README.md: {line}" + ("" if status in expected(line) else f": {status} {done.stderr[-2000:]}"))

for document, line in commands:
    if document == documents[0]:
        continue
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=300)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    check(status in expected(line), f"{document.relative_to(root)}: {line}" + ("" if status in expected(line) else f": {status} {done.stderr[-300:]}"))

# The options and files that the text names exist.
for document in documents:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        check((document.parent / link).exists(), f"{document.relative_to(root)} links to {link}")
help_of = {}
for document, line in commands:
    for part in re.split(r"[|;&]", line):
        words = part.split(" -- ")[0].split("#")[0].split()
        if words[:1] != ["latecomer"] or len(words) < 2 or words[1].startswith("-"):
            continue
        asked = tuple(words[1:3] if words[1] == "plan" else words[1:2])
        text = help_of.setdefault(asked, subprocess.run([a.cli, *asked, "--help"], capture_output=True, text=True).stdout)
        for option in (w.split("=")[0] for w in words[2:] if w.startswith("--")):
            check(option in text, f"{document.relative_to(root)}: {words[1]} has {option}")
finish()
