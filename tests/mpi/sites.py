# SPDX-License-Identifier: BSD-3-Clause
"""Call sites behind wrappers: their names, their callers, and the same ids in every run. The names outlive the program."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from common import a, check, finish, folder, open_mpi, patience, run

sys.path.append(a.root + "/tests/support")
from processes import end_tree

CALLS = 20
source = pathlib.Path(a.root) / "tests/mpi"
lines = {found[1]: number for name in ("wrapped.cpp", "wrapping.h")
         for number, text in enumerate((source / name).read_text().splitlines(), 1) if (found := re.search(r"// line: (.*)", text))}


def under(name, program="wrapped", calls=CALLS, late_us=0, **policy):
    """Runs the program. Returns its output, its resolved profile and its report."""
    out, options = folder / f"{name}.json", []
    if policy:
        path = folder / f"{name}.policy.json"
        path.write_text(json.dumps({"version": 1, **policy}))
        options = ["--policy", path]
    done = run(a.cli, "run", "--overwrite", "--output", out, *options, "--", "-n", 2, f"{a.bin}/{program}" if "/" not in str(program) else program, calls, late_us, LD_PRELOAD=a.support)
    check(done.returncode == 0 and "sum" in done.stdout, f"{name}: {done.returncode} {done.stderr[-300:]}")
    resolved = run(a.cli, "report", "--json", out)
    check(resolved.returncode == 0, f"{name}: report --json: {resolved.stderr[-300:]}")
    return done.stdout, json.loads(resolved.stdout), run(a.cli, "report", "--all", out).stdout


def of(profile, function):
    found = [s for s in profile["sites"] if function in (s["frames"][0]["function"] or "")]
    check(len(found) == 1, f"one site in {function}: {[s['frames'][0]['function'] for s in found]}")
    return found[0]


def where(frame):
    return frame["function"].split("(")[0], pathlib.Path(frame["file"]).name, frame["line"]


def by_caller(site, level=0):
    """Calls by the function of the caller's frame."""
    out = {}
    for caller in site["callers"]:
        name = where(caller["frames"][level])[0] if len(caller["frames"]) > level else None
        out[name] = out.get(name, 0) + caller["calls"]
    return out


first, profile, text = under("first", late_us=50000)
again, second, _ = under("again")

# A function that serves many callers is one site, and its callers add up to it.
site = of(profile, "all_sum")
check(where(site["frames"][0]) == ("all_sum", "wrapped.cpp", lines["all_sum"]), f"the wrapper: {site['frames'][0]}")
check(len(site["frames"]) == 1 and site["calls"] == 4 * CALLS, f"the wrapper: {site['calls']} calls")
check(by_caller(site) == {"assemble": 2 * CALLS, "residual": 2 * CALLS}, f"its callers: {by_caller(site)}")
check(by_caller(site, 1) == {"main": 2 * CALLS, "dense": CALLS, "sparse": CALLS}, f"and theirs: {by_caller(site, 1)}")
check({where(c["frames"][0]) for c in site["callers"]} >= {("residual", "wrapped.cpp", lines["residual"])}, "with file and line")
check(not any("libc" in f["module"] for s in profile["sites"] for c in s["callers"] for f in c["frames"]), "the start of the program is no caller")
for s in profile["sites"]:
    waited = sum(c["waited_ns"] for c in s["callers"])
    check(abs(waited - s["waited_ns"]) <= 1e-9 * s["waited_ns"] + 1e-3 and sum(c["calls"] for c in s["callers"]) == s["calls"],
          f"{s['frames'][0]['function']}: callers wait {waited} of {s['waited_ns']}, in {[c['calls'] for c in s['callers']]} of {s['calls']} calls")
    check(s["waited_ns"] == 0 or abs(sum(c["share"] for c in s["callers"]) - 1) < 1e-9, "their shares add up")
worst = site["callers"][0]
check(where(worst["frames"][0])[0] == "residual" and worst["awaited"][0]["rank"] == 1 and worst["awaited"][0]["last_count"] >= CALLS // 2,
      f"ranks wait for rank 1 in residual: {worst['awaited']}")
named = [(f["where"]["place"], f["where"]["callers"]) for f in profile["findings"] if f["id"] == "imbalance"]
check((f"all_sum (wrapped.cpp:{lines['all_sum']})", f"residual (wrapped.cpp:{lines['residual']})") in named, f"a finding names the caller: {named}")
table = next(part for part in text.split("\n\n") if part.startswith("collective")).splitlines()
row = next((i for i, line in enumerate(table) if line.endswith(f"  all_sum (wrapped.cpp:{lines['all_sum']})")), None)
check(row is not None and table[row + 1].endswith(f"  < residual (wrapped.cpp:{lines['residual']})") and "  < assemble (wrapped.cpp:" in " ".join(table[row + 2:row + 4]),
      f"the table shows the callers below: {table}")

# Names: inlined functions, templates, modules of Fortran.
site = next(s for s in profile["sites"] if s["frames"][0].get("inlined_into", [{}])[-1].get("function", "").startswith("solve"))
inner, outer = site["frames"][0], site["frames"][0].get("inlined_into", [])
check("sum<int>" in inner["function"] and where(inner)[1:] == ("wrapping.h", lines["inlined sum"]), f"the innermost function with its own file: {inner}")
check([where(f) for f in outer] == [("inlined::norm", "wrapping.h", lines["inlined norm"]), ("solve", "wrapped.cpp", lines["solve"])], f"then those around it: {outer}")
check(f"  inlined::sum (wrapping.h:{lines['inlined sum']}) in solve (wrapped.cpp:{lines['solve']})" in text, "and the table shows both ends")
check(re.search(r" in \.\.\.::implementation_of_assembly::Assembler::operator\(\) \(wrapped.cpp:\d+\)$", text, re.M), f"long names are short: {re.findall(r'.*Assembler.*', text)[:1]}")
check(re.search(r"  plib_module::glmax_d \(wrapped.cpp:\d+\)$", text, re.M), "names of Fortran modules are readable")

# Ids and callers are the same in every run, wherever the program is loaded.
if pathlib.Path("/proc/sys/kernel/randomize_va_space").read_text().strip() != "0":
    check(first.split()[1] != again.split()[1], "the two runs have different addresses")
keys = [{(s["id"], tuple(sorted(tuple(f["offset"] for f in c["frames"]) for c in s["callers"]))) for s in p["sites"]} for p in (profile, second)]
check(keys[0] == keys[1], f"the same ids and callers: {keys[0] ^ keys[1]}")

# Without callers a site has the same id.
_, bare, _ = under("bare", sites={"callers": 0})
check({s["id"] for s in bare["sites"]} == {s["id"] for s in profile["sites"]} and not any("callers" in s for s in bare["sites"]), "callers do not change ids")
_, deep, _ = under("deep", sites={"depth": 3})
check(all(len(s["frames"]) == 3 and all(len(c["frames"]) <= 1 for c in s["callers"]) for s in deep["sites"] if "all_sum" in s["frames"][0]["function"] and "residual" in s["frames"][1]["function"]),
      "with a depth of 3, one frame is left for the callers")

# A library that wraps MPI: by default a site with callers; if the policy names it, its callers are the sites.
site = of(profile, "reach")
check(site["frames"][0]["module"].endswith("libwrapping.so") and by_caller(site, 1) == {"first_user": CALLS, "second_user": 2 * CALLS}, f"a shared library: {by_caller(site, 1)}")
inside = "wrapping"
_, skipped, _ = under("skipped", sites={"wrappers": [f"lib{inside}*"]})
found = {where(s["frames"][0]): s["calls"] for s in skipped["sites"] if "_user" in s["frames"][0]["function"]}
check(sum(found.values()) == 3 * CALLS and found[("first_user", "wrapped.cpp", lines["first_user"])] == CALLS and not any(inside in f["module"] for s in skipped["sites"] for f in s["frames"]),
      f"wrappers are skipped: {found}")
# Rules that name the library's function or its id still match. The plan comes into force some epochs after the start, and
# the slower the machine, the later.
for glob in ("reach", site["id"]):
    _, ruled, _ = under("ruled", calls=3000 * patience, mode="apply", sites={"wrappers": [f"lib{inside}*"]}, rules=[{"match": {"op": "allreduce", "site": glob}, "use": "ring"}])
    ran = {s["frames"][0]["function"].split("(")[0]: "ring" in s["dispatch"] for s in ruled["sites"] if s["comm_size"] == 2}
    check(ran.get("first_user") and ran.get("second_user"), f"a rule for {glob} serves the callers: {ran}")

# Two dozen callers in random order from two threads, over frames of changing size: every call is counted at its caller.
out = folder / "callers.json"
done = run(a.cli, "run", "--output", out, "--", "-n", 2, a.bin + "/callers", LD_PRELOAD=a.support)
said = {n: int(direct) + int(deeper) for n, direct, deeper in re.findall(r"^caller (\d+) (\d+) (\d+)$", done.stdout, re.M)}
site = of(json.loads(run(a.cli, "report", "--json", out).stdout), "reached")
counted = {}
for caller in site["callers"]:
    n = re.search(r"caller<(\d+)>", caller["frames"][0]["function"])[1]
    counted[n] = counted.get(n, 0) + caller["calls"]
check(len(said) == 24 and counted == said and len(site["callers"]) == 48, f"callers: {set(counted.items()) ^ set(said.items())}, {len(site['callers'])} ways")

# Callers of one frame are shown together, with the ranks whose messages they waited for.
waits = json.loads(out.read_text())
merged = 0
for site in waits["sites"]:
    for n, caller in enumerate(site.get("callers", [])):
        for row in caller["awaited"]:
            times = ("wall", "collectives", "messages", "io", "computing", "kernel", "runnable", "blocked", "page_faults", "threads")
            row["before"] = {"samples": 10, "faults": 0, "preempted": 0, **{f"{name}_ns": 10.0 for name in times},
                             "waits_for": [{"rank": 1 - row["rank"], "wait_ns": 10.0 * (n + 1)}]}
            merged += 1
(folder / "waits.json").write_text(json.dumps(waits))
done = run(a.cli, "report", "--all", folder / "waits.json")
check(merged > 2 and done.returncode == 0 and "reached" in done.stdout, f"callers that waited for messages: {done.stderr}")

# Without debug information: symbols where the module has them, and the remedy.
strip = shutil.which("strip")
stripped = folder / "stripped"
shutil.copy(f"{a.bin}/wrapped", stripped)
subprocess.run([strip, "--strip-all", str(stripped)], check=True)
_, profile, text = under("stripped", program=stripped)
names = {s["frames"][0]["function"] for s in profile["sites"]}
check(any(n and n.startswith("all_sum(") for n in names), f"dynamic symbols: {names}")
hidden = [s["frames"][0] for s in profile["sites"] if s["frames"][0]["function"] is None]
check(hidden and re.search(r"  stripped\+0x[0-9a-f]+$", text, re.M), f"code without a symbol has module and offset: {hidden}")
check(any(w.startswith("stripped has no debug information") and "-g" in w for w in profile["warnings"]) and "stripped has no debug information" in text, f"and how to get lines: {profile['warnings']}")


def warnings(name, profile):
    """The warnings of the report about a module."""
    return [w for w in json.loads(run(a.cli, "report", "--json", profile).stdout)["warnings"] if w.startswith(f"{name} ")]


def places(profile):
    return [line.split("\t")[8] for line in run(a.cli, "report", "--tsv", profile).stdout.splitlines()]


# `latecomer run` has put the names into the profile: the report is the same after the program was rebuilt or moved.
# A launcher that keeps the profile as rank 0 wrote it, and replaces the program before `latecomer run` resolves names.
launcher = folder / ("launcher.openmpi" if open_mpi else "launcher")  # by its name, latecomer knows its library
launcher.write_text("""#!/bin/sh
"$LAUNCHER" "$@"
cp "$PROFILE" "$PROFILE.before"
[ -z "$LARGE" ] || truncate -s "$LARGE" "$PROFILE"
[ -z "$REBUILT" ] || cp --remove-destination "$REBUILT" "$PROGRAM"
exit 7
""")
launcher.chmod(0o755)


def launched(name, rebuilt="", large=""):
    """Runs a copy of the program. Returns the program, the profile, its text before names, and the status."""
    program, out = folder / name, folder / f"{name}.json"
    shutil.copy(f"{a.bin}/wrapped", program)
    done = run(a.cli, "run", "--output", out, "--launcher", launcher, "--", "-n", 2, program, CALLS, 0, LD_PRELOAD=a.support,
               LAUNCHER=a.mpiexec, PROFILE=out, REBUILT=rebuilt, LARGE=large, PROGRAM=program)
    return program, out, pathlib.Path(f"{out}.before").read_text(), done


def rows(profile):
    """The rows of ranks, as they stand in the text."""
    text, decode = profile if isinstance(profile, str) else profile.read_text(), json.JSONDecoder().raw_decode
    at = re.search(r'^"rank_rows": ', text, re.M).end()
    return text[at:decode(text, at)[1]]


def nameless(text):
    profile = json.loads(text)
    for site in profile["sites"]:
        for frame in [*site["frames"], *(f for c in site["callers"] for f in c["frames"])]:
            for key in ("function", "file", "line", "near", "inlined_into"):
                frame.pop(key, None)
    return profile


program, out, before, done = launched("moved")
check(done.returncode == 7 and "latecomer report" in done.stderr, f"the status is that of the job: {done.returncode} {done.stderr[-300:]}")
frame = of(json.loads(out.read_text()), "all_sum")["frames"][0]
check(where(frame) == ("all_sum", "wrapped.cpp", lines["all_sum"]), f"the profile holds the names: {frame}")
check(rows(out) and rows(out) == rows(before), f"the rows of ranks are the same bytes: {len(rows(out))}")
check(nameless(out.read_text()) == nameless(before) and not list(folder.glob("*.tmp-*")), "and nothing but names has changed")
shown = places(out)
check({f"all_sum (wrapped.cpp:{lines['all_sum']})", f"inlined::sum (wrapping.h:{lines['inlined sum']}) in solve (wrapped.cpp:{lines['solve']})"} <= set(shown), f"the report shows them: {shown}")
text = run(a.cli, "report", "--all", out).stdout
shutil.copy(a.library, program)
check(run(a.cli, "report", "--all", out).stdout == text, "and shows the same after the program was rebuilt")
program.unlink()
check(run(a.cli, "report", "--all", out).stdout == text, "and after it was moved")
redacted = json.loads(run(a.cli, "report", "--json", "--redact", out).stdout)
check(of(redacted, "all_sum")["frames"][0]["file"] == "wrapped.cpp" and str(pathlib.Path(a.root)) not in json.dumps(redacted), "--redact leaves the folders out")
_, out, before, done = launched("rebuilt", rebuilt=a.library)
hidden = {f["module"] for s in json.loads(before)["sites"] for f in s["frames"]} - {str(folder / "rebuilt")}
kept, was = ({s["id"]: s["frames"] for s in json.loads(text)["sites"] if s["frames"][0]["module"] not in hidden} for text in (out.read_text(), before))
check(done.returncode == 7 and kept and kept == was, "a program that was rebuilt during the job gets no names of the new file")
# A profile that would take long stays as it is. The launcher makes it larger without taking disk space.
_, out, before, done = launched("large", large="600M")
with open(out) as file:
    check(done.returncode == 7 and "not in the profile: it is larger than 500 MB" in done.stderr and file.read(len(before)) == before, f"a large profile: {done.stderr[-300:]}")
out.unlink()

# Resolving must not outlast a signal. The profile stays as it was.
out, program = folder / "slow.json", folder / "slow"
shutil.copy(f"{a.bin}/wrapped", program)
job = subprocess.Popen([a.cli, "run", "--output", str(out), "--launcher", str(launcher), "--", "-n", "2", str(program), str(CALLS), "0"], stderr=subprocess.PIPE, text=True, start_new_session=True,
                       env=dict(os.environ, LD_PRELOAD=f"{a.support}:{pathlib.Path(a.support).parent / 'libslow_names.so'}", LAUNCHER=a.mpiexec, PROFILE=str(out), REBUILT="", LARGE="", PROGRAM=""))
begun = any("resolving begins" in line for line in iter(job.stderr.readline, ""))
job.send_signal(signal.SIGINT)
try:
    said = job.communicate(timeout=60)[1]
except subprocess.TimeoutExpired:
    said = "it goes on"
end_tree(job)
check(begun and job.returncode == 7 and "not in the profile: a signal came" in said, f"a signal ends it: {job.returncode} {said}")
check(out.read_text() == pathlib.Path(f"{out}.before").read_text() and not list(folder.glob("*.tmp-*")), "the profile is as rank 0 wrote it")

def every(profile):
    return {(f["module"], f["offset"]): f for s in profile["sites"] for f in [*s["frames"], *(f for c in s["callers"] for f in c["frames"])]}


# Without `latecomer run`: the dynamic symbols of functions, and never of another function.
def outermost(frame):
    return frame.get("inlined_into", [frame])[-1]["function"]


out, program = folder / "preloaded.json", folder / "preloaded"
shutil.copy(f"{a.bin}/wrapped", program)
done = run(a.mpiexec, "-n", 2, program, CALLS, 0, LD_PRELOAD=f"{a.library}:{a.support}", LATECOMER_OUTPUT=out)
check(done.returncode == 0, f"without latecomer run: {done.stderr[-300:]}")
bare, resolved = json.loads(out.read_text()), json.loads(run(a.cli, "report", "--json", out).stdout)
known = {at: f["function"] for at, f in every(bare).items() if f["function"]}
check({n.split("(")[0] for n in known.values()} >= {"all_sum", "residual", "solve", "library_sum"} and all(f["file"] is None for f in every(bare).values()), f"functions of dynamic symbols: {known.values()}")
check(known and all(outermost(every(resolved)[at]) == name for at, name in known.items()), f"each is the name that symbols and debug information give: {known}")
hidden = {name: [at for at, f in every(resolved).items() if name in (outermost(f) or "")] for name in ("concealed", "reach")}
check(all(found and all(every(bare)[at]["function"] is None for at in found) for found in hidden.values()), f"a function without a dynamic symbol has no name: {hidden}")
check(where(of(resolved, "all_sum")["frames"][0]) == ("all_sum", "wrapped.cpp", lines["all_sum"]), "the report resolves lines as long as the program is there")
program.unlink()
check({"all_sum (preloaded)", f"preloaded+{hidden['concealed'][0][1]}"} <= set(places(out)), f"and shows these functions after it was moved: {places(out)}")
moved = warnings("preloaded", out)
check(len(moved) == 1 and moved[0].startswith("preloaded is not on this machine, or has been moved") and "latecomer run puts names into the profile" in moved[0], f"one warning says so: {moved}")
shutil.copy(a.library, program)
rebuilt = warnings("preloaded", out)
check(len(rebuilt) == 1 and rebuilt[0].startswith("preloaded has been rebuilt or replaced since the run"), f"and another that it was rebuilt: {rebuilt}")

# A module without debug information: one warning, however often names are resolved.
named, again = folder / "stripped.json", folder / "stripped.again.json"
again.write_text(run(a.cli, "report", "--json", named).stdout)
check([len(warnings("stripped", f)) for f in (named, again)] == [1, 1], f"one warning: {warnings('stripped', again)}")
stripped.unlink()
check(["has no debug information" in w for f in (named, again) for w in warnings("stripped", f)] == [True, True], f"which stays: {warnings('stripped', again)}")
# The warning goes when the debug information has come.
shutil.copy(f"{a.bin}/wrapped", stripped)
check(warnings("stripped", named) == [], f"lines are known now: {warnings('stripped', named)}")
finish()
