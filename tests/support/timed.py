# SPDX-License-Identifier: BSD-3-Clause
"""Runs a test, and prints the processor time of all processes that it has waited for. scripts/test --times reads it."""
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"processor time: {used.ru_utime + used.ru_stime:.2f} s", flush=True)
sys.exit(status if status >= 0 else 128 - status)
