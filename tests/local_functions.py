# SPDX-License-Identifier: BSD-3-Clause
"""Each function that the header of an MPI library declares has a row in shim/front/functions.def, or a line in
local_functions.def. `local_functions.py ROOT COMPILER FOLDER...`: the folders with the headers; one may name two, with a comma between."""
import pathlib
import re
import subprocess
import sys

root, compiler, *headers = sys.argv[1:]
generate = [sys.executable, pathlib.Path(root) / "shim/front/generate.py", "undecided"]
PROTOTYPE = re.compile(r"(?:extern )?(?!typedef)\w[\w ]*[ *]+(MPI_\w+) ?\(.*\)")
ATTRIBUTE = re.compile(r"__attribute__ *\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
failures = 0


def check(condition, what):
    global failures
    print("ok    " if condition else "FAILED", what)
    failures += not condition


def declared(folders):
    """The names of MPI's functions. Extensions, MPIX_*, are not checked."""
    words = [compiler, "-E", "-P", *("-I" + one for one in folders.split(",")), "-xc", "-"]
    text = subprocess.run(words, input="#include <mpi.h>\n", capture_output=True, text=True, check=True).stdout
    statements = (" ".join(one.split()) for one in re.split("[;{}]", ATTRIBUTE.sub("", text)))
    return sorted({found[1] for found in map(PROTOTYPE.fullmatch, statements) if found})


def undecided(names):
    return subprocess.run([*generate, *names], capture_output=True, text=True, check=True).stdout.split()


check(undecided(["MPI_Send", "MPI_Ibcast_c", "MPI_Type_size_c", "MPI_Surprise", "MPI_Surprise_c"]) == ["MPI_Surprise", "MPI_Surprise_c"], "a function in neither list is found")
for header in headers:
    names = declared(header)
    check(len(names) > 300 and {"MPI_Wtime", "MPI_Comm_split", "MPI_Bcast"} <= set(names), f"{header}: {len(names)} functions")
    missing = undecided(names)
    check(not missing, f"{header}: each one is in functions.def or in local_functions.def, but for {missing}")
sys.exit(bool(failures))
