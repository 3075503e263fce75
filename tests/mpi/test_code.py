# SPDX-License-Identifier: BSD-3-Clause
"""The report names the code that makes a rank late, or says why it cannot. The runs compute for more than ten seconds."""
import json
import pathlib

import pytest
from common import a, built, folder, launcher, open_mpi, run

PROGRAM = pathlib.Path(a.bin) / "code"
OPENMP = pathlib.Path(a.bin) / "code_openmp"
needs_openmp = pytest.mark.skipif(not OPENMP.exists(), reason="the compiler has no OpenMP")
FAST = {"hz": 500}  # a run of seconds, and as many samples as a minute has


def observe(name, *words, ranks=2, command=(), preload=(), sampling=FAST, program=PROGRAM, **environment):
    """The finding about the late rank, None where another program takes its cores, and all of `report --json`."""
    profile, rules = folder / f"{name}.json", folder / f"{name}.policy.json"
    rules.write_text(json.dumps({"version": 1, "budget": None, "sampling": sampling}))
    preloads = [*preload, *([] if open_mpi else [a.support])]
    if preloads:
        environment["LD_PRELOAD"] = ":".join(map(str, preloads))
    done = run(*command, a.cli, "run", "--policy", rules, "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", ranks, program, *words, **environment)
    assert done.returncode == 0, done.stderr[-600:]
    report = json.loads(run(a.cli, "report", "--json", profile).stdout)
    late = [one for one in report["findings"] if one["id"] == "imbalance" and one["who"]["ranks"] == [1]]
    loaded = any(one["id"] == "cores_taken" for one in report["findings"])
    assert late or loaded, report["verdict"]
    return None if loaded else late[0], report


def late(observed):
    if observed[0] is None:
        pytest.skip("other programs use the cores, so the findings are about them")
    return observed[0]


def functions(finding):
    return [part["name"].split(" ")[0] for part in finding["why"]["code"]["parts"]]


@pytest.fixture(scope="module")
def hot():
    return observe("hot", "hot", 1, 100, 8)


def test_function_with_more_work_is_named(hot):
    finding = late(hot)
    assert finding["why"]["code"]["kind"] == "functions" and functions(finding) == ["flux"], finding["text"]
    part = finding["why"]["code"]["parts"][0]
    assert "code.c:" in part["name"]
    assert 1.6 < part["value"] / part["reference"] < 3.4, part  # 2.5 times the work


def test_samples_are_before_the_call_that_follows(hot):
    _, report = hot
    code, sites = report["code"], {one["id"]: one["call"] for one in report["timed_sites"]}
    sites.update({one["id"]: one["op"] for one in report["sites"]})
    before = {}
    for one in code["samples"]:
        if one["place"] is not None:
            name = code["places"][one["place"]]["frame"]["function"]
            for row in one["by_rank"]:
                calls = before.setdefault(name, {})
                calls[sites.get(one["next"])] = calls.get(sites.get(one["next"]), 0) + row["samples"]
    assert before["update"].get("MPI_Waitall", 0) > 0.9 * sum(before["update"].values()), before
    assert before["flux"].get("allreduce", 0) > 0.8 * sum(before["flux"].values()), before  # a part is before the first call


def test_waits_give_no_samples(hot):
    _, report = hot
    taken = [one["sampling"]["taken"] for one in report["processes"]]
    computes = [one["computing_ns"] for one in report["processes"]]
    assert report["processes"][0]["collectives_ns"] + report["processes"][0]["messages_ns"] > 0.2 * report["processes"][0]["wall_ns"]
    for number, time in zip(taken, computes):
        assert 0.5 < number / (FAST["hz"] * 1e-9 * time) < 1.5, (taken, computes)


def test_all_functions_alike_are_said_to_be():
    finding = late(observe("alike", "alike", 1, 100, 8))
    assert finding["why"]["code"]["kind"] == "alike", finding["text"]
    assert 1.3 < finding["why"]["code"]["ratio"] < 1.7


def test_no_function_is_named_where_none_has_a_fifth():
    finding = late(observe("spread", "spread", 1, 100, 8))
    assert finding["why"]["code"]["kind"] == "spread", finding["text"]


def test_sleep_is_between_two_calls():
    finding = late(observe("sleep", "sleep", 1, 60, 8))
    code = finding["why"]["code"]
    assert finding["why"]["cause"] == "blocked" and code["kind"] == "stretch", finding["text"]
    assert code["from"].startswith("MPI_Waitall in main (") and code["to"].startswith("MPI_Allreduce in main ("), code


def test_first_thread_is_named_beside_another_one_that_computes():
    finding = late(observe("thread", "thread", 1, 60, 8))
    assert functions(finding) == ["flux"] and not finding["why"]["code"]["parts"][0]["other_threads"], finding["text"]


@needs_openmp
def test_loop_of_all_threads_is_named():
    finding = late(observe("loop", "loop", 1, 60, 8, program=OPENMP))
    assert functions(finding) == ["sweep"] and not finding["why"]["code"]["parts"][0]["other_threads"], finding["text"]


@needs_openmp
@pytest.mark.parametrize("wait", ["active", "passive"])
def test_loop_that_the_first_thread_waits_for_is_named(wait):
    finding, report = observe(f"second-{wait}", "thread", 1, 60, 8, program=OPENMP, OMP_WAIT_POLICY=wait)
    assert all(one["sampling"]["other_threads"]["threads"] == 1 for one in report["processes"])
    parts = late((finding, report))["why"]["code"]["parts"]
    assert [part["waits"] for part in parts] == ([True, False] if wait == "active" else [False]), finding["text"]
    assert parts[-1]["name"].startswith("sweep (code_openmp.c:") and parts[-1]["other_threads"], parts
    assert 2.5 < parts[-1]["value"] / parts[-1]["reference"] < 6, parts  # four times the work


@needs_openmp
def test_children_end_as_without_samples_of_threads():
    _, report = observe("openmp-fork", "fork", 1, 60, 8, program=OPENMP)
    assert all(one["sampling"]["other_threads"]["taken"] > 100 for one in report["processes"])


@needs_openmp
def test_threads_that_end_before_the_next_call_have_no_samples():
    _, report = observe("begin", "begin", 1, 60, 8, program=OPENMP)
    assert all("other_threads" not in one["sampling"] for one in report["processes"])


@needs_openmp
def test_threads_whose_samples_are_forbidden_are_said_to_have_none():
    finding, report = observe("no-threads", "thread", 1, 60, 8, program=OPENMP, preload=[built("perf_event")], PERF_EVENT_THREAD_ERRNO="12", OMP_WAIT_POLICY="active")
    assert all(one["sampling"]["other_threads"]["threads"] == 0 and one["sampling"]["taken"] > 100 for one in report["processes"])
    parts = late((finding, report))["why"]["code"]["parts"]
    assert [part["waits"] for part in parts] == [True], parts
    assert any("in which function rank 1 computes longer: `perf_event_open` fails" in line for line in report["verdict"]), report["verdict"]


@pytest.fixture(scope="module")
def counted():
    """A stand-in counts a nanosecond as an instruction and as a cycle."""
    return observe("counted", "hot", 1, 60, 8, preload=[built("perf_event")], PERF_EVENT_HARDWARE="1")


def test_more_instructions_are_more_work(counted):
    finding = late(counted)
    execution = finding["why"]["execution"]
    assert execution["instructions"] == pytest.approx(finding["why"]["value"] / finding["why"]["reference"], rel=0.1)
    assert execution["cycles_each"] == pytest.approx(1, rel=0.02) and execution["time_each"] == pytest.approx(1, rel=0.1)
    assert any(line.startswith("more work: it executes ") for line in finding["text"]), finding["text"]
    assert all(0.5 < one["instructions"] / one["computing_ns"] < 1.5 for one in counted[1]["processes"])


def test_as_many_instructions_in_more_time_are_a_slower_core(counted):
    late(counted)
    profile = json.loads((folder / "counted.json").read_text())
    for rows in profile["rank_rows"]:
        for row in rows:
            if row["rank"] == 1 and "instructions" in (row.get("before") or {}):
                for count in ("instructions", "cycles"):
                    row["before"][count] *= 0.4
    (folder / "slower.json").write_text(json.dumps(profile))
    report = json.loads(run(a.cli, "report", "--json", folder / "slower.json").stdout)
    assert any(line.startswith("a slower core: it executes ") for one in report["findings"] for line in one["text"]), report["findings"]


def test_children_end_as_without_samples():
    observed = observe("fork", "fork", 1, 60, 8)
    assert all(one["sampling"]["taken"] > 100 for one in observed[1]["processes"])
    assert functions(late(observed)) == ["flux"]


def test_snapshots_of_a_killed_job_name_the_function():
    profile = folder / "killed.json"
    (folder / "killed.policy.json").write_text(json.dumps({"version": 1, "budget": None, "sampling": FAST}))
    environment = {} if open_mpi else {"LD_PRELOAD": a.support}
    run(a.cli, "run", "--policy", folder / "killed.policy.json", "--output", profile, "--", *(launcher or [a.mpiexec]), "-n", 2, PROGRAM, "killed", 1, 200, 8, **environment)
    done = run(a.cli, "recover", profile)
    assert done.returncode == 0, done.stderr
    written = json.loads(profile.read_text())
    for process in written["processes"]:
        rows = [row["samples"] for one in written["code"]["samples"] for row in one["by_rank"] if row["rank"] == process["rank"]]
        assert sum(rows) >= 0.4 * process["sampling"]["taken"] > 40, written["processes"]
    names = {place["frame"]["function"] for place in written["code"]["places"] if place["samples"] > 20 and "function" in place["frame"]}
    assert {"flux", "update", "relax"} <= names, written["code"]["places"]


def test_lost_samples_are_counted():
    """A ring holds 4,096 samples: at this rate, those of half a second."""
    _, report = observe("overflow", "overflow", 1, 60, 40, sampling={"hz": 8000})
    sampling = [one["sampling"] for one in report["processes"]]
    assert sampling[1]["lost"] > 1000, sampling


@pytest.mark.parametrize("forbid", ["filter", "kernel"])
def test_forbidden_samples_are_said_with_the_remedy(forbid):
    if forbid == "filter":
        command = [pathlib.Path(a.bin) / "forbid_perf_event"]
        if run(*command, "true").returncode != 0:
            pytest.skip("no filter of system calls is allowed here")
        finding, report = observe("filter", "hot", 1, 60, 8, command=command)
    else:
        finding, report = observe("kernel", "hot", 1, 60, 8, preload=[built("perf_event")], PERF_EVENT_ERRNO="13")
    assert all("perf_event_open" in one["sampling"]["why_not"] or "perf_event_paranoid" in one["sampling"]["why_not"] for one in report["processes"])
    code = late((finding, report))["why"]["code"]
    assert code["kind"] == "stretch" and code["from"].startswith("MPI_Waitall") and code["to"].startswith("MPI_Allreduce"), code
    assert any(line.startswith("Not known: in which function rank 1 computes longer: ") for line in report["verdict"]), report["verdict"]


def test_policy_without_samples_takes_none():
    _, report = observe("off", "hot", 1, 60, 8, sampling=False)
    assert all("sampling" not in one for one in report["processes"])
    assert not report["code"]["samples"] and report["code"]["stretches"]
