// SPDX-License-Identifier: BSD-3-Clause
// The seam between the front, which is preloaded and knows no MPI, and the families: one library per binary interface
// of MPI, compiled with its header. The front opens a family when the process first uses MPI.
#pragma once

namespace latecomer::front {

/// A handler of a family for one exported symbol of the front. The linker puts all rows into one table, and the
/// compiler aligns large objects: without a size of 32 bytes, the table would have gaps.
struct alignas(32) Entry {
  const char* name;
  void* handler;
  void** next;  ///< takes the next definition: that of the next preloaded tool or of the MPI library
};

/// What the front does for a family.
struct Services {
  /// A function of MPI's library, or of any loaded library, but none of the front; nullptr if it does not exist.
  void* (*find)(const char* name);
  /// Sets the target of one stub to its handler, or to the next definition.
  void (*aim)(const char* symbol, bool at_handler);
  /// The user named the family, and the library's version text is of no known one: the family checks what it is.
  bool relative;
};

struct Family {
  const Entry *begin, *end;
  /// Finds the functions of MPI that the family calls, and makes the job's state. Returns nullptr, or the reason why
  /// the family stays inactive. The front calls it once, before any handler runs: MPI may start in another library's
  /// constructor.
  const char* (*start)(const Services& services);
  void (*edge)(double fraction);  ///< latecomer_preloaded_edge
  int (*flush)();                 ///< latecomer_preloaded_flush
};

/// The one symbol that a family exports.
using GetFamily = const Family* (*)();
inline constexpr const char* kGetFamily = "latecomer_family";

}  // namespace latecomer::front
