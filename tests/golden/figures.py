# SPDX-License-Identifier: BSD-3-Clause
"""The golden figures of the deterministic model, and the tables in docs that are made from them."""
import csv
import itertools
import json
import pathlib
import re
import subprocess

NETWORKS = {"tryton2018": "tryton2018", "eth1g": "eth1g", "hdr": "hdr", "hdr+": "hdr,overhead=0.5us,gamma=0.03ns/B"}
ARRIVALS = ("balanced", "onelate", "randlate:500ms:1", "randlate:5ms:1", "randlate:1ms:1")
GRID = [("allreduce", ranks, size) for ranks in (16, 48, 200) for size in ("256KiB", "4MiB")]
GRID += [(op, 48, size) for op in ("reduce", "bcast") for size in ("256KiB", "4MiB")]
COLUMNS = ("collective", "network", "ranks", "bytes", "arrivals", "algorithm", "after_last", "over", "messages")
FOLDER = pathlib.Path(__file__).resolve().parent
TABLE = FOLDER.parent.parent / "docs" / "results" / "late_exchange.md"


def tsv_of(command, *arguments):
    said = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=1500)
    if said.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: exit {said.returncode}: {said.stderr}")
    return said.stdout


def after_last(command):
    """Times after the last arrival, one row per cell of the grid and algorithm. `over` says the unit: `bound` (a ratio
    to the lower bound) or `ns` (nanoseconds, if the bound is 0)."""
    lines = ["\t".join(COLUMNS)]
    for (op, ranks, size), (network, figures), arrivals in itertools.product(GRID, NETWORKS.items(), ARRIVALS):
        # The late rank stands in the middle, where no algorithm gives it a role of its own.
        pattern = f"onelate:{ranks // 3}:500ms" if arrivals == "onelate" else arrivals
        answer = json.loads(tsv_of(command, "simulate", "--op", op, "--ranks", str(ranks), "--bytes", size, "--element", "4",
                                   "--arrivals", pattern, "--network", figures, "--json"))
        bound = answer["lower_bound_ns"]
        for result in answer["results"]:
            after = result["after_last_ns"]
            figure = (f"{after / bound:.3f}", "bound") if bound else (str(after), "ns")
            row = (op, network, ranks, size, arrivals, result["algorithm"], *figure, result["messages"])
            lines.append("\t".join(map(str, row)))
    return "\n".join(lines) + "\n"


GOLDEN = {"papers.tsv": lambda command: tsv_of(command, "papers", "--tsv"), "after_last.tsv": after_last}


def late_exchange_table(text):
    """Markdown: late_exchange's allreduce, and in brackets the best other algorithm that uses the pattern or not."""
    cells = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        if row["collective"] == "allreduce":
            where = cells.setdefault((row["network"], row["ranks"], row["bytes"]), {}).setdefault(row["arrivals"], {})
            where[row["algorithm"]] = float(row["after_last"])
    out = ["| network, ranks, bytes | " + " | ".join(ARRIVALS) + " |", "|---" * (len(ARRIVALS) + 1) + "|"]
    for (network, ranks, size), by_arrivals in cells.items():
        texts = []
        for arrivals in ARRIVALS:
            others = {name: value for name, value in by_arrivals[arrivals].items() if not name.endswith("_exchange")}
            best = min(others, key=others.get)
            texts.append(f"{by_arrivals[arrivals]['late_exchange']:.2f} ({others[best]:.2f} {best})")
        out.append(f"| {network}, {ranks}, {size} | " + " | ".join(texts) + " |")
    return "\n".join(out)


def with_table(document, table):
    """The document with the table between its two marker lines."""
    return re.sub(r"(<!-- generated: tests/golden/after_last.tsv -->\n).*?(<!-- end of generated -->)",
                  lambda found: f"{found[1]}\n{table}\n\n{found[2]}", document, flags=re.S)
