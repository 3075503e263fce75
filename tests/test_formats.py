# SPDX-License-Identifier: BSD-3-Clause
"""Formats 1 and 2 of the profile: the files of golden/format_1 are profiles that earlier versions wrote. They keep all
of their data through both conversions, and every command answers the same for either format."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

COMMAND, GENERATE = shlex.split(os.environ.pop("LATECOMER_TEST"))
GOLDEN = sorted((pathlib.Path(__file__).parent / "golden/format_1").glob("*.json"))
HEAD = '{"format": "latecomer-profile", "version": 2, "job_key": "'


def run(*words, status=(0, 1)):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode in status, (words, done.returncode, done.stderr)
    return done.stdout if status == (0, 1) else done.stderr


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request):
    return request.param


@pytest.fixture
def converted(golden, tmp_path):
    run("export", golden, "--profile", tmp_path / "converted.json")
    return tmp_path / "converted.json"


def test_there_are_profiles_of_format_1():
    assert len(GOLDEN) == 3 and all(json.loads(path.read_text())["version"] == 1 for path in GOLDEN)


def test_1_to_2_to_1_keeps_everything(golden, converted):
    before, after = json.loads(golden.read_text()), json.loads(run("export", converted, "--format-1", "-"))
    assert after == before
    now = json.loads(converted.read_text())
    assert now["rank_rows"] == [site["ranks"] for site in before["sites"]] and now["job_key"] == before["job"]["key"]
    assert converted.read_text().startswith(HEAD + now["job_key"] + '",\n')


@pytest.mark.parametrize("words", [["report"], ["report", "--all"], ["report", "--json"], ["report", "--tsv"], ["check"]], ids=" ".join)
def test_a_command_answers_the_same_for_both(golden, converted, words):
    if words == ["check"]:  # of a policy that names it
        answers = [run("check", json.dumps({"version": 1, "history": str(path)})) for path in (golden, converted)]
    else:
        answers = [run(*words, path).replace(str(path), "FILE") for path in (golden, converted)]
    assert answers[0] == answers[1] and answers[0]


def test_a_difference_of_both_is_none(golden, converted):
    assert [site for site in json.loads(run("diff", golden, converted, "--json"))["sites"] if site.get("change") not in (None, 0)] == []


@pytest.fixture
def written(tmp_path):
    """Of this version."""
    subprocess.run([GENERATE, "6", "3", "4", tmp_path / "written.json"], check=True)
    return tmp_path / "written.json"


@pytest.mark.parametrize("form", [{"indent": None}, {"indent": 0}, {"indent": 2}, {"sort_keys": True}, {"indent": 0, "sort_keys": True}], ids=str)
def test_another_program_may_format_the_file(written, form):
    other = written.with_name("other.json")
    other.write_text(json.dumps(json.loads(written.read_text()), **form))
    assert run("report", "--tsv", other) == run("report", "--tsv", written)
    assert json.loads(run("export", other, "--profile", "-")) == json.loads(written.read_text())
    assert run("export", other, "--profile", "-").count("\n[") == run("export", written, "--profile", "-").count("\n[") == 3


def test_a_key_of_any_text_stays(written):
    other = written.with_name("other.json")
    other.write_text(json.dumps({**json.loads(written.read_text()), "job_key": 'of "another"\nprogram'}))
    assert json.loads(run("export", other, "--profile", "-"))["job_key"] == 'of "another"\nprogram'


CHANGES = {
    "no lists": (lambda p: p.update(rank_rows=[]), "rank_rows: expected 3 lists, one for each site, got 0"),
    "a list less": (lambda p: p["rank_rows"].pop(), "rank_rows: expected 3 lists, one for each site, got 2"),
    "twice as many": (lambda p: p.update(rank_rows=p["rank_rows"] * 2), "rank_rows: expected 3 lists, one for each site, got 6"),
    "a site less": (lambda p: p["sites"].pop(), "rank_rows: expected 2 lists, one for each site, got 3"),
    "null": (lambda p: p["rank_rows"].insert(1, None), "rank_rows[1]: expected array, got null"),
    "a number": (lambda p: p["rank_rows"].insert(0, 0), "rank_rows[0]: expected array, got 0"),
    "an object": (lambda p: p.update(rank_rows={str(i): rows for i, rows in enumerate(p["rank_rows"])}), "rank_rows: expected array"),
    "none": (lambda p: p.pop("rank_rows"), "rank_rows: expected array, got null"),
    "version 1": (lambda p: p.update(version=1), "sites[0].ranks is missing"),
    "version 3": (lambda p: p.update(version=3), "has version 3, but this latecomer reads versions 1 and 2"),
    "version 1, ranks null": (lambda p: (p.update(version=1), [site.update(ranks=None) for site in p["sites"]]), "sites[0].ranks: expected array, got null"),
    "version 1, key": (lambda p: (p.update(version=1), p["job"].update(key=5)), "job.key: expected string, got 5"),
    "key": (lambda p: p.update(job_key=5), "job_key: expected string, got 5"),
}


@pytest.mark.parametrize("change,says", CHANGES.values(), ids=CHANGES)
def test_a_profile_of_another_shape_is_refused(written, change, says):
    profile = json.loads(written.read_text())
    change(profile)
    written.write_text(json.dumps(profile))
    for words in (["report", written], ["export", written, "--profile", "-"]):
        assert says in run(*words, status=(2,))


DAMAGES = {
    "cut": lambda text: text[:-40],
    "no number": lambda text: text.replace('"rank":3', '"rank":', 1),
    "no list": lambda text: text.replace("\n[", "\n{", 1),
    "no figure": lambda text: re.sub('"mean_offset_ns":[0-9.]+', '"mean_offset_ns":1e300', text, count=1),
    "NaN": lambda text: re.sub('"mean_offset_ns":[0-9.]+', '"mean_offset_ns":NaN', text, count=1),
    "words before": lambda text: text.replace('"rank_rows": [', '"rank_rows": [ junk'),
    "no comma": lambda text: text.replace("}],\n[", "}]\n[", 1),
    "two commas": lambda text: text.replace("}],\n[", "}],,\n[", 1),
    "a comma at the end": lambda text: text.replace("}]\n]}", "}],\n]}"),
    "twice": lambda text: text + text,
    "nested": lambda text: text.replace('"stddev_ns":', '"x":' + "[" * 100_000 + "]" * 100_000 + ',"stddev_ns":', 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_rows_are_refused(written, damage):
    text = written.read_text()
    assert damage(text) != text
    written.write_text(damage(text))
    for words in (["report", written], ["export", written, "--profile", "-"]):
        said = run(*words, status=(2,))
        assert "is not a latecomer profile" in said or "nested more than 64 deep" in said


def test_lists_may_share_a_line(written):
    text, other = written.read_text(), written.with_name("other.json")
    for between in (" [", "["):
        other.write_text(text.replace("\n[", between))
        assert run("report", "--tsv", other) == run("report", "--tsv", written)
    other.write_text(text.replace("}],\n[", "}],[", 1))
    assert run("report", "--tsv", other) == run("report", "--tsv", written)


def test_rows_of_the_other_format_are_no_rows(written):
    profile, other = json.loads(written.read_text()), written.with_name("other.json")
    other.write_text(written.read_text().replace('"op":', '"ranks":[],"op":'))
    assert json.loads(other.read_text())["sites"][0]["ranks"] == []
    assert json.loads(run("export", other, "--profile", "-")) == profile
    head = {key: value for key, value in profile.items() if key not in ("rank_rows", "job_key")}
    both = {**head, "version": 1, "sites": [{**site, "ranks": rows} for site, rows in zip(profile["sites"], profile["rank_rows"])], "rank_rows": [[], [], []]}
    other.write_text(json.dumps(both))
    assert json.loads(run("export", other, "--profile", "-"))["rank_rows"] == profile["rank_rows"]


def test_export_writes_one_profile_alone(written):
    for others in (["--format-1", "x.json"], ["--folded", "-"], ["--perfetto", "-"]):
        assert "excludes" in run("export", written, "--profile", "-", *others, status=(2,))


def test_report_has_rows_in_their_sites(written):
    profile = json.loads(written.read_text())
    for number, site in enumerate(profile["sites"]):
        site["waited_ns"] = 1000 * (number + 1)
        profile["rank_rows"][number][0]["last_count"] = number
    written.write_text(json.dumps(profile))
    answered = written.with_name("answer.json")
    answered.write_text(run("report", "--json", written))
    assert run("report", "--tsv", answered) == run("report", "--tsv", written), "the answer is a profile, too"
    answer = json.loads(answered.read_text())
    assert [(site["waited_ns"], site["ranks"][0]["last_count"]) for site in answer["sites"]] == [(3000, 2), (2000, 1), (1000, 0)]
