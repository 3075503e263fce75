# SPDX-License-Identifier: BSD-3-Clause
"""Calibration on a slow network of 8 hosts ends within its time limit, and its figure is that of the network. A full
measurement would take many minutes. Without the right to create network namespaces the test says so and passes."""
import json
import os
import pathlib
import subprocess
import sys
import threading

from common import a, check, finish, folder

sys.path.append(a.root + "/tests/support")
from hosts import Hosts
from processes import end_tree

MBIT = 10
hosts = Hosts("lccal", 8, MBIT)
if not hosts.able:
    hosts.remove()
    print("skipped: this machine does not allow network namespaces")
    sys.exit(0)
try:
    words = ["mpiexec.mpich", "-n", str(hosts.count), str(hosts.enter(folder / "enter")), str(pathlib.Path(a.build) / "bin/latecomer-calibrate"), "yield"]
    job = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=a.support, **hosts.environment))
    # Without its limit of 10 s the measurement would take far longer than this.
    line = []
    reader = threading.Thread(target=lambda: line.append(job.stdout.readline()))
    reader.start()
    reader.join(90)
    ended = bool(line and line[0])
    end_tree(job)  # MPI_Finalize over TCP may hang without latecomer, see tests/support/hosts.py
    check(ended, "calibration ends on a slow network")
    if ended:
        beta = json.loads(line[0])["beta_ns_per_byte"]
        expected = 8e3 / MBIT
        check(expected / 2 < beta < 2 * expected, f"its time per byte is the network's: {beta:.0f} ns, {expected:.0f} by the rate")
finally:
    hosts.remove()
finish()
