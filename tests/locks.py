# SPDX-License-Identifier: BSD-3-Clause
"""No lock of the shim is held during a wait for another rank: a thread that frees a communicator needs the locks of
a thread inside a collective. Reads the sources and finds the functions that wait, their callers, and the calls
under a lock. `locks.py ROOT`; `locks.py ROOT FILE...` reads only these files (the test of the test)."""
import pathlib
import re
import sys

WAITS = re.compile(r"\b(?:PMPI_(?:Wait\w*|Recv\w*|Send|Ssend\w*|Sendrecv\w*|Probe|Mprobe|Barrier|Bcast\w*|Allreduce\w*|Reduce|Gather\w*|Scatter\w*|Allgather\w*|Alltoall\w*"
                   r"|Comm_(?:dup|create(?!_keyval)|split)\w*|Lookup_name)|nanosleep|usleep|sleep|poll)\s*\(|\bpatience\.wait\(|\.wait\((?:lock|guard)")
LOCK = re.compile(r"\b(?:const\s+)?(?:(?:Job|Learner|Mail)Lock|std::(?:lock_guard|unique_lock|scoped_lock)(?:<[^>]*>)?)\s+\w+\s*[;({]")
FUNCTION = re.compile(r"^[^\n;#=(]*?\b(?!(?:if|for|while|switch|return|else|do|catch|constexpr)\b)([A-Za-z_]\w*)\s*\([^;{}]*?\)(?:\s*(?:const|noexcept|override|try)\b)*\s*(?::[^;{}]*)?\{", re.M)
# Names that several classes share, one of which waits.
AMBIGUOUS = {"begin", "wait", "start", "run", "write", "lock", "send", "receive", "main", "in_one", "step"}
# These wait for the launcher, and then the process ends.
ENDS = {"end_job"}
# Held while MPI starts, when no other thread may be inside MPI.
ALLOWED = "start_mutex"


def plain(text):
    """Removes comments and the contents of strings, and keeps the lines."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def end_of(text, opening):
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def functions(text):
    for match in FUNCTION.finditer(text):
        yield match.group(1), match.end() - 1, end_of(text, match.end() - 1)


root = pathlib.Path(sys.argv[1])
files = [pathlib.Path(f) for f in sys.argv[2:]] or sorted((root / "shim").rglob("*.cpp")) + sorted((root / "shim").rglob("*.hpp"))
texts = {f: plain(f.read_text()) for f in files}
bodies = {}
for text in texts.values():
    for name, begin, end in functions(text):
        bodies.setdefault(name, []).append(text[begin:end])
waiting = {name for name, all_bodies in bodies.items() if any(WAITS.search(b) for b in all_bodies)} - AMBIGUOUS - ENDS
while True:
    calls = re.compile(r"(?<![\w.>])(?<!std::)(?:" + "|".join(sorted(map(re.escape, waiting))) + r")\s*\(") if waiting else None
    more = {name for name, all_bodies in bodies.items() if calls and any(calls.search(b) for b in all_bodies)} - waiting - AMBIGUOUS - ENDS
    if not more:
        break
    waiting |= more
failures = locks = 0
for f, text in texts.items():
    for match in LOCK.finditer(text):
        locks += 1
        if ALLOWED in text[match.start():text.index("\n", match.start())]:
            continue
        # Up to the end of the block that contains the lock.
        depth, at = 0, match.end()
        while at < len(text) and depth >= 0:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        scope = text[match.end():at]
        for call in re.finditer(r"(?<![\w.>])(?<!std::)([A-Za-z_]\w*)\s*\(", scope):
            if call.group(1) in waiting or WAITS.match(scope, call.start()):
                line = text.count("\n", 0, match.end() + call.start()) + 1
                print(f"{f}:{line}: {call.group(1)} may wait for another rank while the lock of line {text.count(chr(10), 0, match.start()) + 1} is held")
                failures += 1
print(f"{len(waiting)} functions wait, {locks} locks, {failures} failures")
sys.exit(failures > 0 or locks == 0)
