// SPDX-License-Identifier: BSD-3-Clause
// The protocol of ranges (shim/range/matching.hpp) on random programs and random interleavings, without MPI: every
// receive gets its message, and no program hangs. Broken variants of the protocol have to be caught.
#include "shim/range/matching.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/select/line.hpp"

namespace {

using namespace latecomer;
using range::Arrival;
using range::Envelope;
using range::Identity;
using range::Rank;
constexpr int kAny = -2;

enum class Fault {
  none,
  takes_any_message,  ///< a straight receive takes the sender's next message, whatever it is
  skips_queue,        ///< a straight receive does not look at messages that arrived before
  drops_foreign,      ///< a straight receive drops other messages
  always_straight,    ///< blocking collectives run straight with requests outstanding
  one_number,         ///< collectives of a range are not numbered
};

struct Receive {
  Rank source = -1;
  Envelope envelope;
  std::optional<std::int64_t> got;  // the number of the message
};

/// Every message of a world, by number.
struct Sent {
  Identity where;
  Rank from, to;
  std::int32_t tag;
  std::uint32_t collective;  // as the sender counts
  bool fetched = false;      // MPI of the receiver gave it to the library
};

/// One step of the program that all processes have in common. Members take part in it in this order.
struct Task {
  enum Kind { collective, begin_collective, send, receive, begin_receive, wait_all, orphan } kind;
  int range = 0;
  core::Call call = {};   // collectives
  Rank from = 0, to = 0;  // messages, in the range
  Rank waits = -1;        // wait_all: the only process that waits, or -1 for all
  std::int32_t tag = 0;
  bool any_source = false, any_tag = false;
};

class World {
 public:
  World(unsigned seed, Fault fault, int tasks) : random_(seed), fault_(fault) {
    processes_.resize(static_cast<std::size_t>(2 + below(4)));
    const int p = size();
    for (auto& q : processes_) q.matching = std::make_unique<range::Matching<Receive>>(range::Wildcards{kAny, kAny});
    // Few ranges, so that they meet. Some differ in one number only.
    for (int i = 0; i < 4; ++i) {
      const int stride = 1 + below(2), first = below(p), most = (p - 1 - first) / stride + 1;
      ranges_.push_back({first, 1 + below(most), stride, below(2), below(2)});
    }
    for (int i = 0; i < tasks; ++i) {
      add_task();
      if (!later_.empty() && below(4) == 0) {
        tasks_.push_back(later_.front());
        later_.pop_front();
      }
    }
    tasks_.insert(tasks_.end(), later_.begin(), later_.end());
    tasks_.push_back(Task{Task::wait_all});
    network_.resize(static_cast<std::size_t>(p * p));
  }

  /// Returns the error, or "".
  std::string run() {
    for (;;) {
      bool all = true, moved = false;
      // Each process in a random order, some several times.
      for (int turn = 0; turn < size(); ++turn) {
        Process& q = processes_[static_cast<std::size_t>(below(size()))];
        moved = step(q) || moved;
        if (!error_.empty()) return error_;
      }
      for (const Process& q : processes_) all = all && q.at == tasks_.size();
      if (all) return "";
      if (moved) continue;
      // No luck in the random turns: it hangs if no process can move although all messages have arrived.
      everything_arrived_ = true;
      for (int i = 0; i < 3; ++i)
        for (Process& q : processes_) moved = step(q) || moved;
      everything_arrived_ = false;
      if (!error_.empty()) return error_;
      if (!moved) return "hangs";
    }
  }
  long long messages() const { return static_cast<long long>(sent_.size()); }

 private:
  struct Running {
    Identity where;
    core::Line line;
    std::uint32_t number = 0;
    std::size_t next = 0;
    std::shared_ptr<Receive> pending;
    std::vector<std::int64_t> sends;  // of a straight run: those that MPI may still hold
    bool synchronous = false, looked = false;
  };
  struct Process {
    std::unique_ptr<range::Matching<Receive>> matching;
    std::size_t at = 0;     // task
    bool begun = false;     // the blocking task has begun
    bool straight = false;  // and runs straight
    std::shared_ptr<Running> blocking;
    std::shared_ptr<Receive> receive;
    std::vector<std::shared_ptr<Running>> collectives;                // outstanding
    std::vector<std::pair<std::shared_ptr<Receive>, Task>> receives;  // outstanding
    std::vector<std::shared_ptr<Receive>> posted;                     // keeps what the matching refers to
    std::map<std::vector<int>, std::uint32_t> counters;
    std::map<std::vector<int>, std::int64_t> last_seen;  // point to point: order of each sender
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int size() const { return static_cast<int>(processes_.size()); }
  Rank rank_of(const Process& q) const { return static_cast<Rank>(&q - processes_.data()); }
  static Rank to_world(const Identity& w, Rank r) { return w.first + r * w.stride; }
  static Rank in_range(const Identity& w, Rank world) {
    const int d = world - w.first;
    return d >= 0 && d % w.stride == 0 && d / w.stride < w.size ? d / w.stride : -1;
  }
  std::deque<Arrival>& channel(Rank from, Rank to) { return network_[static_cast<std::size_t>(from * size() + to)]; }

  void add_task() {
    Task t{Task::wait_all};
    t.range = below(static_cast<int>(ranges_.size()));
    t.waits = below(size());
    const int members = ranges_[static_cast<std::size_t>(t.range)].size, kind = below(16);
    if (kind < 9) {
      t.kind = kind < 5 ? Task::collective : Task::begin_collective;
      using C = core::Collective;
      constexpr C kinds[] = {C::bcast,   C::bcast,  C::reduce,  C::allreduce, C::scan,     C::exscan,
                             C::barrier, C::gather, C::scatter, C::allgather, C::alltoall, C::reduce_scatter_block};
      t.call.op = kinds[below(12)];
      t.call.ranks = members;
      t.call.count = t.call.op != C::barrier;
      t.call.root = core::is_rooted(t.call.op) ? below(members) : 0;
    } else if (kind < 14) {
      const bool any_source = ranges_[static_cast<std::size_t>(t.range)].context == 1;
      t.from = below(members);
      t.to = below(members);
      t.tag = below(2);
      if (t.from == t.to) return;
      t.kind = Task::send;
      tasks_.push_back(t);
      t.kind = below(2) ? Task::receive : Task::begin_receive;
      // Wildcards where no message can be missed: a wildcard that takes another's message leaves its own for it.
      t.any_tag = any_source ? false : below(2) == 0;
      t.any_source = any_source;
      later_.push_back(t);
      return;
    } else if (kind == 14) {
      t.kind = Task::orphan;
      t.from = below(members);
      t.to = below(members);
      t.tag = 7;
      if (t.from == t.to) return;
    }
    tasks_.push_back(t);
  }

  std::int64_t put(const Identity& where, Rank from, Rank to, std::int32_t tag, std::uint32_t collective) {
    const auto number = static_cast<std::int64_t>(sent_.size());
    sent_.push_back({where, from, to, tag, collective});
    Arrival a;
    a.envelope = {where, tag, fault_ == Fault::one_number && collective ? 1 : collective, 0, number};
    a.source = from;
    channel(from, to).push_back(std::move(a));
    return number;
  }
  std::unique_ptr<Arrival> fetch(Rank from, Rank to) {
    auto& c = channel(from, to);
    if (c.empty() || (!everything_arrived_ && below(2))) return nullptr;
    auto out = std::make_unique<Arrival>(std::move(c.front()));
    c.pop_front();
    sent_[static_cast<std::size_t>(out->envelope.bytes)].fetched = true;
    return out;
  }
  void fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  /// What a receive of a collective must have got.
  void check(const Process& q, const Running& r, std::int64_t got) {
    const Sent& s = sent_[static_cast<std::size_t>(got)];
    const auto& step = r.line.steps[r.next];
    if (!(s.where == r.where) || s.collective != r.number || s.tag != step.channel || s.to != rank_of(q) ||
        s.from != to_world(r.where, step.peer))
      fail("a collective got another message");
  }
  /// A message between two processes: of the range, for this process, and in the sender's order.
  void check(Process& q, const Task& t, std::int64_t got) {
    const Sent& s = sent_[static_cast<std::size_t>(got)];
    const Identity& w = ranges_[static_cast<std::size_t>(t.range)];
    if (!(s.where == w) || s.collective != 0 || s.to != rank_of(q) ||
        (!t.any_source && s.from != to_world(w, t.from)) || (!t.any_tag && s.tag != t.tag))
      fail("a receive got another message");
    std::int64_t& last =
        q.last_seen.try_emplace({w.first, w.size, w.stride, w.depth, w.context, s.from, s.tag}, -1).first->second;
    if (got <= last) fail("messages of one sender changed their order");
    last = got;
  }

  std::shared_ptr<Receive> post(Process& q, Rank from, const Envelope& key) {
    auto r = std::make_shared<Receive>();
    r->source = from;
    r->envelope = key;
    if (auto arrival = q.matching->take_arrival(from, key)) r->got = arrival->envelope.bytes;
    else {
      q.matching->post_receive(r.get());
      q.posted.push_back(r);
    }
    return r;
  }
  bool arrive(Process& q, std::unique_ptr<Arrival> arrival) {
    const std::int64_t number = arrival->envelope.bytes;
    if (Receive* const r = q.matching->match_arrival(arrival)) {
      r->got = number;
      std::erase_if(q.posted, [&](const auto& p) { return p.get() == r; });
    }
    return true;
  }

  /// The loop: fetches messages of every sender, and moves what is outstanding.
  bool progress(Process& q) {
    bool moved = false;
    const int first = below(size());
    for (int i = 0; i < size(); ++i)
      if (auto arrival = fetch((first + i) % size(), rank_of(q))) moved = arrive(q, std::move(arrival));
    for (auto& c : q.collectives) moved = run_in_loop(q, *c) || moved;
    if (q.blocking && !q.straight) moved = run_in_loop(q, *q.blocking) || moved;
    return moved;
  }
  Envelope key_of(const Running& r) const {
    return {r.where, r.line.steps[r.next].channel, fault_ == Fault::one_number ? 1 : r.number, 0, 0};
  }
  bool run_in_loop(Process& q, Running& r) {
    bool moved = false;
    for (; r.next < r.line.steps.size(); ++r.next, moved = true) {
      const auto& s = r.line.steps[r.next];
      if (s.kind == core::OpKind::send) put(r.where, rank_of(q), to_world(r.where, s.peer), s.channel, r.number);
      if (s.kind != core::OpKind::recv) continue;
      if (!r.pending) {
        r.pending = post(q, to_world(r.where, s.peer), key_of(r));
        moved = true;
      }
      if (!r.pending->got) return moved;
      check(q, r, *r.pending->got);
      r.pending.reset();
    }
    return moved;
  }
  /// As Straight::run: sends do not wait while receives follow. The last ones may wait until the receiver's MPI has the
  /// message.
  bool run_straight(Process& q, Running& r) {
    bool moved = false;
    const auto settled = [&] {
      return !r.synchronous || r.sends.empty() || sent_[static_cast<std::size_t>(r.sends.back())].fetched;
    };
    for (; r.next < r.line.steps.size(); ++r.next, moved = true) {
      const auto& s = r.line.steps[r.next];
      if (s.kind == core::OpKind::send) {
        bool receives_follow = false;
        for (std::size_t i = r.next; i < r.line.steps.size(); ++i)
          receives_follow = receives_follow || r.line.steps[i].kind == core::OpKind::recv;
        if (!receives_follow && !settled()) return moved;
        r.sends.push_back(put(r.where, rank_of(q), to_world(r.where, s.peer), s.channel, r.number));
      }
      if (s.kind != core::OpKind::recv) continue;
      const Rank from = to_world(r.where, s.peer);
      const Envelope key = key_of(r);
      std::optional<std::int64_t> got;
      if (!r.looked && fault_ != Fault::skips_queue)
        if (const auto arrival = q.matching->take_of_collective(from, key)) got = arrival->envelope.bytes;
      r.looked = true;
      std::unique_ptr<Arrival> landed;
      Envelope envelope;
      if (!got) {
        const bool there = range::Matching<Receive>::advance_to(
            key,
            [&]() -> const Envelope* {
              landed = fetch(from, rank_of(q));
              if (!landed) return nullptr;
              moved = true;
              envelope = landed->envelope;
              if (fault_ == Fault::takes_any_message) {
                envelope = key;
                envelope.bytes = landed->envelope.bytes;
              }
              return &envelope;
            },
            [&] {
              if (fault_ != Fault::drops_foreign) arrive(q, std::move(landed));
            });
        if (!there) return moved;
        got = envelope.bytes;
      }
      r.looked = false;
      check(q, r, *got);
      if (!error_.empty()) return true;
    }
    // The end waits for all of them.
    for (const std::int64_t n : r.sends)
      if (r.synchronous && !sent_[static_cast<std::size_t>(n)].fetched) return moved;
    r.sends.clear();
    return moved;
  }

  std::shared_ptr<Running> begin(Process& q, const Task& t) {
    auto r = std::make_shared<Running>();
    r->where = ranges_[static_cast<std::size_t>(t.range)];
    const Identity& w = r->where;
    r->number = ++q.counters[{w.first, w.size, w.stride, w.depth, w.context}];
    r->line = core::range_line(t.call, in_range(w, rank_of(q)));
    r->synchronous = below(2) == 0;
    return r;
  }
  bool next_task(Process& q) {
    q.begun = q.straight = false;
    q.blocking.reset();
    q.receive.reset();
    ++q.at;
    return true;
  }
  void collect(Process& q) {
    std::erase_if(q.collectives, [](const auto& c) { return c->next == c->line.steps.size(); });
    for (std::size_t i = 0; i < q.receives.size();) {
      const auto& [r, t] = q.receives[i];
      if (!r->got) {
        ++i;
        continue;
      }
      check(q, t, *r->got);
      q.receives.erase(q.receives.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  bool step(Process& q) {
    if (q.at == tasks_.size()) return false;
    const Task& t = tasks_[q.at];
    const Identity& w = ranges_[static_cast<std::size_t>(t.range)];
    const Rank me = in_range(w, rank_of(q));
    if (t.kind != Task::wait_all && me < 0) return next_task(q);
    const Rank pattern_source = t.any_source ? kAny : to_world(w, t.from);
    const Envelope pattern{w, t.any_tag ? kAny : t.tag, 0, 0, 0};
    switch (t.kind) {
      case Task::collective: {
        bool moved = false;
        if (!q.begun) {
          collect(q);
          q.begun = true;
          q.blocking = begin(q, t);
          moved = true;
          const bool alone = q.collectives.empty() && q.receives.empty();
          q.straight = fault_ == Fault::always_straight || (alone && below(4) != 0);  // a process may prefer the loop
        }
        moved = (q.straight ? run_straight(q, *q.blocking) : progress(q)) || moved;
        if (q.blocking->next < q.blocking->line.steps.size() || !q.blocking->sends.empty()) return moved;
        return next_task(q);
      }
      case Task::begin_collective:
        q.collectives.push_back(begin(q, t));
        run_in_loop(q, *q.collectives.back());
        return next_task(q);
      case Task::send:
      case Task::orphan:
        if (me == t.from) put(w, rank_of(q), to_world(w, t.to), t.tag, 0);
        return next_task(q);
      case Task::begin_receive:
        if (me == t.to) q.receives.emplace_back(post(q, pattern_source, pattern), t);
        return next_task(q);
      case Task::receive: {
        if (me != t.to) return next_task(q);
        bool moved = false;
        if (!q.receive) {
          q.receive = post(q, pattern_source, pattern);
          moved = true;
        }
        if (!q.receive->got) return progress(q) || moved;
        // An earlier receive that is not collected yet may have got an earlier message.
        collect(q);
        check(q, t, *q.receive->got);
        return next_task(q);
      }
      case Task::wait_all: {
        if (t.waits >= 0 && t.waits != rank_of(q)) return next_task(q);
        const bool moved = progress(q);
        collect(q);
        return q.collectives.empty() && q.receives.empty() ? next_task(q) : moved;
      }
    }
    return false;
  }

  std::mt19937 random_;
  const Fault fault_;
  std::vector<Process> processes_;
  std::vector<Identity> ranges_;
  std::vector<Task> tasks_;
  std::deque<Task> later_;  // receives of messages that are sent before
  std::vector<std::deque<Arrival>> network_;
  std::vector<Sent> sent_;
  std::string error_;
  bool everything_arrived_ = false;
};

/// The first error in worlds of this kind, after at least `least` messages.
std::string first_error(Fault fault, long long least) {
  long long messages = 0;
  for (unsigned seed = 1; messages < least; ++seed) {
    World world(seed, fault, 60);
    if (const std::string error = world.run(); !error.empty()) return "world " + std::to_string(seed) + ": " + error;
    messages += world.messages();
  }
  return "";
}

}  // namespace

TEST_CASE("matching: every receive gets its message in random worlds", "[range]") {
  CHECK(first_error(Fault::none, LATECOMER_LONG_TESTS ? 10'000'000 : 300'000) == "");
}

TEST_CASE("matching: broken variants are caught", "[range]") {
  const long long least = 300'000;
  CHECK(first_error(Fault::takes_any_message, least).find("another message") != std::string::npos);
  CHECK(first_error(Fault::skips_queue, least).find("hangs") != std::string::npos);
  CHECK(first_error(Fault::drops_foreign, least) != "");
  CHECK(first_error(Fault::always_straight, least).find("hangs") != std::string::npos);
  CHECK(first_error(Fault::one_number, least).find("another message") != std::string::npos);
}
