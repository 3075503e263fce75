// SPDX-License-Identifier: BSD-3-Clause
// One rank's node in the tree of the exchange of a communicator. It merges the records of an epoch with the digests of
// its children, sends the result up, passes the facts down, and applies them to its own records. It never waits, and it
// knows no MPI: a host sends its messages and uses the results.
//
// The steps of an epoch: every rank logs the same calls. A leaf sends its records. An inner node sends digests as soon
// as it has its own records and the digests of all children. The leader sends the facts of each call down. Each rank
// computes its waits from the facts. The sums of the waits go up with the next epoch, or with flush_parts(). Then the
// rank forgets the epoch.
//
// All functions may throw std::bad_alloc. Then calls of the epochs on their way are lost, and count as missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/agreement/epoch_sample.hpp"
#include "core/agreement/tree.hpp"
#include "profiles/record/digest.hpp"
#include "profiles/record/sample_rows.hpp"

namespace latecomer::profiles {

/// The arrivals of every rank in one call. The arrays belong to the node and are valid during the call.
struct CallSampled {
  std::span<const Nanoseconds> arrivals, exits;  ///< [comm_size]; exits are empty unless the host records calls
  std::span<const std::int64_t> blocks;  ///< [comm_size], bytes of each rank in gatherv and scatterv; else empty
};

class DigestNode {
 public:
  /// The functions of the process that a node calls.
  class Host {
   public:
    virtual ~Host() = default;
    /// Sends a message to a rank of the communicator, without waiting. Returns false if the message is lost.
    virtual bool send_message(Rank to, std::span<const char> message) = 0;
    /// Takes the rank's own part of a call, and returns its sums.
    virtual CallSums apply_facts(const CallRecord& record, const CallFacts& facts, const StandsFor& stands_for) = 0;
    /// Leader: takes a call with the records of all ranks. Calls come in their order. `sampled` is empty if the
    /// arrivals of single ranks are not known.
    virtual void take_call(std::uint64_t n, const CallDigest& call, const CallFacts& facts, const CallSampled& sampled,
                           const StandsFor& stands_for) = 0;
    /// Leader: takes the sums of all ranks for a call, after take_call() has taken the call.
    virtual void take_sums(const CallDigest& call, const CallFacts& facts, const CallSums& sums,
                           const StandsFor& stands_for) = 0;
    /// Leader: counts `calls` calls whose records are lost.
    virtual void count_missing(std::uint64_t calls) = 0;
    /// Leader: takes a call number at which ranks made different calls. Such a call has no pattern.
    virtual void report_difference(std::uint64_t n, const CallDigest& call) = 0;
    /// Leader: takes the time that all members together waited at boundaries, before an epoch whose records are here.
    virtual void add_wait(Nanoseconds sum) = 0;
  };

  /// `with_exits`: samples contain the exits, too.
  DigestNode(std::uint64_t identity, Rank rank, int size, core::TreePlace place, bool with_exits);

  /// What a rank says about itself with the log of an epoch.
  struct Note {
    Nanoseconds uncertainty = 0;  ///< of its clock; of several ranks the maximum
    Nanoseconds waited = 0;       ///< at boundaries since the last epoch; of several ranks the sum
    Nanoseconds price = 0;        ///< time of the run that pays for the log of an epoch; of several ranks the maximum
    int level = 0;                ///< at which the epoch is logged; of several ranks the maximum
    Nanoseconds length = 0;       ///< of the epoch on the leader
    void merge(const Note& o) {
      uncertainty = std::max(uncertainty, o.uncertainty);
      waited += o.waited;
      price = std::max(price, o.price);
      level = std::max(level, o.level);
      length = std::max(length, o.length);
    }
  };
  /// Ends a logged epoch of calls from number `first` on. All ranks end the same epochs, unless some of them do not log
  /// it (let_rest()).
  void end_epoch(std::uint64_t first, std::span<const CallRecord> records, const Note& note, Host& host);
  /// Ranks may leave out epochs. The node drops an epoch that a child has left out, and no call of it counts as
  /// missing.
  void let_rest() { rests_ = true; }
  /// Leader: it has not logged an epoch of that length.
  void leave_out(Nanoseconds length) { classes_.leave_out(length, 0); }
  /// The price of the last epoch whose facts are here, of all ranks.
  Nanoseconds price() const { return price_; }
  /// Leader: tells the other ranks at once, if it is a new one.
  void tell_price(Nanoseconds price, Host& host);
  /// Takes a message of this communicator. Returns false if it is damaged. The identity is in front of each message.
  bool take_message(std::span<const char> message, Host& host);
  /// Sends the parts that wait for the next epoch.
  void flush_parts(Host& host);
  /// Registers that the communicator has ended on this rank: from now on, sums do not wait for another epoch.
  void end_calls(Host& host);
  /// Registers that a child has ended and will send no more messages.
  void end_child(Rank child, Host& host);
  /// Registers that all children have ended.
  void end_children(Host& host);
  /// Drops all epochs. From now on, this node sends nothing and ignores all messages.
  void give_up();
  /// Whether all epochs are finished and no part waits.
  bool idle() const { return epochs_.empty() && up_.empty(); }
  /// Whether a message is expected from a child or the parent.
  bool expects() const { return !epochs_.empty(); }

  const core::TreePlace& place() const { return place_; }
  std::uint64_t identity() const { return identity_; }
  Rank rank() const { return rank_; }
  int size() const { return size_; }

  /// Calls f(first, records, whether this rank has counted its own part) for the epochs that a leader may not have
  /// counted yet. Ranks write snapshots at different times, so the last epochs that this rank has counted are included.
  template <typename F>
  void each_open(F f) const {
    if (place_.parent >= 0)
      for (const auto& [first, records] : recent_) f(first, std::span<const CallRecord>(records), true);
    for (const Epoch& e : epochs_)
      if (e.stage == Stage::logged || (e.stage > Stage::logged && place_.parent >= 0))
        f(e.first, std::span<const CallRecord>(e.records), e.stage == Stage::applied);
  }
  /// Leader: the number of the first call that is not counted yet. `next`: the number of the next epoch's first call.
  std::uint64_t counted_until(std::uint64_t next) const;

  /// The stride of the sample of calls for which the leader gets the arrivals of all ranks, where it needs them. A
  /// power of 2. Derived: 8,192 arrivals of an epoch of 128 calls take 64 KiB and, at 3 ns each, 0.2 us per call. So
  /// the stride is 1 on up to 64 ranks.
  static std::uint64_t sample_stride(int ranks, bool with_exits);
  static bool in_sample(std::uint64_t n, std::uint64_t stride);

 private:
  struct PartHead;
  /// The most epochs of this rank that wait for logs of its children. Derived: a log may come four epochs of 128 calls
  /// late; an epoch takes 20 KiB. The sums of an epoch come one epoch later per level of the tree.
  static constexpr std::size_t kMostLate = 4;
  /// The most epochs that children have ended and this rank has not. Derived: a child that is further ahead has made
  /// 2,000 calls or more without this rank. The calls of its later epochs are lost.
  static constexpr std::size_t kMostAhead = 16;

  /// The steps of an epoch on this rank, in their order.
  enum class Stage : std::uint8_t {
    ahead,    ///< children have ended the epoch, this rank has not
    logged,   ///< this rank has ended the epoch
    passed,   ///< this node has sent the digests up, or the leader the facts down
    applied,  ///< this rank has applied the facts
  };

  struct Epoch {
    std::uint64_t first = 0;
    Stage stage = Stage::ahead;
    std::size_t logs_awaited = 0, sums_awaited = 0;  ///< number of children whose logs, whose sums are not here
    bool left_out = false;                           ///< a child does not log it
    core::EpochClasses::Weight weight;
    Note note;
    std::vector<CallRecord> records;
    std::vector<CallDigest> digests;
    std::vector<CallFacts> facts;  ///< on the leader only
    std::vector<CallSums> sums;
    SampleRows samples;

    /// Continues without messages of the children.
    void await_nothing() { logs_awaited = sums_awaited = 0; }
    /// Becomes another epoch in the same memory.
    void begin(std::uint64_t at, std::size_t children);
  };

  Epoch* find(std::uint64_t first, bool create);
  void merge_records(Epoch& epoch, std::span<const CallRecord> records, Rank rank);
  void add_sample(Epoch& epoch, std::span<const CallRecord> records, Rank rank);
  void advance(Host& host);
  void pass_up(Epoch& epoch, Host& host);
  void decide(Epoch& epoch, Host& host);
  void apply(Epoch& epoch, std::span<const CallFacts> facts, std::span<const char> patterns, Host& host);
  void pass_sums(Epoch& epoch, Host& host);
  void finish_oldest(Host& host);
  void reserve(std::size_t records);
  void take_log(const PartHead& part, std::span<const char> samples, Rank from, Host& host);
  void leave_out_until(std::uint64_t first, Rank child);
  StandsFor stands_for(const Epoch& epoch) const;
  void take_facts(const PartHead& head, std::span<const CallFacts> facts, std::span<const char> part,
                  std::span<const char> patterns, Host& host);
  void take_sums(std::uint64_t first, std::span<const CallSums> sums);
  void leave_late(Host& host);
  void drop_epochs_ahead();
  bool is_left_out(const Epoch& epoch) const;
  void drop(std::size_t at);
  void send_no_facts(std::uint64_t first, Host& host);
  template <typename Write>
  void send_down(Host& host, Write write);
  /// Whether more than `most` epochs are of this kind, with more calls than `most` steady epochs have. Slow calls make
  /// short epochs, so a rank that is a few hundred calls behind is many epochs behind.
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
  std::vector<Epoch> spare_;  ///< finished epochs, whose memory new epochs use
  int epochs_ended_ = 0;      ///< number of epochs that this rank has ended, counted up to a few
  bool ended_ = false, children_ended_ = false, given_up_ = false, rests_ = false;
  Nanoseconds price_ = 0;
  core::EpochClasses classes_;            ///< leader: of the epochs that some rank has not logged
  std::vector<std::uint64_t> logged_by_;  ///< [children], number behind the first call of the last log; where rests_
  std::uint64_t own_until_ = 0;           ///< this rank ends no further epoch that begins before this call
  std::uint64_t finished_ = 0;            ///< epochs that begin before this call are finished
  std::uint64_t facts_until_ = 0;         ///< the parent waits for no epoch that begins before this call
  std::uint64_t lost_from_ = UINT64_MAX, lost_until_ = 0;  ///< range of first calls in which logs of epochs were lost
  std::vector<char> up_;                                   ///< parts that wait to be sent to the parent
  // Work space: messages, and the entries of the part that is being taken.
  std::vector<char> message_, packed_samples_;
  std::vector<std::int64_t> columns_, values_;  ///< of the sample that is being added
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
