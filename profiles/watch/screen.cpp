// SPDX-License-Identifier: BSD-3-Clause
// Uses the sequences of ECMA-48 and xterm that every terminal of today knows, without a terminal library.
#include "profiles/watch/screen.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "profiles/base/seconds.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {
namespace {

constexpr char kTake[] = "\033[?1049h\033[?25l", kGiveBack[] = "\033[?25h\033[?1049l";
constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t ended = 0, resized = 0, paused = 0;
termios before;
sigset_t signals_before;

void write_all(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
    if (n <= 0 && errno != EINTR && errno != EAGAIN) return;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
}

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

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
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

Screen::Screen() {
  keys_ = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetattr(STDIN_FILENO, &before) == 0;
  // The signals arrive in wait() only, so no text is left half drawn.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : kEnds) {
    sigaddset(&blocked, signal);
    handle(signal, [](int) { ended = 1; });
  }
  sigaddset(&blocked, SIGWINCH);
  handle(SIGWINCH, [](int) { resized = 1; });
  sigaddset(&blocked, SIGTSTP);
  handle(SIGTSTP, [](int) { paused = 1; });
  sigprocmask(SIG_BLOCK, &blocked, &signals_before);
  take();
}

Screen::~Screen() {
  give_back();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) handle(signal, SIG_DFL);
  sigprocmask(SIG_SETMASK, &signals_before, nullptr);
}

void Screen::take() {
  if (keys_) {
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_all(kTake);
}

void Screen::give_back() {
  write_all(kGiveBack);
  if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void Screen::draw(const std::string& head, const std::string& rows, const std::string& status) {
  head_ = head;
  rows_ = rows;
  status_ = status;
  redraw();
}

void Screen::redraw() const {
  const Size size = size_now();
  std::vector<std::string> lines = wrapped(head_, size.columns);
  for (const std::string& row : lines_of(rows_)) lines.push_back(cut(row, size.columns));
  const std::size_t fit = size.rows - 1;
  std::string status = status_;
  if (lines.size() > fit) status += "; " + std::to_string(lines.size() - fit) + " lines do not fit";
  lines.resize(std::min(lines.size(), fit));
  std::string out = "\033[H";
  // Clears each line before it is written: after a full one, a terminal would clear its last character.
  for (const std::string& line : lines) out += "\033[K" + line + "\n";
  // Clears the rest of a longer text, then writes the status into the last line.
  out += "\033[J\033[" + std::to_string(size.rows) + ";1H\033[7m" + cut(status, size.columns) + "\033[0m";
  write_all(out);
}

bool Screen::wait(double seconds) {
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double until = now() + seconds;
  for (;;) {
    const timespec time = in_timespec(std::max(0.0, until - now()));
    pollfd key{STDIN_FILENO, POLLIN, 0};
    const int got = ppoll(&key, keys_ ? 1 : 0, &time, &signals_before);
    if (ended) return false;
    if (paused) {
      paused = 0;
      give_back();
      raise(SIGSTOP);
      take();
      redraw();
    }
    if (resized) {
      resized = 0;
      redraw();
    }
    if (got == 0) return true;
    if (got > 0) {
      char c = 0;
      const ssize_t n = read(STDIN_FILENO, &c, 1);
      if (n == 1 && (c == 'q' || c == 'Q')) return false;
      if (n == 1 && c == ' ') return true;  // looks at once
      if (n <= 0) keys_ = false;
    }
  }
}

}  // namespace latecomer::profiles
