# SPDX-License-Identifier: BSD-3-Clause
"""The report says which ranks share a core of a host that has enough, and what waiting does about it."""
import json
import os
import pathlib

from common import RANK, a, check, finish, folder, launcher, open_mpi, run

cores = sorted(os.sched_getaffinity(0))
program = pathlib.Path(a.bin) / "causes"


def report(name, waiting, *launch):
    policy, profile = folder / f"{waiting}.json", folder / f"{name}.json"
    policy.write_text(json.dumps({"version": 1, "waiting": waiting}))
    ran = run(a.cli, "run", "--policy", policy, "--output", profile, "--overwrite", "--", *launcher, *launch)
    check(ran.returncode == 0, f"{name}: runs {ran.stderr[-300:] if ran.returncode else ''}")
    found = json.loads(run(a.cli, "report", "--json", profile).stdout)["setup"]
    return json.loads(profile.read_text()), [sentence for sentence in found if not sentence.startswith("Other processes took")]  # the machine may be busy


if os.cpu_count() < 2 or len(cores) < 2:
    print("skipped: it needs two cores")
    finish()
work = ["none", 0, 40, 1]
for waiting, says in (("courteous", "Waiting ranks give their core away"), ("spin", "Waiting ranks keep their core, so set the policy key `waiting`")):
    profile, found = report(f"shared.{waiting}", waiting, "-n", 2, "taskset", "-c", cores[1], program, *work)
    check([p["core_list"] for p in profile["processes"]] == [str(cores[1])] * 2, f"the profile holds the cores: {[p['core_list'] for p in profile['processes']]}")
    check(len(found) == 2 and f"Ranks 0, 1 share core {cores[1]} of host" in found[0] and "a core for each of its 2 ranks" in found[0], f"both ranks on one core, {waiting}: {found}")
    check(found[1:] and found[1].startswith(says), f"and what waiting does: {found}")
profile, found = report("apart", "auto", "-n", 2, "sh", "-c", f'[ ${RANK} = 0 ] && core={cores[0]} || core={cores[1]}; exec taskset -c $core "$@"', "sh", program, *work)
found = [sentence for sentence in found if "other processes or threads use its cores" not in sentence]  # the machine may be busy
check([p["core_list"] for p in profile["processes"]] == [str(cores[0]), str(cores[1])] and found == [], f"each rank on a core of its own: {found}")
ranks = os.cpu_count() * 2
profile, found = report("crowded", "auto", "-n", ranks, program, "none", 0, 1000, 1)
check(len(found) >= 1 and f"runs {ranks} ranks on" in found[0] and "waiting ranks give their core away" in found[0], f"more ranks than cores: {found}")
# The parts of a rank's time do not take the naps of courteous waiting for sleep of the program.
asleep = max(p["blocked_ns"] / p["wall_ns"] for p in profile["processes"])
check(asleep < 0.1, f"at most {asleep:.0%} of a rank's time is sleep in a program that does not sleep")
# Without latecomer's help, Open MPI yields where it sees more ranks than cores, and MPICH never does.
_, found = report("crowded.spin", "spin", "-n", ranks, program, "none", 0, 40, 1)
says = "waiting ranks give their core away" if open_mpi else "waiting ranks keep their core, so set the policy key `waiting`"
check(len(found) >= 1 and says in found[0], f"more ranks than cores, waiting is not courteous: {found}")
finish()
