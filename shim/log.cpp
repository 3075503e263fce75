// SPDX-License-Identifier: BSD-3-Clause
// Writes messages to users.
#include "shim/log.hpp"

#include <locale.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace latecomer::shim {
namespace {

// Bytes of a text, and number of different warnings. Derived: they take 15 KiB. A line of 544 bytes at most is shorter
// than PIPE_BUF (4,096 bytes on Linux), so lines of several ranks do not mix. A longer text is cut. Further warnings
// are dropped.
constexpr int kLine = 480, kWarnings = 32;
std::mutex mutex;
char texts[kWarnings][kLine];
int count = 0, speaker_rank = -1, speaker_size = 0, level_wanted = 0;

/// vsnprintf in the C locale: the program may have set another one.
void format_text(char (&text)[kLine], const char* format, va_list list) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);  // glibc allocates nothing for "C"
  const locale_t before = uselocale(plain);
  std::vsnprintf(text, sizeof text, format, list);
  uselocale(before);
}

void line(const char* kind, const char* text) {
  char out[kLine + 64];
  int n = speaker_rank < 0
              ? std::snprintf(out, sizeof out, "latecomer %s%s\n", kind, text)
              : std::snprintf(out, sizeof out, "latecomer[%d/%d] %s%s\n", speaker_rank, speaker_size, kind, text);
  if (n > static_cast<int>(sizeof out) - 1) {
    n = static_cast<int>(sizeof out) - 1;
    out[n - 1] = '\n';
  }
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, out, static_cast<std::size_t>(n));
}

}  // namespace

void set_speaker(int rank, int size, int verbosity) {
  speaker_rank = rank;
  speaker_size = size;
  level_wanted = verbosity;
}

void warn(const char* format, ...) {
  char text[kLine];
  va_list list;
  va_start(list, format);
  format_text(text, format, list);
  va_end(list);
  const std::lock_guard lock(mutex);
  for (int i = 0; i < count; ++i)
    if (std::strcmp(texts[i], text) == 0) return;
  if (count == kWarnings) return;
  std::memcpy(texts[count++], text, sizeof text);
  line("warning: ", text);
}

void say(int level, const char* format, ...) {
  if (level_wanted < level) return;
  char text[kLine];
  va_list list;
  va_start(list, format);
  format_text(text, format, list);
  va_end(list);
  line("", text);
}

int warning_count() { return count; }
const char* warning_text(int i) { return texts[i]; }

}  // namespace latecomer::shim
