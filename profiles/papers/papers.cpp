// SPDX-License-Identifier: BSD-3-Clause
// Parses the printed figures, which the build embeds, and lists the publications.
#include "profiles/papers/papers.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/base/text.hpp"

namespace latecomer::profiles::papers {

// Generated from 000.tsv to 004.tsv.
std::string_view embedded(std::string_view number);

namespace {

constexpr Paper kPapers[] = {
    {"000",
     "Proficz and Ocetkiewicz 2021, Improving Clairvoyant: reduction algorithm resilient to imbalanced process arrival "
     "patterns, The Journal of Supercomputing 77",
     clairvoyant},
    {"001",
     "Proficz 2020, Process arrival pattern aware algorithms for acceleration of scatter and gather operations, "
     "Cluster Computing 23",
     scatter_gather},
    {"002",
     "Proficz 2018, Improving all-reduce collective operations for imbalanced process arrival patterns, The Journal of "
     "Supercomputing 74",
     allreduce},
    {"003",
     "Träff 2019, On optimal trees for irregular gather and scatter collectives, IEEE Transactions on Parallel and "
     "Distributed Systems 30",
     trees},
    {"004",
     "Axtmann, Wiebigke and Sanders 2018, Lightweight MPI communicators with applications to perfectly balanced "
     "quicksort, IPDPS",
     ranges},
};

}  // namespace

std::optional<double> Cell::figure() const {
  const auto number = core::parse_number(printed);
  return number ? std::optional<double>(*number) : std::nullopt;
}

std::optional<double> Cell::ratio() const {
  const auto number = figure();
  if (!number || !ours || *number == 0) return std::nullopt;
  return *ours / *number;
}

std::span<const Paper> all() { return kPapers; }

std::vector<Table> printed(std::string_view number) {
  std::vector<Table> out;
  bool heading = true;
  std::string_view rest = embedded(number);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    if (std::exchange(heading, false)) continue;
    std::string_view field[4], left = line;
    for (std::string_view& f : field) {
      f = left.substr(0, left.find('\t'));
      left.remove_prefix(std::min(left.size(), f.size() + 1));
    }
    if (field[3].empty())
      throw std::logic_error(std::string(number) + ".tsv: expected four columns: " + std::string(line));
    if (out.empty() || out.back().name != field[0]) out.push_back({std::string(field[0]), {}, {}, 0, {}});
    out.back().cells.push_back({std::string(field[1]), std::string(field[2]), std::string(field[3]), std::nullopt, {}});
  }
  return out;
}

void compute(std::vector<Table>& tables, std::string_view name, std::string title, int decimals, std::string why,
             const std::function<void(Cell&)>& cell) {
  const auto table = std::ranges::find_if(tables, [&](const Table& t) { return t.name == name; });
  if (table == tables.end()) throw std::logic_error("no printed table '" + std::string(name) + "'");
  table->title = std::move(title);
  table->decimals = decimals;
  table->why = std::move(why);
  for (Cell& c : table->cells) cell(c);
}

double leading_number(std::string_view text) {
  const auto number = core::parse_number(text.substr(0, text.find_first_not_of("0123456789.")));
  if (!number) throw std::logic_error("no number at the start of '" + std::string(text) + "'");
  return *number;
}

}  // namespace latecomer::profiles::papers
