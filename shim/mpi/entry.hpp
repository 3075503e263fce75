// SPDX-License-Identifier: BSD-3-Clause
// The handlers of a family, by the names of the front's stubs (shim/front/stubs.hpp).
#pragma once

#include "shim/front/family.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

/// Makes the job's state, before the first handler runs. Returns false without memory. shim/state defines it.
bool make_job();

/// A function of MPI's library, or of any loaded library; nullptr if it does not exist.
void* find_function(const char* name);

/// Sets the target of one stub to its handler, or to the next definition. `symbol`: its exported name.
void aim_entry(const char* symbol, bool at_handler);

/// Whether a function with a handler has a next definition.
bool has_next(const char* symbol);

/// Checks after MPI_Init that a library whose family the user named has that family's binary interface. If not, aims
/// all stubs at their next definitions and returns which check failed; else nullptr.
const char* leave_other_interface();

/// Of the front and of this library: the ranks of a job compare both.
const char* own_build_ids();

}  // namespace latecomer::shim

// Keeps the data of every call together, from the beginning of a page (shim/touched.ld). A program's own data may have
// replaced them in the caches, and then each further page and line costs time.
#define LATECOMER_TOGETHER __attribute__((section("latecomer_touched")))
#define LATECOMER_HIDDEN __attribute__((visibility("hidden"), used))

/// A row of the family's table of handlers, which the linker collects in the section latecomer_entries.
#define LATECOMER_HANDLES(symbol, handler, next)                                                       \
  __attribute__((section("latecomer_entries"), used)) static front::Entry latecomer_entry_##symbol = { \
      #symbol, reinterpret_cast<void*>(handler), reinterpret_cast<void**>(next)};

/// Begins the definition of the handler of one exported symbol. Inside it, next::symbol calls the next definition.
#define LATECOMER_ENTRY(type, symbol, parameters)                              \
  namespace next {                                                             \
  LATECOMER_TOGETHER type(*symbol) parameters = nullptr;                       \
  }                                                                            \
  namespace entry {                                                            \
  __attribute__((section(".text.latecomer." #symbol))) type symbol parameters; \
  }                                                                            \
  LATECOMER_HANDLES(symbol, &entry::symbol, &next::symbol)                     \
  type entry::symbol parameters

#if defined(__x86_64__)
/// A handler that calls `look` with the same registers, ignores its result and passes the call on unchanged. It saves
/// every register that may carry an argument.
#define LATECOMER_PASSING_ENTRY(symbol, look)                                                                  \
  extern "C" {                                                                                                 \
  LATECOMER_HIDDEN void* latecomer_next_##symbol = nullptr;                                                    \
  extern char latecomer_passing_##symbol __attribute__((visibility("hidden")));                                \
  }                                                                                                            \
  asm(".pushsection .text\n.type latecomer_passing_" #symbol ",@function\nlatecomer_passing_" #symbol          \
      ":\n.cfi_startproc\n"                                                                                    \
      "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n.cfi_adjust_cfa_offset 56\n" \
      "sub $128,%rsp\n.cfi_adjust_cfa_offset 128\n"                                                            \
      "movups %xmm0,(%rsp)\nmovups %xmm1,16(%rsp)\nmovups %xmm2,32(%rsp)\nmovups %xmm3,48(%rsp)\n"             \
      "movups %xmm4,64(%rsp)\nmovups %xmm5,80(%rsp)\nmovups %xmm6,96(%rsp)\nmovups %xmm7,112(%rsp)\n"          \
      "call " #look                                                                                            \
      "\n"                                                                                                     \
      "movups (%rsp),%xmm0\nmovups 16(%rsp),%xmm1\nmovups 32(%rsp),%xmm2\nmovups 48(%rsp),%xmm3\n"             \
      "movups 64(%rsp),%xmm4\nmovups 80(%rsp),%xmm5\nmovups 96(%rsp),%xmm6\nmovups 112(%rsp),%xmm7\n"          \
      "add $128,%rsp\n.cfi_adjust_cfa_offset -128\n"                                                           \
      "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\n.cfi_adjust_cfa_offset -56\n"       \
      "jmp *latecomer_next_" #symbol "(%rip)\n.cfi_endproc\n.size latecomer_passing_" #symbol                  \
      ",.-latecomer_passing_" #symbol "\n.popsection\n");                                                      \
  LATECOMER_HANDLES(symbol, &latecomer_passing_##symbol, &latecomer_next_##symbol)
#else
#error "the handler that passes unknown arguments on is written for x86-64"
#endif
