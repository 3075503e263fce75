// SPDX-License-Identifier: BSD-3-Clause
// Prints one line per call site.
#include "profiles/render/site_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "profiles/analysis/callers.hpp"
#include "profiles/base/text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {

namespace {

/// The callers that the table shows of a site.
constexpr std::size_t kCallersShown = 3;

/// The share of the ranks' time from which a site is large. Chosen: as for findings.
constexpr double kLarge = 0.01;

struct ShownRow {
  const analysis::CallFigures& calls;
  const Site* site;  ///< nullptr: the row is of callers, whose time in the calls is not known
  double all_time;
  bool wide;
};
/// A column of the table.
struct SiteColumn {
  TextTable::Column column;
  bool wide;  ///< shown only where lines may be long
  bool adds;  ///< the sum over callers is a figure of them together
  std::string (*text)(const ShownRow& row);
};
std::string time_of(const ShownRow& row, double ns) { return row.calls.patterns > 0 ? human_time(ns) : "-"; }
constexpr SiteColumn kColumns[] = {
    {{"calls"}, false, true, [](const ShownRow& r) { return std::to_string(static_cast<long>(r.calls.calls)); }},
    {{"bytes"},
     false,
     false,
     [](const ShownRow& r) { return r.calls.bytes ? human_bytes(std::round(*r.calls.bytes)) : "-"; }},
    {{"wait, sum"}, false, true, [](const ShownRow& r) { return time_of(r, r.calls.waited); }},
    {{"share"}, false, true, [](const ShownRow& r) { return percent(r.calls.waited, r.all_time, "-"); }},
    {{"in call"},
     false,
     false,
     [](const ShownRow& r) { return r.site ? percent(r.site->spent(), r.all_time, "-") : "-"; }},
    {{"wait, mean"}, true, false, [](const ShownRow& r) { return time_of(r, r.calls.imbalance); }},
    {{"after last"}, true, false, [](const ShownRow& r) { return time_of(r, r.calls.after_last); }},
    // A second rank would take the room of the place.
    {{"comes last", true}, false, false, [](const ShownRow& r) { return r.calls.comes_last(r.wide ? 2 : 1); }},
};

class SiteTable {
 public:
  SiteTable(double all_time, bool wide) : all_time_(all_time), wide_(wide), table_(columns(wide)) {}
  void add(const Site& site) {
    add(site, &site, site.op, std::to_string(static_cast<long>(site.comm_size)), site.place());
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
      } else add(f, nullptr, "", "", "  < " + callers[i].place());
    }
    if (callers.size() > shown)
      add(rest, nullptr, "", "", "  < " + std::to_string(callers.size() - shown) + " more callers", true);
  }
  void print() const { table_.print(wide_ ? 0 : kLineWidth); }

 private:
  /// `sums`: the figures of the calls are sums over several callers, and columns that do not add up are empty.
  void add(const analysis::CallFigures& calls, const Site* site, const std::string& op, const std::string& ranks,
           const std::string& place, bool sums = false) {
    std::vector<std::string> cells = {op, ranks};
    const ShownRow row{.calls = calls, .site = site, .all_time = all_time_, .wide = wide_};
    for (const SiteColumn& c : kColumns)
      if (wide_ || !c.wide) cells.push_back(sums && !c.adds ? "" : c.text(row));
    cells.push_back(place);
    table_.add(std::move(cells));
  }
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

void put_large_first(const Profile& profile, std::vector<const Site*>& sites) {
  const double least = kLarge * profile.job.rank_time();
  std::stable_partition(sites.begin(), sites.end(),
                        [&](const Site* site) { return std::max(site->waited, site->spent()) >= least; });
}

void print_sites(const Profile& profile, const std::vector<const Site*>& sites, std::size_t most, bool wide) {
  SiteTable table(profile.job.rank_time(), wide);
  std::size_t joined = 0, alone = 0, several = 0, wrappers = 0;
  for (const Site* s : sites) {
    if (s->comm_size == 1 && ++alone) continue;
    if (several++ >= most) continue;
    if (s->calls == 0) ++joined;
    table.add(*s);
    if (!wide && several > 1) continue;
    const auto tree = analysis::callers_of(*s);
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
        "the ranks' time; in call: the time of all ranks in\nthese calls, as a share of the same.\n"
        "wait, mean: from the first arrival to the last; after last: from the last arrival to the last exit.\n");
  if (wrappers) std::printf("<: the callers of a line that serves several; they are parts of its row.\n");
  if (joined)
    std::printf(
        "Calls 0: other ranks reach the same operation from another line, whose row has its calls and waits.\n");
  if (wide && alone) std::printf("The table omits %zu sites on communicators of one rank.\n", alone);
}

}  // namespace latecomer::profiles
