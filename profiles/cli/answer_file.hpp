// SPDX-License-Identifier: BSD-3-Clause
// The file that a command writes its answer to. Every command that takes the name of such a file writes through this
// class, so that none replaces a file of the user.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "profiles/files/shared_folder.hpp"

namespace latecomer::profiles::cli {

/// The kind of a file that a command writes, and the text near its begin by which latecomer recognises it.
struct AnswerKind {
  std::string_view name, mark;
};
inline constexpr AnswerKind kProfileFile{"a profile", "\"latecomer-profile\""};
inline constexpr AnswerKind kPageFile{"a page", "content=\"latecomer report\""};
inline constexpr AnswerKind kPolicyFile{"a policy", "Written by latecomer advise"};
inline constexpr AnswerKind kSettingsFile{"settings", "# Written by latecomer advise"};
inline constexpr AnswerKind kTraceFile{"a trace", "\"latecomer export\""};
inline constexpr AnswerKind kStacksFile{"folded stacks", ";before "};
inline constexpr AnswerKind kMetricsFile{"figures for Prometheus", "# HELP latecomer_"};

class AnswerFile {
 public:
  /// `option`: the option that names the file, for errors. `path`: "-" is stdout. Throws BadUsage if the path is a
  /// folder, or without `force` a file that does not hold the mark of `kind` and, unless it is empty, the text `also`.
  /// A link is replaced, and the file that it names stays.
  AnswerFile(std::string_view option, std::string path, const AnswerKind& kind, bool force,
             const std::string& also = "");
  bool to_stdout() const { return way_ == Way::standard; }
  /// Whether the answer is a file of its own: no stream, pipe or device.
  bool is_file() const { return way_ == Way::replace; }
  /// Writes the answer: to stdout, into a pipe or a device, or as a whole file. Throws on failure.
  void write(const std::function<void(const Sink&)>& produce) const;
  void write(const std::string& text) const {
    write([&](const Sink& sink) { sink(text); });
  }

  /// Adds --force to a command that writes such a file.
  static void add_force(CLI::App& command, bool& force);

 private:
  enum class Way { replace, standard, into } way_ = Way::replace;
  std::string path_;
};

}  // namespace latecomer::profiles::cli
