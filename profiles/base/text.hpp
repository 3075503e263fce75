// SPDX-License-Identifier: BSD-3-Clause
// Numbers, ranks and paths as people read them, and words as a shell takes them.
#pragma once

#include <cctype>
#include <string>
#include <vector>

#include "profiles/base/share.hpp"

namespace latecomer::profiles {

/// Formats 1234567 ns as "1.235 ms".
std::string human_time(double ns);
/// Formats 0.234 as "23%", with one more digit below 10%. Not known: `unknown`, which fits into a sentence.
std::string percent(Share share, const char* unknown = "an unknown share");
inline std::string percent(double part, double whole, const char* unknown = "an unknown share") {
  return percent(Share::of(part, whole), unknown);
}
/// The same of a time that is saved, or lost if it is negative: "-4.0%".
std::string saving(double part, double whole);
/// Formats 65536 as "64 KiB".
std::string human_bytes(double bytes);

/// Ascending numbers as "0-2, 5".
std::string numbers_text(const std::vector<int>& ranks);
/// "rank 5", "ranks 0-2, 5".
std::string ranks_named(const std::vector<int>& ranks);

/// The text with a capital letter at its begin.
inline std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}
/// "MPI_Allreduce" of "allreduce".
inline std::string mpi_name(const std::string& op) { return "MPI_" + capital(op); }

/// A word as a shell takes it, in quotes if it needs them.
std::string shell_word(const std::string& word);

/// The same for a path, relative to the current folder if it lies in there.
std::string shown_path(const std::string& path);

}  // namespace latecomer::profiles
