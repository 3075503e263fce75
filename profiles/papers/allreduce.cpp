// SPDX-License-Identifier: BSD-3-Clause
// Tables 3 and 4 of Proficz 2018: allreduce with one late rank and with random delays on 48 processes. The network is
// fitted to the paper's ring (preset tryton2018).
//
// SLT and PRR pay for their prediction. In the paper, a background thread exchanges the estimates and opens the
// connections before the operation begins. Here no rank begins SLT or PRR before the first arrival plus planning_ns();
// elapsed times count from the real arrivals. A longer delay hides this cost, as the paper's figures from 50 ms on
// show.
#include <algorithm>
#include <map>
#include <tuple>

#include "profiles/papers/modelled.hpp"
#include "profiles/papers/papers.hpp"

namespace latecomer::profiles::papers {
namespace {

constexpr int kRanks = 48;  // as in the paper
// Random patterns per cell. Measured: the standard error of a mean is then 1.5% at most (delays of 1 to 100 ms, 128K to
// 2M floats).
constexpr int kPatterns = 16;

/// The cost of prediction, exchange and connections that computation does not hide. The formula is a fit to table 4 at
/// delays of 0 to 10 ms: a fixed part, a part for the connections of rendezvous messages, and a part per byte. With it
/// PRR loses in each of the 32 cells in which the paper has it at least 2% behind the ring. The cell with the highest
/// cost is 2M floats with random delays up to 10 ms.
core::Nanoseconds planning_ns(core::Bytes bytes, const core::Network& net) {
  constexpr double kFixed = 1e6, kConnections = 6e6, kPerByte = 0.31;
  return static_cast<core::Nanoseconds>(kFixed + (net.eager(bytes / kRanks) ? 0 : kConnections) +
                                        kPerByte * static_cast<double>(bytes));
}

bool predicts(std::string_view algorithm) { return algorithm == "slt" || algorithm == "prr"; }

/// Mean elapsed time of one call, in ns.
double elapsed(std::string_view algorithm, core::Elements floats, const core::Pattern& arrivals) {
  static const core::Network net = network("tryton2018");
  const core::Call call{core::Collective::allreduce, kRanks, 0, floats, 4, false, true};
  if (!predicts(algorithm)) return modelled(call, algorithm, arrivals, net).mean_elapsed;
  const core::Nanoseconds ready = (arrivals.flat() ? 0 : arrivals.first()) + planning_ns(call.bytes(), net);
  std::vector<core::Nanoseconds> begins;
  double waited = 0;
  for (core::Rank r = 0; r < kRanks; ++r) {
    begins.push_back(std::max(arrivals.arrival(r), ready));
    waited += static_cast<double>(begins.back() - arrivals.arrival(r)) / kRanks;
  }
  return modelled(call, algorithm, core::Pattern(std::move(begins)), net).mean_elapsed + waited;
}

/// Mean elapsed time in ms over the patterns of a cell.
double mean_ms(std::string_view algorithm, core::Elements floats, bool one_late, double delay_ms) {
  static std::map<std::tuple<std::string, core::Elements, bool, double>, double> known;
  const auto [at, fresh] = known.try_emplace({std::string(algorithm), floats, one_late, delay_ms}, 0);
  if (!fresh) return at->second;
  if (one_late || delay_ms == 0) {
    std::vector<core::Nanoseconds> arrivals(kRanks, 0);
    arrivals[1] = static_cast<core::Nanoseconds>(1e6 * delay_ms);
    return at->second = elapsed(algorithm, floats, core::Pattern(std::move(arrivals))) / 1e6;
  }
  for (int seed = 0; seed < kPatterns; ++seed)
    at->second += elapsed(algorithm, floats, random_delays(kRanks, delay_ms, seed)) / kPatterns / 1e6;
  return at->second;
}

}  // namespace

std::vector<Table> allreduce() {
  auto tables = printed("002");
  const std::string conditions =
      ", 48 processes, 1 Gbit/s Ethernet as fitted (tryton2018), one message after the other; SLT and PRR "
      "include the cost of prediction";
  const std::string cost =
      "The model charges SLT and PRR one fitted cost of prediction per size, here 8.3 ms. The printed algorithms pay "
      "about 4 ms without a delay. The fit is higher because it covers 2M floats with random delays up to 10 ms.";
  const std::string small =
      "The model has one cost of prediction per size and no noise. The printed differences vary by up to 11 ms between "
      "delays of 0 and 1 ms. Messages below 64 KiB are eager in the model, and their latency is fitted to vectors of "
      "1M floats: with 128K floats the ring takes 9.1 ms, and about 5.5 ms on the paper's machine.";
  constexpr core::Elements kMega = 1 << 20;
  compute(tables, "3 time", "mean elapsed time in ms, 1M floats, one late process" + conditions, 1, cost,
          [](Cell& c) { c.ours = mean_ms(c.row, kMega, true, leading_number(c.column)); });
  compute(tables, "3 speedup", "the same, ring / algorithm", 2, cost, [](Cell& c) {
    c.ours =
        mean_ms("ring", kMega, true, leading_number(c.column)) / mean_ms(c.row, kMega, true, leading_number(c.column));
  });
  const auto table4 = [](Cell& c, bool quotient) {
    const bool one_late = c.row.starts_with("one late");
    const auto floats =
        static_cast<core::Elements>(1024 * leading_number(std::string_view(c.row).substr(c.row.rfind(' ') + 1)));
    const double delay = leading_number(c.column), ring = mean_ms("ring", floats, one_late, delay),
                 prr = mean_ms("prr", floats, one_late, delay);
    c.ours = quotient ? ring / prr : prr - ring;
  };
  compute(
      tables, "4 difference",
      "mean elapsed time of PRR minus the ring's in ms; rows: mode and size in floats; random delays: means over 16 "
      "patterns" +
          conditions,
      1, small, [&](Cell& c) { table4(c, false); });
  compute(tables, "4 speedup", "the same, ring / PRR", 2, small, [&](Cell& c) { table4(c, true); });
  return tables;
}

}  // namespace latecomer::profiles::papers
