#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes sources from functions.def when CMake runs: the handlers of one family, or the list of exported symbols. Also the
functions of the standard ABI, from functions.def and shim/mpi/abi/functions.def. Functions of MPI that do not stand in
functions.def must be local: local_functions.def.

Usage: generate.py symbols OUTPUT           a line STUB(name) for each symbol that the front exports
       generate.py calls OUTPUT             a line {name, section} for each function that is no collective
       generate.py handlers LEVEL OUTPUT    the handlers of a family; LEVEL: f08, pmpi or c
       generate.py abi-header OUTPUT        the prototypes for the header of the standard ABI
       generate.py abi-library OUTPUT       a library with these functions, to link programs with
       generate.py undecided NAME...        prints the functions among these that stand in neither list

MPICH's family has the level f08: its Fortran bindings call MPI_*, and a few functions of mpi_f08 have symbols of their
own. Open MPI's family has the level pmpi: its Fortran bindings, its plugins and tools call PMPI_* (shim/mpi/level.hpp).
The family of the standard ABI has the level c: Fortran bindings are libraries of their own, which call MPI_*."""
import dataclasses
import fnmatch
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).with_name("functions.def")
LOCAL = TABLE.with_name("local_functions.def")
ABI_TABLE = TABLE.parent.parent / "mpi/abi/functions.def"
SMALL = {"Count": "int", "Displacement": "int", "LargeCount": "MPI_Aint"}
LARGE = {"Count": "MPI_Count", "Displacement": "MPI_Aint", "LargeCount": "MPI_Count"}


@dataclasses.dataclass
class Parameter:
    type: str
    name: str

    def is_pointer(self):
        return self.type.endswith("*")

    def in_c(self):
        return f"{self.type} {self.name}"

    def in_fortran(self):
        """Handles are structures of one int, statuses have the layout of C. Values are passed by their address."""
        if self.type == "MPI_Status*":
            return f"void* {self.name}"
        return self.in_c() if self.is_pointer() else f"const {self.type}* {self.name}"


@dataclasses.dataclass
class Function:
    """One function of MPI, as C declares it."""
    name: str
    parameters: list
    action: str  # the second line of the row
    words: set  # behind the prototype
    collective: str = None
    kind: str = None  # of the call of a collective
    start: "Function" = None  # of a blocking collective: the non-blocking form
    number: int = None  # of the row, among those with a function that is no collective

    def name_in_fortran(self):
        return self.name.lower() + "_f08_"

    def symbols(self):
        return [self.name] + ["P" + self.name] + [self.name_in_fortran()] * ("f08" in self.words)


@dataclasses.dataclass
class Level:
    """A level at which the program or a binding calls MPI: it has a handler of its own."""
    prefix: str = ""
    fortran: bool = False
    past_tools: bool = False  # the next definition may be a tool's, whose calls of PMPI_* do not count
    program_only: bool = False  # calls from MPI and from tools do not count

    def symbol_of(self, function):
        return function.name_in_fortran() if self.fortran else self.prefix + function.name


C, FORTRAN, PMPI = Level(), Level(fortran=True), Level("P", program_only=True)
OPEN_MPI_C = Level(past_tools=True)


def levels_of(function, family_level):
    if family_level == "pmpi":
        return [OPEN_MPI_C, PMPI]
    if family_level == "c":
        return [C]
    return [C] + [FORTRAN] * ("f08" in function.words) + [PMPI] * ("pmpi" in function.words)


def with_types(text, types):
    return re.sub(r"\b(Count|Displacement|LargeCount)\b", lambda word: types[word[0]], text)


def read_parameters(text, types):
    text = with_types(text, types)
    return [Parameter(*re.fullmatch(r"(.*?) ?(\w+)", one).groups()) for one in text.split(", ") if one != "void"]


def make_forms(name, parameters, words, action, is_collective):
    """The functions of one row: with int and with MPI_Count, and the three forms of a collective."""
    functions = []
    for types in (SMALL, LARGE) if re.search("Count|Displacement", parameters) else (SMALL,):
        given = read_parameters(parameters, types)
        end = "_c" if types is LARGE else ""
        if not is_collective:
            functions.append(Function(f"MPI_{name}{end}", given, action, words))
            continue
        collective = name.lower()
        request, info = Parameter("MPI_Request*", "request"), Parameter("MPI_Info", "info")
        start = Function(f"MPI_I{collective}{end}", [*given, request], action, words, collective, "nonblocking")
        functions += [
            Function(f"MPI_{name}{end}", given, action, words, collective, "blocking", start), start,
            Function(f"MPI_{name}_init{end}", [*given, info, request], action, words, collective, "persistent")]
    return functions


def read_table():
    """All functions, the names of those whose handlers are written by hand, and the name and section of each row that is no
    collective."""
    functions, by_hand, calls, section, prototype, of_all = [], [], [], None, None, None

    def add(action):
        name, parameters, words = prototype.groups()
        forms = make_forms(name, parameters, set(words.split()), action, section in ("collectives", "neighbours"))
        if section == "neighbours":
            wait = {"action": "time_neighbours(place, native, comm)", "collective": None, "start": None, "number": len(calls)}
            forms = [dataclasses.replace(one, **wait) if one.kind == "blocking" else one for one in forms]
            calls.append(("MPI_" + name, "messages"))
        elif section != "collectives":
            forms = [dataclasses.replace(one, number=len(calls)) for one in forms]
            calls.append(("MPI_" + name, section))
        functions.extend(forms)

    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("//"):
            continue
        if line.startswith("["):
            section, of_all = re.fullmatch(r"\[(.*)\] ?(.*)", line).groups()
        elif section == "by hand":
            by_hand.append(line)
        elif not line.startswith(" "):
            prototype = re.fullmatch(r"MPI_(\w+)\((.*)\)((?: \w+)*)", line)
            if not prototype:
                sys.exit(f"{TABLE}: cannot read the row '{line}'")
            if of_all:
                add(of_all)
        else:
            add(line.strip())
    return functions, by_hand, calls


def undecided(names, functions, by_hand):
    """Those that may wait, and that latecomer does not intercept."""
    known = {one.name for one in functions} | set(by_hand)
    local = [line + end for line in LOCAL.read_text().splitlines() if line.startswith("MPI_") for end in ("", "_c")]
    return [name for name in names if name not in known and not any(fnmatch.fnmatchcase(name, one) for one in local)]


def wrap(text, indent):
    """The text in lines of at most 120 columns, which end behind a comma. Lines behind the first are indented further."""
    lines = [" " * indent]
    for part in re.split(r"(?<=,) ", text):
        if len(lines[-1]) + len(part) + 1 > 120 and lines[-1].strip():
            lines.append(" " * (indent + 4))
        lines[-1] += (" " if lines[-1].strip() else "") + part
    return "\n".join(lines)


def make_lambda(name, parameters, *statements):
    one_line = f"  const auto {name} = [&]{parameters} {{ {statements[0]} }};"
    if len(statements) == 1 and len(one_line) <= 120:
        return one_line
    return "\n".join([f"  const auto {name} = [&]{parameters} {{", *(wrap(one, 4) for one in statements), "  };"])


def join(*arguments):
    return ", ".join(arguments)


def make_handler(function, level):
    """The head of the handler without its name, and its whole text."""
    symbol = level.symbol_of(function)
    parameters = [one for one in function.parameters if not (level.fortran and one.name in ("argc", "argv"))]
    names = [one.name for one in parameters]
    values = {one.name: f"*{one.name}" for one in parameters if level.fortran and not one.is_pointer()}

    def with_values(text):
        """The text, which is about the parameters in C, for the parameters at this level."""
        return re.sub(r"\b\w+\b", lambda word: values.get(word[0], word[0]), text)

    def call_next(of, *arguments):
        """The statements that call the next definition."""
        name = level.symbol_of(of)
        if level.fortran:
            return f"next::{name}({join(*arguments, '&rc')});", "return rc;"
        if level.past_tools:
            return (f"return call_behind({join(f'next::{name}', f'next::P{name}', *arguments)});",)
        return (f"return next::{name}({join(*arguments)});",)

    if level.fortran:
        declared = join(*(one.in_fortran() for one in parameters), "int* ierror")
    else:
        declared = join(*(one.in_c() for one in parameters))
    type = "void" if level.fortran else "int"
    text = [f'[[gnu::section(".text.latecomer.{symbol}")]]', wrap(f"{type} {symbol}({declared}) {{", 0)]
    if level.program_only:
        uncounted = f"return call_uncounted({join(f'next::{symbol}', *names)});"
        text.append(wrap(f"if (!from_program(__builtin_return_address(0))) {uncounted}", 2))
    if level.fortran:
        text.append("  int rc = MPI_SUCCESS;")
    if function.collective:
        text.append(make_lambda("describe", "(auto& call)", f"{with_values(function.action)};"))
    if re.search(r"\bat_level\b", function.action):
        arguments = ("&level", "granted") if level.fortran else ("argc", "argv", "level", "granted")
        init_thread = dataclasses.replace(function, name="MPI_Init_thread")
        text.append(make_lambda("at_level", "(int level, int* granted)", *call_next(init_thread, *arguments)))
    if re.search(r"\bplace\b", function.action):
        text.append(f"  const CallPlace place{{{function.number}, __builtin_return_address(0), __builtin_frame_address(0)}};")
    text.append(make_lambda("native", "", *call_next(function, *names)))
    if function.start:
        arguments = join(*(values.get(name, name) for name in names), "request")
        text.append(make_lambda("start", "(MPI_Request* request)", f"return next::{function.start.name}({arguments});"))
    if function.collective:
        request = "nullptr" if function.kind == "blocking" else "request"
        call = [f"Collective::{function.collective}", f"CallKind::{function.kind}", with_values("comm"),
                "__builtin_return_address(0)", request, "describe", "native"] + ["start"] * bool(function.start)
        result = f"intercept_collective({join(*call)})"
    else:
        result = with_values(function.action).replace("first_index", "first_in_f08" if level.fortran else "kFirstInC")
    text.append(wrap(f"rc = {result};" if level.fortran else f"return {result};", 2))
    if level.fortran:
        text.append("  if (ierror) *ierror = rc;")
    text += ["}", f"LATECOMER_HANDLES({symbol}, &entry::{symbol}, &next::{symbol})"]
    next_definition = wrap(f"LATECOMER_TOGETHER {type} (*{symbol})({declared}) = nullptr;", 0)
    return next_definition, "\n".join(text)


HEAD = """\
// SPDX-License-Identifier: BSD-3-Clause
// The handlers of this family: one function for each symbol of MPI that it intercepts. Written by
// shim/front/generate.py from shim/front/functions.def. Change those.
#include "shim/call/communicators.hpp"
#include "shim/call/request_calls.hpp"
#include "shim/call/run.hpp"
#include "shim/causes/callbacks.hpp"
#include "shim/causes/polling.hpp"
#include "shim/causes/waiting_calls.hpp"
#include "shim/job/entries.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/mpi/level.hpp"

namespace latecomer::shim {

using core::CallKind;
using core::Collective;

// The next definition of each: that of another preloaded tool, or that of MPI.
namespace next {"""


def make_handlers(functions, family_level):
    handlers = [make_handler(function, level) for function in functions for level in levels_of(function, family_level)]
    lines = [HEAD, *(next_definition for next_definition, _ in handlers), "}  // namespace next", "", "namespace entry {"]
    for _, handler in handlers:
        lines += ["", handler]
    return lines + ["", "}  // namespace entry", "}  // namespace latecomer::shim"]


def make_symbols(functions, by_hand):
    names = [symbol for function in functions for symbol in function.symbols()]
    for name in by_hand:
        names += [name, "P" + name] if name.startswith("MPI_") else [name]
    return [f"STUB({name})" for name in names]


def abi_functions(functions):
    """The result, name and parameters of each function in the header of the standard ABI, in C."""
    for function in functions:
        yield "int", function.name, join(*(one.in_c() for one in function.parameters)) or "void"
    yield "int", "MPI_Pcontrol", "int level, ..."
    for line in ABI_TABLE.read_text().splitlines():
        if line.startswith("//"):
            continue
        row = re.fullmatch(r"(?:(\w+) )?(MPI_\w+)\((.*)\)", line)
        if not row:
            sys.exit(f"{ABI_TABLE}: cannot read the row '{line}'")
        result, name, parameters = row.groups()
        yield result or "int", name, with_types(parameters, SMALL)
        if re.search(r"\b(Large)?Count\b", parameters):
            yield "int", name + "_c", with_types(parameters, LARGE)


def make_abi_header(functions):
    lines = ["/* SPDX-License-Identifier: BSD-3-Clause", " * Written by shim/front/generate.py. */", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for result, name, parameters in abi_functions(functions):
        lines += [f"{result} {prefix}{name}({parameters});" for prefix in ("", "P")]
    return [*lines, "#ifdef __cplusplus", "}", "#endif"]


def make_abi_library(functions):
    return [f"void {prefix}{name}(void) {{ __builtin_trap(); }}" for _, name, _ in abi_functions(functions) for prefix in ("", "P")]


def main():
    what, output = sys.argv[1], pathlib.Path(sys.argv[-1])
    functions, by_hand, calls = read_table()
    if what == "undecided":
        print(*undecided(sys.argv[2:], functions, by_hand), sep="\n")
        return
    if what == "symbols":
        lines = make_symbols(functions, by_hand)
    elif what == "calls":
        lines = [f'{{"{name}", "{section}"}},' for name, section in calls]
    elif what == "handlers":
        lines = make_handlers(functions, sys.argv[2])
    else:
        lines = make_abi_header(functions) if what == "abi-header" else make_abi_library(functions)
    text = "\n".join(lines) + "\n"
    if not output.exists() or output.read_text() != text:  # an equal file keeps its time, so nothing is compiled again
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


main()
