# SPDX-License-Identifier: BSD-3-Clause
"""The command as users and scripts call it: answers, JSON shapes, exit statuses, and errors that name the remedy."""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

command, root = sys.argv[1], pathlib.Path(sys.argv[2])
folder = pathlib.Path(tempfile.mkdtemp(prefix="latecomer-test-"))
failures = []


def run(*arguments):
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def answer(*arguments, status=0):
    done = run(*arguments, "--json")
    check(done.returncode == status, f"{arguments}: status {done.returncode}, {done.stderr}")
    return json.loads(done.stdout)


listed = [line.split()[0] for line in run("--help").stdout.split("Subcommands:")[1].splitlines() if line.startswith("  ") and line[2] != " "]
check({"run", "report", "completion"} <= set(listed), f"--help lists the commands: {listed}")
for sub in [[name] for name in listed if name != "plan"] + [["plan", "clairvoyant"], ["plan", "tree"]]:
    done = run(*sub, "--help")
    check(done.returncode == 0 and "Example" in done.stdout and f"$ latecomer {' '.join(sub)}" in done.stdout or sub == ["completion"], f"{sub} --help has an example")

# Completion scripts, in the installed shells.
bash = run("completion", "bash").stdout
for words, expected in [(["re"], "report recover"), (["report", "--ht"], "--html"), (["plan", ""], "clairvoyant tree"), (["plan", "tree", "--ki"], "--kind"),
                        (["verify", "--op", "allr"], "allreduce"), (["simulate", "--network", "h"], "hdr"), (["run", "--policy", "x", "--", "--h"], "")]:
    script = bash + f"COMP_WORDS=(latecomer {' '.join(repr(w) for w in words)}); COMP_CWORD={len(words)}; _latecomer; echo \"${{COMPREPLY[*]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    check(set(expected.split()) <= set(done.stdout.split()) and (expected or not done.stdout.strip()) and not done.stderr, f"bash completes {words}: {done.stdout!r} {done.stderr!r}")
if shutil.which("zsh"):
    (folder / "_latecomer").write_text(run("completion", "zsh").stdout)
    done = subprocess.run(["zsh", "-n", str(folder / "_latecomer")], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and not done.stderr, f"zsh reads its completion: {done.stderr}")
check(run("completion", "fish").returncode == 2, "an unknown shell is refused")

# Progress on request, and Ctrl-C with partial results.
check("verifying allreduce: 27 of 27" in run("verify", "--ranks", "2-4", "--patience", 0).stderr, "verify shows progress")
check("simulating bcast" in run("simulate", "--op", "bcast", "--ranks", 4, "--bytes", 1, "--patience", 0).stderr and run("simulate", "--op", "bcast", "--ranks", 4, "--bytes", 1).stderr == "", "simulate shows progress, not into a file")
long = subprocess.Popen([command, "verify", "--ranks", "1-28", "--patience", "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for line in long.stderr:
    if ": 0 of" not in line:
        break
long.send_signal(signal.SIGINT)
found, said = long.communicate(timeout=300)
check(long.returncode == 130 and " cases, 0 failures" in found and "interrupted after" in said, f"Ctrl-C: {long.returncode} {found!r} {said[-200:]!r}")
for arguments, says in [
        (["simulat"], "did you mean 'simulate'"), (["simulate"], "--ranks"), (["simulate", "--ranks", "4", "--bytes", "1 MB"], "1 MB"),
        (["simulate", "--ranks", "4", "--bytes", "1", "--algorithm", "rign"], "did you mean 'ring'"),
        (["simulate", "--ranks", "4", "--bytes", "1", "--network", "eth10g"], "eth1g"),
        (["simulate", "--ranks", "4", "--bytes", "1", "--arrivals", "onelate:9:1ms"], "rank from 0 to 3"),
        (["simulate", "--op", "alreduce", "--ranks", "4", "--bytes", "1"], "did you mean 'allreduce'"),
        (["verify", "--ranks", "4-2"], "1-17,32"), (["report", "/nonexistent"], "cannot read"), (["check", "/nonexistent"], "cannot read"),
        (["run", "--", "-n", "2"], "no program"), (["algorithms", "--op", "gatherr"], "did you mean 'gather'")]:
    done = run(*arguments)
    check(done.returncode == 2 and says in done.stderr, f"{arguments}: {done.returncode} {done.stderr!r}")

for words in (["report", folder / "nothing"], ["check", folder / "nothing"], ["diff", folder / "nothing", folder / "nothing"], ["run", "--policy", folder / "nothing", "--", "-n", "1", "true"],
              ["simulate", "--ranks", "4", "--bytes", "1", "--arrivals", f"file:{folder}/nothing"], ["plan", "tree", "--kind", "linear", "--sizes", f"file:{folder}/nothing"]):
    done = run(*words)
    check(done.returncode == 2 and f"cannot read '{folder}/nothing': No such file or directory" in done.stderr, f"{words}: the reason is given: {done.returncode} {done.stderr!r}")
done = run("report", folder)
check(done.returncode == 2 and "it is a folder" in done.stderr, f"a folder is no profile: {done.stderr}")
os.mkfifo(folder / "pipe")
done = run("report", folder / "pipe")
check(done.returncode == 2 and "not a regular file" in done.stderr, f"nor is a pipe: {done.stderr}")
for words, says in [(["report", "--htlm", "x", "y"], "did you mean '--html'?"), (["report", "a.json", "b c.json"], "to compare two runs, write: latecomer diff a.json 'b c.json'"), (["report", "a", "b", "c"], "latecomer diff BEFORE AFTER")]:
    done = run(*words)
    check(done.returncode == 2 and says in done.stderr, f"{words}: {done.returncode} {done.stderr!r}")

# Without a file, `check` reads the configuration of the site.
for text, status, says in [('{"version": 1, "output": "/logs/%u/%j.json"}', 0, "good, 0 rules"), ('{"version": 1,\n "outptu": "x"}', 1, ":2: outptu: unknown key, did you mean 'output'?"),
                           ('{"version": 1, "output": "/logs/%U"}', 1, "output: unknown pattern '%U'")]:
    (folder / "config.json").write_text(text)
    done = subprocess.run([command, "check"], capture_output=True, text=True, timeout=300, env=dict(os.environ, LATECOMER_CONFIG=str(folder / "config.json")))
    check(done.returncode == status and f"{folder}/config.json" in done.stdout and says in done.stdout, f"check of the configuration: {done.returncode} {done.stdout} {done.stderr}")
done = subprocess.run([command, "check"], capture_output=True, text=True, timeout=300, env=dict(os.environ, LATECOMER_CONFIG=""))
check(done.returncode == 2 and "/etc/latecomer/config.json" in done.stderr, f"check without any file: {done.returncode} {done.stderr}")

rows = answer("algorithms", "--op", "allreduce")
catalogue = re.findall(r"^LATECOMER_ALGORITHM\(allreduce, (\w+),", (root / "core/algorithms/catalogue.def").read_text(), re.M)
check([r["name"] for r in rows] == catalogue, "algorithms of allreduce, as in the catalogue")
check(set(rows[0]) == {"op", "name", "source", "cost", "restrictions", "lanes", "keeps_rank_order", "pattern_independent"}, "shape of algorithms")

out = answer("simulate", "--op", "allreduce", "--algorithm", "all", "--ranks", 48, "--bytes", "4MiB", "--arrivals", "onelate:1:50ms", "--lockstep")
check(set(out) == {"lower_bound_ns", "lower_bound_run_time_ns", "results"}, "shape of simulate")
check(set(out["results"][0]) == {"algorithm", "run_time_ns", "mean_elapsed_ns", "after_last_ns", "messages", "planning_ns"}, "shape of results")
prr = next(r for r in out["results"] if r["algorithm"] == "prr")
check(prr["messages"] == 48 * (2 * 48 - 2), "PRR sends P (2P-2) messages")
check(prr["run_time_ns"] == prr["after_last_ns"] + 50_000_000, "run time from the first arrival")
beta = 1e9 / 230e6
bound = max(max((m + 47 - (m == 48)) * 4194304 * beta / 48 - (50e6 if m > 1 else 0) for m in range(1, 49)), 4194304 * beta + 50_000)
check(abs(out["lower_bound_ns"] - bound) <= 2, f"lower bound {out['lower_bound_ns']} against {bound}")
arrivals = folder / "arrivals"
arrivals.write_text("0\n0.001\n0.002\n\n0.0005\n")
check(answer("simulate", "--algorithm", "ring", "--ranks", 4, "--bytes", 8, "--arrivals", f"file:{arrivals}")["results"], "arrivals from a file")
check("5 times" not in run("simulate", "--ranks", "5", "--bytes", "8", "--arrivals", f"file:{arrivals}").stdout, "a file of the wrong length")

out = answer("verify", "--op", "allreduce", "--algorithm", "all", "--ranks", "1-6,9")
check(out["ok"] is True and out["cases"] > 1000 and out["failures"] == [], "verify")

# The golden plans of Clairvoyant, by every generator.
golden = json.loads((root / "tests/oracles/clairvoyant.json").read_text())


def planned(instance, impl, *more):
    file = folder / "golden"
    file.write_text("".join(f"{a // 10**9}.{a % 10**9:09}\n" for a in instance["arrivals_ns"]))
    seconds = f"{instance['round_ns'] // 10**9}.{instance['round_ns'] % 10**9:09}"
    return run("plan", "clairvoyant", "--ranks", instance["ranks"], "--segments", instance["segments"], "--round", seconds, "--root", instance["root"], "--arrivals", f"file:{file}", "--impl", impl, *more)


for impl in ("plain", "heaps", "segment_tree", "rows"):
    for i, instance in enumerate(golden["instances"]):
        want = sorted(instance["schedule"], key=lambda m: (m[0], m[2]))
        got = [[int(x) for x in line.split()] for line in planned(instance, impl).stdout.splitlines()]
        check(got == want, f"{impl}: golden instance {i}")
    for i, instance in enumerate(golden["hashed"]):
        done = planned(instance, impl)
        check(hashlib.sha256(done.stdout.encode()).hexdigest() == instance["sha256"], f"{impl}: golden hash {i}")
out = json.loads(planned(golden["instances"][0], "segment_tree", "--json").stdout)
check(set(out) == {"messages", "generation_ns"} and out["messages"][0] == [0, 1, 0, 0], "shape of plan clairvoyant")
check("generation" not in planned(golden["instances"][0], "rows", "--time").stdout and "15 messages" in planned(golden["instances"][0], "rows", "--time").stdout, "only the time")
for more, says in [(["--impl", "row"], "did you mean 'rows'"), (["--root", 4], "expected a rank below 4"), (["--round", "0"], "round time"), (["--round", "soon"], "--round")]:
    done = run("plan", "clairvoyant", "--ranks", 4, "--segments", 2, *([] if "--round" in more else ["--round", "1"]), *more)
    check(done.returncode == 2 and says in done.stderr, f"plan clairvoyant {more}: {done.returncode} {done.stderr!r}")

# Trees: the printed messages, played in order, take the printed time. Each option is checked, too.
def played(sizes, alpha, beta, gamma, root, messages):
    incoming, held, gone = {r: [] for r in range(len(sizes))}, list(sizes), set()

    def done(r):
        if not incoming[r]:
            return 0
        times = []
        for copies in range(len(incoming[r]) + 1):  # the rank may copy its own block after any number of messages
            now = 0
            for i, (there, takes) in enumerate(incoming[r]):
                now = max(now + (gamma * sizes[r] if i == copies else 0), there) + takes
            times.append(now + (gamma * sizes[r] if copies == len(incoming[r]) else 0))
        return min(times)

    for child, parent in messages:
        assert child != root and child not in gone and parent not in gone, "sent twice, or received after it was sent"
        incoming[parent].append((done(child), alpha + beta * held[child] if held[child] else 0))
        held[parent] += held[child]
        gone.add(child)
    assert len(gone) == len(sizes) - 1
    return done(root)


draw = random.Random(29)
for kind in ("linear", "binary", "binomial", "adaptive", "optimal", "two_block", "sorted"):
    for _ in range(6):
        alpha, beta, gamma, ranks = draw.choice((0, 5, 100)), draw.choice((0, 1, 3)), draw.choice((0, 1)), draw.randint(1, 40)
        name = draw.choice(("random", "spikes", "decreasing", "skewed", "two_blocks", "alternating"))
        words = ("plan", "tree", "--kind", kind, "--sizes", f"{name}:{ranks}:{draw.choice((3, 50, 1000))}", "--root", draw.choice(("best", draw.randrange(ranks))), "--alpha", alpha, "--beta", beta, "--gamma", gamma)
        lines = run(*words).stdout.splitlines()
        out = answer(*words, "--list-sizes")
        time, root_rank, messages = float(lines[0].split()[1]), int(lines[1].split()[1]), [tuple(map(int, line.split())) for line in lines[2:]]
        check(played(out["sizes"], alpha, beta, gamma, root_rank, messages) <= time, f"{words}: the printed order misses the printed time")
        check([[c for c, p in messages if p == r] for r in range(ranks)] == out["children"], f"{words}: children are not in the order of the messages")
        check(out["cost"] == time and out["root"] == root_rank and all(out["parent"][c] == p for c, p in messages), f"{words}: --json says something else")
matrix = folder / "matrix"
matrix.write_text(" ".join(["3"] * 25))
pairs = answer("plan", "tree", "--kind", "binary", "--sizes", "random:5", "--alpha", f"file:{matrix}", "--beta", f"file:{matrix}")
check(pairs["cost"] == answer("plan", "tree", "--kind", "binary", "--sizes", "random:5", "--alpha", 3, "--beta", 3)["cost"], "binary, with costs of every pair")
for words, says in [
        ([], "--kind is missing"), (["--kind", "optimal"], "--sizes is missing"), (["--kind", "optimol", "--sizes", "same:5"], "did you mean 'optimal'"),
        (["optimal", "--sizes", "same:5"], "write --kind optimal"), (["--kind", "optimal", "--sizes", "same:5", "--aplha", "4"], "unknown option '--aplha', did you mean '--alpha'"),
        (["--kind", "optimal", "--sizes", "same:5", "--variant", "papper"], "--variant: unknown value 'papper', did you mean 'paper'"),
        (["--kind", "optimal", "--sizes", "same:5", "--op", "gahter"], "did you mean 'gather'"), (["--kind", "optimal", "--sizes", "same:5", "--latency", "file:/dev/null"], "--latency: expected one number, got 0"),
        (["--kind", "optimal", "--sizes", "same:5", "--arrivals", "onelate:1:5"], "expected file:PATH"), (["--kind", "linear", "--sizes", "same:5", "--plain"], "--plain: goes with --kind optimal"),
        (["--kind", "linear", "--sizes", "same:5", "--list-sizes"], "goes with --json"), (["--kind", "linear", "--sizes", "same:5", "extra"], "unexpected 'extra'"),
        (["--kind", "linear", "--sizes", "same:5", "--root", "9"], "the last of 5 ranks is 4")]:
    done = run("plan", "tree", *words)
    check(done.returncode == 2 and says in done.stderr, f"plan tree {words}: {done.returncode} {done.stderr!r}")
check(run("plan", "tree", "--kind", "linear", "--sizes", "same:5", "--op", "gatherv").returncode == 0, "the irregular operation's own name")

good = folder / "good.json"
good.write_text('{"version": 1, "mode": "apply",\n "rules": [{"match": {"op": "allreduce"}, "use": "prr"}]}\n')
check(answer("check", good) == {"ok": True, "problems": [], "warnings": []}, "a good policy")
later = folder / "later.json"
later.write_text('{"version": 1, "mode": "apply",\n "rules": [{"match": {"op": "scatterv"}, "use": "sorted"},\n {"match": {"op": "bcast", "site": "main*"}, "use": "binomial"}]}\n')
out = answer("check", later)
check(out["ok"] and not out["problems"] and [(w["line"], w["path"]) for w in out["warnings"]] == [(2, "rules[0]"), (3, "rules[1]")], f"rules that come into force later: {out}")
check(f"{later}:2: warning: rules[0]: " in run("check", later).stdout, "the same, for people")
bad = folder / "bad.json"
bad.write_text('{"version": 1,\n "mode": "aply",\n "rules": [\n  {"match": {"op": "allreduce"}, "use": "rng"}]}\n')
out = answer("check", bad, status=1)
check(out["ok"] is False and [(p["line"], p["path"]) for p in out["problems"]] == [(2, "mode"), (4, "rules[0].use")], f"a bad policy: {out}")
done = run("check", bad)
check(f"{bad}:2: mode: " in done.stdout and "did you mean 'apply'" in done.stdout, "a bad policy, for people")
for op in ("allgather", "alltoall", "reduce_scatter"):
    bad.write_text('{"version": 1, "mode": "apply",\n "rules": [{"match": {"op": "%s"}, "use": "ring"}]}\n' % op)
    done = run("check", bad)
    check(done.returncode == 1 and f"{op} has no algorithm" in done.stdout and "observed only" in done.stdout and "valid: native" not in done.stdout, f"a collective without algorithms: {done.stdout}")
    bad.write_text('{"version": 1, "mode": "apply",\n "rules": [{"match": {"op": "%s"}, "use": "auto"}]}\n' % op)
    check("stays native under auto" in run("check", bad).stdout, "auto on a collective without algorithms")
dead = folder / "dead.json"
dead.write_text('{"version": 1, "rules": [{"match": {}, "use": "native"},\n {"match": {"op": "bcast"}, "use": "native"}]}\n')
out = answer("check", dead, status=1)
check(out["problems"][0]["line"] == 2 and "never match" in out["problems"][0]["message"], "a rule that can never match")

# Rules without effect, a history that cannot be read, rules that serve a part of their calls; a policy as text and from a pipe.
policy = folder / "without.json"
rule = '"rules": [\n {"match": {"op": "allreduce"}, "use": "slt"}]'
for text, problem in [('{"version": 1, %s}' % rule, (2, "rules", "can never apply")), ('{"version": 1,\n "history": "nowhere.json"}', (2, "history", "cannot read 'nowhere.json': No such file")),
                      ('{"version": 1,\n "history": "%s"}' % good, (2, "history", "is not a latecomer profile"))]:
    policy.write_text(text)
    out = answer("check", policy, status=1)
    check(not out["ok"] and [(p["line"], p["path"]) for p in out["problems"]] == [problem[:2]] and problem[2] in out["problems"][0]["message"], f"check finds it: {out}")
    check(": good" not in run("check", policy).stdout, "and does not call it good")
text = '{"version": 1, "mode": "apply", "reproducible": "run", %s}' % rule
policy.write_text(text)
done = run("check", policy)
check(done.returncode == 0 and "warning: rules[0]: serves only operators that never round" in done.stdout and "ring" in done.stdout and ": good" not in done.stdout, f"a rule that `reproducible` restricts: {done.stdout}")
done = run("check", text)
check(done.returncode == 0 and "the policy:2: warning: rules[0]" in done.stdout, f"a policy as text: {done.stdout} {done.stderr}")
done = subprocess.run([command, "check", "/dev/stdin"], input=text, capture_output=True, text=True, timeout=60)
check(done.returncode == 0 and "/dev/stdin:2: warning" in done.stdout, f"a policy from a pipe: {done.stdout} {done.stderr}")

# The published schemas agree with the tables, and accept and refuse the same files as `check`.
published = json.loads((root / "docs/schema/policy.schema.json").read_text())
check(published == json.loads(run("check", "--schema").stdout), "docs/schema/policy.schema.json is not what `latecomer check --schema` prints")
check(json.loads((root / "docs/schema/profile.schema.json").read_text()) == json.loads(run("check", "--profile-schema").stdout), "docs/schema/profile.schema.json is not what `latecomer check --profile-schema` prints")
try:
    import jsonschema
    validator = jsonschema.Draft202012Validator(published)
    jsonschema.Draft202012Validator.check_schema(published)
    check(not list(validator.iter_errors(json.loads(good.read_text()))), "the schema accepts a good policy")
    check(list(validator.iter_errors({"version": 1, "mode": "aply"})), "the schema refuses a bad policy")
    for example in (root / "examples").glob("*.policy.json"):
        check(not list(validator.iter_errors(json.loads(example.read_text()))), f"schema: {example}")
        check(run("check", example).returncode == 0, f"check {example}")
    for document in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for block in re.findall(r"```json\n(.*?)```", document.read_text(), re.S):
            shown = folder / "shown.json"
            shown.write_text(block)
            done = run("check", shown)
            check(done.returncode == 0, f"{document.relative_to(root)} shows a policy that check refuses: {done.stdout}{done.stderr}")
except ImportError:
    print("skipped the schemas: python3-jsonschema is not installed")
# A profile of another structure is refused with the place of the mistake, before a reader meets an unexpected value.
profile = {"format": "latecomer-profile", "version": 2, "job_key": "", "rank_rows": [], "job": {"program": "p", "command_line": "p", "ranks": 2, "hosts": ["h"], "start": "", "wall_time_s": 1, "mpi_library": "", "mode": "observe",
                                                                "network": None, "edges": None}, "clock": [], "sites": [], "plans": [], "warnings": []}
for change, says in [({}, None), ({"version": 3}, "version 3"), ({"version": "1"}, 'version "1"'), ({"version": 1}, None), ({"rank_rows": [[]]}, "rank_rows: expected 0 lists, one for each site, got 1"), ({"rank_rows": 1, "sites": [{}]}, "sites[0].id is missing"), ({"format": 7}, "not a latecomer profile"), ({"plans": 5}, "plans: expected array, got 5"),
                     ({"sites": [{}]}, "sites[0].id is missing"), ({"sites": [[]]}, "sites[0]: expected object, got an array"),
                     ({"job": {**profile["job"], "ranks": "many"}}, 'job.ranks: expected integer, got "many"'), ({"job": {**profile["job"], "edges": {"calls": 1}}}, "job.edges.mean_fraction is missing"),
                     ({"job": {**profile["job"], "wall_time_s": 1e300}}, "job.wall_time_s: expected a number below 2^62, got 1e+300")]:
    file = folder / "shape.json"
    file.write_text(json.dumps({**profile, **change}))
    for words in [["report", file], ["report", "--json", file], ["diff", file, file]] + ([["advise", file]] if says else []):  # advise needs network figures
        done = run(*words)
        check(done.returncode == 2 and says in done.stderr if says else done.returncode in (0, 1), f"{change} {words[0]}: {done.returncode} {done.stderr!r}")
# Of two lists of sites, the last counts, as of any key.
file.write_text(json.dumps({**profile, "version": 1}).replace('"sites": []', '"sites": [{"ranks": [{"rank": 0}]}, {}], "sites": []'))
for words in ["report", file], ["report", "--json", file], ["report", "--html", "-", file], ["diff", file, file]:
    done = run(*words)
    check(done.returncode == 0, f"two lists of sites, {words[:2]}: {done.returncode} {done.stderr!r}")
# Deeply nested JSON is an error that names its line, not the end of the stack.
deep = folder / "deep.json"
for text in ('{"format": "latecomer-profile", "version": 1,\n"sites": ' + "[" * 600_000, "\n" + '{"a":' * 120_000, '{"format": "latecomer-profile", "version": 1,\n"warnings": ' + "[" * 600_000 + "]" * 600_000 + "}",
             json.dumps({**profile, "version": 1, "sites": [{"ranks": []}]}).replace('"ranks": []', '"ranks":\n' + "[" * 600_000 + "]" * 600_000),
             json.dumps(profile).replace('"rank_rows": []', '"rank_rows":\n' + "[" * 600_000 + "]" * 600_000)):
    deep.write_text(text)
    for words in [["check", deep], ["report", deep], ["report", "--json", deep], ["report", "--redact", deep], ["diff", deep, deep], ["advise", deep], ["whatif", deep]]:
        done = run(*words)
        check(done.returncode == (1 if words[0] == "check" else 2) and "line 2" in done.stdout + done.stderr or f"{deep}:2: " in done.stdout, f"nested, {words[:2]}: {done.returncode} {done.stdout[-200:]} {done.stderr[-200:]}")
        check("nested more than 64 deep" in done.stdout + done.stderr, f"nested, {words[:2]}: says why: {done.stdout[-200:]} {done.stderr[-200:]}")
print(f"{len(failures)} failures")
if not failures:  # otherwise the files are evidence
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(bool(failures))
