// SPDX-License-Identifier: BSD-3-Clause
// The tables of the publications behind the algorithms. Each cell has the printed figure and the figure that core
// computes. The printed figures are data (000.tsv to 004.tsv); one source file per publication computes the others. The
// results are deterministic. Nothing is printed here.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latecomer::profiles::papers {

struct Cell {
  std::string row, column;
  std::string printed;         ///< as printed; ">1" or "<1": a finding, the side on which our figure must lie
  std::optional<double> ours;  ///< none: not computed; the table's `why` has the reason
  std::string note;            ///< a remark on this cell, or ""
  /// The printed figure; none for a finding.
  std::optional<double> figure() const;
  /// Our figure divided by the printed one; none if either is missing or the printed one is 0.
  std::optional<double> ratio() const;
};

struct Table {
  std::string name;   ///< "3 speedup"
  std::string title;  ///< the quantity and the conditions of our figures
  std::string why;    ///< the reason why some cells cannot be met, or ""
  int decimals = 0;   ///< of our figures
  std::vector<Cell> cells;
};

struct Paper {
  std::string_view number;  ///< "002"
  std::string_view cited;   ///< author, year, title, journal
  std::vector<Table> (*tables)();
};

/// All publications, by number.
std::span<const Paper> all();

/// The printed tables of a publication, in the order of its data file. Our figures are missing; Table::title, why and
/// decimals are empty.
std::vector<Table> printed(std::string_view number);

/// Fills in one table: title, decimals, why, and in each cell our figure from the given function. Throws if the data
/// has no table of that name.
void compute(std::vector<Table>& tables, std::string_view name, std::string title, int decimals, std::string why,
             const std::function<void(Cell&)>& cell);

/// The number at the start of a text: 50 of "50 ms". Throws if the text does not start with a number.
double leading_number(std::string_view text);

std::vector<Table> clairvoyant();
std::vector<Table> scatter_gather();
std::vector<Table> allreduce();
std::vector<Table> trees();
std::vector<Table> ranges();

}  // namespace latecomer::profiles::papers
