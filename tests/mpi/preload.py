# SPDX-License-Identifier: BSD-3-Clause
"""The preload itself: its exports, its effect on processes without MPI, and its cost in steady state."""
import json
import pathlib
import re

from common import a, check, finish, folder, run, sanitized

# Latecomer intercepts all collectives of MPICH and exports nothing else but these symbols.
exported = set(re.findall(r" T (\w+)", run("nm", "-D", "--defined-only", a.library).stdout))
in_mpi = set(re.findall(r" [TW] (MPI_\w+)", run("nm", "-D", "--defined-only", a.mpi).stdout))
names = ("allgather allgatherv allreduce alltoall alltoallv alltoallw barrier bcast exscan gather gatherv reduce reduce_scatter "
         "reduce_scatter_block scan scatter scatterv neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv neighbor_alltoallw").split()
collectives = {m for m in in_mpi if re.fullmatch(r"MPI_(I?)(\w+?)(_init)?(_c)?", m) and re.sub(r"^i(?=[a-z])", "", re.fullmatch(r"MPI_(\w+?)(_init)?(_c)?", m)[1].lower()) in names}
check(len(collectives) == 129, f"MPICH has 129 collective entry points, found {len(collectives)}")
check(collectives <= exported, f"all are intercepted; missing: {sorted(collectives - exported)}")
completion = "wait waitall waitany waitsome test testall testany testsome start startall request_free".split()
others = {"MPI_Init", "MPI_Init_thread", "MPI_Query_thread", "MPI_Finalize", "MPI_Session_init", "MPI_Session_finalize", "MPI_Abort", "MPI_Comm_free", "MPI_Comm_disconnect", "MPI_Win_free", "ucp_worker_progress", "opal_progress", "opal_progress_register", "opal_progress_unregister", "MPI_Pcontrol", "latecomer_preloaded_version", "latecomer_preloaded_flush", "latecomer_preloaded_edge", "_ITM_registerTMCloneTable"}
others |= {"MPI_" + name.capitalize() for name in completion}
# The other calls that may wait, whose time counts, and those that start a message. All but the uncounted ones also exist with MPI_Count.
table = (pathlib.Path(a.root) / "shim/front/functions.def").read_text()
sections = dict(re.findall(r"^\[(.*)\].*\n((?:.+\n)*)", table, re.M))
calls, starts = (dict(re.findall(r"^(MPI_\w+)(\(.*\))", rows, re.M)) for rows in (sections["messages"] + sections["files"] + sections["others"], sections["starts"]))
calls |= dict(re.findall(r"^(MPI_\w+)(\(.*\)) pmpi\n +make_communicator", sections["job"], re.M))  # their ranks number the communicator
counted = {name for name in calls if re.search(r"(Count|Displacement)\*? ", calls[name])}
uncounted, starts = set(calls) - counted, set(starts)
waiting = uncounted | {name + form for name in counted | starts for form in ("", "_c")}
polls = set(re.findall(r"^MPI_\w+", sections["polls"], re.M))
later = {name for name in waiting | polls if re.search("(flush|detach)_buffer|Buffer_flush|get_status_", name)}  # of MPI 4.1
check(len(uncounted) > 60 and len(starts) > 9 and waiting - later <= in_mpi, f"MPICH has the blocking calls; missing: {sorted(waiting - later - in_mpi)}")
others |= waiting | polls | {"MPI_Cancel"} | set(re.findall(r"^MPI_\w+", sections["callbacks"], re.M))
# All calls of MPICH's mpi_f08 binding that bypass the C level: those without a choice buffer.
f08 = {f"mpi_{name}_f08_" for name in completion + "init init_thread query_thread finalize session_init session_finalize abort barrier ibarrier barrier_init".split()}
# Open MPI's Fortran bindings call PMPI_*. On MPICH these names only pass calls on, but for those that mpi_f08 calls, such as the polls.
both = {"P" + name for name in collectives | others if name.startswith("MPI_")}
wanted = collectives | others | f08 | both
check(exported == wanted, f"nothing else is exported: {sorted(exported ^ wanted)}")
fortran = run("ldconfig", "-p").stdout
fortran = re.search(r"libmpichfort\S* .*=> (\S+)", fortran)
if fortran:
    past = run("nm", "-D", "--defined-only", fortran[1]).stdout
    in_fortran = set(re.findall(r" T (mpi_\w+_f08_)$", past, re.M))
    check(f08 <= in_fortran, f"and it has these symbols: {sorted(f08 - in_fortran)}")
    kinds = {s for s in in_fortran if re.fullmatch(r"mpi_i?(%s)(_init)?_f08_" % "|".join(names), s)}
    check(kinds <= f08, f"no other collective goes past the C level: {sorted(kinds - f08)}")
    by_pmpi = {f"mpi_{name.lower()}_f08_" for name in re.findall(r"^MPI_(\w+)\(.*\) pmpi$", table, re.M)}
    timed = {f"{name.lower()}_f08_" for name in calls} & in_fortran
    check(len(timed) > 60 and timed <= by_pmpi, f"nor does another call that may wait: {sorted(timed - by_pmpi)}")
    check(by_pmpi - {f"{name.lower()}_f08_" for name in later} <= in_fortran, f"and these functions bypass it: {sorted(by_pmpi - in_fortran)}")
needed = run("readelf", "-d", a.library).stdout
check("libmpi" not in needed, "the library links no MPI")
undefined = [line for line in run("nm", "-D", "--undefined-only", a.library).stdout.splitlines() if re.search(r" P?MPI_", line)]
check(not undefined, f"and refers to no symbol of MPI: {undefined[:3]}")
# MPI may start in the constructor of a library, before the constructors of a preloaded library run. So it has none. (The
# sanitizers add some of their own.)
begin, size = (int(n, 16) for n in re.search(r" \.init_array +INIT_ARRAY +(\w+) \w+ (\w+)", run("readelf", "-SW", a.library).stdout).groups())
names = {int(at, 16): name for at, name in re.findall(r"^(\w+) [tT] (\S+)", run("nm", a.library).stdout, re.M)}
runs = [names.get(int(to, 16), to) for at, to in re.findall(r"^(\w+) +\w+ R_X86_64_RELATIVE +(\w+)", run("readelf", "-rW", a.library).stdout, re.M) if begin <= int(at, 16) < begin + size]
check(sanitized or ("frame_dummy" in runs and set(runs) <= {"frame_dummy", "__cpu_indicator_init"}), f"the library has no constructor but the compiler's own: {runs}")

# A process without MPI does not change, with early or late binding.
for extra in ({}, {"LD_BIND_NOW": "1"}):
    done = run("/bin/sh", "-c", "echo hello; exit 3", LD_PRELOAD=a.library, **extra)
    check(done.returncode == 3 and done.stdout == "hello\n" and done.stderr == "", f"a shell under the preload {extra}: {done.stderr[:200]}")

# Steady state allocates nothing, even at ends of epochs; only a new plan allocates. (A sanitizer has its own operator
# new.) The mailbox may grow a few times, where a rank has been without a core for longer than ever before.
for name, policy, limit in () if sanitized else (("observe", None, 8), ("ring", "ring", 8)):
    options = ["--overwrite", "--output", folder / "steady.json"]
    if policy:
        (folder / "p.json").write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": policy}]}))
        options += ["--policy", folder / "p.json"]
    done = run(a.cli, "run", *options, "--", "-n", 3, a.bin + "/steady", limit, LD_PRELOAD=a.allocations + ":" + a.support)
    check(done.returncode == 0, f"steady state, {name}: {' '.join(done.stdout.split())} {done.stderr[:300]}")

# The program's communicators see only its own collectives, one agreement, and meetings where plans come.
for name, use in (("observe", None), ("native", "native"), ("ring", "ring"), ("prr", "prr")):
    options = ["--overwrite", "--output", folder / "private.json"]
    if use:
        (folder / "p.json").write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": use}]}))
        options += ["--policy", folder / "p.json"]
    done = run(a.cli, "run", *options, "--", "-n", 3, a.bin + "/private", *(["plans"] if use == "prr" else []), LD_PRELOAD=a.spy + ":" + a.support)
    check(done.returncode == 0, f"nothing else on the program's communicators, {name}: {' '.join(done.stdout.split())} {done.stderr[:300]}")

# The environment: a bad value keeps the default, an unknown name gets the nearest name, and LATECOMER_DISABLE works.
done = run(a.cli, "run", "--output", folder / "e.json", "--", "-n", 2, a.bin + "/breakers", "divergent", LD_PRELOAD=a.support, LATECOMER_VERBOS="1", LATECOMER_CHECK="yes")
check(done.returncode == 0 and "LATECOMER_VERBOS, did you mean 'LATECOMER_VERBOSE'?" in done.stderr, f"an unknown variable: {done.stderr[:300]}")
check("LATECOMER_CHECK: expected a number from 0 to 1, got 'yes'" in done.stderr, "a bad value")
done = run(a.cli, "run", "--output", folder / "inert.json", "--", "-n", 2, a.bin + "/breakers", "divergent", LD_PRELOAD=a.support, LATECOMER_DISABLE="1")
check(done.returncode == 0 and done.stderr == "" and not list(folder.glob("inert.json*")), f"LATECOMER_DISABLE=1 is inert: {done.stderr[:200]}")

# Without any variable: the profile has the requested path. An unwritable profile gives only a warning.
done = run(a.cli, "run", "--output", "/nonexistent/x.json", "--", "-n", 2, a.bin + "/breakers", "divergent", LD_PRELOAD=a.support)
check(done.returncode == 0 and "cannot create" in done.stderr, f"an unwritable profile: {done.stderr[:200]}")
finish()
