# SPDX-License-Identifier: BSD-3-Clause
"""No program is stopped and no profile is lost: steps with one output, a requeue, jobs side by side, a folder that cannot
be written, a full disk, a kill. Functions that need mounts are skipped where these are not allowed."""
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import types

import pytest

from common import a, folder, patience, run
from processes import end_tree

patterns, hang, breakers = a.bin + "/patterns", a.bin + "/hang", a.bin + "/breakers"
both_ways = pytest.mark.parametrize("way", ["run", "preload"])  # latecomer run, or the preload alone
# No job of a batch system, and no settings of whoever runs the tests.
plain = {name: "" for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "LATECOMER_OUTPUT")}
under_run, preload = {**plain, "LD_PRELOAD": a.support}, {**plain, "LD_PRELOAD": f"{a.library}:{a.support}"}


def how_to_start(way, output, *program, options=()):
    """The words and the environment of a job of two ranks."""
    if way == "run":
        return [a.cli, "run", *options, "--output", output, "--", "-n", 2, *program], under_run
    return [a.mpiexec, "-n", 2, *program], {**preload, "LATECOMER_OUTPUT": str(output)}


def job(way, output, *program):
    words, environment = how_to_start(way, output, *program)
    return run(*words, **environment)


def observed(output, *options):
    words, environment = how_to_start("run", output, patterns, 200, 10, options=options)
    return run(*words, **environment)


def key(profile):
    return json.loads(profile.read_text())["job_key"]


def snapshots_of(output):
    return output.with_name(output.name + ".parts")


def inodes(path):
    return {f.name: f.stat().st_ino for f in path.iterdir()}


def next_number(output):
    """The profile of the next job, if another has `output`."""
    paths = (output.with_stem(f"{output.stem}-{number}") for number in itertools.count(2))
    return next(path for path in paths if not path.exists() and not snapshots_of(path).exists())


def until(condition, seconds=60):
    deadline = time.time() + patience * seconds
    while not (good := condition()) and time.time() < deadline:
        time.sleep(0.05)
    return good


@contextlib.contextmanager
def started(words, environment, **streams):
    """A job in the background. It ends with all its processes."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True, **streams}
    background = subprocess.Popen(list(map(str, words)), env={**os.environ, **environment}, **streams)
    try:
        yield background
    finally:
        assert background.poll() is not None or end_tree(background), "the job has ended"


@contextlib.contextmanager
def endless(way, output, snapshots=None):
    """A job that runs until it is ended, with snapshots of all ranks on disk. Yields the folder of these."""
    snapshots = snapshots or snapshots_of(output)
    files = [snapshots / f"rank{rank}.b" for rank in range(2)]
    with started(*how_to_start(way, output, hang, "none", 100000000)):
        assert until(lambda: all(f.exists() and f.stat().st_size > 1000 for f in files)), "the job writes snapshots"
        yield snapshots


@pytest.fixture(scope="module")
def earlier():
    """The profile of a job that has ended."""
    profile = folder / "earlier.json"
    done = observed(profile)
    assert done.returncode == 0, done.stderr
    return profile


@pytest.fixture
def taken(earlier, tmp_path):
    """An output that an earlier job has taken."""
    return pathlib.Path(shutil.copy(earlier, tmp_path / "taken.json"))


# Steps with one output.


@pytest.fixture(scope="module")
def steps():
    """Ten steps of one script, with one output."""
    here = folder / "steps"
    here.mkdir()
    step = f"'{a.cli}' run --output loop.json -- -n 1 '{patterns}' 50 10"
    done = run("sh", "-c", f"set -e; for i in 1 2 3 4 5 6 7 8 9 10; do {step}; done; echo all", cwd=here, **under_run)
    return types.SimpleNamespace(done=done, here=here, names=["loop.json"] + [f"loop-{i}.json" for i in range(2, 11)])


def test_ten_steps_under_set_e_run(steps):
    assert steps.done.returncode == 0 and "all" in steps.done.stdout, steps.done.stderr


def test_ten_steps_have_a_profile_each_and_nothing_else(steps):
    assert sorted(steps.names) == sorted(f.name for f in steps.here.iterdir())
    assert len({key(steps.here / name) for name in steps.names}) == 10


def test_each_step_names_its_profile(steps):
    for name in steps.names:
        assert f"profile {name}; next" in steps.done.stderr
    assert f"'{steps.here / 'loop.json'}' exists; the profile is loop-2.json" in steps.done.stderr


def test_overwrite_replaces_the_profile(taken):
    before = key(taken)
    done = observed(taken, "--overwrite")
    assert done.returncode == 0 and key(taken) != before, done.stderr
    assert list(taken.parent.iterdir()) == [taken]


def test_rank_0_takes_the_next_number_without_latecomer_run(taken):
    done = job("preload", taken, patterns, 50, 10)
    assert done.returncode == 0 and next_number(taken).name == "taken-3.json"
    assert "taken-2.json" in done.stderr and "warning" not in done.stderr


def test_strict_allows_a_number_since_it_loses_nothing(tmp_path):
    for _ in range(2):
        done = observed(tmp_path / "strict.json", "--strict")
        assert done.returncode == 0, done.stderr


# Names of profiles.


def test_default_name_holds_job_and_step(tmp_path):
    for step in (3, 3, 4):
        ids = {"SLURM_JOB_ID": "78", "SLURM_STEP_ID": str(step)}
        done = run(a.mpiexec, "-n", 2, patterns, 50, 10, cwd=tmp_path, **{**preload, **ids})
        assert done.returncode == 0, done.stderr
    assert sorted(inodes(tmp_path)) == ["latecomer.78.3-2.json", "latecomer.78.3.json", "latecomer.78.4.json"]


def test_name_is_a_pattern_of_host_job_and_process(tmp_path):
    expected = rf"of\.{re.escape(os.uname().nodename)}\.9\.\d+\.100%\.json"
    words, environment = how_to_start("run", tmp_path / "of.%h.%j.%p.100%%.json", patterns, 200, 10)
    done = run(*words, **{**environment, "PBS_JOBID": "9"})
    said = re.search(r"profile (\S+?)(?:; next.*)?$", done.stderr, re.M)
    assert done.returncode == 0 and said, done.stderr
    assert re.fullmatch(expected, pathlib.Path(said[1]).name) and pathlib.Path(said[1]).exists()


# A job is killed and starts again under its number.


@pytest.fixture(scope="module")
def requeued():
    here = folder / "requeued"
    here.mkdir()
    snapshots = here / "latecomer.77.json.parts"
    ids = {**under_run, "SLURM_JOB_ID": "77"}
    with started([a.cli, "run", "--", "-n", 4, a.bin + "/traps", "run_on"], ids, cwd=here, stdout=subprocess.PIPE) as first:
        first.stdout.readline()
    kept = inodes(snapshots)
    done = run(a.cli, "run", "--", "-n", 2, patterns, 200, 10, cwd=here, **ids)
    return types.SimpleNamespace(here=here, done=done, kept=kept, left=inodes(snapshots))


def test_requeued_job_has_a_profile_of_its_own(requeued):
    assert requeued.done.returncode == 0 and (requeued.here / "latecomer.77-2.json").exists(), requeued.done.stderr
    assert requeued.left == requeued.kept
    assert "holds the snapshots of a job that was cut short" in requeued.done.stderr, "it says why"


def test_first_try_of_a_requeued_job_can_be_recovered(requeued):
    done = run(a.cli, "recover", "latecomer.77.json", cwd=requeued.here)
    assert done.returncode == 0 and "4 of 4 ranks" in done.stdout, done.stderr
    assert key(requeued.here / "latecomer.77.json") != key(requeued.here / "latecomer.77-2.json")


# Jobs side by side.


@both_ways
def test_jobs_at_once_have_a_profile_each(way, tmp_path):
    with contextlib.ExitStack() as stack:
        how = how_to_start(way, tmp_path / "at_once.json", patterns, 300, 100)
        jobs = [stack.enter_context(started(*how, stderr=subprocess.PIPE)) for _ in range(4)]
        ends = [(job.communicate(timeout=patience * 300)[1], job.returncode) for job in jobs]
    profiles = list(tmp_path.iterdir())
    assert [code for _, code in ends] == [0] * 4, ends
    assert len(profiles) == 4 and all(p.suffix == ".json" for p in profiles)
    assert len({key(p) for p in profiles}) == 4


@pytest.fixture(scope="module")
def running():
    """The output of a job that runs, and its files when the other jobs started."""
    output = folder / "beside.json"
    with endless("run", output) as snapshots:
        yield types.SimpleNamespace(output=output, snapshots=snapshots, files=inodes(snapshots))


@pytest.mark.parametrize("options", [(), ("--overwrite",)])
def test_job_beside_a_running_one_has_a_profile_of_its_own(running, options):
    own = next_number(running.output)
    done = observed(running.output, *options)
    assert done.returncode == 0 and "a running job uses" in done.stderr and "discard" not in done.stderr, done.stderr
    assert inodes(running.snapshots) == running.files, "the files of the running job stay as they are"
    assert own.exists() and not running.output.exists()


def test_job_that_is_killed_leaves_the_files_of_a_running_one(running):
    own = snapshots_of(next_number(running.output))
    with endless("preload", running.output, own):
        seen = run(a.cli, "who", "--json", "--seconds", "0.3", running.output)
    assert seen.stdout and [r["rank"] for r in json.loads(seen.stdout)["ranks"]] == [0, 1], "who shows one of both jobs"
    assert inodes(running.snapshots) == running.files


def test_overwrite_discards_the_snapshots_of_a_killed_job_only_for_something_new(tmp_path):
    output = tmp_path / "killed.json"
    with endless("run", output) as snapshots:
        before = inodes(snapshots)
    done = run(a.cli, "run", "--overwrite", "--output", output, "--", "-n", 1, "false")
    assert done.returncode != 0 and inodes(snapshots) == before, "a job without any observation replaces nothing"
    assert list(tmp_path.iterdir()) == [snapshots]
    done = observed(output, "--overwrite")
    assert done.returncode == 0 and list(tmp_path.iterdir()) == [output], done.stderr


@pytest.mark.parametrize("options", [(), ("--overwrite",)])
def test_folder_of_unknown_origin_stays(options, tmp_path):
    unknown = tmp_path / "unknown.json.parts"
    unknown.mkdir()
    (unknown / "rank0.a").write_bytes(b"")
    done = observed(tmp_path / "unknown.json", *options)
    assert done.returncode == 0 and os.listdir(unknown) == ["rank0.a"]
    assert "unknown.json.parts" in done.stderr and (tmp_path / "unknown-2.json").exists()


@pytest.mark.long
def test_ranks_that_observe_alone_share_a_folder(tmp_path):
    """One rank is not preloaded. Every rank has a launcher of its own, so only rank 0 can say which job it is."""
    shell = ["/bin/sh", "-c", '"$0" divergent; true', breakers]
    words = ["-n", 3, "-env", "LD_PRELOAD", preload["LD_PRELOAD"], *shell, ":", "-n", 1, "-env", "LD_PRELOAD", a.support, *shell]
    soon = {"LATECOMER_POLICY": json.dumps({"version": 1, "roll_call_timeout_s": 2 * patience})}
    for _ in range(2):
        done = run(a.mpiexec, *words, LATECOMER_OUTPUT=tmp_path / "alone.json", **soon)
        assert done.returncode == 0 and "rank 3 is not preloaded" in done.stderr, done.stderr
    assert sorted(inodes(tmp_path)) == ["alone-2.json.parts", "alone.json.parts"]
    for parts in tmp_path.iterdir():
        assert sorted(f.name for f in parts.glob("rank*")) == [f"rank{r}.{x}" for r in range(3) for x in "ab"]


# Outputs that cannot be written.


@pytest.fixture(scope="module")
def unwritable():
    """In a folder that no user can write to, not even root."""
    (folder / "file").write_text("")
    return folder / "file/x.json"


@pytest.fixture(scope="module")
def native_lines():
    return sorted(run(a.mpiexec, "-n", 2, breakers, "divergent", LD_PRELOAD=a.support).stdout.split())


@both_ways
def test_unwritable_folder_costs_the_profile_only(way, unwritable, native_lines):
    done = job(way, unwritable, breakers, "divergent")
    lines = [line for line in done.stderr.splitlines() if "Not a directory" in line]
    assert done.returncode == 0 and sorted(done.stdout.split()) == native_lines
    assert len(lines) == 1 and (way == "preload" or "lost" in lines[0]), done.stderr


def test_strict_refuses_an_unwritable_folder(unwritable, tmp_path):
    done = run(a.cli, "run", "--strict", "--output", unwritable, "--", "-n", 2, "touch", tmp_path / "ran")
    assert done.returncode == 2 and "Not a directory" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("way, options", [("run", ()), ("preload", ()), ("run", ("--overwrite",))])
def test_output_that_is_a_folder_gets_a_number(way, options, tmp_path):
    output = tmp_path / "folder.json"
    (output / "inside").mkdir(parents=True)
    words, environment = how_to_start(way, output, patterns, 200, 10, options=options)
    done = run(*words, **environment)
    assert done.returncode == 0 and (tmp_path / "folder-2.json").is_file(), done.stderr
    assert (output / "inside").is_dir()


def test_folder_that_appears_under_the_name_of_the_profile_gives_it_a_number(tmp_path):
    output = tmp_path / "late.json"
    how = how_to_start("run", output, patterns, 100, 10000, options=["--overwrite"])
    with started(*how, stderr=subprocess.PIPE) as late:
        assert until(snapshots_of(output).exists), "the job runs"
        output.mkdir()
        said = late.communicate(timeout=patience * 300)[1]
    assert late.returncode == 0 and (tmp_path / "late-2.json").is_file() and "late-2.json" in said, said
    assert not snapshots_of(output).exists()


# Mistakes in a policy stop only what would change the program.

observing = {
    "observes": '{"version": 1, "sites": {"depht": 2}}',
    "observes, with rules": '{"version": 1, "mode": "observe", "sites": {"depht": 2}, "rules": [{"match": {}, "use": "auto"}]}',
    "applies native": '{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {}, "use": "native"}]}',
}
applying = {
    "applies": '{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {"op": "bcast"}, "use": "binomial"}]}',
    "applies auto": '{"version": 1, "mode": "apply", "sites": {"depht": 2}, "rules": [{"match": {}, "use": {"algorithm": "auto"}}]}',
    "means to apply": '{"version": 1, "mode": "aply", "rules": [{"match": {}, "use": "auto"}]}',
    "means to apply, syntax": '{"version": 1, "mode": "apply", "rules": [{"match": {}, "use": "auto"}]',
}


def each(texts):
    return pytest.mark.parametrize("text", texts.values(), ids=texts.keys())


def with_mistake(here, text, *options):
    """A job with a policy that has a mistake, and what it says of this."""
    policy = here / "policy.json"
    policy.write_text(text)
    done = observed(here / "p.json", *options, "--policy", policy)
    return done, [line for line in done.stderr.splitlines() if "policy.json:" in line]


@each(observing)
def test_mistake_in_a_policy_that_observes_stops_nothing(text, tmp_path):
    done, lines = with_mistake(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert len(lines) == 1 and "observing only" in lines[0], lines


@each(applying)
def test_mistake_in_a_policy_that_applies_stops_the_job(text, tmp_path):
    done, lines = with_mistake(tmp_path, text)
    assert done.returncode == 2 and len(lines) >= 1, done.stderr


@each({**observing, **applying})
def test_strict_refuses_a_mistake_in_any_policy(text, tmp_path):
    assert with_mistake(tmp_path, text, "--strict")[0].returncode == 2


@pytest.mark.long
@each({**observing, **applying})
def test_force_runs_with_a_mistake_in_any_policy(text, tmp_path):
    done, _ = with_mistake(tmp_path, text, "--force")
    assert done.returncode == 0, done.stderr


# Live files, which `latecomer who` reads.


@pytest.fixture(scope="module")
def ended_process():
    gone = subprocess.Popen(["true"])
    gone.wait()
    return gone.pid


@pytest.fixture
def live_file(ended_process):
    """Makes the live file of an ended process, in this container or in another one."""
    made = []

    def make(started, container=0):
        space = os.stat("/proc/self/ns/pid").st_ino + container
        made.append(pathlib.Path(f"/dev/shm/latecomer-live-{space:x}-{ended_process}-{started:x}"))
        made[-1].touch()
        return made[-1]

    yield make
    for file in made:
        file.unlink(missing_ok=True)


def test_live_file_of_an_ended_process_stays_for_a_day_for_somebody_to_look_at(live_file, tmp_path):
    mine = live_file(1)
    os.utime(mine, (0, 0))
    observed(tmp_path / "swept.json")
    assert mine.exists() and mine.stat().st_mtime > 0
    os.utime(mine, (time.time() - 2 * 86400,) * 2)
    observed(tmp_path / "swept.json")
    assert not mine.exists()


def test_live_file_of_another_container_stays(live_file, tmp_path):
    other = live_file(1, container=1)
    os.utime(other, (0, 0))
    for _ in range(2):
        observed(tmp_path / "swept.json")
        assert other.exists()


@pytest.mark.long
def test_no_more_than_2048_live_files_of_ended_processes_stay(live_file, tmp_path):
    many = [live_file(0x10000 + number) for number in range(2200)]
    observed(tmp_path / "swept.json")
    assert 0 < sum(file.exists() for file in many) <= 2048


# Disks and containers.


def mounted(script):
    """Runs a shell script in a mount namespace of its own."""
    return run("unshare", "-m", "sh", "-ec", script, LD_PRELOAD="")


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    if mounted(f"mount -t tmpfs -o size=1m none '{path}'").returncode:
        pytest.skip("mounts are not allowed here")
    return path


def in_shell(options, *program):
    return f"LD_PRELOAD='{a.support}' '{a.cli}' run {options} -- -n 2 '{patterns}' {' '.join(map(str, program))}"


def test_full_disk_costs_the_profile_only(disk):
    fill = f"cat /dev/zero > '{disk}/filler' 2> /dev/null || true"
    job = in_shell(f"--output '{disk}/out.json'", 200, 10)
    done = mounted(f"mount -t tmpfs -o size=1m none '{disk}'; {fill}; {job}; echo ran; ls -A '{disk}'")
    assert done.returncode == 0 and done.stdout.split() == ["ran", "filler"], done.stderr
    assert done.stderr.count("No space left") == 1, done.stderr


def test_strict_refuses_a_full_disk(disk):
    fill = f"cat /dev/zero > '{disk}/filler' 2> /dev/null || true"
    job = in_shell(f"--strict --output '{disk}/out.json'", 200, 10)
    done = mounted(f"mount -t tmpfs -o size=1m none '{disk}'; {fill}; {job}; echo not reached")
    assert done.returncode == 2 and done.stdout == "", done.stderr


def test_disk_that_fills_up_costs_no_profile_that_fits_later(disk):
    fill = f"cat /dev/zero > '{disk}/filler' 2> /dev/null || true"
    job = in_shell(f"--output '{disk}/out.json'", 300, 1000)
    wait = f"for i in $(seq 600); do [ -s '{disk}/out.json.parts/rank1.b' ] && break; sleep 0.1; done"
    read = f"'{a.cli}' recover '{disk}/out.json'; '{a.cli}' report --json '{disk}/out.json' > /dev/null"
    done = mounted(f"mount -t tmpfs -o size=1m none '{disk}'; {job} & {wait}; {fill}; wait $!; echo $? ran; rm '{disk}/filler'; {read}")
    assert done.returncode == 0 and "0 ran" in done.stdout and "2 of 2 ranks" in done.stdout, done.stderr
    assert "run latecomer recover" in done.stderr, "it says how to get the profile"
    assert "is an MPI program?" not in done.stderr


def test_read_only_folder_costs_the_profile_only(disk):
    done = mounted(f"mount -t tmpfs none '{disk}'; mount -o remount,ro '{disk}'; cd '{disk}'; {in_shell('', 200, 10)}; echo ran")
    assert done.returncode == 0 and "ran" in done.stdout, done.stderr
    assert sum("Read-only file system" in line for line in done.stderr.splitlines()) == 1, done.stderr


def seen_by_who(profile):
    seen = run(a.cli, "who", "--json", "--seconds", "0.3", profile)
    answer = json.loads(seen.stdout) if seen.stdout else {"ranks": [], "limits": []}
    return [r["rank"] for r in answer["ranks"]], " ".join(answer["limits"])


def test_who_shows_one_of_two_jobs_in_containers_with_files_of_one_name(disk):
    start = f"mount -t tmpfs none '{disk}'; exec '{a.cli}' run --output '{disk}/same.json' -- -n 2 '{hang}' none 100000000"
    with started(["unshare", "-m", "sh", "-ec", start], under_run), started(["unshare", "-m", "sh", "-ec", start], under_run):
        until(lambda: "Another job" in seen_by_who(disk / "same.json")[1])
        ranks, limits = seen_by_who(disk / "same.json")
    assert ranks == [0, 1] and "Another job" in limits, "it names the other"


def test_job_of_another_container_counts_as_running(disk):
    """The container has process ids of its own. A job outside looks for live files to remove."""
    output = disk.parent / "inside.json"
    start = f"echo 30000 > /proc/sys/kernel/ns_last_pid; exec '{a.cli}' run --output '{output}' -- -n 2 '{hang}' none 100000000"
    try:
        with started(["unshare", "-p", "-m", "--mount-proc", "--fork", "sh", "-ec", start], under_run):
            assert until(lambda: seen_by_who(output)[0] == [0, 1]), "who shows a job of another container"
            done = observed(output, "--overwrite")
            assert done.returncode == 0 and "belongs to a job that may be running" in done.stderr, done.stderr
            assert next_number(output).name == "inside-3.json"
            assert seen_by_who(output)[0] == [0, 1], "its live files stay"
    finally:
        for file in pathlib.Path("/dev/shm").glob("latecomer-live-*"):  # no process outside may remove them
            if str(output).encode() in file.read_bytes():
                file.unlink()


# The configuration of a site.


class Site:
    """A folder with a configuration that puts profiles in folders by user and job. Jobs are number 5 of the user ada."""
    program = [breakers, "divergent"]
    ring = {"mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}

    def __init__(self, here):
        self.here, self.config = here, here / "config.json"
        self.environment = {**preload, "JOB_ID": "5", "USER": "ada", "LATECOMER_CONFIG": str(self.config)}
        self.profile = here / "ada/of 5" / f"{os.uname().nodename}.json"
        self.write(mode="observe")

    def write(self, output="%u/of %j/%h.json", **keys):
        self.config.write_text(json.dumps({"version": 1, "output": str(self.here / output), **keys}, indent=1))

    def job(self, way="preload", *options, **environment):
        if way == "run":
            return run(a.cli, "run", *options, "--", "-n", 2, *self.program, cwd=self.here, **{**self.environment, "LD_PRELOAD": a.support, **environment})
        return run(a.mpiexec, "-n", 2, *self.program, cwd=self.here, **{**self.environment, **environment})

    def mode(self):
        """How the job of the profile ran."""
        return json.loads(self.profile.read_text())["job"]["mode"] if self.profile.exists() else "no profile"

    def files(self):
        return sorted(str(f.relative_to(self.here)) for f in self.here.rglob("*.json*") if f != self.config)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@both_ways
def test_site_puts_a_profile_in_a_new_folder_of_user_and_job(way, site):
    done = site.job(way)
    assert done.returncode == 0 and site.mode() == "observe", (site.files(), done.stderr)
    assert way == "run" or done.stderr == ""


def test_policy_of_a_user_counts_in_the_folder_of_the_site(site):
    done = site.job(LATECOMER_POLICY=json.dumps({"version": 1, **site.ring}))
    assert done.returncode == 0 and site.mode() == "apply", (site.files(), done.stderr)


def test_output_option_counts_before_the_site(site):
    done = site.job("run", "--output", site.here / "mine.json")
    assert done.returncode == 0 and site.files() == ["mine.json"], done.stderr


def test_output_of_a_users_policy_counts_before_the_site(site):
    done = site.job(LATECOMER_POLICY=json.dumps({"version": 1, "output": str(site.here / "policy.json")}))
    assert done.returncode == 0 and site.files() == ["policy.json"], done.stderr


def test_latecomer_disable_counts_before_the_site(site):
    done = site.job(LATECOMER_DISABLE="1")
    assert done.returncode == 0 and done.stderr == "" and site.files() == []


def test_empty_variable_ignores_the_configuration_of_the_site(site):
    done = site.job(LATECOMER_CONFIG="")
    assert done.returncode == 0 and site.files() == ["latecomer.5.json"], done.stderr


def test_program_without_mpi_never_reads_the_configuration_of_the_site(site):
    nowhere = {**site.environment, "LD_PRELOAD": a.library, "LATECOMER_CONFIG": str(site.here / "nowhere")}
    shell = run("/bin/sh", "-c", "echo hello; exit 3", **nowhere)
    assert shell.returncode == 3 and shell.stdout == "hello\n" and shell.stderr == ""


@both_ways
def test_mode_off_of_the_site_observes_nothing(way, site):
    site.write(mode="off")
    done = site.job(way)
    assert done.returncode == 0 and site.files() == [], done.stderr
    assert "config.json turns observation off" in done.stderr if way == "run" else done.stderr == ""


@pytest.mark.parametrize("text", [
    '{"version":1,"mode":"off"}',
    '{"version":1,"mode":"apply","background":{"enabled":true},"rules":[{"match":{"op":"allreduce"},"use":"slt"}]}',
    pytest.param("", marks=pytest.mark.long),
    pytest.param(None, marks=pytest.mark.long),
], ids=["off", "an engine", "an empty file", "no file"])
def test_configuration_of_rank_0_counts_on_nodes_with_different_files(text, site):
    """Whether a rank may need an engine is a question to its own file."""
    site.write(**site.ring)
    other, output = site.here / "other", site.here / "both.json"
    if text is not None:
        other.write_text(text)
    words = [["-n", 1, "-env", "LATECOMER_CONFIG", other if rank == 1 else site.config, *site.program] for rank in range(3)]
    done = run(a.mpiexec, *words[0], ":", *words[1], ":", *words[2], cwd=site.here, **{**site.environment, "LATECOMER_OUTPUT": str(output)})
    assert done.returncode == 0 and "right" in done.stdout, done.stderr
    assert {name for s in json.loads(output.read_text())["sites"] if s["op"] == "allreduce" for name in s["dispatch"]} == {"ring"}


@pytest.fixture
def wrong_site(site):
    """With a mistake, and a request to replace calls."""
    site.write("wrong/%u/%j.json", mode="apply", rulse=site.ring["rules"])
    return site


@both_ways
def test_mistake_in_the_configuration_of_a_site_is_named_once_and_stops_no_job(way, wrong_site):
    done = wrong_site.job(way)
    said = [line for line in done.stderr.splitlines() if str(wrong_site.config) in line]
    assert done.returncode == 0 and "right" in done.stdout
    assert len(said) == 1 and f"{wrong_site.config}:5: rulse: unknown key, did you mean 'rules'?" in said[0], done.stderr
    assert not (wrong_site.here / "wrong").exists(), "a folder above the pattern is not made"


def test_output_of_a_site_counts_beside_a_mistake(wrong_site):
    (wrong_site.here / "wrong").mkdir()
    done = wrong_site.job()
    assert done.returncode == 0 and wrong_site.files() == ["wrong/ada/5.json"], done.stderr


def test_mistake_of_a_site_is_named_beside_the_policy_of_a_user(wrong_site):
    (wrong_site.here / "wrong").mkdir()
    done = wrong_site.job(LATECOMER_POLICY='{"version":1}')
    assert done.returncode == 0 and wrong_site.files() == ["wrong/ada/5.json"], done.stderr
    assert "the policy is not used, LATECOMER_POLICY names another" in done.stderr


def test_strict_refuses_a_mistake_of_a_site(wrong_site):
    done = wrong_site.job("run", "--strict")
    assert done.returncode == 2 and done.stdout == "" and "rulse" in done.stderr
