# SPDX-License-Identifier: BSD-3-Clause
"""The level at which calls count on Open MPI: a second tool before and behind latecomer, and ranks of one job that call MPI from C, by PMPI, and from Fortran in three bindings, with files. The numbers of calls agree on all ranks, by LATECOMER_CHECK=1."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mpi"))
from common import a, built, check, finish, folder, run, starts_two_programs

binaries = pathlib.Path(a.bin)
PLUGINS = ["ompio", *sorted(set(re.findall(r"romio\d+", run("ompi_info").stdout)))]  # for files; Debian's Open MPI 6 has the first alone
tool = built("other_tool")
ring, observing = folder / "ring.json", folder / "observe.json"  # without a budget, so that all calls are logged
ring.write_text(json.dumps({"version": 1, "budget": None, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))
observing.write_text('{"version": 1, "budget": null}')


def warned(done):
    # Ranks that reach one call from several sites are right. LATECOMER_CHECK=1 says so.
    return [line for line in done.stderr.splitlines() if "warning" in line and ": allowed, but forecasts" not in line]


def observed(name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def calls(profile):
    """By operation, and how many ran by which algorithm."""
    counts, ran = {}, {}
    for site in profile["sites"] if profile else ():
        counts[site["op"]] = counts.get(site["op"], 0) + site["calls"]
        for name, d in site["dispatch"].items():
            ran[name] = ran.get(name, 0) + d["calls"]
    return counts, ran


# A second tool. Alone it sees each call of C once, and no call of Fortran.
c, fortran = [binaries / "patterns", 40, 100], [binaries / "fortran_f08"]
for words, wanted in ((c, None), (fortran, {"allreduce": 300, "barrier": 150})) if fortran[0].exists() else ((c, None),):
    name = words[0].name
    alone = run(a.mpiexec, "-n", 3, "-x", f"LD_PRELOAD={tool}", *words)
    seen = re.search(r"other tool: (\d+) allreduces, (\d+) broadcasts", alone.stdout)
    check(alone.returncode == 0 and bool(seen) == (words is c), f"{name}, the tool alone: {alone.stdout} {alone.stderr[-300:]}")
    if seen and not wanted:
        wanted = {"allreduce": int(seen[1])}
    for place, preload in (("before", f"{tool}:{a.library}"), ("behind", f"{a.library}:{tool}")):
        for policy in (None, ring):
            title = f"{name}-{place}-{'ring' if policy else 'observed'}"
            extra = {"LATECOMER_POLICY": policy} if policy else {}
            done = run(a.mpiexec, "-n", 3, "-x", f"LD_PRELOAD={preload}", *words, LATECOMER_OUTPUT=folder / f"{title}.json", LATECOMER_CHECK="1", **extra)
            profile = observed(title)
            counts, ran = calls(profile)
            # An allreduce that latecomer replaces does not reach a tool behind it.
            same = sorted(done.stdout.splitlines()) == sorted(alone.stdout.splitlines()) or (policy and place == "behind" and name == "patterns")
            check(done.returncode == 0 and same and not warned(done), f"{title}: output as with the tool alone: {done.stdout} {done.stderr[-500:]}")
            check(profile and profile["job"]["ranks"] == 3 and counts == wanted, f"{title}: each call counts once: {counts}")
            if policy:
                check(ran.get("ring") == counts.get("allreduce"), f"{title}: the rule is in force: {ran}")

if not starts_two_programs():
    print("skipped: natively the launcher does not start two programs in one job")
    finish()

# One job in all ways to call MPI, which also writes files, by both plugins.
ways = [[binaries / "sums", folder / "written"], [binaries / "sums", folder / "written", "direct"]]
ways += [[binaries / f"fortran_{b}", folder / "written"] for b in ("mpi", "mpif", "f08") if (binaries / f"fortran_{b}").exists()]
for first in range(len(ways)):
    order = ways[first:] + ways[:first]  # each way is rank 0, the leader, once
    plugin = PLUGINS[first % len(PLUGINS)]
    for policy in (None, ring) if first < 2 else (ring,):
        title = f"mixed{first}-{'ring' if policy else 'observed'}"
        words = [word for way in order for word in (":", "-n", 1, *way)][1:]
        options = ["--quiet", "--policy", policy or observing]
        done = run(a.cli, "run", "--output", folder / f"{title}.json", *options, "--", *words, LATECOMER_CHECK="1", OMPI_MCA_io=plugin)
        profile = observed(title)
        counts, ran = calls(profile)
        check(done.returncode == 0 and done.stdout.split() == ["right"] and not warned(done), f"{title}, {plugin}: {done.returncode} {done.stdout} {done.stderr[-500:]}")
        check(profile and profile["job"]["ranks"] == len(ways) and counts == {"allreduce": 300, "barrier": 150}, f"{title}, {plugin}: each call of the program counts once, none of the plugin's: {counts}")
        check(profile and all(s["patterns"] == s["calls"] for s in profile["sites"]), f"{title}: all calls have records of all ranks")
        if policy:
            check(ran.get("ring") == 300, f"{title}: the rule is in force: {ran}")
        check((folder / "written").stat().st_size == 4000 * len(ways), f"{title}: the file is whole")
        (folder / "written").unlink()
finish()
