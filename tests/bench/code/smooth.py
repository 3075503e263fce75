# SPDX-License-Identifier: BSD-3-Clause
"""Array expressions of numpy between allreduces, on MPICH. On the rank INJECT_RANK, sorting repeats INJECT_LOOPS times.
Usage: smooth.py LENGTH STEPS"""
import ctypes
import os
import sys

import numpy

ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)  # finds the symbols of a preloaded library first
WORLD, DOUBLE, SUM = 0x44000000, 0x4C00080B, 0x58000003
mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
repeats = 1 + (int(os.environ["INJECT_LOOPS"]) if os.environ.get("INJECT_RANK") == str(rank.value) else 0)
values = numpy.random.default_rng(7).random(int(sys.argv[1]))
own, total = ctypes.c_double(), ctypes.c_double()
for _ in range(int(sys.argv[2])):
    smoothed = 0.5 * values + 0.25 * numpy.roll(values, 1) + 0.25 * numpy.roll(values, -1)
    waves = numpy.sin(values) + numpy.exp(-values)
    for _ in range(repeats):
        ordered = numpy.sort(values)
    own.value = smoothed[3] + waves[5] + ordered[7]
    mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, DOUBLE, SUM, WORLD)
if rank.value == 0:
    print(total.value)
mpi.MPI_Finalize()
