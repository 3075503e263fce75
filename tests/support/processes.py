# SPDX-License-Identifier: BSD-3-Clause
"""Ends a job by its process ids. MPICH's launcher gives the ranks process groups of their own, and a name may match
another job's processes."""
import os
import pathlib
import select
import signal
import time


def children(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid:
            found.append(int(entry.name))
    return found


def end_tree(job, timeout_s=30):
    """Kills a subprocess.Popen and all its direct and indirect children. Returns whether all of them have ended."""
    opened, ahead = [], [job.pid]
    while ahead:
        pid = ahead.pop()
        try:
            opened.append(os.pidfd_open(pid))
            os.kill(pid, signal.SIGSTOP)  # a stopped process starts no children while they are listed
        except ProcessLookupError:
            continue
        ahead += children(pid)
    for process in opened:
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.wait()
    deadline = time.time() + timeout_s
    ended = all([select.select([process], [], [], max(0, deadline - time.time()))[0] for process in opened])
    for process in opened:
        os.close(process)
    return ended
