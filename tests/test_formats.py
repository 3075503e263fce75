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


def test_each_list_of_rows_belongs_to_a_site(written):
    text = written.read_text()
    profile = json.loads(text)
    assert [len(rows) for rows in profile["rank_rows"]] == [6, 6, 6] and text.count("\n[") == 3
    cut = written.with_name("cut.json")
    for rows in ([], profile["rank_rows"][1:], profile["rank_rows"] * 2):
        cut.write_text(json.dumps({**profile, "rank_rows": rows}))
        assert f"rank_rows: expected 3 lists, one for each site, got {len(rows)}" in run("report", cut, status=(2,))


@pytest.mark.parametrize("damage", [lambda text: text[:-40], lambda text: text.replace('"rank":3', '"rank":'), lambda text: text.replace("\n[", "\n{", 1), lambda text: re.sub('"mean_offset_ns":[0-9.]+', '"mean_offset_ns":1e300', text, count=1)],
                         ids=["cut", "no number", "no list", "no figure"])
def test_damaged_rows_are_refused(written, damage):
    text = written.read_text()
    assert damage(text) != text
    written.write_text(damage(text))
    assert "is not a latecomer profile" in (said := run("report", written, status=(2,))) or "rank_rows: expected 3 lists" in said


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
