// SPDX-License-Identifier: BSD-3-Clause
// The comparisons of `auto` in a simulated job, by collective: its candidates, the algorithms that it leaves out and
// why, its reason, and the time of the leader's announcements. One rank is late in every call. Nothing is sent: native
// and the candidates take the modelled times.
// Usage: candidates_table [--ranks 64,256,1024] [--bytes 4MiB] [--network eth1g] [--arrivals onelate:1:50ms]
#include <cstdio>
#include <ctime>
#include <map>
#include <string>

#include "core/base/text.hpp"
#include "core/learning/learner.hpp"
#include "core/select/by_call.hpp"

using namespace latecomer::core;

namespace {

struct Longest {
  double ms = 0, all_ms = 0;
  std::int64_t messages = 0, all = 0;
};

std::string named(const Candidate& c) {
  std::string out(algorithm_at(c.algorithm).name);
  if (c.segments) out += "/" + std::to_string(c.segments);
  char text[32];
  std::snprintf(text, sizeof text, " %.2f ms%s", c.modelled_ns / 1e6, c.closed_form ? " (closed form)" : "");
  return out + text;
}

void job(Collective op, int ranks, Bytes bytes, const Policy& policy, const Pattern& pattern) {
  Signature s;
  s.op = op;
  s.servable = s.exact = true;
  s.root = is_rooted(op) ? 0 : -1;
  s.bytes = is_irregular(op) ? -1 : bytes;
  s.count = is_irregular(op) ? 1 : has_blocks(op) ? bytes / ranks : is_reduction(op) ? bytes / 8 : bytes;
  s.op_class = is_reduction(op) ? OpClass::sum : OpClass::none;
  const std::vector<Bytes> sizes(is_irregular(op) ? static_cast<std::size_t>(ranks) : 0, bytes / ranks);
  std::vector<Nanoseconds> offsets;
  double waits = 0;
  for (Rank r = 0; r < ranks; ++r) {
    offsets.push_back(pattern.arrival(r) - pattern.first());
    waits += static_cast<double>(pattern.last() - pattern.arrival(r)) / ranks;
  }
  Learner learner(policy, ranks, [](std::uint64_t, Collective, const std::string&) { return false; });
  Parameters parameters;
  parameters.network = policy.network;
  parameters.sizes = sizes;
  const Call call = call_of(s, ranks);
  const Algorithm* stand_in = native_stand_in(call);
  const auto native = simulate(*stand_in, Instance(call, Pattern(), parameters), policy.network, pattern);
  const Nanoseconds after = std::max<Nanoseconds>(native ? native->after_last : 0, 1'000);
  Longest took;
  Nanoseconds clock = 0;
  std::uint64_t n = 0;
  SlotReport report;
  // Run until the first trial begins, or until `auto` decides to try nothing.
  for (int announcements = 0; announcements < 400; ++announcements) {
    for (int i = 0; i < 64; ++i, ++n) {
      learner.record_call({n, s, 1, offsets, after, static_cast<double>(after) + waits, -1, sizes});
      clock += pattern.last() + after;
    }
    const std::clock_t before = std::clock();  // processor time, which other load does not change
    learner.make_announcement(n, false, clock);
    const double ms = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    took.ms = std::max(took.ms, ms);
    took.all_ms += ms;
    took.messages = std::max(took.messages, learner.modelled_messages());
    took.all += learner.modelled_messages();
    report = learner.reports().at(0);
    if (!report.candidates.empty() || report.reason.find("still comparing") == std::string::npos) break;
  }
  std::printf(
      "%s, %d ranks: %s%s after %.1f s of calls; %s messages in %.0f ms, at one boundary at most %s in %.0f ms\n",
      std::string(name_of(op)).c_str(), ranks,
      report.algorithm < 0 ? "native" : std::string(algorithm_at(report.algorithm).name).c_str(),
      report.algorithm >= 0 ? " tried" : "", static_cast<double>(clock) / 1e9, grouped(took.all).c_str(), took.all_ms,
      grouped(took.messages).c_str(), took.ms);
  std::string list;
  for (const Candidate& c : report.candidates) list += (list.empty() ? "" : ", ") + named(c);
  std::printf("  candidates: %s\n  because %s\n", list.empty() ? "-" : list.c_str(), report.reason.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options{
      {"--ranks", "64,256,1024"}, {"--bytes", "4MiB"}, {"--network", "eth1g"}, {"--arrivals", "onelate:1:50ms"}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!options.count(argv[i])) {
      std::fprintf(stderr, "candidates_table: unknown option '%s'\n", argv[i]);
      return 2;
    }
    options[argv[i]] = argv[i + 1];
  }
  const auto report = parse_policy(
      R"({"version": 1, "mode": "apply", "objective": "after_last", "background": {"enabled": true}, "rules": [{"match": {}, "use": "auto"}]})");
  Policy policy = report.policy;
  const auto network = parse_network(options["--network"]);
  const auto ranks = parse_list(options["--ranks"]);
  const auto bytes = parse_bytes(options["--bytes"]);
  if (!report.ok() || !network || !ranks || !bytes) {
    std::fprintf(stderr, "candidates_table: cannot read the options\n");
    return 2;
  }
  policy.network = *network;
  policy.network_given = true;
  for (const int size : *ranks)
    for (const Collective op : {Collective::allreduce, Collective::reduce, Collective::bcast, Collective::scatter,
                                Collective::gather, Collective::scatterv, Collective::gatherv}) {
      const auto pattern = parse_arrivals(options["--arrivals"], size);
      if (!pattern) {
        std::fprintf(stderr, "candidates_table: --arrivals: %s\n", pattern.error().c_str());
        return 2;
      }
      job(op, size, *bytes, policy, *pattern);
    }
  return 0;
}
