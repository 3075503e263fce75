// SPDX-License-Identifier: BSD-3-Clause
// Uses the sequences of ECMA-48 that every terminal knows, without a terminal library.
#include "profiles/watch/screen.hpp"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {
namespace {

struct Size {
  std::size_t rows = 24, columns = 80;
};
Size size_now() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) return {};
  return {window.ws_row, window.ws_col};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    // A command line or a path may hold the sequences of a terminal.
    for (char& c : line)
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = c == '\t' ? ' ' : '?';
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> out;
  for (std::string line : lines_of(text)) {
    for (std::size_t fits; (fits = first(line, columns).size()) < line.size();) {
      std::size_t end = line[fits] == ' ' ? fits : line.substr(0, fits).rfind(' ');
      if (end == std::string::npos || end == 0) end = fits;
      out.push_back(line.substr(0, end));
      line.erase(0, std::min(line.find_first_not_of(' ', end), line.size()));
    }
    out.push_back(line);
  }
  return out;
}

}  // namespace

std::string captured(const std::function<void()>& print) {
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO), memory = memfd_create("latecomer", MFD_CLOEXEC);
  if (saved < 0 || memory < 0 || dup2(memory, STDOUT_FILENO) < 0) throw std::runtime_error("cannot redirect stdout");
  const auto restore = [&] {
    std::fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
  };
  try {
    print();
  } catch (...) {
    restore();
    close(memory);
    throw;
  }
  restore();
  std::string out(static_cast<std::size_t>(std::max<off_t>(0, lseek(memory, 0, SEEK_END))), '\0');
  const ssize_t got = pread(memory, out.data(), out.size(), 0);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  close(memory);
  return out;
}

void redraw(const std::string& head, const std::string& rows, const std::string& status) {
  const Size size = size_now();
  std::vector<std::string> lines = wrapped(head, size.columns);
  for (const std::string& row : lines_of(rows)) lines.push_back(cut(row, size.columns));
  const std::size_t fit = size.rows > 2 ? size.rows - 2 : 1;  // the status, and the line of the cursor
  std::string last = status;
  if (lines.size() > fit) last += "; " + std::to_string(lines.size() - fit) + " lines do not fit";
  lines.resize(std::min(lines.size(), fit));
  std::string out = "\033[H";
  // Clears each line before it is written: after a full one, a terminal would clear its last character.
  for (const std::string& line : lines) out += "\033[K" + line + "\n";
  out += "\033[J\033[7m" + cut(last, size.columns) + "\033[0m\n";
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

void make_room() { std::fputs(std::string(size_now().rows, '\n').c_str(), stdout); }

}  // namespace latecomer::profiles
