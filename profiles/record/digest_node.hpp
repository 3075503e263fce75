// SPDX-License-Identifier: BSD-3-Clause
// One rank's node in the tree of the exchange of a communicator. It merges the records of an epoch with the digests of
// its children, sends them up, passes the facts down, and applies them to its own records. It never waits, and it knows
// no MPI: a host sends its messages and uses what they say.
//
// An epoch on its way: every rank logs the same calls. A leaf sends its records, a node sends digests as soon as those
// of all children and its own are there. The leader sends the facts of each call down. Each rank computes its waits
// from them; their sums go up with the next epoch, or with flush(). Then the rank forgets the epoch.
//
// All of its functions may throw std::bad_alloc. Then calls of the epochs at hand are lost, and counted as missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/agreement/tree.hpp"
#include "profiles/record/digest.hpp"

namespace latecomer::profiles {

/// The arrivals of every rank in one call. The arrays belong to the node and are valid during the call.
struct CallSampled {
  std::span<const Nanoseconds> arrivals, exits;  ///< [comm_size]; exits are empty unless the host records calls
  std::span<const std::int64_t> blocks;  ///< [comm_size], bytes of each rank in gatherv and scatterv; else empty
};

class DigestNode {
 public:
  /// What a node needs from its process.
  class Host {
   public:
    virtual ~Host() = default;
    /// Sends a message to a rank of the communicator, without waiting. Returns false if it cannot; the message is lost.
    virtual bool send(Rank to, std::span<const char> message) = 0;
    /// The rank's own part of a call. `stands_for`: the number of calls that its waits stand for. Returns the sums.
    virtual CallSums own(const CallRecord& record, const CallFacts& facts, std::uint32_t stands_for) = 0;
    /// Leader, in the order of the calls: a call of which all records are known. `sampled` is empty if the arrivals of
    /// single ranks are not known.
    virtual void whole(std::uint64_t n, const CallDigest& call, const CallFacts& facts, const CallSampled& sampled,
                       std::uint32_t stands_for) = 0;
    /// Leader: the sums of all ranks of a call of which whole() was told.
    virtual void summed(const CallDigest& call, const CallFacts& facts, const CallSums& sums) = 0;
    /// Leader: `calls` calls will not become known.
    virtual void missing(std::uint64_t calls) = 0;
    /// Leader: the ranks made different calls with this number. Such a call has no pattern.
    virtual void different(std::uint64_t n, const CallDigest& call) = 0;
    /// Leader: the members waited so long at boundaries, in sum, before an epoch whose records are here.
    virtual void waited(Nanoseconds sum) = 0;
  };

  /// `with_exits`: samples have the exits, too.
  DigestNode(std::uint64_t identity, Rank rank, int size, core::TreePlace place, bool with_exits);

  /// Ends an epoch of calls from number `first` on. All ranks end the same epochs. `uncertainty`: of this rank's clock.
  /// `waited`: of this rank at boundaries since the last epoch.
  void end_epoch(std::uint64_t first, std::span<const CallRecord> records, Nanoseconds uncertainty, Nanoseconds waited,
                 Host& host);
  /// Takes a message of this communicator. Returns false if it is damaged. The identity is in front of each message.
  bool take(std::span<const char> message, Host& host);
  /// Sends what waits for the next epoch.
  void flush(Host& host);
  /// The communicator has ended on this rank: sums do not wait for another epoch.
  void end(Host& host);
  /// All children have ended: what they have not sent does not come.
  void end_children(Host& host);
  /// Drops what is under way. From now on this rank sends nothing and uses nothing.
  void give_up();
  /// Whether nothing is under way: all epochs are finished.
  bool idle() const { return epochs_.empty() && up_.empty(); }
  /// Whether a message is expected from a child or the parent.
  bool expects() const { return !epochs_.empty(); }

  const core::TreePlace& place() const { return place_; }
  std::uint64_t identity() const { return identity_; }
  Rank rank() const { return rank_; }
  int size() const { return size_; }

  /// The records that a leader may not have counted yet: f(first, records, whether this rank has counted its own part).
  /// Snapshots of ranks are of different times. So the last epochs that this rank has counted are among them.
  template <typename F>
  void each_open(F f) const {
    if (place_.parent >= 0)
      for (const auto& [first, records] : recent_) f(first, std::span<const CallRecord>(records), true);
    for (const Epoch& e : epochs_)
      if (e.own && (place_.parent >= 0 || !e.passed)) f(e.first, std::span<const CallRecord>(e.records), e.applied);
  }
  /// Leader: the number of the first call that is not counted yet. `next`: that of the next epoch's first call.
  std::uint64_t counted_until(std::uint64_t next) const;

  /// Of a communicator with so many ranks, every such call has the arrivals of all ranks, where they are wanted. A
  /// power of 2. Derived: 8,192 arrivals of an epoch of 128 calls take 64 KiB and, at 3 ns each, 0.2 us per call. Up to
  /// 64 ranks, every call has them.
  static std::uint64_t sample_stride(int ranks, bool with_exits);
  static bool in_sample(std::uint64_t n, std::uint64_t stride);

 private:
  struct PartHead;
  /// Epochs of this rank that wait for logs of its children. Derived: a log may come four epochs of 128 calls late,
  /// which take 20 KiB each. The sums of an epoch take another epoch per level.
  static constexpr std::size_t kMostLate = 4;
  /// Epochs that children have ended before this rank. Derived: a child that is further ahead has made 2,000 calls or
  /// more without this rank; the calls of later epochs are lost.
  static constexpr std::size_t kMostAhead = 16;

  struct Epoch {
    std::uint64_t first = 0;
    bool own = false;                  ///< this rank has ended it
    bool passed = false;               ///< its digests have gone up, or on the leader its facts down
    bool applied = false;              ///< this rank has applied the facts
    std::size_t logs = 0, summed = 0;  ///< children whose digests, and whose sums, are here
    Nanoseconds uncertainty = 0, waited = 0;
    std::vector<CallRecord> records;
    std::vector<CallDigest> digests;
    std::vector<CallFacts> facts;  ///< leader
    std::vector<CallSums> sums;
    std::vector<char> samples;  ///< blocks of ranks, packed
  };

  Epoch* find(std::uint64_t first, bool create);
  void merge_records(Epoch& epoch, std::span<const CallRecord> records, Rank rank);
  void add_block(Epoch& epoch, std::span<const CallRecord> records, Rank rank);
  void advance(Host& host);
  void pass_up(Epoch& epoch, Host& host);
  void decide(Epoch& epoch, Host& host);
  void apply(Epoch& epoch, std::span<const CallFacts> facts, std::span<const char> patterns, Host& host);
  void pass_sums(Epoch& epoch, Host& host);
  void finish_oldest(Host& host);
  void reserve(std::size_t records);
  void take_log(const PartHead& part, std::span<const char> samples, Rank from);
  void take_facts(std::uint64_t first, std::span<const char> part, std::span<const char> patterns, Host& host);
  void take_sums(std::uint64_t first);
  void leave_late(Host& host);
  /// Whether more than so many epochs are of this kind, with more calls than so many steady epochs have. The epochs of
  /// slow calls are short, so there are many of them while a rank is a few hundred calls behind.
  template <typename Kind>
  bool beyond(std::size_t most, Kind kind) const {
    std::size_t epochs = 0, calls = 0;
    for (const Epoch& e : epochs_)
      if (kind(e)) {
        ++epochs;
        calls += std::max(e.records.size(), e.digests.size());
      }
    return epochs > most && calls > most * core::Sequence::kSteadyEpoch;
  }
  void scatter(const Epoch& epoch);
  CallSampled sample_of(std::size_t at) const;
  bool sampled(core::Collective op, bool wanted, std::uint64_t n) const;

  std::uint64_t identity_;
  Rank rank_;
  int size_;
  core::TreePlace place_;
  bool with_exits_;
  std::uint64_t stride_;
  /// Derived: snapshots of ranks are an epoch or two apart. Two epochs of 128 calls take 12 KiB.
  static constexpr std::size_t kRecent = 2;
  std::vector<std::pair<std::uint64_t, std::vector<CallRecord>>> recent_;  ///< finished epochs
  std::vector<Epoch> epochs_;                                              ///< ascending
  std::vector<Epoch> spare_;  ///< memory of finished epochs: once warm, a node allocates nothing
  int epochs_ended_ = 0;      ///< up to a few
  bool ended_ = false, children_ended_ = false, given_up_ = false;
  std::uint64_t finished_ = 0;     ///< epochs that begin before this call are over
  std::uint64_t facts_until_ = 0;  ///< the parent waits for no epoch that begins before this call
  std::uint64_t lost_from_ = UINT64_MAX, lost_until_ = 0;  ///< among the epochs that begin here, logs were not kept
  std::vector<char> up_;                                   ///< parts for the parent that wait
  // Work space: messages, and the entries of the part that is being taken.
  std::vector<char> message_, block_;
  std::vector<CallRecord> records_;
  std::vector<CallDigest> digests_;
  std::vector<CallFacts> facts_;
  std::vector<CallSums> sums_;
  // Leader's work space for the samples of an epoch: [sampled call][comm_size].
  std::vector<std::uint32_t> sampled_calls_;
  std::vector<Nanoseconds> sampled_arrivals_, sampled_exits_;
  std::vector<std::int64_t> sampled_blocks_;
  std::vector<std::int32_t> sampled_ranks_;  ///< number of ranks, per sampled call
};

}  // namespace latecomer::profiles
