// SPDX-License-Identifier: BSD-3-Clause
// Messages to people: a fixed buffer, one write(2) per line, no allocation.
#pragma once

namespace latecomer::shim {

/// `latecomer[rank/size] warning: ...`; also kept for the profile's `warnings`. Each text once, at most 32.
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The same without "warning", printed if LATECOMER_VERBOSE >= level.
void say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Who speaks; before it is known, lines carry no rank.
void set_speaker(int rank, int size, int verbosity);

/// The texts of all warnings so far.
int warning_count();
const char* warning_text(int i);

}  // namespace latecomer::shim
