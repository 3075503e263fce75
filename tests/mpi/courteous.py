# SPDX-License-Identifier: BSD-3-Clause
"""More ranks than cores, without a test preload. The whole job chooses one way for native waits to yield the core,
and the results do not depend on it."""
import json

from common import a, check, finish, folder, run

for way in ("progress", "nonblocking"):
    policy = folder / f"{way}.json"
    policy.write_text(json.dumps({"version": 1, "waiting": "courteous", "courteous_by": way}))
    for program, says in (([a.bin + "/breakers", "divergent"], "right"), ([a.bin + "/breakers", "run_ahead"], "right"), ([a.bin + "/breakers", "nonblocking"], "right"),
                          ([a.bin + "/traps", "inter"], "right"), ([a.bin + "/traps", "in_place_null"], "right"), ([a.bin + "/shapes", "20"], "")):
        out = folder / "out.json"
        done = run(a.cli, "run", "--policy", policy, "--output", out, "--overwrite", "--verbose", 1, "--", "-n", 8, *program, timeout=300)
        check(done.returncode == 0 and says in done.stdout, f"{way}: {' '.join(program[-2:])}: {done.returncode} {done.stdout[-200:]} {done.stderr[-500:]}")
        said = "waiting courteous" + (" in non-blocking forms" if way == "nonblocking" else ",")
        check(said in done.stderr, f"{way}: and it says so")
done = run(a.cli, "run", "--output", folder / "auto.json", "--verbose", 1, "--", "-n", 8, a.bin + "/patterns", 40, 1000, timeout=300)
check(done.returncode == 0 and "waiting courteous" in done.stderr, "by itself where ranks outnumber cores")
done = run(a.cli, "run", "--output", folder / "one.json", "--verbose", 1, "--", "-n", 1, a.bin + "/patterns", 40, 100)
check(done.returncode == 0 and "waiting spinning" in done.stderr, "and not where they do not")
finish()
