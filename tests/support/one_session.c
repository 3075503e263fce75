// SPDX-License-Identifier: BSD-3-Clause
// Keeps the processes of a launcher in its session. Linux may divide the cores among sessions
// (kernel.sched_autogroup_enabled), and MPICH's launcher gives each rank one. A rank that yields then does not get its
// core to the others, unless the job is in a control group, as on most clusters.
#include <unistd.h>

pid_t setsid(void) { return getpid(); }
