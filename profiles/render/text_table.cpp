// SPDX-License-Identifier: BSD-3-Clause
// Widths of texts count characters, not bytes.
#include "profiles/render/text_table.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace latecomer::profiles {
namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

constexpr std::string_view kGap = "...";

}  // namespace

std::string_view first(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && (count > 0 || !begins_character(text[at]))) count -= begins_character(text[at++]);
  return text.substr(0, at);
}

std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  const std::size_t bracket = text.rfind(" (");
  const std::string end = bracket == std::string::npos ? "" : text.substr(bracket);
  const std::size_t taken = width_of(end) + kGap.size();
  // Of the name before the bracket, a few characters say something.
  constexpr std::size_t kLeast = 6;
  if (taken + kLeast <= width) return std::string(first(text, width - taken)).append(kGap) + end;
  return std::string(first(text, width - std::min(width, kGap.size()))).append(kGap);
}

namespace {

/// A place in at most `width` characters, with its own name, file and line: "...reverse_comm (comm.cpp:7)". What may go
/// are outer scopes, and the end of a library's name, which has no line. Empty: these do not make enough room.
std::optional<std::string> fitted(const std::string& place, std::size_t width) {
  if (width_of(place) <= width) return place;
  const std::size_t bracket = std::min(place.rfind(" ("), place.size());
  const std::size_t begin = bracket > 0 ? place.rfind(' ', bracket - 1) + 1 : 0;
  const std::string end = place.substr(bracket);
  std::string name = place.substr(0, bracket);
  for (std::size_t at = place.find("::", begin); at < bracket; at = place.find("::", at + 2)) {
    name = place.substr(0, begin).append(kGap) + place.substr(at + 2, bracket - at - 2);
    if (width_of(name) + width_of(end) <= width) return name + end;
  }
  const std::size_t taken = width_of(name) + kGap.size() + 1;
  // Of a library, a few characters say something.
  constexpr std::size_t kLeast = 6;
  if (end.empty() || end.find(':') != std::string::npos || taken + kLeast > width) return {};
  return name.append(first(end, width - taken)).append(kGap) + ")";
}

}  // namespace

void TextTable::print(std::size_t width) const {
  constexpr std::size_t kBetween = 2, kIndent = 4;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  if (width > 0) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kBetween;
    widths.back() = std::min(widths.back(), width - std::min(width, before));
  }
  const auto line = [&](auto cell_of) {
    std::string out;
    const std::string last(cell_of(widths.size() - 1));
    const auto fits = fitted(last, widths.back());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = i + 1 == columns_.size() ? fits.value_or("") : std::string(cell_of(i));
      const std::string space(widths[i] - std::min(widths[i], width_of(cell)), ' ');
      out += (i ? std::string(kBetween, ' ') : "") + (columns_[i].left ? cell + space : space + cell);
    }
    out.resize(out.find_last_not_of(' ') + 1);
    std::printf("%s\n", out.c_str());
    if (fits) return;
    const std::size_t room = width - std::min(width, kIndent);
    std::printf("%*s%s\n", static_cast<int>(kIndent), "", fitted(last, room).value_or(cut(last, room)).c_str());
  };
  line([&](std::size_t i) { return std::string(columns_[i].title); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
}

std::string paragraph(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    const std::size_t wide = width_of(word);
    if (column > 0 && column + 1 + wide > width) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += wide;
    at = end + 1;
  }
  return out + "\n";
}

void print_paragraph(const std::string& text) { std::printf("%s", paragraph(text, kLineWidth).c_str()); }

}  // namespace latecomer::profiles
