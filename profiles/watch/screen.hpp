// SPDX-License-Identifier: BSD-3-Clause
// Text that a command draws again and again on a terminal.
#pragma once

#include <functional>
#include <string>

namespace latecomer::profiles {

/// The text that print() prints to stdout.
std::string captured(const std::function<void()>& print);

/// Draws over the last text on the terminal, without clearing first, so that nothing flickers. `head` is wrapped at
/// words, the lines of `rows` are cut. Further lines are left out, and the last line, `status`, says so.
void redraw(const std::string& head, const std::string& rows, const std::string& status);

/// Moves the user's text up out of the window, before the first drawing.
void make_room();

}  // namespace latecomer::profiles
