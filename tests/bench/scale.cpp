// SPDX-License-Identifier: BSD-3-Clause
// The cost of the exchange against the number of ranks. All ranks of a job are in one process, and messages are copied
// from one node of the tree to the next. Counts messages and bytes, and measures the processor time of a rank per call,
// in epochs of 128 calls.
//
// Between two messages of a rank, the other ranks use the caches. That makes the work of a node dearer than in a
// process of its own, and each message has a clock around it, which is a system call. So the leader, and the other node
// with the most children, repeat their work alone: a new node takes the same logs and messages, with one clock around
// all. Usage: scale_table [RANKS...]
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
// A node takes its memory in the first five epochs, and that for samples of arrivals in the first twenty.
constexpr int kCalls = 128, kWarm = 24, kEpochs = 40, kRanksPerHost = 32;
constexpr double kMeasured = (kEpochs - kWarm) * kCalls;
constexpr int kRepeats = 5;

/// Processor time of this thread, so that other processes do not count.
std::int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

struct Job;

/// What a node takes: a message, or the log of an epoch.
struct Taken {
  int epoch;
  std::vector<char> message;
  std::vector<CallRecord> log;  ///< if the message is empty
};

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
  bool alone = false;      ///< nobody gets its messages
  bool remembers = false;  ///< keeps what it takes
  std::vector<Taken> taken;
  std::vector<char> sent;
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
  if (alone) {
    sent.assign(message.begin(), message.end());
    return true;
  }
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

/// The processor time per call of a node that takes the same again, without the other ranks: the median of some
/// repeats.
double time_alone(Job& job, const RankOf& of) {
  std::vector<double> per_call;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    RankOf node(job, of.rank, of.node.size(), of.node.place());
    node.alone = true;
    node.sent.reserve(kMostBytes);
    std::int64_t begin = 0;
    for (const Taken& taken : of.taken) {
      if (begin == 0 && taken.epoch == kWarm) begin = clock_ns();
      if (!taken.message.empty()) {
        if (!node.node.take_message(taken.message, node)) std::abort();
      } else {
        node.node.end_epoch(static_cast<std::uint64_t>(taken.epoch * kCalls), taken.log, {}, node);
      }
    }
    per_call.push_back(static_cast<double>(clock_ns() - begin) / kMeasured);
  }
  std::ranges::sort(per_call);
  return per_call[kRepeats / 2];
}

void table_row(int size, bool learns) {
  Job job(size);
  RankOf& leader = *job.ranks[0];
  RankOf& inner = **std::ranges::max_element(job.ranks.begin() + 1, job.ranks.end(), {},
                                             [](const auto& r) { return r->node.place().children.size(); });
  leader.remembers = inner.remembers = true;
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
    for (std::size_t r = 0; r < logs.size(); ++r) {
      if (job.ranks[r]->remembers) job.ranks[r]->taken.push_back({epoch, {}, logs[r]});
      timed(*job.ranks[r], [&] {
        job.ranks[r]->node.end_epoch(static_cast<std::uint64_t>(epoch * kCalls), logs[r], {}, *job.ranks[r]);
      });
    }
    while (!job.under_way.empty()) {
      Message message = std::move(job.under_way.front());
      job.under_way.pop_front();
      RankOf& to = *job.ranks[static_cast<std::size_t>(message.to)];
      if (to.remembers) to.taken.push_back({epoch, message.bytes, {}});
      timed(to, [&] {
        if (!to.node.take_message(message.bytes, to)) std::abort();
      });
      job.spare.push_back(std::move(message.bytes));
    }
  }
  const std::uint64_t counted = job.counted;
  std::vector<double> per_call;
  std::uint64_t most_messages = 0, most_bytes = 0;
  for (const auto& r : job.ranks) {
    per_call.push_back(static_cast<double>(r->spent) / kMeasured);
    most_messages = std::max(most_messages, r->messages);
    most_bytes = std::max(most_bytes, r->bytes);
  }
  const double among_others = per_call[0];
  std::ranges::sort(per_call);
  std::printf("%6d  %-8s  %5d  %8.0f  %8.0f  %8.0f  %8.0f  %8.0f  %10.1f  %12.0f\n", size,
              learns ? "learns" : "observes", leader.node.place().depth, time_alone(job, leader),
              time_alone(job, inner), among_others, per_call[per_call.size() / 2], per_call.back(),
              static_cast<double>(most_messages) / (kEpochs - kWarm), static_cast<double>(most_bytes) / kMeasured);
  if (counted != kEpochs * kCalls) std::printf("counted %llu\n", static_cast<unsigned long long>(counted));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {8, 32, 64, 128, 256, 1024, 4096, 16384};
  std::printf(
      "# all ranks in one process, %d per host; nanoseconds per call in an epoch of %d calls; the most of any rank\n",
      kRanksPerHost, kCalls);
  std::printf("#                        alone:             among the others:\n");
  std::printf(
      "# ranks  mode      depth    leader     inner    leader    median      most  messages/epoch  bytes/call\n");
  for (const bool learns : {false, true})
    for (const int size : sizes) table_row(size, learns);
}
