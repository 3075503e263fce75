// SPDX-License-Identifier: BSD-3-Clause
// Exported entry points. Each exported symbol is a stub: one jump through a pointer. The target is latecomer's handler
// if the process runs a known MPI, and otherwise the next definition, which gets every argument unchanged. So a
// disabled run, or a program on another MPI with other handles, pays only one jump. The targets are set at the first
// call, so this also holds for MPI that is loaded later.
#pragma once

#include "shim/mpi.hpp"

namespace latecomer::shim {

/// One exported symbol. The linker collects these in the section latecomer_entries.
struct Entry {
  const char* name;
  void* handler;  ///< latecomer's function
  void** next;    ///< the next definition: that of the next preloaded tool or of the MPI library
  void** target;  ///< the target of the stub's jump
};

/// Finds MPI and sets the target of every stub. The first intercepted call of a process does this itself. Thread-safe.
void resolve_entries();

/// Makes the job's state, before the first handler runs. MPI may start in another library's constructor, before the
/// constructors of this library. Returns false without memory. shim/state defines it.
bool make_job();

/// A function of MPI's library, or of any loaded library; nullptr if it does not exist.
void* find_function(const char* name);

/// Sets the target of one stub to its handler, or to the next definition. `symbol`: its exported name.
void aim_entry(const char* symbol, bool at_handler);

}  // namespace latecomer::shim

// Keeps the code and data of every call together. A program's own data may have replaced them in the caches, and then
// each further page and line costs time.
#define LATECOMER_TOGETHER __attribute__((section("latecomer_touched")))
#define LATECOMER_HIDDEN __attribute__((visibility("hidden"), used))

#if defined(__x86_64__)
// Saves every register that may carry an argument around a call in a stub. `room`: 128 bytes, plus 8 if the stack is
// off by a return address.
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

/// Begins the definition of the handler of one exported symbol. Inside it, next::symbol calls the next definition.
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

/// An exported symbol that calls `look` with the same registers, ignores its result and passes the call on unchanged.
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
