# SPDX-License-Identifier: BSD-3-Clause
"""How `latecomer run` and `calibrate` start launchers: what the user named, by its name, and how the preload reaches the
ranks behind other commands, launchers that are not known, and Slurm's srun (which tests/support/srun stands for)."""
import json
import os
import pathlib
import shutil
import stat

import pytest
from common import a, built, folder, open_mpi, run

LAUNCHER = pathlib.Path(a.mpiexec).name  # found through PATH
FAMILY, OTHER = ("openmpi", "mpich") if open_mpi else ("mpich", "openmpi")
MEET = pathlib.Path(a.bin) / "meet"
fake_srun = {"PATH": f"{a.root}/tests/support:{os.environ['PATH']}"}
only_mpich = pytest.mark.skipif(open_mpi, reason="tests/support/srun starts programs of MPICH")


def script(name, text):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def observed(name, *words, **environment):
    """Runs `latecomer run WORDS`, which end with MEET. Returns the number of ranks in the profile, and the warnings."""
    profile = folder / f"{name}.json"
    done = run(a.cli, "run", "--output", profile, *words, **environment)
    assert done.returncode == 0 and "right" in done.stdout, done.stderr
    ranks = json.loads(profile.read_text())["job"]["ranks"] if profile.exists() else None
    return ranks, [line for line in done.stderr.splitlines() if "warning" in line or "recursive" in line]


def printed(*words, **environment):
    """The output of `latecomer run --quiet WORDS`, without an output of latecomer's own."""
    done = run(a.cli, "run", "--quiet", "--output", folder / "none.json", *words, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# What the user named.


def test_the_ranks_have_the_path_of_a_native_run():
    show = ("-n", 1, "sh", "-c", "echo $PATH; echo $LD_LIBRARY_PATH")
    assert printed("--", LAUNCHER, *show) == run(LAUNCHER, *show).stdout


@pytest.mark.parametrize("words", [("--", LAUNCHER), ("--launcher", LAUNCHER, "--"), ("--mpi", FAMILY, "--")], ids=["first word", "--launcher", "chosen"])
def test_a_program_of_an_environment_in_path_runs(words):
    own = script("venv/python3", "echo of the environment\n")
    assert printed(*words, "-n", 1, "python3", PATH=f"{own.parent}:{os.environ['PATH']}") == "of the environment\n"


def test_a_launcher_that_path_does_not_have_is_named():
    done = run(a.cli, "run", "--launcher", "aprun", "--", "-n", 2, MEET)
    assert done.returncode == 2 and "'aprun' not found" in done.stderr


# Launchers behind a word.


@pytest.mark.parametrize("before", ["env A=1", "nice -n 1", "taskset -c 0", "stdbuf -o L", "env A=1 nice -n 1"])
def test_a_launcher_behind_a_command(before):
    assert observed("behind " + before, "--", *before.split(), LAUNCHER, "-n", 2, MEET) == (2, [])


def test_the_launcher_behind_a_command_is_not_preloaded():
    spy = script("spy", 'echo "launcher: $LD_PRELOAD"\nexec ' + LAUNCHER + ' "$@"\n')
    spy = spy.rename(spy.with_name(LAUNCHER))
    done = printed("--", "env", "A=1", spy, "-n", 1, "sh", "-c", "echo rank: $A $LD_PRELOAD")
    assert "launcher: \n" in done and f"rank: 1 {a.library}\n" in done


@pytest.mark.parametrize("words", [("--", "SITE"), ("--launcher", "SITE", "--"), ("--mpi", FAMILY, "--launcher", "SITE", "--"), ("--", "SITE", LAUNCHER)], ids=str)
def test_a_script_of_the_site_starts_the_launcher(words):
    site = script("site", f'[ "$1" = {LAUNCHER} ] || set -- {LAUNCHER} "$@"\nexec "$@"\n')
    assert observed(f"site{len(words)}{words[0]}", *(site if word == "SITE" else word for word in words), "-n", 2, MEET) == (2, [])


def test_a_script_with_the_whole_command():
    job = script("job", f"echo begins\n{LAUNCHER} -n 2 {MEET}\n")
    assert observed("job", "--", job) == (2, [])


def test_a_program_that_needs_no_launcher():
    assert observed("alone", "--", "env", "A=1", "sh", "-c", MEET) == (1, [])


def test_both_programs_of_a_job_are_preloaded():
    if run(LAUNCHER, "-n", 1, MEET, ":", "-n", 2, MEET).returncode != 0:
        pytest.skip("natively the launcher starts no two programs")  # that of Open MPI 5.0.7 crashes
    assert observed("two", "--", "nice", LAUNCHER, "-n", 1, MEET, ":", "-n", 2, MEET) == (3, [])


@pytest.mark.skipif(not open_mpi or not shutil.which("prterun"), reason="the launcher of Open MPI 5 and later")
def test_prterun_and_its_options():
    options = ("--personality", "ompi", "--display", "map", "--prtemca", "rmaps_verbose", "0", "-np", 2)
    assert observed("prterun", "--", "prterun", *options, MEET) == (2, [])


# Variables.


def test_the_libraries_that_the_launcher_preloads_stay():
    mine = built("name_service")
    own = ("-x", f"LD_PRELOAD={mine}") if open_mpi else ("-genv", "LD_PRELOAD", mine)
    assert printed("--", LAUNCHER, *own, "-n", 1, "sh", "-c", "echo $LD_PRELOAD") == f"{a.library}:{mine}\n"


@pytest.mark.skipif(not open_mpi, reason="a list of Open MPI")
def test_a_list_of_variables_of_open_mpi_stays():
    show = ("-n", 1, "sh", "-c", "echo $A $LD_PRELOAD $LATECOMER_CHECK")
    assert printed("--", LAUNCHER, *show, OMPI_MCA_mca_base_env_list="A=1", LATECOMER_CHECK="1") == f"1 {a.library} 1\n"
    assert printed("--", LAUNCHER, "--mca", "mca_base_env_list", "A=1", *show, LATECOMER_CHECK="1") == f"1 {a.library} 1\n"


@pytest.mark.skipif(open_mpi, reason="an option of MPICH's launcher")
def test_an_assignment_is_one_word():
    assert printed("--", LAUNCHER, "-genv", "A=1", "-n", 1, "sh", "-c", "echo $A $LD_PRELOAD") == f"1 {a.library}\n"


@only_mpich
@pytest.mark.parametrize("export", ["HOME", "NONE", "ALL"])
def test_srun_exports_all_variables(export):
    show = ("sh", "-c", "echo $LATECOMER_CHECK $LATECOMER_DISABLE $LD_PRELOAD")
    assert printed("--", "srun", f"--export={export}", *show, **fake_srun, LATECOMER_CHECK="1", LATECOMER_DISABLE="0") == f"1 0 {a.library}\n"
    assert printed("--", "srun", *show, **fake_srun, LATECOMER_CHECK="1", LATECOMER_DISABLE="0", SLURM_EXPORT_ENV=export) == f"1 0 {a.library}\n"


@only_mpich
def test_srun_keeps_the_users_list():
    lines = printed("--", "srun", "--export=A=1,LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6", "sh", "-c", "echo $A.$B $LD_PRELOAD", **fake_srun, B="2")
    assert lines == f"1. {a.library}:/lib/x86_64-linux-gnu/libm.so.6\n"


@only_mpich
def test_srun_exports_to_each_program():
    assert observed("srun two", "--", "srun", "-K", "-n", 1, MEET, ":", "--export=HOME", "-n", 1, MEET, **fake_srun) == (2, [])


@only_mpich
def test_srun_in_a_script_exports_the_preload():
    job = script("srun_job", f"srun -n 2 {MEET}\n")
    assert observed("srun job", "--", job, **fake_srun, SLURM_EXPORT_ENV="HOME") == (2, [])


# The family.


def test_the_family_of_an_unknown_library():
    vendor = built("vendor_mpi")
    policy = {"version": 1, "mpi": FAMILY}
    ranks, warned = observed("unknown", "--", LAUNCHER, "-n", 1, MEET, LD_PRELOAD=str(vendor))
    assert ranks is None and len(warned) == 1 and "Vendor MPI 7.1" in warned[0] and "LATECOMER_MPI" in warned[0]
    assert observed("option", "--mpi", FAMILY, "--", LAUNCHER, "-n", 2, MEET, LD_PRELOAD=str(vendor)) == (2, [])
    assert observed("key", "--policy", json.dumps(policy), "--", LAUNCHER, "-n", 1, MEET, LD_PRELOAD=str(vendor)) == (1, [])


@only_mpich
@pytest.mark.parametrize("fault, says", [("size", "the sizes of predefined datatypes"), ("operator", "whether predefined operators commute"), ("count", "the count in MPI_Status")])
def test_a_relative_with_another_interface_is_left_alone(fault, says):
    ranks, warned = observed("relative " + fault, "--mpi", FAMILY, "--", LAUNCHER, "-n", 2, MEET, LD_PRELOAD=str(built("vendor_mpi")), VENDOR_FAULT=fault)
    assert ranks is None and len(warned) == 1 and says in warned[0]


@pytest.mark.parametrize("wrong, says", [(OTHER, "another binary interface"), ("mpitch", "expected mpich, openmpi or abi")])
def test_a_wrong_family_changes_nothing(wrong, says):
    ranks, warned = observed("wrong " + wrong, "--", LAUNCHER, "-n", 1, MEET, LATECOMER_MPI=wrong)
    assert ranks == 1 and len(warned) == 1 and says in warned[0]


def test_a_family_that_is_not_installed_is_refused():
    lone = folder / "lone/bin/latecomer"
    lone.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(a.cli, lone)
    for command in ("run", "calibrate"):
        done = run(lone, command, "--mpi", "abi", "--", LAUNCHER, "-n", 2, MEET)
        assert done.returncode == 2 and "no library for MPI's standard ABI" in done.stderr


def test_a_library_without_the_standard_abi_is_not_taken_for_one():
    ranks, warned = observed("abi", "--", LAUNCHER, "-n", 1, MEET, LATECOMER_MPI="abi")
    assert ranks == 1 and len(warned) == 1 and "another binary interface" in warned[0]


@pytest.mark.parametrize("named", ["", FAMILY])
@pytest.mark.parametrize("major, says", [("untold", "an untold version of the standard ABI"), ("1", "the library beneath MPI's standard ABI is neither MPICH nor Open MPI"), ("2", "another version of the standard ABI")])
def test_a_library_with_the_standard_abi_opens_no_other_family(major, says, named):
    ranks, warned = observed(f"abi{major}{named}", "--", LAUNCHER, "-n", 1, MEET, LD_PRELOAD=str(built(f"mpi_abi_{major}")), LATECOMER_MPI=named)
    assert ranks is None and says in warned[-1]
    assert len(warned) == (2 if named and major == "1" else 1)


def test_the_other_librarys_launcher_is_refused_behind_a_command():
    other = "mpiexec.mpich" if open_mpi else "mpiexec.openmpi"
    done = run(a.cli, "run", "--", "env", "A=1", other, "-n", 2, MEET)
    assert done.returncode == 2 and f"write latecomer run -- {LAUNCHER} -n 2 {MEET}" in done.stderr


def test_options_of_latecomer_behind_the_dashes_are_refused():
    done = run(a.cli, "run", "--", LAUNCHER, "--policy", "x", "-n", 2, MEET)
    assert done.returncode == 2 and "goes before --" in done.stderr


# Calibrate.


@pytest.mark.parametrize("words", [("--launcher", LAUNCHER, "--", "-n", 2), ("--", "env", "A=1", LAUNCHER, "-np", 2)], ids=str)
def test_calibrate_takes_the_number_of_ranks_once(words):
    done = run(a.cli, "calibrate", *words)
    assert done.returncode == 0 and json.loads(done.stdout)["beta_ns_per_byte"] >= 0, done.stderr


def test_calibrate_through_a_launcher_of_the_site():
    site = script("site", f'exec {LAUNCHER} "$@"\n')
    done = run(a.cli, "calibrate", "--mpi", FAMILY, "--launcher", site, "--", "-n", 2)
    assert done.returncode == 0 and "beta_ns_per_byte" in done.stdout, done.stderr
    done = run(a.cli, "calibrate", "-n", 2, "--launcher", site, "--", "-n", 2)
    assert done.returncode == 2 and "both give the number of ranks" in done.stderr
