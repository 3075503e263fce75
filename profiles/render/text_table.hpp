// SPDX-License-Identifier: BSD-3-Clause
// Text for a terminal: tables whose columns are as wide as their cells, and paragraphs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latecomer::profiles {

/// The longest line of a report without --all. Chosen: two pages side by side, or one on a small screen.
inline constexpr std::size_t kLineWidth = 100;

class TextTable {
 public:
  struct Column {
    std::string_view title;
    bool left = false;  ///< texts stand at the left, numbers at the right
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// No line is longer than `width` if the other columns leave room; 0: no limit. For that, a cell of the last column
  /// loses the outer scopes of its name, or gets a line of its own.
  void print(std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// The first `count` characters.
std::string_view first(std::string_view text, std::size_t count);

/// The text in at most `width` characters. The cut is before the last bracket: "long_na... (file.c:12)".
std::string cut(const std::string& text, std::size_t width);

/// The text in lines of at most `width` characters, broken between words, with a line feed at the end.
std::string paragraph(const std::string& text, std::size_t width);
/// Prints it in lines of at most kLineWidth characters.
void print_paragraph(const std::string& text);

}  // namespace latecomer::profiles
