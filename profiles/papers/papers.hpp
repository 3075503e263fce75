// SPDX-License-Identifier: BSD-3-Clause
// The tables of the publications behind the algorithms, each cell with the printed figure and the one that core
// computes. The printed figures are data (000.tsv to 004.tsv); a file per publication computes ours. Deterministic, no
// output.
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
  std::string printed;         ///< as the publication has it; ">1" or "<1": a finding, the side on which a figure lies
  std::optional<double> ours;  ///< nothing: not computed, and the table's `why` says why
  std::string note;            ///< "" or what is special about this cell
  /// The printed figure; nothing for a finding.
  std::optional<double> figure() const;
  /// Ours over the printed figure; nothing where either is missing or the printed one is 0.
  std::optional<double> ratio() const;
};

struct Table {
  std::string name;   ///< "3 speedup"
  std::string title;  ///< what the figures are, and under which conditions ours were computed
  std::string why;    ///< "" or why some cells cannot be met
  int decimals = 0;   ///< of ours
  std::vector<Cell> cells;
};

struct Paper {
  std::string_view number;  ///< "002"
  std::string_view cited;   ///< author, year, title, journal
  std::vector<Table> (*tables)();
};

/// All publications, by number.
std::span<const Paper> all();

/// The printed tables of a publication, in the order of its data file, ours missing; Table::title, why and decimals
/// empty.
std::vector<Table> printed(std::string_view number);

/// Fills in ours, table by table: title, decimals, why, and the function that computes a cell. A name that the data
/// lacks throws.
void compute(std::vector<Table>& tables, std::string_view name, std::string title, int decimals, std::string why,
             const std::function<void(Cell&)>& cell);

/// The number at the start of a text: 50 of "50 ms"; throws if there is none.
double leading_number(std::string_view text);

std::vector<Table> clairvoyant();
std::vector<Table> scatter_gather();
std::vector<Table> allreduce();
std::vector<Table> trees();
std::vector<Table> ranges();

}  // namespace latecomer::profiles::papers
