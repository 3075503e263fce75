#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints where the time of the last build and of the last run of ctest went.
Usage: times.py BUILD_FOLDER [ROWS]"""
import pathlib
import re
import sys

build, rows = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 25
TEST = re.compile(r"^\d+/\d+ Testing: (\S+)$(.*?)^Test time = +([\d.]+) sec$", re.M | re.S)
PROCESSOR = re.compile(r"^processor time: ([\d.]+) s$", re.M)


def tests(log):
    """(seconds, processor seconds, name) of each test."""
    for name, output, seconds in TEST.findall(log.read_text(errors="replace")):
        used = PROCESSOR.findall(output)
        yield float(seconds), float(used[-1]) if used else 0.0, name


def objects(log):
    """(seconds, name) of each file that was built, the last time that it was."""
    last = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, name, _ = line.split("\t")
        last[name] = (int(end) - int(start)) / 1000
    return [(seconds, name) for name, seconds in last.items()]


log = build / ".ninja_log"
if log.exists():
    built = sorted(objects(log), reverse=True)
    print(f"\nbuild: {sum(s for s, _ in built):.0f} s in {len(built)} steps, side by side\n{'seconds':>9}  step")
    for seconds, name in built[:rows]:
        print(f"{seconds:9.1f}  {name}")
log = build / "Testing/Temporary/LastTest.log"
if log.exists():
    ran = sorted(tests(log), reverse=True)
    print(f"\ntests: {sum(s for s, _, _ in ran):.0f} s in {len(ran)} tests, {sum(p for _, p, _ in ran):.0f} s of processors\n{'seconds':>9}{'processor':>11}  test")
    for seconds, used, name in ran[:rows]:
        print(f"{seconds:9.1f}{used:11.1f}  {name}")
