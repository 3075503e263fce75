#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a build of several sources at once (CMAKE_UNITY_BUILD) means what a build of each source means.

A name in one source can hide another one of the same name without a word from the compiler. So clang compiles core,
profiles and shim both ways without optimisation, and each function must use the same functions, variables, texts and
constants. Of coroutines, integers are not compared: clang lays out their frames differently.

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
# Helpers of the compiler and of the standard library, and what clang numbers anew in each compilation.
IGNORED = re.compile(r'^[@"]*(llvm\.|__|_ZNK?S|_ZSt|_ZNK?9__gnu|_GLOBAL__sub_I)|D[012]Ev"?$')
PARTS = re.compile(r"\.(resume|destroy|cleanup)$")


def unnumbered(name):
    return re.sub(r"\.\d+$", "", re.sub(r"\d+\$_\d*", "$_", name)).strip('"')


def compiled(entry):
    """The functions of one compilation: name -> what it uses."""
    command = re.sub(r" -o \S+", " -o -", entry["command"]).replace(" -c ", " -S -emit-llvm -g0 ")
    text = subprocess.run(command, shell=True, cwd=entry["directory"], stdout=subprocess.PIPE, text=True, check=True).stdout
    values = {name: value for name, value in GLOBAL.findall(text)}

    def used(reference):
        name = reference.lstrip("@")
        if name.startswith(".str"):  # a text: itself in place of its number
            return re.sub(r", (comdat|align).*", "", values.get(name, name))
        return unnumbered(reference)

    coroutines = {unnumbered(name.removesuffix(".resume")) for name, _ in DEFINITION.findall(text) if name.endswith(".resume")}
    functions = {}
    for name, body in DEFINITION.findall(text):
        name = unnumbered(name)
        if not PARTS.search(name) and not IGNORED.search(name):
            functions.setdefault(name, set()).update(used(r) for r in REFERENCE.findall(body) if not IGNORED.search(r) and "clang_call" not in r and not (name in coroutines and r.startswith("i")))
    return functions


def load(folder):
    """target -> function -> the sets of what its definitions use."""
    entries = [(TARGET.search(e["command"]), e) for e in json.load(open(os.path.join(folder, "compile_commands.json")))]
    entries = [(found[2], e) for found, e in entries if found]
    out = collections.defaultdict(lambda: collections.defaultdict(set))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for target, functions in zip((t for t, _ in entries), pool.map(compiled, (e for _, e in entries))):
            for name, uses in functions.items():
                out[target][name] |= uses
    return out


def main():
    single, unity = load(sys.argv[1]), load(sys.argv[2])
    assert single and set(single) == set(unity), (sorted(single), sorted(unity))
    failures = 0
    for target, functions in single.items():
        for name, uses in functions.items():
            others = unity[target].get(name)
            if others != uses and "__const" not in str((uses, others)):
                failures += 1
                print(f"FAILED {target}: {name}\n  alone    {sorted(uses - (others or set()))}\n  together {sorted((others or set()) - uses)}")
    print(f"{sum(map(len, single.values()))} functions, {failures} failures")
    sys.exit(failures > 0)


main()
