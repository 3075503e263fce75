# SPDX-License-Identifier: BSD-3-Clause
"""What latecomer says about a program is right: counts, places, causes, and the names of its own files."""
import json
import pathlib
import re
import subprocess
import sys
import time

import pytest
from common import a, built, ends_natively, folder, launcher, open_mpi, patience, run

sys.path.append(str(pathlib.Path(a.root) / "tests/support"))
from processes import end_tree

FINDS = a.bin + "/finds"


def observed(name, *words, ranks, options=(), preload=(), cwd=None, **environment):
    """The finished command, and the profile."""
    profile = folder / f"{name}.json"
    preloads = [*preload, *([] if open_mpi else [a.support])]
    if preloads:
        environment["LD_PRELOAD"] = ":".join(map(str, preloads))
    done = run(a.cli, "run", "--output", profile, "--overwrite", *options, "--", *launcher, "-n", ranks, *words, cwd=cwd, **environment)
    return done, json.loads(profile.read_text()) if profile.exists() else None


def calls(profile, op="allreduce"):
    """Size of the communicator and number of calls of each site."""
    return sorted((s["comm_size"], s["calls"]) for s in profile["sites"] if s["op"] == op)


def test_file_of_learn_stays_in_the_folder_of_the_start():
    here = folder / "here"
    for place in (here, here / "elsewhere"):
        place.mkdir()
    (here / "auto.json").write_text(json.dumps({"version": 1, "mode": "apply", "learn": "kept.json", "rules": [{"match": {"op": "allreduce"}, "use": "auto"}]}))
    done, profile = observed("folder", FINDS, "folder", here / "elsewhere", ranks=2, options=("--policy", "auto.json"), cwd=here)
    assert done.returncode == 0 and profile, done.stderr
    assert (here / "kept.json").exists() and not (here / "elsewhere/kept.json").exists(), done.stderr


def test_tool_that_calls_a_collective_inside_its_mpi_init_draws_no_warning():
    done, profile = observed("tool", FINDS, "plain", ranks=2, preload=[built("early_tool")])
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert profile and calls(profile) == [(2, 40)]


def test_family_is_found_without_proc():
    """Only the kernel's list of mappings is hidden: MPICH itself needs the rest."""
    hide = ["unshare", "-rm", "sh", "-c", 'mount --bind /dev/null /proc/$$/maps && exec "$@"', "sh"]
    if run(*hide, FINDS, "plain").returncode != 0:
        pytest.skip("mounts are not allowed here")
    output = folder / "hidden.json"
    done = run(*hide, FINDS, "plain", LD_PRELOAD=a.library, LATECOMER_OUTPUT=output)
    assert done.returncode == 0 and output.exists() and "inactive" not in done.stderr, done.stderr


def test_generated_code_has_the_site_of_its_callers():
    done, profile = observed("generated", FINDS, "generated", ranks=2)
    text = run(a.cli, "report", "--all", folder / "generated.json").stdout
    assert done.returncode == 0 and calls(profile) == [(2, 20), (2, 40)], done.stderr
    assert all(f"generated code from {name} (finds.c:" in text for name in ("solve", "check")), text


def test_calls_of_two_groups_count_once():
    done, profile = observed("groups", FINDS, "groups", ranks=4)
    assert done.returncode == 0 and "right" in done.stdout, done.stderr
    assert calls(profile) == [(4, 130)]


def test_calls_with_spawned_processes_count_once():
    native = ends_natively(1, FINDS, "spawn")  # Open MPI 5.0.7 needs a network that it takes
    if native is None or native.returncode != 0:
        pytest.skip("natively this MPI library cannot spawn processes")
    done, profile = observed("spawn", FINDS, "spawn", ranks=1)
    handed = not re.match("Open MPI v[56]", profile["job"]["mpi_library"])  # to spawned processes, what the launcher's -x names
    for parts in folder.glob("spawn.json*.parts"):
        run(a.cli, "recover", parts)
    found = [json.loads(file.read_text()) for file in folder.glob("spawn.json*") if file.is_file()]
    assert done.returncode == 0 and len(found) == 1 + handed and all(calls(p) == [(4, 100)] for p in found), (done.stderr, [calls(p) for p in found])


def test_size_that_no_number_holds_is_unknown():
    done, profile = observed("huge", FINDS, "huge", ranks=1)
    sizes = sorted(str(s["bytes"] and s["bytes"]["max"]) for s in profile["sites"] if s["op"] == "bcast")
    assert done.returncode == 0 and sizes == ["0", "None", "None"], done.stderr


def test_different_calls_of_ranks_are_named():
    done, profile = observed("differ", FINDS, "differ", ranks=2)
    says = re.compile("the program makes different calls as call 6 on MPI_COMM_WORLD: rank 0 bcast to or from root 0, rank 1 bcast to or from root 1")
    assert done.returncode == 0 and says.search(done.stderr) and "are missing" not in done.stderr, done.stderr
    assert says.search(" ".join(run(a.cli, "report", folder / "differ.json").stdout.split()))


def test_who_names_the_call_of_each_waiting_rank():
    output, text = folder / "wait.json", ""
    job = subprocess.Popen([a.cli, "run", "--output", output, "--overwrite", "--", *launcher, "-n", "4", FINDS, "wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.time() + patience * 60
        while time.time() < end and "for rank 0" not in text:
            answer = run(a.cli, "who", "--json", "--seconds", "0.3", output)
            text = " ".join(json.loads(answer.stdout)["findings"]) if answer.returncode in (0, 1) and answer.stdout else ""
    finally:
        end_tree(job)
    assert re.search(r"makes different calls as call 5 on MPI_COMM_WORLD: rank 1 allreduce .*, ranks 2, 3 bcast", text), text
    assert re.search(r"Rank 1 waits in allreduce .*, ranks 2, 3 wait in bcast [^,]* \(call 5 on MPI_COMM_WORLD\).*, for rank 0", text), text


def test_limit_of_file_sizes_leaves_no_folder_behind():
    place = folder / "limit"
    place.mkdir()
    done = run("sh", "-c", 'ulimit -f 0 && exec "$@"', "sh", a.cli, "run", "--output", place / "p.json", "--", *launcher, "-n", 1, FINDS, "plain", cwd=place)
    assert done.returncode != 0 and "File too large" in done.stderr, (done.returncode, done.stderr)
    assert list(place.iterdir()) == []
