# SPDX-License-Identifier: BSD-3-Clause
"""The roll call where the name service of the process manager fails or lies: with the channel of `latecomer run` the ranks
observe together, without it each one alone at once. Servers and ranks that misbehave on that channel stop nobody."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from common import a, built, folder, open_mpi, patience, run
from hosts import Hosts
from processes import children, end_tree

process_manager = "Open MPI's mpiexec" if open_mpi else "MPICH's mpiexec"
service = built("name_service")
support = "" if open_mpi else f":{a.support}"
# The ranks do not know how many are on their host, so each of them is a room of one (rooms.py).
alone = ["env", "-u", "MPI_LOCALNRANKS", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"]
program = [*alone, a.bin + "/breakers", "divergent"]
without_preload = ["env", f"LD_PRELOAD={service}{support}", *program]
both_sides_are_one_source = pytest.mark.skipif(open_mpi, reason="the source is the same for both libraries")
soon = 2 * patience  # seconds that ranks wait for one that does not come


def policy(seconds):
    path = folder / f"policy{seconds}.json"
    path.write_text(json.dumps({"version": 1, "mode": "apply", "roll_call_timeout_s": seconds, "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))
    return path


def setting(name, value, of_one_program=False):
    """Words of the launcher that set a variable of the ranks."""
    return ["-x", f"{name}={value}"] if open_mpi else ["-env" if of_one_program else "-genv", name, value]


def run_alone(output, how, seconds=1, **extra):
    """A job of four ranks without `latecomer run`, whose name service misbehaves."""
    words = [a.mpiexec, *setting("LD_PRELOAD", f"{a.library}{support}:{service}"), "-n", 4, *program]
    return run(*words, NAME_SERVICE=how, LATECOMER_POLICY=policy(seconds), LATECOMER_OUTPUT=output, **extra)


def run_with_channel(output, how, *ranks, seconds=600, options=()):
    """The same with `latecomer run`."""
    words = ranks or ["-n", 4, *program]
    return run(a.cli, "run", "--policy", policy(seconds), "--output", output, *options, "--", *words, LD_PRELOAD=f"{service}{support}", NAME_SERVICE=how)


def warnings(done):
    return [line for line in done.stderr.splitlines() if "warning" in line]


def right(done):
    return done.returncode == 0 and "right" in done.stdout


def assert_each_alone(done, output, *says):
    """The program runs, one line says why each rank observes alone, and what the ranks saw can be recovered."""
    assert right(done), (done.returncode, done.stdout, done.stderr)
    assert len(warnings(done)) == 1 and all(s in warnings(done)[0] for s in (*says, "every rank observes alone"))
    assert run(a.cli, "recover", output.with_name(output.name + ".parts")).returncode == 0


def until(condition, seconds=60):
    deadline = time.time() + patience * seconds
    while not (good := condition()) and time.time() < deadline:
        time.sleep(0.05)
    return good


# A rank without the preload.


@pytest.fixture(scope="module")
def partial():
    """Jobs of four ranks, of which one is not preloaded: what each said, and its output."""
    def job(missing):
        words = []
        for rank in range(4):
            preload = a.support if rank == missing else a.library + ":" + a.support
            words += ([":"] if rank else []) + ["-n", "1", *setting("LD_PRELOAD", preload, of_one_program=True), a.bin + "/breakers", "divergent"]
        output = folder / f"partial{missing}.json"
        return run(a.mpiexec, *words, LATECOMER_OUTPUT=output, LATECOMER_POLICY=json.dumps({"version": 1, "roll_call_timeout_s": soon})), output
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # the ranks wait for the time-out
        return list(pool.map(job, range(4)))


each_rank = pytest.mark.parametrize("missing", range(4))


@each_rank
def test_rank_without_preload_is_named_once_and_stops_nothing(missing, partial):
    done, _ = partial[missing]
    assert right(done), (done.returncode, done.stdout)
    assert len(warnings(done)) == 1 and f"rank {missing} is not preloaded" in warnings(done)[0]


@each_rank
def test_each_rank_beside_one_without_preload_keeps_what_it_saw(missing, partial):
    parts = folder / f"partial{missing}.json.parts"
    assert sorted(p.name for p in parts.glob("rank*")) == [f"rank{r}.{x}" for r in range(4) if r != missing for x in "ab"]


@each_rank
def test_verdict_of_the_recovered_profile_names_the_rank_without_preload(missing, partial):
    done, output = partial[missing]
    parts = f"{output}.parts"
    assert f"latecomer recover {parts}" in warnings(done)[0]
    assert run(a.cli, "recover", parts).returncode == 0
    report = run(a.cli, "report", output)
    text = " ".join(report.stdout.split())
    assert report.returncode == 0 and f"The profile lacks rank {missing}" in text and "preload" in text, report.stdout
    assert "too short" not in text and "No wait" not in text


@pytest.mark.long
def test_rank_without_preload_is_named_by_latecomer_run(tmp_path):
    ranks = ["-n", 2, *program, ":", "-n", 1, *without_preload]
    done = run_with_channel(tmp_path / "lacking.json", "refuses", *ranks, seconds=soon)
    assert right(done), (done.returncode, done.stderr)
    assert len(warnings(done)) == 1 and "rank 2 is not preloaded with this build of latecomer, or late" in warnings(done)[0]


# A name service that fails or lies.

misbehaves = {
    "forgets": "does not show a rank its own name",
    "invents": "answers names that nobody published",
    "refuses": "has no name service",
    "empties": "does not show a rank its own name",
    "deafens": "does not show a rank its own name",
}


@pytest.mark.parametrize("how", ["forgets", "invents", "refuses", pytest.param("empties", marks=pytest.mark.long), "deafens"])
def test_each_rank_observes_alone_at_once_where_the_name_service_misbehaves(how, tmp_path):
    """No rank waits: the time-out of ten minutes is longer than that of the run."""
    output = tmp_path / "alone.json"
    done = run_alone(output, how, seconds=600)
    assert_each_alone(done, output, misbehaves[how], process_manager, "(latecomer run would help)")


@pytest.mark.parametrize("how", [pytest.param("delays", marks=pytest.mark.long), "swallows"])
def test_rank_that_is_late_or_cannot_be_seen_is_a_matter_of_time(how, tmp_path):
    late = "rank 1 is not preloaded with this build of latecomer, or it answers more than 1 s late (policy key roll_call_timeout_s)"
    output = tmp_path / "alone.json"
    assert_each_alone(run_alone(output, how), output, late, f"or the name service of {process_manager} does not show it")


def test_job_ends_if_the_name_service_ends_before_the_verdict(tmp_path):
    """Rank 0 cannot tell the others, which wait for it."""
    done = run_alone(tmp_path / "ends.json", "ends", seconds=10)
    assert done.returncode != 0 and "the name service fails in the roll call" in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize("how", ["forgets", *(pytest.param(how, marks=pytest.mark.long) for how in ("invents", "empties")), "refuses", "deafens", "swallows"])
def test_ranks_observe_together_through_latecomer_run(how, tmp_path):
    """They write one whole profile, and a rule is in force."""
    output = tmp_path / "together.json"
    done = run_with_channel(output, how, seconds=soon if how == "swallows" else 600, options=["--verbose", 1, "--quiet"])
    assert right(done) and not warnings(done), (done.returncode, done.stdout, done.stderr)
    assert "found each other through latecomer run" in done.stderr and "4 ranks, together" in done.stderr
    assert os.listdir(tmp_path) == ["together.json"]
    profile = json.loads(output.read_text())
    ran = {name: d["calls"] for s in profile["sites"] if s["op"] == "allreduce" for name, d in s["dispatch"].items()}
    assert profile["job"]["ranks"] == 4 and ran.get("ring", 0) > 10


# The end of `latecomer run`.


def below(pid):
    return [p for child in children(pid) for p in (child, *below(child))]


def connections(pid):
    count = 0
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(file).startswith("socket:")
    return count


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_job_ends_if_latecomer_run_is_killed_while_ranks_wait(tmp_path):
    words = [a.cli, "run", "--policy", policy(600), "--output", tmp_path / "killed.json", "--", "-n", 2, *program, ":", "-n", 1, *without_preload]
    environment = dict(os.environ, LD_PRELOAD=f"{service}{support}", NAME_SERVICE="refuses")
    job = subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        waiting = until(lambda: connections(job.pid) >= 3 and len(below(job.pid)) >= 4)
        pids, sockets = below(job.pid), connections(job.pid)
    finally:
        job.kill()
        job.wait()
    until(lambda: not any(map(runs, pids)))
    left = [pid for pid in pids if runs(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert waiting and sockets == 3, "of two ranks, and the listener"
    assert not left, pids


# Servers that misbehave.


def waits(file):
    file.read()


def leaves(file):
    pass


def ends_before_its_verdict(file):
    file.write("here\n")
    file.flush()
    file.readline()


class Server:
    """Greets each rank, hears its hello, and then does what `act` does with the file of the connection."""
    def __init__(self, greeting, act):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.offer = f"{self.listener.getsockname()[1]}/name/secret/127.0.0.1"
        self.greeting, self.act, self.heard = greeting, act, []
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.speak, args=self.listener.accept()[:1], daemon=True).start()

    def speak(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rw") as file:
            file.write(self.greeting)
            file.flush()
            if line := file.readline():
                self.heard.append(line)
                self.act(file)


refused = "has no name service, and latecomer run does not answer"


@pytest.mark.parametrize("offer", ["1/name/secret/127.0.0.1", "1/2"], ids=["nobody", "no offer"])
def test_each_rank_observes_alone_at_once_where_no_server_is(offer, tmp_path):
    output = tmp_path / "alone.json"
    assert_each_alone(run_alone(output, "refuses", seconds=600, LATECOMER_ROLL_CALL=offer), output, refused)


@both_sides_are_one_source
@pytest.mark.parametrize("greeting", [pytest.param("", marks=pytest.mark.long), "HTTP/1.0 400\n", pytest.param("x" * 100000, marks=pytest.mark.long)], ids=["mute", "stranger", "endless"])
def test_a_server_that_is_not_latecomer_run_does_not_hear_the_secret(greeting, tmp_path):
    output = tmp_path / "alone.json"
    with Server(greeting, waits) as server:
        assert_each_alone(run_alone(output, "refuses", LATECOMER_ROLL_CALL=server.offer), output, refused)
    assert server.heard == []


@pytest.mark.parametrize("act", [pytest.param(leaves, marks=both_sides_are_one_source), waits])
def test_each_rank_observes_alone_where_latecomer_run_does_not_answer(act, tmp_path):
    output = tmp_path / "alone.json"
    with Server("latecomer name\n", act) as server:
        assert_each_alone(run_alone(output, "refuses", LATECOMER_ROLL_CALL=server.offer), output, refused)
    assert len(server.heard) == 4 and all(line.startswith("secret ") for line in server.heard)


def test_job_ends_if_latecomer_run_ends_when_the_ranks_are_ready(tmp_path):
    """No rank can know what the others heard."""
    with Server("latecomer name\n", ends_before_its_verdict) as server:
        done = run_alone(tmp_path / "ends.json", "refuses", LATECOMER_ROLL_CALL=server.offer, seconds=10)
    assert done.returncode != 0 and "latecomer run ended in the roll call" in done.stderr, (done.returncode, done.stderr)


# Ranks that misbehave: the test speaks to `latecomer run` in their place.


@pytest.fixture(scope="module")
def channel():
    """Port, name, secret and address of a `latecomer run` that waits for ranks."""
    script = 'import os, sys; print(os.environ["LATECOMER_ROLL_CALL"], flush=True); sys.stdin.read()'
    words = [a.cli, "run", "--output", folder / "channel.json", "--quiet", "--", "-n", 1, sys.executable, "-c", script]
    with subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        yield job.stdout.readline().split("/")[:4]
        job.communicate(timeout=60 * patience)
    assert job.returncode == 0


class Rank:
    """What a rank says to `latecomer run`, and hears: a line, or an empty text at the end."""
    def __init__(self, channel, hello):
        port, name, _, address = channel
        self.socket = socket.create_connection((address, int(port)), timeout=60 * patience)
        self.file = self.socket.makefile("r")
        assert self.hear() == f"latecomer {name}\n"
        self.say(hello)

    def say(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def hear(self):
        return self.file.readline()

    def leave(self):
        self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture
def hello(channel):
    """Makes a rank that says this first."""
    with contextlib.ExitStack() as stack:
        yield lambda text: stack.enter_context(contextlib.closing(Rank(channel, text)))


@pytest.fixture
def come(channel, hello):
    """Makes a rank of a job that knows the secret."""
    secret = channel[2]
    return lambda job, rank=0, size=2, build="b": hello(f"{secret} {job} {rank} {size} {build}")


@both_sides_are_one_source
@pytest.mark.parametrize("text", ["x j 0 2 b", "", "x", "SECRET j 0", "SECRET j -1 2 b", "SECRET j 2 2 b", "SECRET j 0 99999999999 b"])
def test_wrong_hello_is_refused(text, channel, hello):
    rank = hello(text.replace("SECRET", channel[2]))
    assert rank.hear() == "no 0\n" and rank.hear() == ""


@both_sides_are_one_source
def test_hello_without_an_end_is_cut(come):
    with contextlib.suppress(ConnectionResetError):
        assert come("long", build="x" * 5000).hear() == ""


@both_sides_are_one_source
def test_ranks_hear_yes_when_all_are_ready_in_each_step_of_a_job(come):
    for _ in range(2):
        both = [come("twice_yes", rank) for rank in range(2)]
        for one in both:
            assert one.hear() == "here\n"
            one.say("ready")
        for one in both:
            assert one.hear() == "yes\n" and one.hear() == ""


@both_sides_are_one_source
def test_rank_that_leaves_before_all_are_here_ends_the_roll_call(come):
    first, second = come("gone", 0, 3), come("gone", 1, 3)
    second.leave()
    assert first.hear().startswith("no 1 rank 2 is not preloaded")
    assert second.hear() == "no 0\n" and second.hear() == ""
    assert come("gone", 2, 3).hear() == "no 0\n", "so do those that come later"


@both_sides_are_one_source
@pytest.mark.parametrize("job, other, says", [
    ("twice", {}, "rank 0 has come to latecomer run twice"),
    ("build", {"rank": 1, "build": "c"}, "rank 1 is preloaded with another build"),
    ("session", {"rank": 1, "build": "b.session"}, "rank 1 has used an MPI session before MPI_Init"),
    ("size", {"rank": 1, "size": 3}, "rank 1"),
])
def test_rank_that_does_not_fit_ends_the_roll_call(job, other, says, come):
    first = come(job)
    assert come(job, **other).hear() == "no 0\n"
    assert first.hear().startswith(f"no 1 {says}")


@both_sides_are_one_source
@pytest.mark.long
def test_rank_that_is_not_ready_in_time_ends_the_roll_call(come):
    """The time is five seconds in `latecomer run`."""
    both = [come("unready", rank) for rank in range(2)]
    assert [one.hear() for one in both] == ["here\n", "here\n"]
    both[0].say("ready")
    assert both[0].hear().startswith("no 1 a rank is here and does not answer")
    assert both[1].hear() == "no 0\n"


@both_sides_are_one_source
def test_rank_that_leaves_before_it_is_ready_ends_the_roll_call(come):
    both = [come("dies", rank) for rank in range(2)]
    assert [one.hear() for one in both] == ["here\n", "here\n"]
    both[0].say("ready")
    both[1].leave()
    assert both[0].hear().startswith("no 1 a rank has left")


@both_sides_are_one_source
def test_parts_of_one_job_are_told_that_they_may_be_one(come):
    """`latecomer run` may read an end together with the line before it, so the last rank to come is the one that leaves."""
    other, one = come("part2", 2, 4), come("part1", 0, 4)
    one.leave()
    assert one.hear().startswith("no 1 some ranks cannot tell")
    assert other.hear() == "no 0\n"


@both_sides_are_one_source
def test_verdict_counts_many_ranks_that_are_missing(come):
    many = [come("many", rank, 200) for rank in range(100)]
    many[99].leave()
    assert many[0].hear().startswith("no 1 ranks 100, 101, 102, 103 and 96 more are not")


# Several hosts, which are network namespaces.


@pytest.fixture(scope="module")
def hosts():
    if open_mpi:
        pytest.skip("the source is the same for both libraries")
    both = Hosts("lcroll", 2)
    try:
        if not both.able:
            pytest.skip("this machine does not allow network namespaces")
        yield both
    finally:
        both.remove()


def said_on_two_hosts(hosts, output, last, **tell):
    """The lines of a job until one has the text `last`. MPI_Finalize over TCP may hang, see run_until_profile()."""
    options = ["--verbose", 1, "--quiet", "--policy", policy(soon), "--output", output]
    words = [*hosts.inside, a.cli, "run", *options, "--", *hosts.launch(output.with_name("start"), 2), *program]
    environment = dict(os.environ, LD_PRELOAD=f"{service}{support}", NAME_SERVICE="refuses", **hosts.environment_of_nodes, **tell)
    job = subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    limit = threading.Timer(120 * patience, end_tree, [job])
    limit.start()
    said = []
    for line in job.stdout:
        said.append(line)
        if last in line:
            break
    limit.cancel()
    end_tree(job)
    return said


def test_two_hosts_observe_together_if_pmix_tells_that_they_are_one_job(hosts, tmp_path):
    output = tmp_path / "told.json"
    said = said_on_two_hosts(hosts, output, "profile written to", PMIX_NAMESPACE="job")
    assert any("found each other through latecomer run" in line for line in said) and "profile written to" in said[-1], said
    assert output.exists() and not any("warning" in line for line in said)


@pytest.mark.long
def test_two_hosts_observe_alone_if_nothing_tells_that_they_are_one_job(hosts, tmp_path):
    output = tmp_path / "untold.json"
    said = said_on_two_hosts(hosts, output, "every rank observes alone")
    assert any("some ranks cannot tell latecomer run that they are one job" in line for line in said), said
    assert "every rank observes alone" in said[-1] and sum("warning" in line for line in said) == 1
    assert not output.exists()


# mpiexec -nameserver: the server keeps the names of earlier jobs. MPICH 4.0 answers unknown names with an empty text, and
# MPICH 4.2 with an error.


@pytest.fixture(scope="module")
def served():
    """The words of a job that uses a name server. It runs while the functions need it."""
    server = None if open_mpi else shutil.which("hydra_nameserver", path=os.path.dirname(a.mpiexec)) or shutil.which("hydra_nameserver")
    if not server:
        pytest.skip("hydra_nameserver is MPICH's, and not here")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]

    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("localhost", port)) == 0

    def words(output, *ranks, how="counts"):
        settings = [*setting("LATECOMER_POLICY", policy(soon)), *setting("LATECOMER_OUTPUT", output), *setting("NAME_SERVICE", how)]
        return list(map(str, [a.mpiexec, "-nameserver", f"localhost:{port}", *settings, *ranks]))

    serving = subprocess.Popen([server, "-port", str(port)], start_new_session=True)
    try:
        assert until(listens)
        yield words
    finally:
        end_tree(serving)


preloaded = f"{a.library}:{a.support}:{service}"
each_answer = pytest.mark.parametrize("how", ["counts", "denies", "shares"], ids=["as it is", "error", "beside another job"])


@each_answer
def test_ranks_observe_together_through_a_name_server_that_keeps_the_names_of_earlier_jobs(how, served, tmp_path):
    for job in range(3):
        output = tmp_path / f"served{job}.json"
        done = run(*served(output, *setting("LD_PRELOAD", preloaded), "-n", 4, *program, how=how))
        assert right(done) and "warning" not in done.stderr, (done.returncode, done.stderr)
        assert output.exists()


@pytest.mark.long
def test_rank_without_preload_is_named_through_a_name_server(served, tmp_path):
    ranks = [["-n", 1, *setting("LD_PRELOAD", preload, of_one_program=True), *program] for preload in (preloaded, a.support)]
    done = run(*served(tmp_path / "lacking.json", *ranks[0], ":", *ranks[1]))
    assert right(done) and len(warnings(done)) == 1, (done.returncode, done.stderr)
    assert "rank 1 did not answer through mpiexec -nameserver" in warnings(done)[0]


@each_answer
def test_two_jobs_at_once_use_a_name_server(how, served, tmp_path):
    outputs = [tmp_path / f"at_once{ranks}.json" for ranks in (2, 3)]
    jobs = [subprocess.Popen(served(output, *setting("LD_PRELOAD", preloaded), "-n", ranks, *program, how=how),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
            for ranks, output in zip((2, 3), outputs)]
    try:
        for job in jobs:
            out, err = job.communicate(timeout=patience * 120)
            assert job.returncode == 0 and "right" in out and "warning" not in err, (job.returncode, err)
        assert all(output.exists() for output in outputs)
    finally:
        for job in jobs:
            end_tree(job)


# prte and prun of Open MPI 5: a daemon that runs one job after another, and keeps names of those that have ended.


@pytest.fixture(scope="module")
def daemon():
    """The words of a job on a daemon. It runs while the functions need it."""
    if not open_mpi or not shutil.which("prte") or not shutil.which("prun"):
        pytest.skip("prte is of Open MPI 5, and not here")
    address = folder / "daemon"
    serving = subprocess.Popen(["prte", "--report-uri", str(address)], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        assert until(lambda: address.exists() and address.read_text())
        yield ["prun", "--dvm-uri", f"file:{address}"]
    finally:
        end_tree(serving)


def test_jobs_of_one_daemon_observe_together(daemon, tmp_path):
    for job in range(3):
        output = tmp_path / f"job{job}.json"
        settings = [("LD_PRELOAD", a.library), ("LATECOMER_POLICY", policy(soon)), ("LATECOMER_OUTPUT", output)]
        done = run(*daemon, *(word for name, value in settings for word in setting(name, value)), "-n", 3, *program)
        assert right(done) and "warning" not in done.stderr and output.exists(), (done.returncode, done.stderr)
