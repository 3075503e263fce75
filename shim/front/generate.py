#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes sources from functions.def, when CMake runs: the handlers of one family, or the list of exported symbols.

Usage: generate.py symbols OUTPUT           a line STUB(name) for each symbol that the front exports
       generate.py handlers LEVEL OUTPUT    the handlers of a family; LEVEL: f08 or pmpi

MPICH's family has the level f08: its Fortran bindings call MPI_*, and a few functions of mpi_f08 have symbols of their
own. Open MPI's family has the level pmpi: its Fortran bindings, its plugins and tools call PMPI_* (shim/mpi/level.hpp)."""
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).with_name("functions.def")


class Parameter:
    def __init__(self, text):
        self.type, self.name = re.fullmatch(r"(.*?)(\w+)", text).groups()
        self.type = self.type.strip()

    def in_c(self):
        return f"{self.type} {self.name}"

    def in_fortran(self):
        """Handles are structures of one int, statuses have the layout of C. Values are passed by their address."""
        if self.type == "MPI_Status*":
            return f"void* {self.name}"
        return self.in_c() if self.is_pointer() else f"const {self.type}* {self.name}"

    def is_pointer(self):
        return self.type.endswith("*")


class Function:
    """One function of MPI, as C declares it."""

    def __init__(self, name, parameters, action, words, kind=None, collective=None, start=None):
        self.name, self.parameters, self.action, self.words = name, parameters, action, words
        self.kind, self.collective = kind, collective  # of collectives
        self.start = start  # of a blocking collective: its non-blocking form
        self.is_new = "mpi4" in words

    def in_fortran(self):
        return self.name.lower() + "_f08_" if "f08" in self.words else None

    def symbols(self):
        return [self.name] + ["P" + self.name] * (not self.is_new) + [self.in_fortran()] * ("f08" in self.words)


def read_table():
    """All functions, and the names of those that are written by hand."""
    functions, by_hand, section, prototype = [], [], None, None
    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("//"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "by hand":
            by_hand.append(line)
        elif not line.startswith(" "):
            prototype = re.fullmatch(r"MPI_(\w+)\((.*)\)((?: \w+)*)", line)
            if not prototype:
                sys.exit(f"{TABLE}: cannot read the row '{line}'")
        else:
            functions += make_forms(*prototype.groups(), line.strip(), section == "collectives")
    return functions, by_hand


def make_forms(name, parameters, words, action, is_collective):
    """The functions of one row: with int and with MPI_Count, and the three forms of a collective."""
    functions = []
    words = set(words.split())
    for large in (False, True) if "Count" in parameters else (False,):
        types = {"Count": "MPI_Count", "Displacement": "MPI_Aint"} if large else {"Count": "int", "Displacement": "int"}
        text = re.sub(r"\b(Count|Displacement)\b", lambda word: types[word[0]], parameters)
        given = [Parameter(one) for one in text.split(", ") if one != "void"]
        end = "_c" if large else ""
        of_size = words | {"mpi4"} if large else words
        if not is_collective:
            functions.append(Function(f"MPI_{name}{end}", given, action, of_size))
            continue
        request = [Parameter("MPI_Request* request")]
        info = [Parameter("MPI_Info info")]
        start = Function(f"MPI_I{name.lower()}{end}", given + request, action, of_size, "nonblocking", name.lower())
        functions += [
            Function(f"MPI_{name}{end}", given, action, of_size, "blocking", name.lower(), start), start,
            Function(f"MPI_{name}_init{end}", given + info + request, action, of_size | {"mpi4"}, "persistent", name.lower())]
    return functions


def wrap(text, indent):
    """The text in lines of at most 120 columns, which end behind a comma. Lines behind the first are indented further."""
    lines = [" " * indent]
    for part in re.split(r"(?<=,) ", text):
        if len(lines[-1]) + len(part) + 1 > 120 and lines[-1].strip():
            lines.append(" " * (indent + 4))
        lines[-1] += (" " if lines[-1].strip() else "") + part
    return "\n".join(lines)


def make_handler(function, level):
    """The handler of one symbol. `level`: c, fortran, pmpi (of MPICH) or counted_pmpi (of Open MPI)."""
    fortran = level == "fortran"
    prefix = "P" if "pmpi" in level else ""
    symbol = function.in_fortran() if fortran else prefix + function.name
    parameters = [one for one in function.parameters if not (fortran and one.name in ("argc", "argv"))]
    values = {one.name: f"*{one.name}" for one in parameters if fortran and not one.is_pointer()}

    def arguments(*more):
        return ", ".join([one.name for one in parameters] + list(more))

    def c_values(text):
        """The text, which is about the parameters of C, for the parameters of this level."""
        return re.sub(r"\b\w+\b", lambda word: values.get(word[0], word[0]), text)

    def next_call(name, given):
        """The statements of a lambda that calls the next definition."""
        if fortran:
            return f"next::{name}({given});\n    return rc;"
        if level == "tool":  # a tool may be between this library and MPI
            return f"return call_behind({', '.join(filter(None, [f'next::{name}', f'next::P{name}', given]))});"
        return f"return next::{prefix}{name}({given});"

    def make_lambda(name, given, statements):
        one_line = f"  const auto {name} = [&]{given} {{ {statements} }};"
        if "\n" not in statements and len(one_line) <= 120:
            return one_line
        body = "\n".join(wrap(line.strip(), 4) for line in statements.split("\n"))
        return f"  const auto {name} = [&]{given} {{\n{body}\n  }};"

    declared = ", ".join([one.in_fortran() if fortran else one.in_c() for one in parameters] + ["int* ierror"] * fortran)
    head = wrap(f"{'void' if fortran else 'int'} {symbol}({declared}) {{", 0)
    body = []
    if level == "counted_pmpi":
        given = ", ".join(filter(None, [f"next::{symbol}", arguments()]))
        body.append(wrap(f"if (!from_program(__builtin_return_address(0))) return call_uncounted({given});", 2))
    if fortran:
        body.append("  int rc = MPI_SUCCESS;")
    name = symbol if fortran else function.name
    if function.collective:
        body.append(make_lambda("describe", "(auto& call)", f"{c_values(function.action)};"))
    if re.search(r"\bat_level\b", function.action):
        order = {"required": "&level" if fortran else "level", "provided": "granted"}
        given = ["argc", "argv"] * (not fortran) + list(order.values())
        init = "mpi_init_thread_f08_" if fortran else "MPI_Init_thread"
        body.append(make_lambda("at_level", "(int level, int* granted)", next_call(init, ", ".join(given + ["&rc"] * fortran))))
    body.append(make_lambda("native", "", next_call(name, arguments(*["&rc"] * fortran))))
    if function.collective:
        request = "nullptr" if function.kind == "blocking" else "request"
        if function.start:
            given = ", ".join([values.get(one.name, one.name) for one in parameters] + ["request"])
            body.append(make_lambda("start", "(MPI_Request* request)", f"return next::{function.start.name}({given});"))
        result = (f"intercept(Collective::{function.collective}, CallKind::{function.kind}, {values.get('comm', 'comm')}, "
                  f"__builtin_return_address(0), {request}, describe, native{', start' if function.start else ''})")
    else:
        result = c_values(function.action).replace("first_index", "kFirstInFortran" if fortran else "kFirstInC")
    body.append(wrap(f"{'rc =' if fortran else 'return'} {result};", 2))
    if fortran:
        body.append("  if (ierror) *ierror = rc;")
    return symbol, declared, f'[[gnu::section(".text.latecomer.{symbol}")]]\n{head}\n' + "\n".join(body) + "\n}"


def write_handlers(functions, family_level):
    handlers = []
    for function in functions:
        if family_level == "pmpi":
            levels = ["c"] if function.is_new else ["tool", "counted_pmpi"]
        else:
            levels = ["c"] + ["fortran"] * ("f08" in function.words) + ["pmpi"] * ("pmpi" in function.words)
        handlers += [(function, level, *make_handler(function, level)) for level in levels]
    out = ["// SPDX-License-Identifier: BSD-3-Clause",
           "// The handlers of this family: one function for each symbol of MPI that it intercepts. Written by",
           "// shim/front/generate.py from shim/front/functions.def. Change those.",
           '#include "shim/call/communicators.hpp"', '#include "shim/call/request_calls.hpp"', '#include "shim/call/run.hpp"',
           '#include "shim/causes/waiting_calls.hpp"', '#include "shim/job/entries.hpp"', '#include "shim/mpi/entry.hpp"',
           '#include "shim/mpi/level.hpp"', "", "namespace latecomer::shim {", "",
           "using core::CallKind;", "using core::Collective;", "",
           "// The next definition of each: that of another preloaded tool, or that of MPI.", "namespace next {"]
    guard = None
    for part in ("next", "entry"):
        if part == "entry":
            out += ["}  // namespace next", "", "namespace entry {"]
        for function, level, symbol, declared, text in handlers:
            # MPI_Session is a type of MPI 4.
            guard = "MPI_Session" in declared
            out += ["#if MPI_VERSION >= 4"] * guard
            if part == "next":
                out.append(wrap(f"LATECOMER_TOGETHER {'void' if level == 'fortran' else 'int'} (*{symbol})({declared}) = nullptr;", 0))
            else:
                out += ["", text, f"LATECOMER_HANDLES({symbol}, &entry::{symbol}, &next::{symbol})"]
            out += ["#endif"] * guard
    return out + ["", "}  // namespace entry", "}  // namespace latecomer::shim"]


def main():
    functions, by_hand = read_table()
    if sys.argv[1] == "symbols":
        names = [symbol for function in functions for symbol in function.symbols()]
        names += [symbol for name in by_hand for symbol in ([name, "P" + name] if name.startswith("MPI_") else [name])]
        text = "\n".join(f"STUB({name})" for name in names)
    else:
        text = "\n".join(write_handlers(functions, sys.argv[2]))
    output = pathlib.Path(sys.argv[-1])
    if not output.exists() or output.read_text() != text + "\n":
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text + "\n")


main()
