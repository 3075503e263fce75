// SPDX-License-Identifier: BSD-3-Clause
// Exported entry points. Each exported symbol is a stub of one jump through a pointer: to our handler when
// the process runs an MPI we know, straight to the next definition otherwise, with every argument as it
// came. So a program of another MPI, whose handles are not our handles, or a disabled run pays one jump and
// nothing else, and what is decided at the first call holds for MPI that is loaded late, too.
#pragma once

#include "shim/mpi.hpp"

namespace latecomer::shim {

/// One exported symbol. Collected by the linker in the section latecomer_entries.
struct Entry {
  const char* name;
  void* handler;  ///< ours
  void** next;    ///< the definition after ours: the next preloaded tool's or the MPI library's
  void** target;  ///< where the stub jumps
};

/// Finds MPI and points every stub where it belongs. The first intercepted call of a process does this by
/// itself, whichever it is. Thread-safe.
void resolve_entries();

/// A function of the library that has MPI, or of anything loaded; nullptr if there is none.
void* find_function(const char* name);

/// Aims one stub at its handler or past it; `symbol` as exported.
void aim_entry(const char* symbol, bool at_handler);

}  // namespace latecomer::shim

// What every call touches lies together, its code and its data: where the program's own data have swept the caches,
// each page and each line more is what a call costs.
#define LATECOMER_TOGETHER __attribute__((section("latecomer_touched")))
#define LATECOMER_HIDDEN __attribute__((visibility("hidden"), used))

#if defined(__x86_64__)
// Around a call in the middle of a jump: every register that may carry an argument is kept. `room`: 128 bytes, and 8
// more where the stack is off by a return address.
#define LATECOMER_KEEP_ARGUMENTS(room)                                                                     \
  "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n.cfi_adjust_cfa_offset 56\n" \
  "sub $" room ",%rsp\n.cfi_adjust_cfa_offset " room                                                       \
  "\n"                                                                                                     \
  "movups %xmm0,(%rsp)\nmovups %xmm1,16(%rsp)\nmovups %xmm2,32(%rsp)\nmovups %xmm3,48(%rsp)\n"             \
  "movups %xmm4,64(%rsp)\nmovups %xmm5,80(%rsp)\nmovups %xmm6,96(%rsp)\nmovups %xmm7,112(%rsp)\n"
#define LATECOMER_RESTORE_ARGUMENTS(room)                                                         \
  "movups (%rsp),%xmm0\nmovups 16(%rsp),%xmm1\nmovups 32(%rsp),%xmm2\nmovups 48(%rsp),%xmm3\n"    \
  "movups 64(%rsp),%xmm4\nmovups 80(%rsp),%xmm5\nmovups 96(%rsp),%xmm6\nmovups 112(%rsp),%xmm7\n" \
  "add $" room ",%rsp\n.cfi_adjust_cfa_offset -" room                                             \
  "\n"                                                                                            \
  "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\n.cfi_adjust_cfa_offset -56\n"
#define LATECOMER_STUB_CODE(symbol)                                                        \
  ".globl " #symbol "\n.type " #symbol ",@function\n.p2align 4\n" #symbol                  \
  ":\n.cfi_startproc\n"                                                                    \
  "jmp *latecomer_target_" #symbol "(%rip)\n.cfi_endproc\n.size " #symbol ",.-" #symbol    \
  "\n"                                                                                     \
  ".type latecomer_first_" #symbol ",@function\nlatecomer_first_" #symbol                  \
  ":\n.cfi_startproc\n"                                                                    \
  ".cfi_adjust_cfa_offset 0\ncall latecomer_resolve_first\njmp *latecomer_target_" #symbol \
  "(%rip)\n.cfi_endproc\n"                                                                 \
  ".size latecomer_first_" #symbol ",.-latecomer_first_" #symbol "\n"
#else
#error \
    "entry stubs are written for x86-64; another processor needs the two jumps of this macro and latecomer_resolve_first in entry.cpp"
#endif

/// Begins the definition of the handler of one exported symbol; inside, next::symbol calls on.
#define LATECOMER_ENTRY(type, symbol, parameters)                                                                 \
  namespace next {                                                                                                \
  LATECOMER_TOGETHER type(*symbol) parameters = nullptr;                                                          \
  }                                                                                                               \
  namespace entry {                                                                                               \
  __attribute__((section(".text.latecomer." #symbol))) type symbol parameters;                                    \
  }                                                                                                               \
  asm(".pushsection .text.latecomer." #symbol ",\"ax\",@progbits\n" LATECOMER_STUB_CODE(symbol) ".popsection\n"); \
  extern "C" {                                                                                                    \
  extern char latecomer_first_##symbol __attribute__((visibility("hidden")));                                     \
  LATECOMER_HIDDEN LATECOMER_TOGETHER void* latecomer_target_##symbol = &latecomer_first_##symbol;                \
  }                                                                                                               \
  __attribute__((section("latecomer_entries"), used)) static Entry latecomer_entry_##symbol = {                   \
      #symbol, reinterpret_cast<void*>(&entry::symbol), reinterpret_cast<void**>(&next::symbol),                  \
      &latecomer_target_##symbol};                                                                                \
  type entry::symbol parameters

/// An exported symbol whose calls are shown to `look` (same registers, result ignored) and go on untouched.
#define LATECOMER_PASSING_ENTRY(symbol, look)                                                                       \
  extern "C" {                                                                                                      \
  LATECOMER_HIDDEN void* latecomer_next_##symbol = nullptr;                                                         \
  extern char latecomer_passing_##symbol __attribute__((visibility("hidden")));                                     \
  extern char latecomer_first_##symbol __attribute__((visibility("hidden")));                                       \
  LATECOMER_HIDDEN void* latecomer_target_##symbol = &latecomer_first_##symbol;                                     \
  }                                                                                                                 \
  asm(".pushsection .text\n" LATECOMER_STUB_CODE(                                                                   \
      symbol) ".type latecomer_passing_" #symbol ",@function\nlatecomer_passing_" #symbol                           \
              ":\n.cfi_startproc\n" LATECOMER_KEEP_ARGUMENTS("128") "call " #look "\n" LATECOMER_RESTORE_ARGUMENTS( \
                  "128") "jmp *latecomer_next_" #symbol "(%rip)\n.cfi_endproc\n.size latecomer_passing_" #symbol    \
                         ",.-latecomer_passing_" #symbol                                                            \
                         "\n"                                                                                       \
                         ".popsection\n");                                                                          \
  __attribute__((section("latecomer_entries"), used)) static Entry latecomer_entry_##symbol = {                     \
      #symbol, &latecomer_passing_##symbol, &latecomer_next_##symbol, &latecomer_target_##symbol};
