// SPDX-License-Identifier: BSD-3-Clause
// A terminal that a command redraws: the alternate screen, its size, and its keys. Other output goes through as text.
#pragma once

#include <functional>
#include <string>

namespace latecomer::profiles {

/// The text that print() prints to stdout.
std::string captured(const std::function<void()>& print);

/// Takes the terminal for its lifetime: the user's text comes back at the end, also after Ctrl-C, SIGTERM and Ctrl-Z.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Draws over the last text, without clearing first, so that nothing flickers. `head` is wrapped at words, the lines
  /// of `rows` are cut. Further lines are left out, and the last line says so.
  void draw(const std::string& head, const std::string& rows, const std::string& status);
  /// Waits. Draws again if the size of the terminal changes. Returns false if the user ends the command: q, Ctrl-C.
  bool wait(double seconds);

 private:
  void take();
  void give_back();
  void redraw() const;

  std::string head_, rows_, status_;
  bool keys_ = false;  ///< stdin is the terminal, too
};

}  // namespace latecomer::profiles
