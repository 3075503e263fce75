# SPDX-License-Identifier: BSD-3-Clause
"""A policy file with each kind of mistake: one line names place and remedy, and the program runs natively with the
same output."""
import json

from common import a, check, finish, folder, natively, run

program = [a.bin + "/breakers", "divergent"]
native = run(*natively(2, *program))
rule = '{"version":1,"mode":"apply","rules":[\n{"match":%s,"use":%s}]}'
mistakes = {
    "syntax": ('{"version":1,\n"mode":"apply",,}', ":2:", "syntax error"),
    "empty": ("", ":1:", "the text is empty"),
    "no version": ('{"mode":"apply"}', "version", "missing"),
    "a later version": ('{"version":9}', "version", "from 1 to 1"),
    "unknown key": ('{"version":1,\n"mod":"apply"}', ":2: mod", "did you mean 'mode'"),
    "unknown value": ('{"version":1,\n\n"mode":"aply"}', ":3: mode", "did you mean 'apply'"),
    "wrong type": ('{"version":1,"rules":{}}', "rules", "expected a list"),
    "bad number": ('{"version":1,"predictor":{"window":0}}', "predictor.window", "from 1 to 1024"),
    "bad size": (rule % ('{"op":"allreduce","bytes":{"min":"1 MB"}}', '"ring"'), "rules[0].match.bytes.min", "1 MB"),
    "empty range": (rule % ('{"op":"allreduce","bytes":{"min":9,"max":1}}', '"ring"'), "rules[0].match.bytes", "no call can match"),
    "unknown collective": (rule % ('{"op":"alreduce"}', '"ring"'), "rules[0].match.op", "did you mean 'allreduce'"),
    "unknown algorithm": (rule % ('{"op":"allreduce"}', '"prrr"'), ":2: rules[0].use", "did you mean 'prr'"),
    "an algorithm of another collective": (rule % ('{"op":"bcast"}', '"prr"'), "rules[0].use", "bcast has no algorithm"),
    "an algorithm that cannot serve": (rule % ('{"op":"allreduce","op_class":"user_noncommutative"}', '"prr"'), "rules[0].use", "cannot serve"),
    "bad parameter": (rule % ('{"op":"allreduce"}', '{"algorithm":"ring","segments":3}'), "rules[0].use.segments", "takes no segments"),
    "given twice": ('{"version":1,"mode":"off","mode":"apply"}', "mode", "given twice"),
}
for name, (text, place, remedy) in mistakes.items():
    policy = folder / "policy.json"
    policy.write_text(text)
    refused = run(a.cli, "run", "--strict", "--policy", policy, "--output", folder / "o.json", "--", "-n", 2, *program, LD_PRELOAD=a.support)
    check(refused.returncode == 2 and refused.stdout == "" and place in refused.stderr and remedy in refused.stderr and "--force" in refused.stderr, f"{name}: refused before it starts: {refused.stderr}")
    (folder / "o.json").unlink(missing_ok=True)
    done = run(a.mpiexec, "-genv", "LD_PRELOAD", a.library + ":" + a.support, "-n", 2, *program, LATECOMER_POLICY=policy, LATECOMER_OUTPUT=folder / "o.json")
    lines = [line for line in done.stderr.splitlines() if line]
    check(done.returncode == native.returncode and sorted(done.stdout.splitlines()) == sorted(native.stdout.splitlines()), f"{name}: same output and status")
    check(len(lines) == 1 and str(policy) in lines[0] and place in lines[0] and remedy in lines[0] and "observing only" in lines[0], f"{name}: {lines}")
done = run(a.mpiexec, "-genv", "LD_PRELOAD", a.library + ":" + a.support, "-n", 2, *program, LATECOMER_POLICY="/nonexistent/p.json", LATECOMER_OUTPUT=folder / "missing.json")
check(done.returncode == 0 and "cannot read '/nonexistent/p.json': No such file or directory; observing only" in done.stderr and len(done.stderr.splitlines()) == 1, f"a missing file: {done.stderr}")

# A policy as text, and from a pipe, which can be read once: all ranks get it. A file keeps its path.
text = rule % ('{"op":"allreduce"}', '"ring"')
policy.write_text(text)
words = ["--overwrite", "--output", folder / "given.json", "--", "-n", 2, *program]
for name, start, environment in [("a file", [a.cli, "run", "--policy", policy], {}), ("text", [a.cli, "run", "--policy", "\n " + text], {}),
                                 ("a pipe as stdin", ["sh", "-c", f"cat '{policy}' | exec \"$@\"", "sh", a.cli, "run", "--policy", "/dev/stdin"], {}),
                                 ("a file as stdin", ["sh", "-c", f"exec \"$@\" < '{policy}'", "sh", a.cli, "run", "--policy", "/dev/stdin"], {}),
                                 ("a pipe of the shell", ["bash", "-c", f"\"$@\" --policy <(cat '{policy}') {' '.join(map(str, words))}", "bash", a.cli, "run"], {}),
                                 ("text in the variable", [a.cli, "run"], {"LATECOMER_POLICY": text}), ("a pipe in the variable", ["sh", "-c", f"cat '{policy}' | exec \"$@\"", "sh", a.cli, "run"], {"LATECOMER_POLICY": "/dev/stdin"})]:
    (folder / "given.json").unlink(missing_ok=True)
    done = run(*start, *([] if start[0] == "bash" else words), LD_PRELOAD=a.support, **environment)
    profile = json.loads((folder / "given.json").read_text()) if (folder / "given.json").exists() else {"job": {"mode": "no profile"}, "sites": []}
    check(done.returncode == native.returncode and profile["job"]["mode"] == "apply" and any("ring" in s["dispatch"] for s in profile["sites"]), f"{name}: {profile['job']['mode']}: {done.returncode} {done.stderr[-300:]}")
huge = '{"version":1,"comment":"%s"}' % ("x" * 200000)
(folder / "huge").write_text(huge)
done = run("sh", "-c", "cat huge | exec \"$@\"", "sh", a.cli, "run", "--policy", "/dev/stdin", *words, cwd=folder)
check(done.returncode == 2 and "write it to a file" in done.stderr, f"a policy that no variable holds: {done.returncode} {done.stderr}")
done = run(a.mpiexec, "-genv", "LD_PRELOAD", a.library + ":" + a.support, "-n", 2, *program, LATECOMER_POLICY='{"version":1,"mod":"apply"}', LATECOMER_OUTPUT=folder / "o.json")
check("LATECOMER_POLICY:1: mod: unknown key" in done.stderr, f"a mistake in a text names the variable: {done.stderr}")
finish()
