// SPDX-License-Identifier: BSD-3-Clause
// Messages to users: a fixed buffer, one write(2) per line, no allocation.
#pragma once

namespace latecomer::shim {

/// Prints `latecomer[rank/size] warning: ...` and keeps the text for the profile's `warnings`. Prints each text once,
/// and at most 32 texts.
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Prints the text without "warning" if LATECOMER_VERBOSE >= level.
void say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Sets the rank for messages. Until then, messages contain no rank.
void set_speaker(int rank, int size, int verbosity);

/// The texts of all warnings so far.
int warning_count();
const char* warning_text(int i);

}  // namespace latecomer::shim
