// SPDX-License-Identifier: BSD-3-Clause
// The cost of the exchange against the number of ranks. All ranks of a job are in one process, and messages are copied
// from one node of the tree to the next. Counts messages and bytes, and measures the processor time of a rank per call,
// in epochs of 128 calls.
// Usage: scale_table [RANKS...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "core/agreement/tree.hpp"
#include "core/base/text.hpp"
#include "profiles/record/digest_node.hpp"
#include "profiles/record/record.hpp"

using namespace latecomer;
using namespace latecomer::profiles;

namespace {

/// Of a message: else the nodes' time would be that of growing buffers.
constexpr std::size_t kMostBytes = 20 << 10;
// A node takes its memory in the first five epochs.
constexpr int kCalls = 128, kWarm = 8, kEpochs = 24, kRanksPerHost = 32;

/// Processor time of this thread, so that other processes do not count.
std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

struct Job;

struct RankOf final : DigestNode::Host {
  RankOf(Job& of, Rank r, int size, core::TreePlace place)
      : job(of), rank(r), node(1, r, size, std::move(place), false) {
    book.job_of(size);
  }
  bool send_message(Rank to, std::span<const char> message) override;
  CallSums apply_facts(const CallRecord& record, const CallFacts& facts, const StandsFor& stands_for) override {
    return book.add_own(record, facts, rank, rank, node.size(), stands_for);
  }
  void take_call(std::uint64_t, const CallDigest& call, const CallFacts& facts, const CallSampled& sampled,
                 const StandsFor&) override;
  void take_sums(const CallDigest& call, const CallFacts& facts, const CallSums& sums, const StandsFor&) override;
  void count_missing(std::uint64_t calls) override {
    std::printf("missing %llu\n", static_cast<unsigned long long>(calls));
  }
  void report_difference(std::uint64_t n, const CallDigest&) override {
    std::printf("different calls %llu\n", static_cast<unsigned long long>(n));
  }
  void add_wait(Nanoseconds) override {}

  Job& job;
  Rank rank;
  DigestNode node;
  SiteBook book;
  std::int64_t spent = 0;  ///< nanoseconds
  std::uint64_t messages = 0, bytes = 0;
  std::vector<Nanoseconds> pattern;
  std::uint32_t group = Groups::kOther;
};

struct Message {
  Rank to;
  std::vector<char> bytes;
};

struct Job {
  explicit Job(int size) {
    std::vector<int> hosts;
    for (Rank r = 0; r < size; ++r) {
      hosts.push_back(r / kRanksPerHost);
      world.push_back(r);
    }
    auto places = core::places_in_tree(hosts);
    for (Rank r = 0; r < size; ++r)
      ranks.push_back(std::make_unique<RankOf>(*this, r, size, std::move(places[static_cast<std::size_t>(r)])));
  }
  std::vector<Rank> world;
  std::vector<std::unique_ptr<RankOf>> ranks;
  std::deque<Message> under_way;
  std::vector<std::vector<char>> spare;  ///< memory of messages: a library of MPI has its own
  std::uint64_t counted = 0;
};

bool RankOf::send_message(Rank to, std::span<const char> message) {
  ++messages;
  bytes += message.size();
  std::vector<char> bytes_of;
  if (!job.spare.empty()) {
    bytes_of = std::move(job.spare.back());
    job.spare.pop_back();
  }
  bytes_of.reserve(kMostBytes);
  bytes_of.assign(message.begin(), message.end());
  job.under_way.push_back({to, std::move(bytes_of)});
  return true;
}

void RankOf::take_call(std::uint64_t, const CallDigest& call, const CallFacts& facts, const CallSampled& sampled,
                       const StandsFor&) {
  ++job.counted;
  if (group == Groups::kOther) group = book.groups.of(job.world);
  book.add_call(call, {job.world, group}, facts, nullptr);
  pattern.clear();
  for (const Nanoseconds arrival : sampled.arrivals) pattern.push_back(arrival - call.first);
}

void RankOf::take_sums(const CallDigest& call, const CallFacts& facts, const CallSums& sums, const StandsFor&) {
  book.add_awaited(call, {job.world, group}, facts, sums);
}

void table_row(int size, bool learns) {
  Job job(size);
  core::SplitMix64 random(1);
  std::vector<std::vector<CallRecord>> logs(static_cast<std::size_t>(size));
  const auto timed = [](RankOf& rank, auto work) {
    const std::int64_t begin = clock_ns();
    work();
    rank.spent += clock_ns() - begin;
  };
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == kWarm)
      for (auto& r : job.ranks) {
        r->spent = 0;
        r->messages = r->bytes = 0;
      }
    for (std::size_t r = 0; r < logs.size(); ++r) {
      logs[r].clear();
      for (int i = 0; i < kCalls; ++i) {
        CallRecord record;
        record.arrival =
            (epoch * kCalls + i) * 1'000'000LL + static_cast<Nanoseconds>(random.below(r == 5 ? 500'000 : 10'000));
        record.exit = (epoch * kCalls + i) * 1'000'000LL + 600'000;
        record.site = 9;
        record.callers = 3;
        record.bytes = 8;
        record.op = core::Collective::allreduce;
        record.edge = learns ? kSampled : 0;
        logs[r].push_back(record);
      }
    }
    for (std::size_t r = 0; r < logs.size(); ++r)
      timed(*job.ranks[r], [&] {
        job.ranks[r]->node.end_epoch(static_cast<std::uint64_t>(epoch * kCalls), logs[r], {}, *job.ranks[r]);
      });
    while (!job.under_way.empty()) {
      Message message = std::move(job.under_way.front());
      job.under_way.pop_front();
      RankOf& to = *job.ranks[static_cast<std::size_t>(message.to)];
      timed(to, [&] {
        if (!to.node.take_message(message.bytes, to)) std::abort();
      });
      job.spare.push_back(std::move(message.bytes));
    }
  }
  std::vector<double> per_call;
  std::uint64_t most_messages = 0, most_bytes = 0;
  constexpr double kMeasured = (kEpochs - kWarm) * kCalls;
  for (const auto& r : job.ranks) {
    per_call.push_back(static_cast<double>(r->spent) / kMeasured);
    most_messages = std::max(most_messages, r->messages);
    most_bytes = std::max(most_bytes, r->bytes);
  }
  const double leader = per_call[0];
  std::ranges::sort(per_call);
  std::printf("%6d  %-8s  %5d  %8.0f  %8.0f  %8.0f  %10.1f  %12.0f\n", size, learns ? "learns" : "observes",
              job.ranks[0]->node.place().depth, leader, per_call[per_call.size() / 2], per_call.back(),
              static_cast<double>(most_messages) / (kEpochs - kWarm), static_cast<double>(most_bytes) / kMeasured);
  if (job.counted != kEpochs * kCalls) std::printf("counted %llu\n", static_cast<unsigned long long>(job.counted));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {8, 32, 64, 128, 256, 1024, 4096, 16384};
  std::printf(
      "# all ranks in one process, %d per host; nanoseconds per call in an epoch of %d calls; the most of any rank\n",
      kRanksPerHost, kCalls);
  std::printf("# ranks  mode      depth  leader    median      most  messages/epoch  bytes/call\n");
  for (const bool learns : {false, true})
    for (const int size : sizes) table_row(size, learns);
}
