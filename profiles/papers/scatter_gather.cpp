// SPDX-License-Identifier: BSD-3-Clause
// Tables 3 and 4 of Proficz 2020, and its text about figure 14: scatter and gather with uniform random delays on 48
// processes. The network is 1 Gbit/s Ethernet by its data sheet (preset eth1g).
#include <map>
#include <tuple>

#include "profiles/papers/modelled.hpp"
#include "profiles/papers/papers.hpp"

namespace latecomer::profiles::papers {
namespace {

constexpr int kRanks = 48;  // as in the paper
// Random patterns per cell. Measured: the standard error of a mean is then 2% at most (delays of 1 to 100 ms, 128K to
// 2M floats).
constexpr int kPatterns = 100;

/// Mean run time in ms over the patterns.
double mean_ms(core::Collective op, std::string_view algorithm, core::Elements floats, double delay_ms) {
  static const core::Network net = network("eth1g");
  static std::map<std::tuple<core::Collective, std::string, core::Elements, double>, double> known;
  const auto [at, fresh] = known.try_emplace({op, std::string(algorithm), floats, delay_ms}, 0);
  if (!fresh) return at->second;
  const int patterns = delay_ms == 0 ? 1 : kPatterns;
  for (int seed = 0; seed < patterns; ++seed)
    at->second += static_cast<double>(modelled({op, kRanks, 0, floats / kRanks, 4, false, true}, algorithm,
                                               random_delays(kRanks, delay_ms, seed), net)
                                          .run_time) /
                  patterns / 1e6;
  return at->second;
}

}  // namespace

std::vector<Table> scatter_gather() {
  auto tables = printed("001");
  const std::string conditions =
      ", 48 processes, eth1g, means over 100 patterns of random delays up to the column's; rows: size in floats";
  const auto fill = [&](const char* number, core::Collective op, const char* plain, const char* aware,
                        const std::string& title, const std::string& why) {
    for (const bool quotient : {false, true})
      compute(tables, std::string(number) + (quotient ? " speedup" : " difference"),
              quotient ? "the same, " + std::string(plain) + " / " + aware : title + conditions, quotient ? 2 : 1, why,
              [=](Cell& c) {
                const auto floats = static_cast<core::Elements>(1024 * leading_number(c.row));
                const double delay = leading_number(c.column), a = mean_ms(op, plain, floats, delay),
                             b = mean_ms(op, aware, floats, delay);
                c.ours = quotient ? a / b : b - a;
              });
  };
  fill("3", core::Collective::scatter, "linear", "bsln", "run time of bsln minus linear's in ms, scatter",
       "The model has no noise. The printed differences of 0.1 ms at small sizes, and of 1.6 ms at short delays, are "
       "noise of the measurement.");
  fill("4", core::Collective::gather, "linear_sync", "bsls", "run time of bsls minus linear_sync's in ms, gather",
       "The model has no collisions in the switch. On the paper's machine (section 5.2) they slow linear_sync down, "
       "which takes 140 ms on a link that needs 65 ms; sorted senders avoid them. Hence the model cannot give gains of "
       "70 ms, or losses of 20 ms at 1M and 2M floats.");
  compute(tables, "figure 14",
          "run time in ms, scatter of 2M floats, 48 processes, eth1g, as in the text of section 5.2", 1, "",
          [](Cell& c) { c.ours = mean_ms(core::Collective::scatter, c.row, 2 << 20, leading_number(c.column)); });
  return tables;
}

}  // namespace latecomer::profiles::papers
