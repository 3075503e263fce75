// SPDX-License-Identifier: BSD-3-Clause
// Calls from a program to latecomer. The program links nothing: without the preloaded liblatecomer.so these functions
// do nothing. For C (C99) and C++.
#ifndef LATECOMER_H
#define LATECOMER_H

#ifdef __cplusplus
extern "C" {
#endif

// The preloaded library exports these; otherwise they are null.
extern const char* latecomer_preloaded_version(void) __attribute__((weak));
extern int latecomer_preloaded_flush(void) __attribute__((weak));
extern void latecomer_preloaded_edge(double fraction) __attribute__((weak));

// The version of the preloaded library, such as "0.1.0", or "" without the preload.
static inline const char* latecomer_version(void) {
  return latecomer_preloaded_version ? latecomer_preloaded_version() : "";
}

// Writes the observations of this process to disk for `latecomer recover`. Local: does not communicate. Returns 0 if
// they are written. Returns 1 if nothing is observed (no preload, before MPI_Init, after MPI_Finalize) or if the write
// fails. Any thread that may call MPI may call this at any time.
static inline int latecomer_flush(void) { return latecomer_preloaded_flush ? latecomer_preloaded_flush() : 1; }

// States the progress of this iteration's computation, from 0 to 1, before the collective that ends the iteration (the
// edge of Proficz 2018, section 3.2). Latecomer records it. MPI_Pcontrol(LATECOMER_EDGE, fraction) does the same
// without this header; latecomer ignores other levels.
static inline void latecomer_edge(double fraction) {
  if (latecomer_preloaded_edge) latecomer_preloaded_edge(fraction);
}
#define LATECOMER_EDGE 5711

#ifdef __cplusplus
}
#endif
#endif
