# SPDX-License-Identifier: BSD-3-Clause
"""The traps that broke other tools: the program ends as natively, and the profile has all visible calls."""
import json
import pathlib
import re
import shutil

from common import a, built, check, finish, folder, launcher, natively, open_mpi, rows_of, run, sanitized

ring = folder / "ring.json"
ring.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "ring"}]}))


def under(name, *command, ranks=4, policy=None, preload=a.support, **extra):
    """Runs under the preload. Returns the result and the profile, which is recovered if the ranks were alone."""
    out = folder / f"{name}.json"
    options = ["--overwrite", "--output", out] + (["--policy", policy] if policy else [])
    done = run(a.cli, "run", *options, "--", *launcher, "-n", ranks, *command, LD_PRELOAD=preload, **extra)
    if not out.exists() and (folder / f"{name}.json.parts").exists():
        recovered = run(a.cli, "recover", out)
        check(recovered.returncode == 0, f"{name}: recover: {recovered.stderr}")
    resolved = run(a.cli, "report", "--json", out)
    return done, json.loads(resolved.stdout) if resolved.returncode == 0 else None


def calls(profile, op="allreduce"):
    return sum(s["calls"] for s in profile["sites"] if s["op"] == op and s["comm_size"] > 1)


def warned(done):
    return [line for line in done.stderr.splitlines() if "latecomer" in line and "warning" in line]


automatic = folder / "auto.json"
automatic.write_text(json.dumps({"version": 1, "mode": "apply", "network": "eth1g", "rules": [{"match": {}, "use": "auto"}]}))

churned = 500 if open_mpi else 1500
# case, least number of allreduces in the profile, expected warning
for case, least, warning in [("in_place_null", 0, None), ("after_finalize", 20, None), ("churn", churned, None), ("inter", 100, None), ("one_error", 800, None),
                             ("children", 40, None), ("messages", 200 if open_mpi else 300, None), ("handles", 40, None), ("contexts", 240, None), ("thread_init", 200, None), ("sessions", 80, "MPI sessions"), ("sessions_and_world", 120, "MPI sessions"), ("spawn", 40, "spawned processes")]:
    if case == "contexts" and sanitized:  # their stacks are unknown to the sanitizers
        continue
    if case.startswith("sessions") and open_mpi:  # of MPI 4, which Open MPI 4 does not have
        continue
    ranks = 2 if case == "spawn" else 4
    native = run(*natively(ranks, a.bin + "/traps", case))
    if case == "spawn" and native.returncode != 0:
        print("this MPICH cannot spawn processes (Debian's ch4:ucx cannot)")
        continue
    check(native.returncode == 0 and "right" in native.stdout, f"{case}: natively: {native.returncode} {native.stdout[-300:]} {native.stderr[-300:]}")
    for policy in (None, ring, automatic) if case in ("churn", "messages", "contexts") else (None, ring):
        name = f"{case}.{policy.stem if policy else 'observe'}"
        done, profile = under(name, a.bin + "/traps", case, ranks=ranks, policy=policy)
        check(done.returncode == native.returncode and "right" in done.stdout, f"{name}: {done.returncode} {done.stdout[-300:]} {done.stderr[-500:]}")
        check(profile is not None and calls(profile) >= least, f"{name}: {profile and calls(profile)} allreduces")
        check(all(warning and warning in line for line in warned(done)) and len(warned(done)) <= 1, f"{name}: warnings {warned(done)}")
check(not list(folder.glob("*.parts/*.tmp")), "nothing half-written is left")
messages = json.loads((folder / "messages.observe.json").read_text())
named = {w["rank"] for rows in messages["rank_rows"] for r in rows for w in r.get("before", {}).get("waits_for", [])}
check(named and named <= set(range(4)), f"a message to a rank that does not exist waits for no rank: {named}")
reused = json.loads((folder / "handles.observe.json").read_text())["processes"]
awaited = {p["rank"]: (p["messages_ns"], sum(w["wait_ns"] for w in p.get("waits_for", []))) for p in reused}
check(all(by_rank < 0.5 * every for rank, (every, by_rank) in awaited.items() if rank != 3), f"waits for a collective are no waits for messages: {awaited}")
if not open_mpi:
    sessions = json.loads((folder / "sessions.observe.json").read_text())
    check(sum(s["patterns"] for s in sessions["sites"] if s["op"] == "allreduce") == 80, "recovered sessions have their arrival patterns")
    check(any(rows and max(rows, key=lambda r: r["last_count"])["rank"] == 1 for rows in sessions["rank_rows"]), "and say who came last")
check(not list(folder.glob("spawn.observe.json")) or list(folder.glob("spawn.observe.json.spawned-*.parts")), "spawned processes left their own")

# Low limits of memory, files and stack under which the program runs natively. (Less stack is too little for MPICH's
# MPI_Comm_create. With fewer files the profile may be lost, but not the program.)
for limit, kept in () if sanitized else (("-v 250000", True), ("-n 48", True), ("-n 32", False), ("-s 256", True)):
    words = ["sh", "-c", f"ulimit {limit}; exec {a.bin}/patterns 40 100"]
    native = run(*natively(2, *words))
    for policy in (None, ring):
        name = f"ulimit {limit}"
        done, profile = under(name.replace(" ", ""), *words, ranks=2, policy=policy)
        check(done.returncode == native.returncode == 0 and done.stdout == native.stdout, f"{name}: {done.returncode} {done.stdout[-200:]} {done.stderr[-400:]}")
        check(not kept or (profile is not None and not warned(done)), f"{name}: the profile is whole: {warned(done)}")

# MPI_Abort from a timer's handler, at any point: the job ends as natively, and its observations can be recovered.
for us in (8000, 20000, 21357, 33333, 50000):
    native = run(*natively(4, a.bin + "/traps", "abort_in_handler", us))
    for policy in (None, ring):
        done = run(a.cli, "run", "--overwrite", "--output", folder / "abort.json", *(["--policy", policy] if policy else []), "--", "-n", 4, a.bin + "/traps", "abort_in_handler", us, LD_PRELOAD=a.support)
        check(done.returncode == native.returncode != 0, f"MPI_Abort in a handler after {us} us, {'ring' if policy else 'observe'}: {done.returncode}, natively {native.returncode}")

# MPI_Init in a static object's constructor, MPI_Finalize in its destructor.
# The object of early_host is in a shared library, whose constructor runs before those of the preloaded libraries.
planned, background = folder / "planned.json", folder / "background.json"
planned.write_text(json.dumps({"version": 1, "mode": "apply", "rules": [{"match": {"op": "allreduce"}, "use": "clairvoyant"}]}))
background.write_text(json.dumps({"version": 1, "mode": "apply", "background": {"enabled": True}, "rules": [{"match": {"op": "allreduce"}, "use": "prr"}]}))
for program in ("early", "early_host"):
    native = run(*natively(4, f"{a.bin}/{program}"))
    for policy in (None, ring, planned, background):
        done, profile = under("early", f"{a.bin}/{program}", policy=policy)
        check(done.returncode == native.returncode == 0 and done.stdout.startswith("right\n") and native.stdout == "right\n", f"MPI in static objects, {program}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
        # The background engine ends before the destructors of other libraries, and with it the observation.
        least = 70 if program == "early_host" and policy == background else 100
        check(profile is not None and least <= calls(profile) <= 100 and not warned(done), f"MPI in static objects, {program}: {profile and calls(profile)} allreduces, {warned(done)}")

# Other allocators, if installed.
for allocator in () if sanitized else ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):  # a sanitizer has its own
    found = pathlib.Path("/usr/lib/x86_64-linux-gnu") / allocator
    if not found.exists():
        print(f"{allocator} is not installed")
        continue
    for policy in (None, ring):
        for preload in (f"{found}:{a.support}", f"{a.support}:{found}"):
            done, profile = under("allocator", a.bin + "/traps", "churn", policy=policy, preload=preload)
            check(done.returncode == 0 and "right" in done.stdout and profile and calls(profile) >= churned and not warned(done), f"{allocator}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")

# MPI in a plugin: dlopen with RTLD_LOCAL, early and late binding.
plugin = built("plugin")
native = run(*natively(4, a.bin + "/plugin_host", plugin))
check(native.returncode == 0 and "right" in native.stdout, f"plugin natively, with the tests' own preload: {native.returncode} {native.stdout} {native.stderr[-300:]}")
for extra in ({}, {"LD_BIND_NOW": "1"}):
    done, profile = under(f"plugin{len(extra)}", a.bin + "/plugin_host", plugin, **extra)
    check(done.returncode == 0 and "right" in done.stdout, f"plugin {extra}: {done.returncode} {done.stdout} {done.stderr[-300:]}")
    check(profile is not None and calls(profile) == 60 and not warned(done), f"plugin {extra}: seen whole")

# A tool behind latecomer sees the program's calls. A tool before it may keep MPI_Init to itself.
tool = built("other_tool")
done, profile = under("stacked", a.bin + "/patterns", 40, 100, preload=f"{tool}:{a.support}")
seen = re.search(r"other tool: (\d+) allreduces, (\d+) broadcasts", done.stdout)
check(done.returncode == 0 and seen and profile and calls(profile) == int(seen[1]), f"stacked behind: {seen and seen[0]}, we saw {profile and calls(profile)}")
alone = run(*natively(4, a.bin + "/patterns", 40, 100, preload=f"{tool}:{a.support}"))
check(seen and seen[0] in alone.stdout, "it sees as much as without us")
out = folder / "before.json"
done = run(*natively(4, a.bin + "/patterns", 40, 100, preload=f"{tool}:{a.library}:{a.support}"), LATECOMER_OUTPUT=out)
check(done.returncode == 0 and alone.stdout == done.stdout, f"stacked before: same output: {done.stderr[-300:]}")
check(len(warned(done)) <= 1, f"one line at most: {warned(done)}")

# Python: by default the binding's line is the site, with sites.python each Python line.
embed = pathlib.Path(a.bin + "/embed")
if embed.exists():
    script = pathlib.Path(a.root) / "tests/mpi/embed_script.py"
    lines = [i for i, text in enumerate(script.read_text().splitlines(), 1) if "return tinympi.allreduce" in text]
    done, profile = under("embed", embed, script)
    check(done.returncode == 0 and len([s for s in profile["sites"] if s["op"] == "allreduce"]) == 1, f"Python, one place in C: {done.stderr[-300:]}")
    for depth in (1, 2):
        policy = folder / "python.json"
        policy.write_text(json.dumps({"version": 1, "sites": {"python": True, "depth": depth}}))
        done, profile = under(f"python{depth}", embed, script, policy=policy)
        sites = {s["frames"][0]["function"]: s for s in profile["sites"] if s["op"] == "allreduce"}
        check(done.returncode == 0 and set(sites) == {"solve", "check"}, f"Python's functions: {set(sites)} {done.stderr[-300:]}")
        check([sites[f]["frames"][0]["line"] for f in ("solve", "check")] == lines and sites["check"]["frames"][0]["file"] == str(script), "and lines")
        check(rows_of(profile, sites["check"])[1]["last_count"] >= 36, "and who waits for whom")
        check(all(len(s["frames"]) == depth for s in sites.values()), f"{depth} frames")
    # The name of a file that is not UTF-8, with surrogates in Python: no exception is left behind.
    script = folder / "surrogates.py"
    script.write_text("import tinympi\n"
                      "exec(compile('def caller(i):\\n    return tinympi.allreduce(i)\\n', 'caf\\udce9.py', 'exec'))\n"
                      "for i in range(40):\n    assert caller(1) == 4\n")
    done, profile = under("surrogates", embed, script, policy=policy)
    files = {s["frames"][0]["file"] for s in profile["sites"] if s["op"] == "allreduce"} if profile else None
    check(done.returncode == 0 and files == {"caf\\udce9.py"}, f"Python's file is not UTF-8: {done.returncode} {files} {done.stderr[-300:]}")
    shown = run(a.cli, "report", "--all", folder / "python2.json").stdout
    check("called by <module> (embed_script.py:" in shown, f"the report names the module's own code: {[line for line in shown.splitlines() if 'called by' in line]}")
else:
    print("no Python to embed here")

# Sites of several frames: equal in two runs, and different for different callers.
deep = folder / "deep.json"
deep.write_text(json.dumps({"version": 1, "sites": {"depth": 4}}))
ids = []
for name in ("deep1", "deep2"):
    done, profile = under(name, a.bin + "/patterns", 40, 100, policy=deep)
    sites = [s for s in profile["sites"] if s["op"] == "allreduce"]
    ids.append(sorted(s["id"] for s in sites))
    functions = sorted([f["function"] for f in s["frames"]][:2] for s in sites)
    check(functions == [["one_late", "main"], ["staircase", "main"]] and all(s["calls"] == 40 for s in sites), f"depth 4: {functions}")
check(ids[0] == ids[1], "depth 4: the same ids in two runs")

# One address with many ways, from two threads: every call is counted at its caller and nowhere else.
done, profile = under("callers", a.bin + "/callers", ranks=2, policy=deep)
said = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("caller")]
expected = {(f"caller<{n}>", recursed): count for n, direct, deeper in said for recursed, count in ((False, direct), (True, deeper))}
counted = {}
for s in profile["sites"]:
    functions = [f["function"] for f in s["frames"]]
    if s["op"] != "allreduce" or functions[0] != "reached":
        continue
    key = re.search(r"caller<\d+>", functions[1])[0], functions[3] == "deeper"
    check(functions[2] == "deeper" and key not in counted, f"callers: {functions}")
    counted[key] = s["calls"]
check(len(expected) == 48 and counted == expected, f"callers: {set(counted.items()) ^ set(expected.items())}")
finish()
