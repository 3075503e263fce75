// SPDX-License-Identifier: BSD-3-Clause
// Texts for people and for shells.
#include "profiles/base/text.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/base/text.hpp"

namespace latecomer::profiles {

std::string human_time(double ns) {
  char text[32];
  const double size = ns < 0 ? -ns : ns;
  if (size >= 1e9) std::snprintf(text, sizeof text, "%.3f s", ns / 1e9);
  else if (size >= 1e6) std::snprintf(text, sizeof text, "%.3f ms", ns / 1e6);
  else if (size >= 1e3) std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  else std::snprintf(text, sizeof text, "%.0f ns", ns);
  return text;
}

std::string percent(Share share, const char* unknown) { return share.percent(share.value() < 0.0995 ? 1 : 0, unknown); }

std::string saving(double part, double whole) {
  const Share share = Share::of(std::abs(part), whole);
  return (part < 0 && share.known() ? "-" : "") + percent(share);
}

std::string human_bytes(double bytes) {
  char text[32];
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  std::snprintf(text, sizeof text, bytes == static_cast<double>(static_cast<long>(bytes)) ? "%.0f %s" : "%.1f %s",
                bytes, kUnits[unit]);
  return text;
}

std::string numbers_text(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) out += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last;
  }
  return out;
}

std::string ranks_named(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers_text(ranks);
}

std::string shell_word(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./%+,:=@") ==
          std::string::npos)
    return word;
  if (core::utf8(word) != word) {  // bytes that a terminal cannot show, as bash, ksh and zsh take them
    std::string out = "$'";
    for (const char c : word) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<unsigned char>(c));
      out += static_cast<unsigned char>(c) >= 0x80 || c == '\'' || c == '\\' || c < ' ' ? byte : std::string(1, c);
    }
    return out + "'";
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shown_path(const std::string& path) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  return shell_word(!error && path.starts_with(here) ? path.substr(here.size()) : path);
}

}  // namespace latecomer::profiles
