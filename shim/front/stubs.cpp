// SPDX-License-Identifier: BSD-3-Clause
// Makes the stubs. generate.py writes the list of their symbols, exported_symbols.def.
#include "shim/front/stubs.hpp"

#define HIDDEN __attribute__((visibility("hidden"), used))

#if defined(__x86_64__)
// Calls latecomer_resolve with the stub's row, which is in %r11, and with every register saved that may carry an
// argument. 136 bytes: the stack is off by a return address.
asm(".pushsection .text\n"
    ".type latecomer_resolve_first,@function\n"
    "latecomer_resolve_first:\n.cfi_startproc\n"
    "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n.cfi_adjust_cfa_offset 56\n"
    "sub $136,%rsp\n.cfi_adjust_cfa_offset 136\n"
    "movups %xmm0,(%rsp)\nmovups %xmm1,16(%rsp)\nmovups %xmm2,32(%rsp)\nmovups %xmm3,48(%rsp)\n"
    "movups %xmm4,64(%rsp)\nmovups %xmm5,80(%rsp)\nmovups %xmm6,96(%rsp)\nmovups %xmm7,112(%rsp)\n"
    "mov %r11,%rdi\ncall latecomer_resolve\n"
    "movups (%rsp),%xmm0\nmovups 16(%rsp),%xmm1\nmovups 32(%rsp),%xmm2\nmovups 48(%rsp),%xmm3\n"
    "movups 64(%rsp),%xmm4\nmovups 80(%rsp),%xmm5\nmovups 96(%rsp),%xmm6\nmovups 112(%rsp),%xmm7\n"
    "add $136,%rsp\n.cfi_adjust_cfa_offset -136\n"
    "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\n.cfi_adjust_cfa_offset -56\n"
    "ret\n.cfi_endproc\n.size latecomer_resolve_first,.-latecomer_resolve_first\n"
    ".popsection\n");
#define CODE(symbol)                                                                    \
  ".globl " #symbol "\n.type " #symbol ",@function\n.p2align 4\n" #symbol               \
  ":\n.cfi_startproc\n"                                                                 \
  "jmp *latecomer_target_" #symbol "(%rip)\n.cfi_endproc\n.size " #symbol ",.-" #symbol \
  "\n"                                                                                  \
  ".type latecomer_first_" #symbol ",@function\nlatecomer_first_" #symbol               \
  ":\n.cfi_startproc\n"                                                                 \
  ".cfi_adjust_cfa_offset 0\nlea latecomer_row_" #symbol                                \
  "(%rip),%r11\n"                                                                       \
  "call latecomer_resolve_first\njmp *latecomer_target_" #symbol                        \
  "(%rip)\n.cfi_endproc\n.size latecomer_first_" #symbol ",.-latecomer_first_" #symbol "\n"
#else
#error "entry stubs are written for x86-64; another processor needs the two jumps of CODE and latecomer_resolve_first"
#endif

namespace latecomer::front {
namespace {

// The targets of all stubs lie together: every call reads one.
#define STUB(symbol)                                                                                                \
  asm(".pushsection .text\n" CODE(symbol) ".popsection\n");                                                         \
  extern "C" {                                                                                                      \
  extern char latecomer_first_##symbol __attribute__((visibility("hidden")));                                       \
  extern char latecomer_stub_##symbol __asm__(#symbol);                                                             \
  HIDDEN __attribute__((section("latecomer_targets"))) void* latecomer_target_##symbol = &latecomer_first_##symbol; \
  HIDDEN __attribute__((section("latecomer_stubs"))) Stub latecomer_row_##symbol = {                                \
      #symbol, &latecomer_target_##symbol, nullptr, &latecomer_stub_##symbol, hash_of(#symbol), false};             \
  }
#include <exported_symbols.def>

}  // namespace

}  // namespace latecomer::front
