// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site.
#include "profiles/render/site_table.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

#include "profiles/analysis/callers.hpp"
#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {

namespace {

/// The callers that the table shows of a site.
constexpr std::size_t kCallersShown = 3;

/// A column of the table.
struct SiteColumn {
  TextTable::Column column;
  bool wide;  ///< shown only where lines may be long
  bool adds;  ///< the sum over callers is a figure of them together
  std::string (*text)(const analysis::CallFigures& calls, double all_time);
};
std::string time_of(const analysis::CallFigures& c, double ns) { return c.patterns > 0 ? human_time(ns) : "-"; }
constexpr SiteColumn kColumns[] = {
    {{"calls"},
     false,
     true,
     [](const analysis::CallFigures& c, double) { return std::to_string(static_cast<long>(c.calls)); }},
    {{"bytes"},
     false,
     false,
     [](const analysis::CallFigures& c, double) { return c.bytes ? human_bytes(std::round(*c.bytes)) : "-"; }},
    {{"wait, sum"}, false, true, [](const analysis::CallFigures& c, double) { return time_of(c, c.waited); }},
    {{"share"}, false, true, [](const analysis::CallFigures& c, double all) { return percent(c.waited, all, "-"); }},
    {{"wait, mean"}, true, false, [](const analysis::CallFigures& c, double) { return time_of(c, c.imbalance); }},
    {{"after last"}, true, false, [](const analysis::CallFigures& c, double) { return time_of(c, c.after_last); }},
    {{"comes last", true}, false, false, [](const analysis::CallFigures& c, double) { return c.last_ranks(2); }},
};

class SiteTable {
 public:
  SiteTable(double all_time, bool wide) : all_time_(all_time), wide_(wide), table_(columns(wide)) {}
  /// `sums`: the figures of the calls are sums over several callers, and columns that do not add up are empty.
  void add(const analysis::CallFigures& calls, const std::string& op, const std::string& ranks,
           const std::string& place, bool sums = false) {
    std::vector<std::string> cells = {op, ranks};
    for (const SiteColumn& c : kColumns)
      if (wide_ || !c.wide) cells.push_back(sums && !c.adds ? "" : c.text(calls, all_time_));
    cells.push_back(place);
    table_.add(std::move(cells));
  }
  /// The callers of the row above.
  void add(const std::vector<analysis::CallerNode>& callers) {
    const std::size_t shown = callers.size() == kCallersShown + 1 ? callers.size() : kCallersShown;
    analysis::CallFigures rest;
    for (std::size_t i = 0; i < callers.size(); ++i) {
      const analysis::CallFigures& f = callers[i].figures;
      if (i >= shown) {
        rest.calls += f.calls;
        rest.waited += f.waited;
        rest.patterns += f.patterns;
      } else add(f, "", "", "  < " + callers[i].place());
    }
    if (callers.size() > shown)
      add(rest, "", "", "  < " + std::to_string(callers.size() - shown) + " more callers", true);
  }
  void print() const { table_.print(wide_ ? 0 : kLineWidth); }

 private:
  static std::vector<TextTable::Column> columns(bool wide) {
    std::vector<TextTable::Column> out = {{"collective", true}, {"ranks"}};
    for (const SiteColumn& c : kColumns)
      if (wide || !c.wide) out.push_back(c.column);
    out.push_back({"called from", true});
    return out;
  }
  double all_time_;
  bool wide_;
  TextTable table_;
};

}  // namespace

void print_sites(const Profile& profile, std::size_t most, bool wide) {
  SiteTable table(profile.job.rank_time(), wide);
  std::size_t joined = 0, alone = 0, several = 0, wrappers = 0;
  for (const Site& s : profile.sites) {
    if (s.comm_size == 1 && ++alone) continue;
    if (several++ >= most) continue;
    if (s.calls == 0) ++joined;
    table.add(s, s.op, std::to_string(static_cast<long>(s.comm_size)), s.place());
    if (!wide && several > 1) continue;
    const auto tree = analysis::callers_of(s);
    if (const auto& callers = analysis::served(tree); analysis::serves_many(callers)) {
      ++wrappers;
      table.add(callers);
    }
  }
  table.print();
  if (several > most) std::printf("... and %zu more call sites.\n", several - most);
  if (wide)
    std::printf(
        "\nwait, sum: time of all ranks from their arrival to that of the rank that they wait for; share: of "
        "the ranks' time.\nwait, mean: from the first arrival to the last; after last: from the last arrival to the "
        "last exit.\n");
  if (wrappers) std::printf("<: the callers of a line that serves several; they are parts of its row.\n");
  if (joined) std::printf("Calls 0: other ranks reach the same operation from another line, which counts the calls.\n");
  if (wide && alone) std::printf("The table omits %zu sites on communicators of one rank.\n", alone);
}

}  // namespace latecomer::profiles
