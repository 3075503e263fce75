# SPDX-License-Identifier: BSD-3-Clause
"""Planted files in the places where latecomer writes. Latecomer follows no link, uses and changes no foreign folder,
and the job runs as natively, with one warning."""
import os
import stat

from common import a, check, finish, folder, run

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

# A link in the place of the snapshot folder, to another user's folder.
target = folder / "target"
target.mkdir()
(target / "notes").write_text("keep\n")
(folder / "folder.json.parts").symlink_to(target)
done = job("folder.json", *good)
check(done.returncode == 0 and done.stdout == native.stdout, f"a link as folder: the job runs: {done.returncode} {done.stderr}")
check(len(warned(done)) == 1 and "it is a symbolic link" in warned(done)[0] and str(folder / "folder.json.parts") in warned(done)[0], f"a link as folder: one warning: {warned(done)}")
check(os.listdir(target) == ["notes"] and (folder / "folder.json").exists(), "a link as folder: nothing came into its target, the profile is written")

# Links in the place of snapshots.
for which in ("a", "b"):
    name = f"snapshot_{which}.json"
    (folder / f"{name}.parts").mkdir(mode=0o700)
    (folder / f"{name}.parts/rank0.{which}").symlink_to(planted())
    done = job(name, *good)
    check(done.returncode == 0 and done.stdout == native.stdout and untouched(), f"a link as rank0.{which}: its target is untouched: {done.returncode} {done.stderr}")
    check(len(warned(done)) == 1 and "is not a regular file" in warned(done)[0], f"a link as rank0.{which}: one warning: {warned(done)}")

# Folders that latecomer must not use: with foreign files, writable for others, or owned by another user.
for case, says in (("holds", "it holds 'letters'"), ("open", "other users may write to it"), ("theirs", "it belongs to another user")):
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
    check(done.returncode == 0 and done.stdout == native.stdout and sorted(os.listdir(parts)) == before, f"{case}: nothing comes into the folder: {done.returncode} {os.listdir(parts)}")
    check(len(warned(done)) == 1 and says in warned(done)[0], f"{case}: one warning: {warned(done)}")

# The final profile: links with a guessed temporary name or with its own name have no effect.
(folder / "final.json.tmp").symlink_to(planted())
done = job("final.json", *good)
check(done.returncode == 0 and untouched() and (folder / "final.json.tmp").is_symlink() and (folder / "final.json").exists() and not warned(done), f"a link as the temporary file: {done.stderr}")
(folder / "own.json").symlink_to(planted())
done = job("own.json", *good)
check(done.returncode == 0 and untouched() and not (folder / "own.json").is_symlink(), f"a link as the profile is replaced: {done.stderr}")
check(not list(folder.glob("*.tmp-*")), "no temporary file is left")

# Only this user can read the snapshots. A second job reuses the folder. The commands read and write with the same care.
for round in range(2):
    done = job("cut.json", *program)
    parts = folder / "cut.json.parts"
    check(not warned(done) and stat.S_IMODE(parts.stat().st_mode) == 0o700 and {stat.S_IMODE(f.stat().st_mode) for f in parts.iterdir()} == {0o600},
          f"job {round}: a folder of mode 700 with files of mode 600: {done.stderr[-300:]}")
for word, output in (("recover", "recovered.json"), ("advise", "advised.json"), ("report", "page.html")):
    (folder / f"{output}.tmp").symlink_to(planted())
    (folder / output).symlink_to(planted())
    words = {"recover": ("cut.json", "-o"), "advise": ("recovered.json", "--network", "fdr", "-o"), "report": ("recovered.json", "--html")}[word]
    done = run(a.cli, word, *words, folder / output, cwd=folder)
    check(done.returncode in (0, 1 if word == "advise" else 0) and untouched() and (folder / output).is_file() and not (folder / output).is_symlink(), f"{word}: {done.returncode} {done.stderr}")
(parts / "rank7.a").symlink_to(planted())
os.mkfifo(parts / "rank8.a")
done = run(a.cli, "recover", "cut.json", "-o", folder / "again.json", cwd=folder)
check(done.returncode == 0 and done.stderr.count("not a regular file") == 2, f"recover reads no link and no pipe: {done.stderr}")
finish()
