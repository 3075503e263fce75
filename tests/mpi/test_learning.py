# SPDX-License-Identifier: BSD-3-Clause
"""The learning loop in running jobs: patterns per call site in one binary, rules by site and imbalance, auto,
history, the agreement check. Results are right and no job hangs under any decision. No times are checked."""
import itertools
import json
import pathlib
import re
import types

import pytest

from common import a, folder, run

learn = a.bin + "/learn"
numbers = itertools.count(1)


def policy(*rules, **more):
    """The file of a policy that applies these rules."""
    path = folder / f"policy{next(numbers)}.json"
    path.write_text(json.dumps({"version": 1, "mode": "apply", "rules": rules, **more}))
    return path


def allreduce(use, **match):
    """A rule."""
    return {"match": {"op": "allreduce", **match}, "use": use}


class Job:
    """A job that has ended well: its file, its profile, and what it said."""

    def __init__(self, ranks, *words, options=(), policy=None, **environment):
        self.output = folder / f"job{next(numbers)}.json"
        options = [*options, *(["--policy", policy] if policy else []), "--output", self.output]
        done = run(a.cli, "run", *options, "--", "-n", ranks, *words, timeout=300, LD_PRELOAD=a.support, **environment)
        assert done.returncode == 0, (done.returncode, done.stdout[-200:], done.stderr[-400:])
        self.stdout, self.stderr = done.stdout, done.stderr
        self.profile = json.loads(self.output.read_text())
        self.sites, self.plans, self.warnings = self.profile["sites"], self.profile["plans"], self.profile["warnings"]

    def ran(self):
        """The calls of each algorithm."""
        calls = {}
        for site in self.sites:
            for algorithm, d in site["dispatch"].items():
                calls[algorithm] = calls.get(algorithm, 0) + d["calls"]
        return calls

    def report(self, *options):
        return run(a.cli, "report", *options, self.output).stdout


def calls(site, algorithm):
    return site["dispatch"].get(algorithm, {"calls": 0})["calls"]


def last_ranks(plan):
    return [slot["last_rank"] for slot in plan["slots"]]


# One binary, two call sites of one size and operation, two patterns.


@pytest.fixture(scope="module")
def two_sites():
    """Rank 1 is late at the first place, rank 3 at the second. Both run PRR."""
    return Job(4, learn, "two_sites", 120, 20_000, 20_000, policy=policy(allreduce("prr")))


def test_plan_has_a_slot_and_a_pattern_for_each_of_two_sites(two_sites):
    plans = [p for p in two_sites.plans if p["period"] == 2]
    shown = [(last_ranks(p), len(p["patterns_ns"])) for p in plans]
    assert any(sorted(last, key=str) == [1, 3] and patterns == 2 for last, patterns in shown), shown


def test_report_shows_the_last_rank_of_each_place(two_sites):
    paragraphs = two_sites.report("--all").split("\n\n")
    places = {place: text for text in paragraphs for place in ("first_place", "second_place") if text.startswith(f"  {place}")}
    assert "rank 1 last" in places.get("first_place", "") and "rank 3 last" in places.get("second_place", ""), places


def test_both_sites_run_the_algorithm_of_the_rule(two_sites):
    assert all(calls(s, "prr") > 40 for s in two_sites.sites), two_sites.ran()


@pytest.fixture(scope="module")
def wrapped():
    """The same, with both calls inside one Fortran wrapper."""
    if not pathlib.Path(a.bin + "/wrapper").exists():
        pytest.skip("no Fortran")
    return Job(4, a.bin + "/wrapper", 120, 20_000, 20_000, policy=policy(allreduce("slt"), sites={"depth": 2}))


@pytest.mark.long
def test_plan_tells_the_callers_of_a_fortran_wrapper_apart(wrapped):
    shown = [last_ranks(p) for p in wrapped.plans if p["period"] == 2]
    assert any(sorted(last, key=str) == [1, 3] for last in shown), shown


@pytest.mark.long
def test_report_shows_both_callers_of_a_fortran_wrapper(wrapped):
    report = wrapped.report("--all")
    assert "rank 1 last" in report and "rank 3 last" in report and "called by" in report, report


# Rules by place and by imbalance.


def test_rule_of_a_place_comes_into_force_at_this_place():
    """Names of places are read while the job runs, so the rules come into force later."""
    rules = allreduce("ring", site="second_place"), allreduce("linear", site="learn.c:*")
    job = Job(2, learn, "two_sites", 1000, 1000, 100, policy=policy(*rules))
    assert {tuple(sorted(s["dispatch"])) for s in job.sites} == {("native", "ring"), ("linear", "native")}


@pytest.mark.long
def test_rule_of_an_imbalance_factor_comes_into_force():
    job = Job(4, learn, "two_sites", 200, 1000, 10_000, policy=policy(allreduce("ring", imbalance_factor={"min": 3}), network="fdr"))
    assert all(calls(s, "ring") > 100 for s in job.sites), job.ran()


@pytest.mark.long
def test_rule_of_an_imbalance_factor_that_no_call_has_changes_nothing():
    job = Job(4, learn, "two_sites", 100, 1000, 1000, policy=policy(allreduce("ring", imbalance_factor={"min": 1e9}), network="fdr"))
    assert all(set(s["dispatch"]) == {"native"} for s in job.sites), job.ran()
    assert job.plans == []


# The late rank moves.


@pytest.fixture(scope="module")
def moving():
    return Job(4, learn, "moving", 2000, 4000, 3000, policy=policy(allreduce("clairvoyant")), options=["--verbose", 2])


@pytest.mark.long
def test_schedules_are_built_ahead_of_their_plan_and_inside_a_call_only_the_first_time(moving):
    built = re.search(r"schedules built: (\d+) ahead of their plan, (\d+) inside a call", moving.stderr)
    assert built and int(built[1]) >= 3 and int(built[2]) <= 2, moving.stderr


@pytest.mark.long
def test_forecasts_follow_the_late_rank(moving):
    seen = [last_ranks(p)[0] for p in moving.plans if p["slots"][0]["pattern"] is not None]
    assert len(set(seen)) >= 3, seen


@pytest.mark.long
def test_auto_says_why_it_decides_as_it_does():
    job = Job(4, learn, "moving", 2000, 4000, 3000, policy=policy({"match": {}, "use": "auto"}, network="measure"))
    decisions = next(s for s in job.sites if s["op"] == "allreduce")["decisions"]
    assert decisions and all(d["reason"].startswith("auto") and d["error_ns"] >= 0 for d in decisions), decisions


@pytest.fixture(scope="module")
def auto():
    return Job(2, learn, "two_sites", 100, 1000, 100, options=["--auto"])


def test_run_auto_applies_without_a_policy(auto):
    assert auto.profile["job"]["mode"] == "apply"


# If no rule can change the algorithm, epochs are idle. Every call is still counted, and the following calls are served.

few_ranks = [pytest.param(2, marks=pytest.mark.long), 3]


@pytest.fixture(scope="module", params=few_ranks)
def idle(request):
    """The rule applies to the second place, which the program reaches after three quarters of its calls."""
    job = Job(request.param, learn, "later", 20_000, 100, 100, policy=policy(allreduce("ring", site="second_place")))
    return types.SimpleNamespace(ranks=request.param, job=job, quiet=[s for s in job.sites if "ring" not in s["dispatch"]])


def test_calls_that_no_rule_can_change_rest(idle):
    assert len(idle.quiet) == 2 and all(s["rested"] for s in idle.quiet), "the first place and the non-blocking call"
    assert sum(s["calls"] for s in idle.quiet) == 15_000


def test_no_call_that_rests_is_lost(idle):
    for s in idle.quiet:
        assert s["patterns"] + s["rested"] == s["calls"] == calls(s, "native") and s["rank_calls"] == idle.ranks * s["calls"]


def test_place_with_a_rule_is_served_after_calls_that_rest(idle):
    assert idle.job.ran().get("ring", 0) > 3000, idle.job.ran()


@pytest.mark.parametrize("ranks", few_ranks)
def test_rest_false_looks_at_every_call(ranks):
    job = Job(ranks, learn, "later", 5000, 100, 0, policy=policy({"match": {"op": "reduce"}, "use": "auto"}, rest=False))
    assert all(s["rested"] == 0 and s["patterns"] == s["calls"] for s in job.sites)


@pytest.fixture(scope="module", params=few_ranks)
def resting(request):
    """Many places, several operations and temporary communicators. The program says how often and with how many bytes it
    called each operation. `sites` are those of all ranks, `pairs` those of a communicator of two ranks."""
    ranks = request.param
    job = Job(ranks, learn, "resting", 60_000, 200, ranks, policy=policy(allreduce("ring", site="second_place")))
    said = {op: (int(n), int(size)) for op, n, size in re.findall(r"^([a-z]+) (\d+) (\d+)$", job.stdout, re.M)}
    said["allreduce"] = tuple(x + y for x, y in zip(said["allreduce"], said.pop("iallreduce")))  # the profile's `op` is the operation
    pairs = [s for s in job.sites if s["comm_size"] == 2 and ranks > 2]
    return types.SimpleNamespace(ranks=ranks, paired=said.pop("pair"), said=said, pairs=pairs, sites=[s for s in job.sites if s not in pairs])


def test_calls_rest_by_size_of_communicator(resting):
    assert sum(s["rank_calls"] for s in resting.pairs) == 2 * resting.paired[0] and all(s["rested"] for s in resting.pairs)


def test_what_rests_is_counted_by_place_with_its_bytes(resting):
    def held(op):
        sites = [s for s in resting.sites if s["op"] == op]
        moved = sum((s["bytes"] or {"mean": 0})["mean"] * s["rank_calls"] for s in sites)
        return sum(s["rank_calls"] for s in sites) // resting.ranks, round(moved / resting.ranks)
    assert {op: held(op) for op in resting.said} == resting.said


def test_most_calls_of_many_places_rest_and_none_is_lost(resting):
    assert sum(s["rested"] for s in resting.sites) > 20_000
    native = [s for s in resting.sites if s["dispatch"].keys() <= {"native"} and s["divergent_calls"] == 0]
    assert all(s["patterns"] + s["rested"] == s["calls"] for s in native), [(s["op"], s["calls"], s["patterns"], s["rested"]) for s in native]


def test_place_with_a_rule_is_served_after_many_places_that_rest(resting):
    assert any(calls(s, "ring") > 100 for s in resting.sites)


# Ranks reach the same operation from random places. All ranks must make the same decisions.

more_ranks = pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (2, 5, 8))])


@pytest.fixture(scope="module")
def by_place_or_auto():
    return policy(allreduce("ring", site="second_place"), allreduce("auto", site="*place"))


@more_ranks
def test_divergent_places_are_counted(ranks, by_place_or_auto):
    job = Job(ranks, learn, "divergent", 100_000 if ranks == 2 else 6000, 60, 5 + ranks, policy=by_place_or_auto)
    assert sum(s["divergent_calls"] for s in job.sites) > 1000


@more_ranks
def test_loops_of_varying_length_end_well(ranks, by_place_or_auto):
    Job(ranks, learn, "varying", 4000, 60, 5 + ranks, policy=by_place_or_auto)


@more_ranks
def test_divergent_places_run_a_fixed_algorithm(ranks):
    job = Job(ranks, learn, "divergent", 8000, 60, 9 + ranks, policy=policy(allreduce("prr")))
    assert job.ran().get("prr", 0) > 3000, job.ran()


@pytest.fixture(scope="module")
def checked():
    return Job(3, learn, "divergent", 3000, 60, 4, policy=policy(allreduce("prr")), LATECOMER_CHECK="1")


def test_check_names_divergent_sites_by_the_ids_of_the_report(checked):
    named = [w for w in checked.warnings if "check: ranks reach one allreduce on 3 ranks from sites" in w]
    ids = {s["id"] for s in checked.sites}
    assert len(named) >= 2 and all(w.split("sites ")[1][:16] in ids for w in named), checked.warnings


def test_check_finds_no_rank_at_odds(checked):
    assert not any("native from here on" in w for w in checked.warnings)
    assert not any("not available" in w for w in checked.warnings), "nothing says that the check is not there"


@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (4, 8))])
def test_bits_of_the_result_are_the_same_whichever_rank_is_late(ranks):
    jobs = [Job(ranks, learn, "bits", 100, 3000, late, 8000, policy=policy(allreduce("linear"), reproducible="run")) for late in (0, 1, ranks - 1)]
    assert [job.ran() for job in jobs] == 3 * [{"linear": 100}], "from the first call on"
    assert len({job.stdout for job in jobs}) == 1, [job.stdout for job in jobs]


# The last plan of a profile is the plan in force, with verdicts and without rotas, whenever the job ends.

network = {"beta_ns_per_byte": 8.0, "latency_us": 50}


@pytest.fixture(scope="module", params=[80, pytest.param(120, marks=pytest.mark.long)])
def outcome(request):
    return Job(4, learn, "moving", request.param, 100_000, 8000, policy=policy(allreduce("auto"), network=network, rest=False))


def test_last_plan_has_no_rota(outcome):
    assert not any("rota" in slot for plan in outcome.plans[-1:] for slot in plan["slots"])


def test_native_and_candidates_take_turns(outcome):
    rotas = [slot["rota"] for plan in outcome.plans for slot in plan["slots"] if "rota" in slot]
    assert rotas and all(2 <= len(r) <= 4 and r[0]["algorithm"] == "native" for r in rotas), rotas


def test_profile_says_what_was_learned_and_where(outcome):
    learned = outcome.profile["learned"]
    assert set(learned) == {"program", "ranks", "hosts", "placement", "mpi_library", "catalogue", "sites"}
    assert learned["program"] == "learn"


# A later run is served from its first call on by what has won. Here the file says what has won.


def run_with(history, ranks):
    """A program of 60 calls under `run --auto --learn`."""
    return Job(ranks, learn, "two_sites", 30, 20_000, 4000, options=["--auto", "--learn", history])


def words_of(report):
    return " ".join(report.split())


def runs_in(history):
    return json.loads(history.read_text())["runs"]


@pytest.fixture(scope="module")
def first():
    """The first run, and the file that it leaves."""
    history = folder / "first_history.json"
    job = run_with(history, 4)
    return types.SimpleNamespace(job=job, kept=json.loads(history.read_text()))


@pytest.fixture(scope="module")
def winners(two_sites):
    """PRR has won at both places, by much."""
    slots = two_sites.plans[-1]["slots"]
    assert len(slots) == 2
    result = {"op": "allreduce", "algorithm": "prr", "segments": 0, "overlap": True, "sizes_bytes": None, "measured_ns": 1e6, "native_measured_ns": 8e12, "calls": 1000}
    return [{**result, "site": s["site"], "signature": s["signature"], "pattern_ns": [20_000_000 if r == s["last_rank"] else 0 for r in range(4)]} for s in slots]


@pytest.fixture(scope="module")
def make_history(first, winners):
    """Writes a file of the first run that says so."""
    def make():
        path = folder / f"history{next(numbers)}.json"
        path.write_text(json.dumps({**first.kept, "runs": [{**first.kept["runs"][0], "sites": winners}]}))
        return path
    return make


@pytest.fixture(scope="module")
def later(make_history):
    """Two runs of one program, one after the other, and what the file holds after each."""
    history = make_history()
    return [types.SimpleNamespace(job=run_with(history, 4), passed_on=runs_in(history)[0]["sites"]) for _ in range(2)]


each_later_run = pytest.mark.parametrize("number", range(2))


def test_first_run_says_that_it_has_no_history(first):
    why_not = first.job.profile["job"]["history"]["why_not"]
    assert why_not == "it does not exist yet" and "not used, it does not exist yet" in words_of(first.job.report())


def test_first_run_leaves_a_history(first):
    assert first.kept["format"] == "latecomer-learned" and [r["ranks"] for r in first.kept["runs"]] == [4]


@each_later_run
def test_later_run_is_served_by_what_has_won(number, later):
    ran = later[number].job.ran()
    assert ran.get("prr", 0) >= 58 and sum(ran.values()) == 60, ran


@each_later_run
def test_report_of_a_later_run_says_which_calls_its_history_served_and_why(number, later):
    job = later[number].job
    served = job.profile["job"]["history"]
    assert served["calls"] >= 58 and served["why_not"] is None, served
    assert f"its winners served {served['calls']} calls" in words_of(job.report())
    assert all("an earlier run measured that prr wins" in d["reason"] for site in job.sites for d in site["decisions"])


@each_later_run
def test_later_run_passes_its_history_on(number, later):
    assert [(w["algorithm"], w["native_measured_ns"]) for w in later[number].passed_on] == 2 * [("prr", 8e12)]


@pytest.mark.long
def test_other_ranks_have_winners_of_their_own(make_history):
    history = make_history()
    job = run_with(history, 3)
    assert job.profile["job"]["history"]["why_not"] == "its latest run is of 4 ranks, not of 3" and "not of 3" in words_of(job.report())
    assert sorted(r["ranks"] for r in runs_in(history)) == [3, 4], "the file keeps both"
    assert run_with(history, 4).ran().get("prr", 0) >= 58, "the winners of 4 ranks are still there"


@pytest.fixture(scope="module")
def profile_as_history(later):
    return policy(allreduce("auto"), network=network, history=str(later[-1].job.output))


def test_profile_is_a_history_too(profile_as_history):
    job = Job(4, learn, "two_sites", 30, 20_000, 4000, policy=profile_as_history)
    assert job.profile["job"]["history"]["calls"] >= 58


def test_history_of_another_number_of_ranks_is_named(profile_as_history):
    job = Job(2, learn, "two_sites", 50, 100, 100, policy=profile_as_history)
    assert any("holds a job of 4 ranks, but this job has 2 ranks" in w for w in job.warnings), job.warnings


def test_learn_goes_with_auto(tmp_path):
    done = run(a.cli, "run", "--learn", tmp_path / "kept.json", "--", "-n", 2, learn)
    assert done.returncode == 2 and "--learn goes with --auto" in done.stderr


def test_file_that_is_no_history_stays(tmp_path):
    important = tmp_path / "important.txt"
    important.write_text("not to be lost")
    job = Job(2, learn, "two_sites", 30, 100, 100, options=["--auto", "--learn", important])
    assert important.read_text() == "not to be lost" and "another file" in job.stderr, job.stderr


def with_endless_segments(auto, winners):
    """A profile that has learned more segments than there are."""
    site = {**winners[0], "pattern_ns": None, "algorithm": "slt", "segments": 2**31 - 1}
    return json.dumps({**auto.profile, "learned": {**auto.profile["learned"], "sites": [site]}})


@pytest.mark.parametrize("text, says", [
    ("{}", "is not a latecomer profile"),
    pytest.param('{"format": 5}', "is not a latecomer profile", marks=pytest.mark.long),
    ("\n" + "[" * 600_000, "line 2: arrays and objects are nested"),
    (with_endless_segments, "segments: expected a whole number from 0 to"),
], ids=["no profile", "another format", "nested", "endless"])
def test_history_that_cannot_be_used_is_named(text, says, auto, winners, tmp_path):
    bad = tmp_path / "bad_history.json"
    bad.write_text(text(auto, winners) if callable(text) else text)
    job = Job(2, learn, "two_sites", 50, 100, 100, policy=policy(allreduce("auto"), network=network, history=str(bad)))
    assert any(says in w for w in job.warnings), job.warnings


# advise: makes a policy for the sites that wait, and check accepts it.


@pytest.fixture(scope="module")
def observed():
    path = folder / "observe.policy.json"
    path.write_text(json.dumps({"version": 1, "network": {"beta_ns_per_byte": 1.0, "latency_us": 2}}))
    return Job(4, learn, "two_sites", 50, 50_000, 60_000, policy=path)


@pytest.fixture(scope="module")
def advised(observed):
    """The policy of `advise` and what it says, on a network on which the model gives native half of the measured time,
    however busy this machine is: the model counts as valid and predicts a gain."""
    path = folder / "advised.json"
    seen = json.loads(run(a.cli, "advise", observed.output, "--json").stdout)["sites"]
    assert all(s["native_ns"] and s["native_modelled_ns"] for s in seen), [s["reason"] for s in seen]
    beta = min(s["native_ns"] for s in seen) / max(s["native_modelled_ns"] for s in seen) / 2
    done = run(a.cli, "advise", observed.output, "--network", f"beta={beta:.3f}ns/B,latency=2us", "-o", path, "--json")
    assert done.returncode == 0, done.stderr
    return types.SimpleNamespace(path=path, answer=json.loads(done.stdout))


@pytest.fixture(scope="module")
def applied(advised):
    return Job(4, learn, "two_sites", 50, 50_000, 60_000, policy=advised.path)


@pytest.fixture(scope="module")
def diff(observed, applied):
    return json.loads(run(a.cli, "diff", "--json", observed.output, applied.output).stdout)


@pytest.mark.long
def test_advise_names_both_sites_with_the_range_of_their_gain(advised):
    sites = advised.answer["sites"]
    assert len(advised.answer["policy"]["rules"]) == 2 and advised.answer["gain_ns"] > 0, sites
    assert all(r["gain_ns"] > 0 and r["gain_least_ns"] < r["gain_ns"] < r["gain_most_ns"] for r in sites), sites


@pytest.mark.long
def test_policy_of_advise_keeps_its_promise_as_shares_of_the_run_time(observed, advised):
    wall = observed.profile["job"]["wall_time_s"] * 1e9
    promised = advised.answer["policy"]["promised"]
    assert abs(promised["least"] * wall - advised.answer["gain_least_ns"]) < 2
    assert abs(promised["most"] * wall - advised.answer["gain_most_ns"]) < 2


@pytest.mark.long
def test_check_accepts_the_policy_of_advise(advised):
    done = run(a.cli, "check", advised.path)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_policy_of_advise_replaces_calls_at_both_sites(applied):
    assert all(sum(d["calls"] for name, d in s["dispatch"].items() if name != "native") > 20 for s in applied.sites), applied.ran()


@pytest.mark.long
def test_diff_holds_the_promise_beside_the_gain(advised, applied, diff):
    assert applied.profile["job"]["promised"] == diff["promised"] == advised.answer["policy"]["promised"]
    assert abs(diff["gain"] - (1 - diff["wall_time_s"]["ratio"])) < 1e-9


@pytest.mark.long
def test_diff_names_the_promise_only_where_a_policy_made_one(observed, applied):
    assert "The policy of the second run promised " in run(a.cli, "diff", observed.output, applied.output).stdout
    assert "promised" not in run(a.cli, "diff", observed.output, observed.output).stdout


@pytest.mark.long
def test_diff_holds_the_prediction_against_the_measurement(diff):
    assert all(r["predicted_ns"]["after"] and r["predicted_ns"]["before"] for r in diff["sites"])


def test_advise_needs_the_figures_of_a_network(two_sites):
    done = run(a.cli, "advise", two_sites.output)
    assert done.returncode == 2 and "--network" in done.stderr, "it says what to do"
    assert run(a.cli, "advise", two_sites.output, "--network", "eth1g").returncode in (0, 1)
