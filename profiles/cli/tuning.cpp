// SPDX-License-Identifier: BSD-3-Clause
// Models each library's own algorithms and writes its settings.
#include "profiles/cli/tuning.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/base/text.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"

namespace latecomer::profiles::cli {
namespace {

/// Algorithms of the catalogue that a library has too: the same messages in the same order.
struct Own {
  core::Collective op;
  const char* name;
  const char* mpich;  ///< value of MPIR_CVAR_<OP>_INTRA_ALGORITHM; "": the library lacks it
  int openmpi;        ///< value of coll_tuned_<op>_algorithm; 0: the library lacks it
};
constexpr Own kOwn[] = {
    {core::Collective::allreduce, "recursive_doubling", "recursive_doubling", 3},
    {core::Collective::allreduce, "rabenseifner", "reduce_scatter_allgather", 6},
    {core::Collective::allreduce, "ring", "", 4},
    {core::Collective::reduce, "binomial", "binomial", 5},
    {core::Collective::reduce, "rabenseifner", "reduce_scatter_gather", 7},
    {core::Collective::bcast, "binomial", "binomial", 6},
    {core::Collective::bcast, "scatter_ring", "scatter_ring_allgather", 9},
};

enum class TunedLibrary { mpich, openmpi };

bool has(TunedLibrary library, const Own& own) {
  return library == TunedLibrary::mpich ? *own.mpich != '\0' : own.openmpi > 0;
}

std::string upper(core::Collective op) {
  std::string out(core::name_of(op));
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

/// A site with the modelled times of the library's own algorithms.
struct TuningRow {
  const TunedSite* from = nullptr;
  core::Collective op = core::Collective::barrier;
  double calls = 0, native_ns = -1;
  std::map<const Own*, double> times;
  const Own* chosen = nullptr;
  std::string reason;
  std::int64_t least() const { return from->site->least_bytes; }
  std::int64_t most() const { return from->site->most_bytes; }
};

TuningRow modelled(const TunedSite& site, TunedLibrary library, core::Objective objective) {
  TuningRow row;
  row.from = &site;
  row.op = core::find_collective(site.site->op).value_or(core::Collective::barrier);
  row.calls = site.site->unrested();
  row.reason = site.problem;
  if (!row.reason.empty()) return row;
  for (const Own& own : kOwn) {
    if (own.op != row.op || !has(library, own)) continue;
    core::CandidateSearch search(site.call, site.arrivals, site.parameters, objective, false, core::kMostOffline);
    const core::Algorithm* algorithm = core::find_algorithm(own.op, own.name);
    search.only(*algorithm, 0);
    while (!search.done()) search.step();
    row.native_ns = search.found().native_ns;
    for (const auto& candidate : search.found().list)
      if (candidate.algorithm == core::index_of(algorithm)) row.times[&own] = candidate.modelled_ns;
  }
  if (row.times.empty() || row.native_ns < 0) row.reason = "the library has no algorithm here that the model knows";
  else if (site.measured_ns >= 0 && !core::is_forecast(row.native_ns, site.measured_ns))
    row.reason = "the model does not describe this machine: native modelled " + human_time(row.native_ns) +
                 ", measured " + human_time(site.measured_ns);
  if (!row.reason.empty()) row.times.clear();
  return row;
}

const Own* fastest(const std::map<const Own*, double>& times) {
  const auto best = std::ranges::min_element(times, [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == times.end() ? nullptr : best->first;
}

/// A rule by message size and communicator size: each site has its own algorithm, unless an earlier one claims some of
/// its sizes for another.
void choose_by_size(std::vector<TuningRow>& rows) {
  std::ranges::stable_sort(rows, [](const TuningRow& a, const TuningRow& b) {
    const auto gain = [](const TuningRow& r) {
      const Own* best = fastest(r.times);
      return best ? (r.native_ns - r.times.at(best)) * r.calls : 0;
    };
    return gain(a) > gain(b);
  });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TuningRow& row = rows[i];
    const Own* best = fastest(row.times);
    if (!best) continue;
    if (row.times[best] > core::kWorthTrying * row.native_ns) {
      row.reason = "none of the library's own algorithms is better";
      continue;
    }
    const bool taken =
        std::any_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(i), [&](const TuningRow& other) {
          return other.chosen && other.chosen != best && other.op == row.op &&
                 other.from->call.ranks == row.from->call.ranks && other.least() <= row.most() &&
                 row.least() <= other.most();
        });
    if (taken) row.reason = "a rule for another site covers some of its sizes";
    else row.chosen = best;
  }
}

/// One algorithm for all calls of a collective, whatever their sizes.
void choose_by_collective(std::vector<TuningRow>& rows) {
  std::map<core::Collective, std::vector<TuningRow*>> by_op;
  for (TuningRow& row : rows) by_op[row.op].push_back(&row);
  for (auto& [op, sites] : by_op) {
    double native = 0, covered = 0, calls = 0;
    std::map<const Own*, double> totals;
    for (const Own& own : kOwn)
      if (own.op == op) totals[&own] = 0;
    for (const TuningRow* row : sites) {
      calls += row->calls;
      if (row->times.empty()) continue;
      covered += row->calls;
      native += row->calls * row->native_ns;
      std::erase_if(totals, [&](const auto& total) { return !row->times.contains(total.first); });
      for (auto& [own, sum] : totals) sum += row->calls * row->times.at(own);
    }
    const Own* best = covered > 0 ? fastest(totals) : nullptr;
    // The setting also changes the calls that the model does not cover.
    constexpr double kCovered = 0.9;
    const bool gains = best && totals[best] <= core::kWorthTrying * native;
    for (TuningRow* row : sites) {
      if (row->times.empty()) continue;
      if (gains && covered >= kCovered * calls) row->chosen = best;
      else
        row->reason = gains ? "the model covers only " + percent(covered, calls) +
                                  " of the calls of this collective, and the setting would change all of them"
                            : "no own algorithm is better for all calls of this collective together";
    }
  }
}

std::string mpich_settings(const std::vector<TuningRow>& rows) {
  std::map<core::Collective, const Own*> chosen;
  for (const TuningRow& row : rows)
    if (row.chosen) chosen[row.op] = row.chosen;
  std::string out;
  if (!chosen.empty()) out += "export MPIR_CVAR_DEVICE_COLLECTIVES=percoll\n";
  for (const auto& [op, own] : chosen) {
    out += "export MPIR_CVAR_" + upper(op) + "_DEVICE_COLLECTIVE=0\n";
    out += "export MPIR_CVAR_" + upper(op) + "_INTRA_ALGORITHM=" + own->mpich + "\n";
  }
  return out;
}

using Ranges = std::map<std::pair<std::int64_t, std::int64_t>, const Own*>;  // bytes, from and to
std::map<core::Collective, std::map<int, Ranges>> ranges_of(const std::vector<TuningRow>& rows) {
  std::map<core::Collective, std::map<int, Ranges>> out;
  for (const TuningRow& row : rows) {
    if (!row.chosen) continue;
    Ranges& ranges = out[row.op][row.from->call.ranks];
    std::pair range{row.least(), row.most()};
    // Ranges that overlap have the same algorithm and become one.
    for (auto at = ranges.begin(); at != ranges.end();)
      if (at->first.first <= range.second && range.first <= at->first.second) {
        range = {std::min(range.first, at->first.first), std::max(range.second, at->first.second)};
        at = ranges.erase(at);
      } else ++at;
    ranges[range] = row.chosen;
  }
  return out;
}

/// Algorithm 0 leaves the choice to Open MPI. A rule holds from its size up to that of the next one.
std::string openmpi_settings(const std::vector<TuningRow>& rows) {
  const auto by_op = ranges_of(rows);
  // Open MPI's numbers of the collectives.
  const auto number = [](core::Collective op) {
    return op == core::Collective::allreduce ? 2 : op == core::Collective::bcast ? 7 : 11;
  };
  std::string out = std::to_string(by_op.size()) + " # collectives\n";
  for (const auto& [op, by_size] : by_op) {
    std::map<int, std::vector<std::string>> sizes = {{0, {"0 0 0 0"}}};
    for (const auto& [ranks, ranges] : by_size) {
      std::map<std::int64_t, int> from = {{0, 0}};
      for (const auto& [range, own] : ranges) {
        from[range.first] = own->openmpi;
        from.try_emplace(range.second + 1, 0);
      }
      auto& lines = sizes[ranks];
      lines.clear();
      for (const auto& [bytes, algorithm] : from)
        lines.push_back(std::to_string(bytes) + " " + std::to_string(algorithm) + " 0 0");
      sizes.try_emplace(ranks + 1, std::vector<std::string>{"0 0 0 0"});
    }
    out += std::to_string(number(op)) + " # " + std::string(core::name_of(op)) + "\n" + std::to_string(sizes.size()) +
           " # communicator sizes\n";
    for (const auto& [ranks, lines] : sizes) {
      out += std::to_string(ranks) + " # ranks\n" + std::to_string(lines.size()) +
             " # rules: least bytes, algorithm, fan-in or fan-out, segment size\n";
      for (const std::string& line : lines) out += line + "\n";
    }
  }
  return out;
}

std::string head(TunedLibrary library) {
  const std::string written = "# Written by latecomer advise. All times are forecasts of a model, per call.\n";
  return written +
         (library == TunedLibrary::mpich
              ? "# For MPICH 4. Run `. FILE` in the shell that starts the job. A setting holds for all calls of its\n"
                "# collective, and MPICH does not run them in two levels any more.\n"
              : "# For Open MPI 4.1 and 5: mpirun --mca coll_tuned_use_dynamic_rules 1 "
                "--mca coll_tuned_dynamic_rules_filename FILE\n"
                "# The times are compared with those of the MPI library of the profile.\n");
}

}  // namespace

Tuning tune(const std::string& format, const std::vector<TunedSite>& sites, core::Objective objective) {
  static constexpr std::string_view kFormats[] = {"mpich", "openmpi"};
  const auto* const found = std::find(std::begin(kFormats), std::end(kFormats), format);
  if (found == std::end(kFormats))
    throw BadUsage("--format: unknown format '" + format + "'" + core::suggestion(format, kFormats));
  const auto library = static_cast<TunedLibrary>(found - std::begin(kFormats));
  std::vector<TuningRow> rows;
  rows.reserve(sites.size());
  for (const TunedSite& site : sites) rows.push_back(modelled(site, library, objective));
  library == TunedLibrary::mpich ? choose_by_collective(rows) : choose_by_size(rows);

  Tuning out;
  out.sites = Json::array();
  std::string comments;
  for (const TuningRow& row : rows) {
    const Site& site = *row.from->site;
    const std::string calls = std::to_string(static_cast<std::uint64_t>(site.calls)),
                      ranks = std::to_string(static_cast<int>(site.comm_size));
    Json one = {{"id", site.id},
                {"place", site.place()},
                {"op", site.op},
                {"comm_size", static_cast<int>(site.comm_size)},
                {"calls", static_cast<std::uint64_t>(site.calls)},
                {"algorithm", "native"},
                {"native_ns", nullptr},
                {"predicted_ns", nullptr},
                {"reason", row.reason}};
    comments += "# " + site.op + " at " + site.place() + ", " + ranks + " ranks" +
                (site.bytes ? ", " + human_bytes(std::round(*site.bytes)) : "") + ", " + calls + " calls: ";
    if (row.chosen) {
      const double then = row.times.at(row.chosen);
      one["algorithm"] = row.chosen->name;
      one["native_ns"] = row.native_ns;
      one["predicted_ns"] = then;
      out.gain_ns += (row.native_ns - then) * row.calls;
      out.empty = false;
      comments += std::string(row.chosen->name) + ", " + human_time(row.native_ns) + " > " + human_time(then) + "\n";
    } else {
      comments += "no setting, because " + row.reason + "\n";
    }
    out.sites.push_back(one);
  }
  out.text =
      head(library) + comments + (library == TunedLibrary::mpich ? mpich_settings(rows) : openmpi_settings(rows));
  return out;
}

}  // namespace latecomer::profiles::cli
