// SPDX-License-Identifier: BSD-3-Clause
// What a program may tell latecomer, or ask it. Nothing to link: where liblatecomer.so is not preloaded, these
// are no-ops. For C (C99) and C++.
#ifndef LATECOMER_H
#define LATECOMER_H

#ifdef __cplusplus
extern "C" {
#endif

// Exported by the preloaded library, else null.
extern const char* latecomer_preloaded_version(void) __attribute__((weak));
extern int latecomer_preloaded_flush(void) __attribute__((weak));
extern void latecomer_preloaded_edge(double fraction) __attribute__((weak));

// The version of the preloaded library, such as "0.1.0"; "" if there is none.
static inline const char* latecomer_version(void) {
  return latecomer_preloaded_version ? latecomer_preloaded_version() : "";
}

// Writes what this process has observed so far to disk, where `latecomer recover` finds it. Local: talks to no
// other process. 0: written; 1: nothing observed (not preloaded, before MPI_Init, after MPI_Finalize), or the
// disk refused. May be called at any time, from any thread that may call MPI.
static inline int latecomer_flush(void) { return latecomer_preloaded_flush ? latecomer_preloaded_flush() : 1; }

// How far this iteration's computation is, from 0 to 1, before the collective that ends it (paper 002, section 3.2:
// edge). Recorded. The same without this header: MPI_Pcontrol(LATECOMER_EDGE, fraction); other levels are not looked
// at.
static inline void latecomer_edge(double fraction) {
  if (latecomer_preloaded_edge) latecomer_preloaded_edge(fraction);
}
#define LATECOMER_EDGE 5711

#ifdef __cplusplus
}
#endif
#endif
