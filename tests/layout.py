# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layout and the direction of dependencies: shim -> profiles -> core, shim -> core. core uses no MPI,
libunwind, getenv or output. Every source file has a header comment. No comma joins statements.
No two types have one name. README's commands exist."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sys.path.append(str(root / "tests/support"))
from statements import find_joined_statements


def find_types(text):
    """The types that a file defines in namespaces, and not in other types or functions."""
    return re.findall(r"^(?:template <[^{;]*> *\n?)?(?:struct|class|union|enum(?: class)?) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?:\s*:(?!:)[^;{]*)?\s*\{", text, re.M)


if find_types("struct A;\nclass B final : public A {\n  struct C {};\n};\ntemplate <typename T>\nstruct D {};\nenum class E : char { a };\n") != ["B", "D", "E"]:
    sys.exit("find_types() does not find the types of its sample")

problems = []
types = {}  # the file of each type's definition
allowed = {"core": {"core"}, "profiles": {"core", "profiles"}, "shim": {"core", "profiles", "shim"}}
sources = [p for part in allowed for p in (root / part).rglob("*") if p.suffix in (".cpp", ".hpp", ".def", ".h")]
for path in sources:
    name = path.relative_to(root)
    text = path.read_text()
    part = name.parts[0]
    for include in re.findall(r'#include "([^"]+)"', text):
        if include.split("/")[0] not in allowed[part]:
            problems.append(f"{name}: includes {include}")
        elif not (root / include).exists():
            problems.append(f"{name}: {include} is not a path from the root")
    system = set(re.findall(r"#include <([^>]+)>", text))
    if part != "shim" and system & {"mpi.h", "libunwind.h"}:
        problems.append(f"{name}: only shim may include {system & {'mpi.h', 'libunwind.h'}}")
    if part == "core":
        if system & {"iostream", "cstdlib", "unistd.h"} or re.search(r"\b(getenv|printf|abort|exit)\(", text):
            problems.append(f"{name}: core reads no environment, prints nothing and ends nothing")
        # Every rank makes decisions that depend on these functions by itself: base/logarithm.hpp gives the reason.
        for function in re.findall(r"\b(?:std::|\b)(log|log2|log10|log1p|pow|exp|exp2|expm1|cbrt|sin|cos|tan|hypot|fma)\(", text):
            problems.append(f"{name}: {function} is not the same on every processor")
    # dump() throws at text that is not UTF-8.
    if part == "profiles" and ".dump(" in text and name.name not in ("json.cpp", "shape.cpp"):
        problems.append(f"{name}: json_text() makes JSON of text from outside")
    # A share that is no Share may exceed 100%.
    if part == "profiles" and re.search(r'%%|[^\w ]"%["\\]', re.sub(r'90%% below|less than 0.1%%|"%%"|%j, %u, %h, %p and %%|//.*', "", text)) and name.name != "share.hpp":
        problems.append(f"{name}: only Share writes per cent")
    if "PMPI_Abort(" in text and name.name != "end_job.cpp":
        problems.append(f"{name}: end_job() ends a job")
    # Programs that were written for RBC get <iostream> from its header.
    if part == "shim" and "<iostream>" in text and name.name != "rbc.hpp":
        problems.append(f"{name}: no iostream in the shim")
    if not text.startswith("// SPDX-License-Identifier: BSD-3-Clause\n// "):
        problems.append(f"{name}: the header is the SPDX line and what the file owns")
    if path.stem == "parts":
        problems.append(f"{name}: name it after what it holds")
    if path.suffix == ".hpp" and "#pragma once" not in text:
        problems.append(f"{name}: #pragma once")
    # Types inside of types carry the name of the outer one. RBC and the range communicators define the names of their headers.
    if name.parts[:2] != ("shim", "include"):
        for defined in find_types(text):
            if types.setdefault(defined, name) != name:
                problems.append(f"{name}: {types[defined]} defines another {defined}")
# Inside core: a folder may include the folders before it.
order = ["base", "collective", "pap", "network", "schedule", "trees", "algorithms", "verify", "model", "policy", "select", "agreement", "learning"]
for path in (root / "core").rglob("*"):
    if path.suffix in (".cpp", ".hpp"):
        name = path.relative_to(root)
        for folder in re.findall(r'#include "core/(\w+)/', path.read_text()):
            if order.index(folder) > order.index(name.parts[1]):
                problems.append(f"{name}: {name.parts[1]} may not include {folder}, which stands above it")
# Inside profiles, in the same way. Only the command includes papers, so that no job links them.
order = ["base", "record", "files", "analysis", "symbols", "format", "render", "papers", "watch", "launch", "cli"]
for path in (root / "profiles").rglob("*"):
    if path.suffix in (".cpp", ".hpp"):
        name = path.relative_to(root)
        mine = name.parts[1]
        for folder in re.findall(r'#include "profiles/(\w+)/', path.read_text()):
            if order.index(folder) > order.index(mine) or (mine == "papers") > (folder == "papers"):
                problems.append(f"{name}: profiles/{mine} may not include profiles/{folder}")
            if mine == "analysis" and "nlohmann" in path.read_text():
                problems.append(f"{name}: profiles/analysis uses no JSON")
# Inside the shim, in the same way; "" is the folder itself. The front and what differs between MPI libraries come first.
order = ["", "front", "mpi", "live", "state", "sites", "causes", "waiting", "runner", "engine", "executor", "exchange", "call", "job", "range"]
for path in (root / "shim").rglob("*"):
    if path.suffix in (".cpp", ".hpp"):
        name = path.relative_to(root)
        mine = "/".join(name.parts[1:-1])
        for include in re.findall(r'#include "shim/([^"]+)"', path.read_text()):
            folder = include.rpartition("/")[0]
            if order.index(folder) > order.index(mine):
                problems.append(f"{name}: shim/{mine} may not include shim/{folder}, which stands above it")
sample = "int f() {\n  a = 1, b = 2;\n  int c = 0, d = g<1, 2>(3, 4);\n  if (a) return h(), c;\n  h(a, [&] {\n    a(), b();\n  });\n}\nF::F() : a(1), b{2} {}\n"
if find_joined_statements(sample) != [2, 4, 6]:
    problems.append(f"tests/support/statements.py finds lines {find_joined_statements(sample)} of its sample")
for part in ("core", "profiles", "shim", "tests", "examples"):
    for path in (root / part).rglob("*"):
        if path.suffix in (".c", ".cpp", ".h", ".hpp", ".def"):
            problems += [f"{path.relative_to(root)}:{line}: a comma joins statements" for line in find_joined_statements(path.read_text())]
rows = re.findall(r"^LATECOMER_ALGORITHM\((\w+), (\w+),", (root / "core/algorithms/catalogue.def").read_text(), re.M)
files = {(p.parent.name, p.stem) for p in (root / "core/algorithms").glob("*/*.cpp") if p.parent.name not in ("clairvoyant", "exchange")}  # these are libraries of several rows
if set(rows) != files:
    problems.append(f"catalogue.def and core/algorithms differ: {set(rows) ^ files}")
for op, name in rows:
    header = (root / f"core/algorithms/{op}/{name}.cpp").read_text().split("#include")[0]
    for word in (f"// {op}/{name}", "Steps", "Cost", "Source"):
        if word not in header:
            problems.append(f"core/algorithms/{op}/{name}.cpp: the header lacks '{word}'")
top = {p.name for p in root.iterdir()}
for wanted in ("CMakeLists.txt", "core", "shim", "profiles", "scripts", "tests", "examples", "docs", "README.md",
               "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CMakePresets.json", ".clang-format", ".clang-tidy"):
    if wanted not in top:
        problems.append(f"missing: {wanted}")
for block in re.findall(r"```\n(.*?)```", (root / "README.md").read_text(), re.S):
    for named in re.findall(r"\b((?:scripts|examples)/[\w.]+)", block):
        if not (root / named).exists():
            problems.append(f"README.md: {named} does not exist")
# A name may also match a process of another job or user.
for part in ("scripts", "tests", "examples", ".ci"):
    for path in (root / part).rglob("*"):
        if path.is_file() and path.name != "layout.py" and path.suffix != ".pyc" and re.search(rb"\b(pkill|killall)\b", path.read_bytes()):
            problems.append(f"{path.relative_to(root)}: ends processes by name: use process ids, as end_tree() of tests/support/processes.py does")
print("\n".join(problems) or f"{len(sources)} files are where they belong")
sys.exit(bool(problems))
