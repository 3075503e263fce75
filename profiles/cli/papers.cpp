// SPDX-License-Identifier: BSD-3-Clause
// `latecomer papers`: prints the publications' tables beside latecomer's figures.
#include "profiles/papers/papers.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::profiles::cli {
namespace {

using profiles::papers::Cell;
using profiles::papers::Paper;
using profiles::papers::Table;

struct PapersOptions {
  std::vector<std::string> numbers;
  bool tsv = false, json = false;
};

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  // Do not print the sign of a difference that rounds to zero.
  const std::string out = text;
  return out.find_first_of("123456789") == out.npos && out.front() == '-' ? out.substr(1) : out;
}
std::string ours_of(const Table& table, const Cell& cell) { return cell.ours ? fixed(*cell.ours, table.decimals) : ""; }
/// The ratio, or whether a finding holds.
std::string ratio_of(const Cell& cell) {
  if (const auto ratio = cell.ratio()) return fixed(*ratio, 3);
  if (!cell.ours || cell.figure()) return "";
  const double limit = profiles::papers::leading_number(std::string_view(cell.printed).substr(1));
  return (cell.printed.front() == '>' ? *cell.ours > limit : *cell.ours < limit) ? "holds" : "fails";
}

void print_tsv(const Paper& paper, const std::vector<Table>& tables) {
  for (const Table& t : tables)
    for (const Cell& c : t.cells)
      std::printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", std::string(paper.number).c_str(), t.name.c_str(), c.row.c_str(),
                  c.column.c_str(), c.printed.c_str(), ours_of(t, c).c_str(), ratio_of(c).c_str(),
                  c.ours ? c.note.c_str() : "not computed");
}

nlohmann::ordered_json as_json(const Paper& paper, const std::vector<Table>& tables) {
  nlohmann::ordered_json out{
      {"paper", paper.number}, {"cited", paper.cited}, {"tables", nlohmann::ordered_json::array()}};
  for (const Table& t : tables) {
    nlohmann::ordered_json table{
        {"table", t.name}, {"title", t.title}, {"why", t.why}, {"cells", nlohmann::ordered_json::array()}};
    for (const Cell& c : t.cells) {
      const auto number = c.figure(), ratio = c.ratio();
      nlohmann::ordered_json cell{{"row", c.row}, {"column", c.column}};
      cell["printed"] = number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(c.printed);
      cell["ours"] = c.ours ? nlohmann::ordered_json(std::stod(ours_of(t, c))) : nullptr;
      cell["ratio"] = ratio ? nlohmann::ordered_json(std::stod(ratio_of(c))) : nullptr;
      if (!number && c.ours) cell["holds"] = ratio_of(c) == "holds";
      table["cells"].push_back(std::move(cell));
    }
    out["tables"].push_back(std::move(table));
  }
  return out;
}

template <typename Of>
std::vector<std::string> distinct(const Table& t, Of of) {
  std::vector<std::string> out;
  for (const Cell& c : t.cells)
    if (std::ranges::find(out, of(c)) == out.end()) out.push_back(of(c));
  return out;
}

void print_table(const Table& t) {
  const auto rows = distinct(t, [](const Cell&c) { return c.row; }),
             columns = distinct(t, [](const Cell&c) { return c.column; });
  std::size_t first = 0, width = 9;
  for (const auto& r : rows) first = std::max(first, r.size());
  for (const auto& c : columns) width = std::max(width, c.size() + 2);
  std::printf("\n%s: %s\n%*s", t.name.c_str(), t.title.c_str(), static_cast<int>(first + 9), "");
  for (const auto& c : columns) std::printf("%*s", static_cast<int>(width), c.c_str());
  std::printf("\n");
  for (const auto& r : rows)
    for (const char* line : {"printed", "ours", "ratio"}) {
      std::printf("%-*s  %-7s", static_cast<int>(first), *line == 'p' ? r.c_str() : "", line);
      for (const auto& column : columns) {
        const auto cell =
            std::ranges::find_if(t.cells, [&](const Cell& c) { return c.row == r && c.column == column; });
        std::string text;
        if (cell != t.cells.end())
          text = *line == 'p' ? cell->printed : *line == 'o' ? ours_of(t, *cell) : ratio_of(*cell);
        std::printf("%*s", static_cast<int>(width), text.empty() && cell != t.cells.end() ? "-" : text.c_str());
      }
      std::printf("\n");
    }
  if (!t.why.empty()) std::printf("%s\n", t.why.c_str());
}

int papers(const PapersOptions& o) {
  std::vector<const Paper*> chosen;
  std::vector<std::string_view> known;
  for (const Paper& p : profiles::papers::all()) {
    known.push_back(p.number);
    if (o.numbers.empty() || std::ranges::find(o.numbers, p.number) != o.numbers.end()) chosen.push_back(&p);
  }
  for (const std::string& number : o.numbers)
    if (std::ranges::find(known, number) == known.end())
      throw BadUsage("papers: unknown paper '" + number + "'; expected 000 to 004" + core::suggestion(number, known));
  if (o.tsv) std::printf("paper\ttable\trow\tcolumn\tprinted\tours\tratio\tnote\n");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Paper* p : chosen) {
    const auto tables = p->tables();
    if (o.tsv) print_tsv(*p, tables);
    else if (o.json) all.push_back(as_json(*p, tables));
    else {
      std::printf("%s%s: %s\n", p == chosen.front() ? "" : "\n", std::string(p->number).c_str(),
                  std::string(p->cited).c_str());
      for (const Table& t : tables) print_table(t);
    }
    std::fflush(stdout);
  }
  if (o.json) print_answer(all);
  return 0;
}

}  // namespace

void add_papers(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("papers", "Print the tables of publications beside the figures of the model and the planners");
  auto o = std::make_shared<PapersOptions>();
  command->add_option(
      "papers", o->numbers,
      "000: Proficz and Ocetkiewicz 2021. 001: Proficz 2020. 002: Proficz 2018. 003: Traeff 2019. 004: Axtmann, "
      "Wiebigke and Sanders 2018. Default: all, which takes about a minute.");
  auto* tsv = command->add_flag(
      "--tsv", o->tsv,
      "Print one line per cell: paper, table, row, column, printed, ours, ratio, note. The ratio of a finding "
      "is holds or fails.");
  command->add_flag("--json", o->json, "Print the answer as JSON.")->excludes(tsv);
  command->footer(
      R"(Each cell shows the printed figure, ours, and ours divided by the printed one. A line under a table says why a
cell differs.

Examples:
  $ latecomer papers 002
  $ latecomer papers --tsv > papers.tsv)");
  command->callback([o, &action] { action = [o] { return papers(*o); }; });
}

}  // namespace latecomer::profiles::cli
