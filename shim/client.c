// SPDX-License-Identifier: BSD-3-Clause
// liblatecomer_client.a: the functions of latecomer.h as symbols, for languages that do not read C headers (Fortran's
// bind(C)). No-ops where liblatecomer.so is not preloaded.
extern const char* latecomer_preloaded_version(void) __attribute__((weak));
extern int latecomer_preloaded_flush(void) __attribute__((weak));
extern void latecomer_preloaded_edge(double fraction) __attribute__((weak));

const char* latecomer_version(void);
int latecomer_flush(void);
void latecomer_edge(double fraction);

const char* latecomer_version(void) { return latecomer_preloaded_version ? latecomer_preloaded_version() : ""; }
int latecomer_flush(void) { return latecomer_preloaded_flush ? latecomer_preloaded_flush() : 1; }
void latecomer_edge(double fraction) {
  if (latecomer_preloaded_edge) latecomer_preloaded_edge(fraction);
}
