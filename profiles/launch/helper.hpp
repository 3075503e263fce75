// SPDX-License-Identifier: BSD-3-Clause
// A child process for work that may crash or take long, on behalf of a process that must do neither. This process reads
// the child's text, and ends the child after a time or when a signal comes.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "profiles/base/descriptor.hpp"
#include "profiles/files/shared_folder.hpp"

namespace latecomer::profiles {

/// Blocks the signals that would end this process, so that it can tidy up first. Forgets those that came at its end.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  const sigset_t& ours() const { return ours_; }

 private:
  sigset_t ours_, before_;
};

class Helper {
 public:
  /// Why the text is incomplete.
  struct Abandoned {
    const char* why;  ///< "" if the user can do nothing about it
  };
  /// The work of the child: it passes its text on. The text is complete unless the work throws.
  using Work = std::function<void(const Sink&)>;

  /// Starts the child. Throws Abandoned if it cannot, or, later, if the child takes longer than `longest`.
  Helper(const Work& work, std::chrono::milliseconds longest);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// The next piece of the text, or "" at its end. Throws Abandoned.
  std::string_view next();

 private:
  void check();

  BlockedSignals blocked_;
  Descriptor signals_;
  std::chrono::steady_clock::time_point until_;
  std::vector<char> buffer_;
  int from_ = -1;
  pid_t pid_ = -1;
};

}  // namespace latecomer::profiles
