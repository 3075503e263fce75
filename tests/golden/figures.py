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
# Hosts and noise. Memory moves 10 GB/s for each rank.
HOSTS = [(64, 1), (64, 8), (1024, 1), (1024, 8), (1024, 64)]
LARGEST = [(16384, 1), (16384, 64)]  # tests/golden/update --largest
HOST_ARRIVALS = ("balanced", "onelate", "randlate:1ms:1")
HOST_COLUMNS = ("network", "ranks", "ranks_per_host", "bytes", "arrivals", "noise", "algorithm", "after_last", "planning_ms")
MEMORY = "memory_beta=0.1ns/B,memory_latency=0.3us"
FOLDER = pathlib.Path(__file__).resolve().parent
TABLE = FOLDER.parent.parent / "docs" / "results" / "arrival_trees.md"


def tsv_of(command, *arguments):
    said = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=1500)
    if said.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: exit {said.returncode}: {said.stderr}")
    return said.stdout


def after_last(command, step=1):
    """Times after the last arrival, one row per cell of the grid and algorithm. `over` says the unit: `bound` (a ratio
    to the lower bound) or `ns` (nanoseconds, if the bound is 0). `step`: of so many cells one."""
    lines = ["\t".join(COLUMNS)]
    for (op, ranks, size), (network, figures), arrivals in itertools.islice(itertools.product(GRID, NETWORKS.items(), ARRIVALS), 0, None, step):
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


def hosts_and_noise(command, step=1, hosts=HOSTS, columns=HOST_COLUMNS[:-1]):
    """Times of arrival_trees after the last arrival over the bound of hosts. `step`: of so many cells one."""
    lines = ["\t".join(columns)]
    cells = itertools.islice(itertools.product(hosts, ("hdr", "hdr+", "eth1g"), ("256KiB", "4MiB"), HOST_ARRIVALS, ("0", "0.2")), 0, None, step)
    for (ranks, per_host), network, size, arrivals, noise in cells:
        pattern = f"onelate:{ranks // 3}:500ms" if arrivals == "onelate" else arrivals
        answer = json.loads(tsv_of(command, "simulate", "--ranks", str(ranks), "--bytes", size, "--element", "4", "--algorithm", "arrival_trees",
                                   "--network", f"{NETWORKS[network]},{MEMORY},ranks_per_host={per_host}", "--arrivals", pattern, "--jitter", noise, "--json"))
        result = answer["results"][0]
        row = (network, ranks, per_host, size, arrivals, noise, "arrival_trees", f"{result['after_last_ns'] / answer['lower_bound_ns']:.3f}", f"{result['planning_ns'] / 1e6:.2f}")
        lines.append("\t".join(map(str, row[:len(columns)])))
    return "\n".join(lines) + "\n"


GOLDEN = {"papers.tsv": lambda command, step=1: tsv_of(command, "papers", "--tsv"), "after_last.tsv": after_last, "hosts.tsv": hosts_and_noise}


def cells_of(golden, made):
    """The rows of a golden file whose cells `made` has, which are named by the columns before `algorithm`."""
    rows = [line.split("\t") for line in golden.splitlines()]
    last = rows[0].index("algorithm") if "algorithm" in rows[0] else 0
    wanted = {tuple(line.split("\t")[:last]) for line in made.splitlines()}
    return ["\t".join(row) for row in rows if tuple(row[:last]) in wanted]


def flat_table(text):
    """Markdown: arrival_trees' allreduce, and in brackets the best other algorithm that uses the pattern or not."""
    cells = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        if row["collective"] == "allreduce":
            where = cells.setdefault((row["network"], row["ranks"], row["bytes"]), {}).setdefault(row["arrivals"], {})
            where[row["algorithm"]] = float(row["after_last"])
    out = ["| network, ranks, bytes | " + " | ".join(ARRIVALS) + " |", "|---" * (len(ARRIVALS) + 1) + "|"]
    for (network, ranks, size), by_arrivals in cells.items():
        texts = []
        for arrivals in ARRIVALS:
            others = {name: value for name, value in by_arrivals[arrivals].items() if name != "arrival_trees"}
            best = min(others, key=others.get)
            texts.append(f"{by_arrivals[arrivals]['arrival_trees']:.2f} ({others[best]:.2f} {best})")
        out.append(f"| {network}, {ranks}, {size} | " + " | ".join(texts) + " |")
    return "\n".join(out)


def hosts_table(text):
    """Markdown: without noise, and with 20%."""
    cells = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        cells.setdefault((row["network"], row["ranks"], row["ranks_per_host"], row["bytes"]), {}).setdefault(row["arrivals"], []).append(float(row["after_last"]))
    out = ["| network, ranks, ranks per host, bytes | " + " | ".join(HOST_ARRIVALS) + " |", "|---" * (len(HOST_ARRIVALS) + 1) + "|"]
    out += [f"| {', '.join(where)} | " + " | ".join(f"{found[a][0]:.2f} {found[a][1]:.2f}" for a in HOST_ARRIVALS) + " |" for where, found in cells.items()]
    return "\n".join(out)


TABLES = {"after_last.tsv": flat_table, "hosts.tsv": hosts_table}


def with_table(document, name, table):
    """The document with the table of a golden file between its two marker lines."""
    return re.sub(rf"(<!-- generated: tests/golden/{re.escape(name)} -->\n).*?(<!-- end of generated -->)",
                  lambda found: f"{found[1]}\n{table}\n\n{found[2]}", document, flags=re.S)
