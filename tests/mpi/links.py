# SPDX-License-Identifier: BSD-3-Clause
"""Planted files in the places where latecomer writes. Latecomer follows no link, uses and changes no foreign folder,
and the job runs as natively, with one warning."""
import os
import stat
import subprocess
import time

from common import a, check, finish, folder, patience, run

program = [a.bin + "/traps", "killed"]  # long enough for snapshots, then killed
secret = folder / "secret"


def planted():
    """A file that must not change, and its content."""
    secret.write_text("keep\n")
    return secret


def untouched():
    return secret.read_text() == "keep\n" and stat.S_ISREG(secret.lstat().st_mode)


def job(name, *words, **environment):
    """Preloads by hand: `latecomer run` would refuse some of these cases at start."""
    return run(a.mpiexec, "-n", 2, *words, LD_PRELOAD=a.library + ":" + a.support, LATECOMER_OUTPUT=folder / name, **environment)


def warned(done):
    return [line for line in done.stderr.splitlines() if "warning" in line]


good = [a.bin + "/patterns", 400, 10]
native = run(a.mpiexec, "-n", 2, *good, LD_PRELOAD=a.support)

# What is in the place of the snapshot folder and is not known to be free stays as it is, and the job takes the next name.
def numbered(name, done):
    profile = folder / name.replace(".json", "-2.json")
    return done.returncode == 0 and done.stdout == native.stdout and not warned(done) and profile.exists() and not (folder / name).exists() and str(profile) in done.stderr


# A link to another user's folder.
target = folder / "target"
target.mkdir()
(target / "notes").write_text("keep\n")
(folder / "folder.json.parts").symlink_to(target)
done = job("folder.json", *good)
check(numbered("folder.json", done) and os.listdir(target) == ["notes"], f"a link as folder: nothing came into its target: {done.returncode} {done.stderr}")

# Links in the place of snapshots.
for which in ("a", "b"):
    name = f"snapshot_{which}.json"
    (folder / f"{name}.parts").mkdir(mode=0o700)
    (folder / f"{name}.parts/rank0.{which}").symlink_to(planted())
    done = job(name, *good)
    check(numbered(name, done) and untouched(), f"a link as rank0.{which}: its target is untouched: {done.returncode} {done.stderr}")

# Folders that latecomer must not use: with foreign files, writable for others, or owned by another user.
for case in ("holds", "open", "theirs"):
    parts = folder / f"{case}.json.parts"
    parts.mkdir(mode=0o700)
    if case == "holds":
        (parts / "letters").write_text("keep\n")
    elif case == "open":
        parts.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(parts, 65534, 65534)
    else:
        print("skipped a folder of another user: this needs root")
        continue
    before = sorted(os.listdir(parts))
    done = job(f"{case}.json", *good)
    check(numbered(f"{case}.json", done) and sorted(os.listdir(parts)) == before, f"{case}: nothing comes into the folder: {done.returncode} {done.stderr} {os.listdir(parts)}")

# The folder changes after rank 0 has made it. The rank says what is lost, and the profile is written.
(folder / "late.json").unlink(missing_ok=True)
late = subprocess.Popen([a.mpiexec, "-n", "2", a.bin + "/patterns", "60", "20000"], env=dict(os.environ, LD_PRELOAD=a.library + ":" + a.support, LATECOMER_OUTPUT=str(folder / "late.json")), stderr=subprocess.PIPE, text=True)
parts = folder / "late.json.parts"
while late.poll() is None and not parts.exists():
    time.sleep(0.001)
parts.chmod(0o777)
said = late.communicate(timeout=patience * 120)[1]
check(late.returncode == 0 and (folder / "late.json").exists(), f"others may write to the folder: {said}")

# The final profile: links with a guessed temporary name or with its own name have no effect.
(folder / "final.json.tmp").symlink_to(planted())
done = job("final.json", *good)
check(done.returncode == 0 and untouched() and (folder / "final.json.tmp").is_symlink() and (folder / "final.json").exists() and not warned(done), f"a link as the temporary file: {done.stderr}")
(folder / "own.json").symlink_to(planted())
done = job("own.json", *good)
check(done.returncode == 0 and untouched() and (folder / "own.json").is_symlink() and (folder / "own-2.json").is_file(), f"a link as the profile stays: {done.stderr}")
check(not list(folder.glob("*.tmp-*")), "no temporary file is left")

# Only this user can read the snapshots. A second job has a folder of its own. The commands read and write with the same
# care.
for round in range(2):
    done = job("cut.json", *program)
    parts = folder / ("cut-2.json.parts" if round else "cut.json.parts")
    check(not warned(done) and stat.S_IMODE(parts.stat().st_mode) == 0o700 and {stat.S_IMODE(f.stat().st_mode) for f in parts.iterdir()} == {0o600},
          f"job {round}: a folder of mode 700 with files of mode 600: {done.stderr[-300:]}")
for word, output in (("recover", "recovered.json"), ("advise", "advised.json"), ("report", "page.html")):
    (folder / f"{output}.tmp").symlink_to(planted())
    (folder / output).symlink_to(planted())
    words = {"recover": ("cut.json", "-o"), "advise": ("recovered.json", "--network", "fdr", "-o"), "report": ("recovered.json", "--html")}[word]
    done = run(a.cli, word, *words, folder / output, cwd=folder)
    check(done.returncode in (0, 1 if word == "advise" else 0) and untouched() and (folder / output).is_file() and not (folder / output).is_symlink(), f"{word}: {done.returncode} {done.stderr}")
parts = folder / "cut.json.parts"
(parts / "rank7.a").symlink_to(planted())
os.mkfifo(parts / "rank8.a")
done = run(a.cli, "recover", "cut.json", "-o", folder / "again.json", cwd=folder)
check(done.returncode == 0 and done.stderr.count("not a regular file") == 2, f"recover reads no link and no pipe: {done.stderr}")
finish()
