#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a build of several sources at once (CMAKE_UNITY_BUILD) means what a build of each source means.

A name in one source can hide another one of the same name without a word from the compiler. So clang compiles core,
profiles and shim both ways without optimisation. Each function and each initial value must then use the same functions,
variables, texts and constants. Not compared: their order, the integers of coroutines, whose frames clang lays out
differently, and calls of destructors, which clang leaves out where it sees that they do nothing.

Usage: unity.py SINGLE UNITY, two build folders with compile_commands.json. Takes 7 minutes on 2 cores."""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

TARGET = re.compile(r" -o (core|profiles|shim)/CMakeFiles/(\w+)\.dir/")
DEFINITION = re.compile(r'^define .*?@("[^"]*"|[\w.$]+)\((.*?)^}', re.M | re.S)
GLOBAL = re.compile(r'^@("[^"]*"|[\w.$]+) = (.*)$', re.M)
REFERENCE = re.compile(r'@"[^"]*"|@[\w.$]+|\b(?:double|float) [-\w.+]+|\bi(?:8|16|32|64) -?\d+')
# Helpers of the compiler and of the standard library, the initialisers of a whole compilation, and names of types.
IGNORED = re.compile(r'^[@"]*(llvm\.|__|_ZNK?S|_ZSt|_ZNK?9__gnu|_GLOBAL__sub_I|_ZTS)')
DESTRUCTOR = re.compile(r'D[012]Ev"?$')
NUMBERED = re.compile(r'^@?"?(\.str|__const\.|switch\.table)')  # by clang, anew in each compilation
PARTS = re.compile(r"\.(resume|destroy|cleanup)$")


def unnumbered(name):
    return re.sub(r"\.\d+$", "", re.sub(r"\d+\$_\d*", "$_", name)).strip('"')


def compiled(entry):
    """The functions and initial values of one compilation: name -> what it uses."""
    command = re.sub(r" -o \S+", " -o -", entry["command"]).replace(" -c ", " -S -emit-llvm -g0 ")
    text = subprocess.run(command, shell=True, cwd=entry["directory"], stdout=subprocess.PIPE, text=True, check=True).stdout
    values = {name: re.sub(r", (comdat|align).*", "", value) for name, value in GLOBAL.findall(text) if " external " not in f" {value}"}
    definitions = DEFINITION.findall(text)
    coroutines = {unnumbered(name.removesuffix(".resume")) for name, _ in definitions if name.endswith(".resume")}

    def uses(body, integers=True):
        out = set(re.findall(r'\bc"[^"]*"', body))
        for reference in REFERENCE.findall(body):
            if NUMBERED.search(reference):  # its value in place of its name
                out |= uses(values.get(reference.lstrip("@"), ""))
            elif not IGNORED.search(reference) and not DESTRUCTOR.search(reference) and (integers or not reference.startswith("i")):
                out.add(unnumbered(reference))
        return out

    found = {}
    for name, body in definitions:
        name = unnumbered(name)
        if not PARTS.search(name) and not IGNORED.search(name):
            found.setdefault(name, set()).update(uses(body, name not in coroutines))
    for name, value in values.items():
        if not NUMBERED.search(name) and not IGNORED.search(name) and not PARTS.search(unnumbered(name)):
            found.setdefault(unnumbered(name), set()).update(uses(value))
    return found


def load(folder):
    """target -> name -> what its definitions use."""
    entries = [(TARGET.search(e["command"]), e) for e in json.load(open(os.path.join(folder, "compile_commands.json")))]
    entries = [(found[2], e) for found, e in entries if found]
    out = collections.defaultdict(lambda: collections.defaultdict(set))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for target, found in zip((t for t, _ in entries), pool.map(compiled, (e for _, e in entries))):
            for name, uses in found.items():
                out[target][name] |= uses
    return out


def main():
    single, unity = load(sys.argv[1]), load(sys.argv[2])
    assert single and set(single) == set(unity), (sorted(single), sorted(unity))
    failures = 0
    for target, functions in single.items():
        for name, uses in functions.items():
            others = unity[target].get(name)
            if others != uses:
                failures += 1
                print(f"FAILED {target}: {name}\n  alone    {sorted(uses - (others or set()))}\n  together {sorted((others or set()) - uses)}")
    print(f"{sum(map(len, single.values()))} functions and values, {failures} failures")
    sys.exit(failures > 0)


main()
