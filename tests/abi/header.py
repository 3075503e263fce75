# SPDX-License-Identifier: BSD-3-Clause
"""Holds shim/mpi/abi/mpi.h against the header of a library's own: the value of each constant, the layout of the status,
the sizes of all types, and the prototypes. Reads the names from our header."""
import re
import shutil
import subprocess

TYPES = "Aint Offset Count Status Comm Datatype Errhandler File Group Info Message Op Request Session Win".split()


def values(compiler, folder, includes, names):
    """What a program says that is compiled with the header in `includes`."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <mpi.h>", "int main(void) {"]
    lines += [f'printf("{name} %lld\\n", (long long)({name}));' for name in names]
    lines += [f'printf("size of {one} %zu\\n", sizeof(MPI_{one}));' for one in TYPES]
    lines += [f'printf("place of {one} %zu\\n", offsetof(MPI_Status, {one}));' for one in ("MPI_SOURCE", "MPI_TAG", "MPI_ERROR")]
    source, program = folder / "values.c", folder / "values"
    source.write_text("\n".join([*lines, "return 0; }", ""]))
    subprocess.run([compiler, *(f"-I{one}" for one in includes), "-o", program, source], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def names_in(header):
    names = re.findall(r"^#define (MPI_[A-Z]\w*) \S|^  (MPI_[A-Z]\w*) =", header.read_text(), re.M)
    return [defined or counted for defined, counted in names]


def differences(compiler, root, build, theirs, folder):
    """The lines that differ. `theirs`: the other header."""
    own, other = root / "shim/mpi/abi", folder / "other"
    other.mkdir(exist_ok=True)
    # Open MPI 6.0.0rc2 as Debian has it brings the one that it is compiled with, whose types end with this word.
    (other / "mpi.h").write_text(theirs.read_text().replace("_ABI_INTERNAL", ""))
    generated = build / "generated/abi"
    names = names_in(own / "mpi.h")
    assert len(names) > 180
    pairs = zip(values(compiler, folder, [own, generated], names), values(compiler, folder, [other], names))
    out = [f"{ours} here, {line} there" for ours, line in pairs if ours != line]
    source = folder / "prototypes.c"  # a prototype that is not the same is an error
    source.write_text("#include <mpi.h>\n#include <mpi_functions.h>\n")
    done = subprocess.run([compiler, "-fsyntax-only", "-w", f"-I{other}", f"-I{generated}", source], capture_output=True, text=True)
    shutil.rmtree(other)
    return out + [line for line in done.stderr.splitlines() if "error" in line]
