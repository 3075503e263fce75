// SPDX-License-Identifier: BSD-3-Clause
// Implements the symbolic verifier and the sweep over cases. verify.hpp argues why one execution is enough.
#include "core/verify/verify.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/base/text.hpp"

namespace latecomer::core {
namespace {

constexpr std::string_view kFaultNames[] = {"none", "malformed", "unmatched",    "deadlock",
                                            "race", "undefined", "wrong_result", "early_touch"};
constexpr std::string_view kBufferNames[] = {"input", "output", "scratch"};

std::string text_of(const Slice& s) {
  return std::string(kBufferNames[static_cast<int>(s.buffer)]) + "[" + std::to_string(s.offset) + ".." +
         std::to_string(s.end()) + ")";
}

/// A bit matrix: row i holds the operations of the same rank that complete before operation i starts.
class Ancestors {
 public:
  explicit Ancestors(const std::vector<Operation>& ops) : words_((ops.size() + 63) / 64), bits_(words_ * ops.size()) {
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (int d = 0; d < ops[i].dep_count; ++d) {
        const auto dep = static_cast<std::size_t>(ops[i].deps[d]);
        for (std::size_t w = 0; w <= dep / 64; ++w) bits_[i * words_ + w] |= bits_[dep * words_ + w];
        bits_[i * words_ + dep / 64] |= std::uint64_t{1} << (dep % 64);
      }
  }
  bool before(std::size_t a, std::size_t b) const { return a < b && (bits_[b * words_ + a / 64] >> (a % 64) & 1) != 0; }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// A symbolic value: a rank's contribution to one element, or left o right. Equal expressions have equal indices.
struct Expression {
  Elements element;
  std::vector<std::uint64_t> ranks;  // bit set of the contributing ranks
  bool once;                         // no rank contributes twice
  bool ordered;                      // the operands are ranks low..high in ascending order
  Rank low, high;
  std::uint64_t association;
};

class Verifier {
 public:
  Verifier(const Call& call, const std::vector<RankProgram>& programs) : call_(call), programs_(programs) {
    base_.reserve(programs.size() + 1);
    std::size_t total = 0;
    for (const RankProgram& p : programs) {
      base_.push_back(total);
      total += p.ops.size();
    }
    base_.push_back(total);
    peer_.assign(total, total);
  }

  ScheduleVerdict run() {
    check_shape();
    if (verdict_.ok()) check_matching();
    if (verdict_.ok()) check_lanes();
    if (verdict_.ok()) check_races();
    if (verdict_.ok()) execute();
    if (verdict_.ok()) check_result();
    return verdict_;
  }

 private:
  std::size_t global(Rank r, std::size_t i) const { return base_[static_cast<std::size_t>(r)] + i; }
  const std::vector<Operation>& ops(Rank r) const { return programs_[static_cast<std::size_t>(r)].ops; }
  int ranks() const { return call_.ranks; }

  void fail(Fault fault, Rank r, std::size_t i, const std::string& what) {
    if (!verdict_.ok()) return;
    verdict_.fault = fault;
    verdict_.what = "rank " + std::to_string(r) + ", operation " + std::to_string(i);
    if (i < ops(r).size()) verdict_.what += " (" + describe_operation(ops(r)[i]) + ")";
    verdict_.what += ": " + what;
  }

  Elements size_of(Rank r, Buffer buffer) const {
    return buffer == Buffer::scratch ? programs_[static_cast<std::size_t>(r)].scratch
                                     : buffer_elements(call_, r, buffer);
  }

  void check_slice(Rank r, std::size_t i, const Slice& s) {
    if (s.offset < 0 || s.count < 0 || s.end() > size_of(r, s.buffer))
      fail(Fault::malformed, r, i,
           text_of(s) + " exceeds the buffer's " + std::to_string(size_of(r, s.buffer)) + " elements");
  }

  void check_shape() {
    for (Rank r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < ops(r).size(); ++i) {
        const Operation& op = ops(r)[i];
        for (int d = 0; d < op.dep_count; ++d)
          if (op.deps[d] < 0 || static_cast<std::size_t>(op.deps[d]) >= i)
            fail(Fault::malformed, r, i, "depends on a later operation");
        if (op.kind != OpKind::recv) check_slice(r, i, op.src);
        if (op.kind != OpKind::send) {
          check_slice(r, i, op.dst);
          if (op.dst.buffer == Buffer::input) fail(Fault::malformed, r, i, "writes the input");
        }
        if (!op.communicates() && op.src.count != op.dst.count)
          fail(Fault::malformed, r, i, "source and destination differ in length");
        if (!op.communicates() && op.src.overlaps(op.dst)) fail(Fault::malformed, r, i, "operands overlap");
        if (op.communicates() && (op.peer < 0 || op.peer >= ranks() || op.peer == r))
          fail(Fault::malformed, r, i, "no such peer");
        if (op.communicates() && (op.channel < 0 || op.channel >= kChannels))
          fail(Fault::malformed, r, i, "no such channel");
      }
    if (!verdict_.ok()) return;
    for (Rank r = 0; r < ranks(); ++r) ancestors_.emplace_back(ops(r));
  }

  void check_matching() {
    using Key = std::tuple<Rank, Rank, std::int32_t>;
    std::map<Key, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> channels;
    for (Rank r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < ops(r).size(); ++i) {
        const Operation& op = ops(r)[i];
        if (op.kind == OpKind::send) channels[{r, op.peer, op.channel}].first.push_back(i);
        if (op.kind == OpKind::recv) channels[{op.peer, r, op.channel}].second.push_back(i);
      }
    for (const auto& [key, sides] : channels) {
      const auto& [from, to, channel] = key;
      const auto& [sends, recvs] = sides;
      const std::size_t pairs = std::min(sends.size(), recvs.size());
      if (sends.size() > pairs) fail(Fault::unmatched, from, sends[pairs], "no receive matches");
      if (recvs.size() > pairs) fail(Fault::unmatched, to, recvs[pairs], "no send matches");
      for (std::size_t k = 0; k < pairs; ++k) {
        if (ops(from)[sends[k]].src.count != ops(to)[recvs[k]].dst.count)
          fail(Fault::unmatched, to, recvs[k],
               "the message has " + std::to_string(ops(from)[sends[k]].src.count) + " elements");
        peer_[global(from, sends[k])] = global(to, recvs[k]);
        peer_[global(to, recvs[k])] = global(from, sends[k]);
        if (k == 0) continue;
        if (!ancestors_[static_cast<std::size_t>(from)].before(sends[k - 1], sends[k]))
          fail(Fault::unmatched, from, sends[k], "not ordered after the channel's previous message");
        if (!ancestors_[static_cast<std::size_t>(to)].before(recvs[k - 1], recvs[k]))
          fail(Fault::unmatched, to, recvs[k], "not ordered after the channel's previous message");
      }
    }
  }

  void check_lanes() {
    for (Rank r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < ops(r).size(); ++i) {
        const Operation& op = ops(r)[i];
        if (op.lane == Lane::foreground) continue;
        const bool program = (op.kind != OpKind::recv && op.src.buffer != Buffer::scratch) ||
                             (op.kind != OpKind::send && op.dst.buffer != Buffer::scratch);
        bool arrived = false;
        for (std::size_t j = 0; program && !arrived && j < i; ++j)
          arrived = ops(r)[j].lane == Lane::foreground && ancestors_[static_cast<std::size_t>(r)].before(j, i);
        if (program && !arrived) fail(Fault::early_touch, r, i, "may touch a program buffer before the arrival");
      }
  }

  static bool conflict(const Operation& a, const Operation& b) {
    const bool a_reads = a.kind != OpKind::recv, a_writes = a.kind != OpKind::send;
    const bool b_reads = b.kind != OpKind::recv, b_writes = b.kind != OpKind::send;
    return (a_writes && b_writes && a.dst.overlaps(b.dst)) || (a_writes && b_reads && a.dst.overlaps(b.src)) ||
           (a_reads && b_writes && a.src.overlaps(b.dst));
  }

  /// Whether operation `from` completes before `to` starts under every interleaving, if all sends are eager.
  bool ordered_globally(std::size_t from, std::size_t to) {
    if (dependents_.empty()) {
      dependents_.resize(base_.back());
      for (Rank r = 0; r < ranks(); ++r)
        for (std::size_t i = 0; i < ops(r).size(); ++i)
          for (int d = 0; d < ops(r)[i].dep_count; ++d)
            dependents_[global(r, static_cast<std::size_t>(ops(r)[i].deps[d]))].push_back(global(r, i));
    }
    std::vector<char> seen(base_.back(), 0);
    std::vector<std::size_t> complete{from};
    seen[from] = 1;
    while (!complete.empty()) {
      const std::size_t at = complete.back();
      complete.pop_back();
      for (const std::size_t next : dependents_[at]) {
        if (next == to) return true;
        const auto visit = [&](std::size_t g) {
          if (!std::exchange(seen[g], 1)) complete.push_back(g);
        };
        visit(next);
        if (operation(next).kind == OpKind::send) visit(peer_[next]);
      }
    }
    return false;
  }

  const Operation& operation(std::size_t g) const {
    const auto r = static_cast<Rank>(std::upper_bound(base_.begin(), base_.end(), g) - base_.begin() - 1);
    return ops(r)[g - base_[static_cast<std::size_t>(r)]];
  }

  void check_races() {
    for (Rank r = 0; r < ranks(); ++r) {
      const auto& list = ops(r);
      for (std::size_t i = 1; i < list.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
          if (!conflict(list[j], list[i]) || ancestors_[static_cast<std::size_t>(r)].before(j, i)) continue;
          if (ordered_globally(global(r, j), global(r, i)) || ordered_globally(global(r, i), global(r, j))) continue;
          fail(Fault::race, r, i,
               "not ordered with operation " + std::to_string(j) + " (" + describe_operation(list[j]) + ")");
          return;
        }
    }
  }

  // The expression index of every element of a buffer. Index 0 marks an element that was never written.
  std::vector<std::int32_t>& values(Rank r, Buffer b) {
    return memory_[static_cast<std::size_t>(r) * kBuffers + static_cast<std::size_t>(b)];
  }

  std::int32_t leaf(Rank r, Elements e) {
    Expression x{e,
                 std::vector<std::uint64_t>(static_cast<std::size_t>(ranks() + 63) / 64),
                 true,
                 true,
                 r,
                 r,
                 mix64(static_cast<std::uint64_t>(r) + 1)};
    x.ranks[static_cast<std::size_t>(r) / 64] |= std::uint64_t{1} << (r % 64);
    expressions_.push_back(std::move(x));
    return static_cast<std::int32_t>(expressions_.size() - 1);
  }

  std::int32_t combine(std::int32_t left, std::int32_t right) {
    const auto key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    const auto [found, fresh] = pairs_.try_emplace(key, 0);
    if (!fresh) return found->second;
    const Expression &l = expressions_[static_cast<std::size_t>(left)],
                     &r = expressions_[static_cast<std::size_t>(right)];
    Expression x = l;
    for (std::size_t w = 0; w < x.ranks.size(); ++w) {
      x.once = x.once && (l.ranks[w] & r.ranks[w]) == 0;
      x.ranks[w] |= r.ranks[w];
    }
    x.once = x.once && r.once;
    x.ordered = l.ordered && r.ordered && l.high + 1 == r.low;
    x.high = r.high;
    x.association = mix64(l.association + r.association) ^ mix64(l.association ^ r.association);
    expressions_.push_back(std::move(x));
    return found->second = static_cast<std::int32_t>(expressions_.size() - 1);
  }

  bool read(Rank r, std::size_t i, const Slice& s, std::vector<std::int32_t>& into) {
    const auto& from = values(r, s.buffer);
    into.assign(from.begin() + s.offset, from.begin() + s.end());
    for (const std::int32_t v : into)
      if (v == 0) {
        fail(Fault::undefined, r, i, "reads " + text_of(s) + ", which was never written");
        return false;
      }
    return true;
  }

  void perform(Rank r, std::size_t i, std::vector<std::int32_t>& buffer) {
    const Operation& op = ops(r)[i];
    if (op.kind == OpKind::send) return;  // moved when the receive completes
    if (op.kind == OpKind::recv) {
      const std::size_t g = peer_[global(r, i)];
      const Rank from = op.peer;
      if (!read(from, g - base_[static_cast<std::size_t>(from)], operation(g).src, buffer)) return;
    } else if (!read(r, i, op.src, buffer)) {
      return;
    }
    auto& to = values(r, op.dst.buffer);
    for (Elements e = 0; e < op.dst.count; ++e) {
      std::int32_t& slot = to[static_cast<std::size_t>(op.dst.offset + e)];
      const std::int32_t left = buffer[static_cast<std::size_t>(e)];
      if (op.kind != OpKind::reduce) {
        slot = left;
        continue;
      }
      if (slot == 0)
        return fail(Fault::undefined, r, i, "reduces into " + text_of(op.dst) + ", which was never written");
      if (expressions_[static_cast<std::size_t>(left)].element != expressions_[static_cast<std::size_t>(slot)].element)
        return fail(Fault::wrong_result, r, i, "combines different elements");
      slot = combine(left, slot);
    }
  }

  /// Runs all operations once, in an order that synchronous sends allow. Reports a deadlock if an operation cannot run.
  void execute() {
    expressions_.push_back({});
    memory_.resize(static_cast<std::size_t>(ranks()) * kBuffers);
    for (Rank r = 0; r < ranks(); ++r) {
      for (int b = 0; b < kBuffers; ++b)
        values(r, static_cast<Buffer>(b)).assign(static_cast<std::size_t>(size_of(r, static_cast<Buffer>(b))), 0);
      const ContributionRange own = contribution_of(call_, r);
      auto& mine = values(r, own.buffer);
      for (Elements e = 0; e < own.count; ++e) mine[static_cast<std::size_t>(own.at + e)] = leaf(r, e);
    }
    std::vector<int> waiting(base_.back());
    std::vector<char> posted(base_.back(), 0);
    std::vector<std::vector<OpId>> next(base_.back());
    std::vector<std::pair<Rank, std::size_t>> ready;
    for (Rank r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < ops(r).size(); ++i) {
        const Operation& op = ops(r)[i];
        waiting[global(r, i)] = op.dep_count;
        for (int d = 0; d < op.dep_count; ++d)
          next[global(r, static_cast<std::size_t>(op.deps[d]))].push_back(static_cast<OpId>(i));
        if (op.dep_count == 0) ready.emplace_back(r, i);
      }
    if (!has_payload(call_.op)) arrivals_.assign(base_.back(), std::vector<bool>(static_cast<std::size_t>(ranks())));
    std::size_t done = 0;
    std::vector<std::int32_t> buffer;
    const auto complete = [&](Rank r, std::size_t i) {
      perform(r, i, buffer);
      if (!arrivals_.empty()) learn(r, i);
      ++done;
      for (const OpId n : next[global(r, i)])
        if (--waiting[global(r, static_cast<std::size_t>(n))] == 0) ready.emplace_back(r, static_cast<std::size_t>(n));
    };
    while (!ready.empty() && verdict_.ok()) {
      const auto [r, i] = ready.back();
      ready.pop_back();
      const std::size_t g = global(r, i);
      posted[g] = 1;
      if (!ops(r)[i].communicates()) {
        complete(r, i);
      } else if (posted[peer_[g]]) {
        const Rank other = ops(r)[i].peer;
        const std::size_t o = peer_[g] - base_[static_cast<std::size_t>(other)];
        // The receive completes first, because the sender may overwrite its data after the send completes.
        const bool receives = ops(r)[i].kind == OpKind::recv;
        if (receives) complete(r, i);
        complete(other, o);
        if (!receives) complete(r, i);
      }
    }
    if (!verdict_.ok() || done == base_.back()) return;
    for (Rank r = 0; r < ranks(); ++r)
      for (std::size_t i = 0; i < ops(r).size(); ++i)
        if (posted[global(r, i)] && ops(r)[i].communicates() && !posted[peer_[global(r, i)]])
          return fail(Fault::deadlock, r, i, "never completes under synchronous sends");
    fail(Fault::deadlock, 0, 0, "nothing can start");
  }

  void check_result() {
    verdict_.rank_order = true;
    if (!has_payload(call_.op)) check_barrier();
    else if (is_reduction(call_.op)) check_reduction();
    else check_movement();
  }

  void wrong(Rank r, Elements e, const std::string& what) {
    fail(Fault::wrong_result, r, ops(r).size(), "output[" + std::to_string(e) + "] " + what);
  }

  /// Reductions: {n, element} if output element e of rank r must combine that element of ranks 0 to n - 1.
  /// n == 0: MPI leaves the output element undefined.
  std::pair<int, Elements> reduced(Rank r, Elements e) const {
    const CollectiveTraits& t = traits(call_.op);
    const int operands = t.combines == Combines::up_to_me ? r + 1 : t.combines == Combines::before_me ? r : ranks();
    return {operands, t.input.root == Extent::blocks ? r * call_.count + e : e};
  }

  void check_reduction() {
    const Rank first = buffer_elements(call_, 0, Buffer::output) > 0 ? 0 : call_.root;
    const CollectiveTraits& t = traits(call_.op);
    const bool alike = t.combines == Combines::all && t.input.root == Extent::vector;
    for (Elements e = 0; e < call_.count; ++e)
      for (Rank r = 0; r < ranks(); ++r) {
        const auto [operands, element] = reduced(r, e);
        if (buffer_elements(call_, r, Buffer::output) == 0 || operands == 0) continue;
        const std::int32_t v = values(r, Buffer::output)[static_cast<std::size_t>(e)];
        if (v == 0) return wrong(r, e, "was never written");
        const Expression& x = expressions_[static_cast<std::size_t>(v)];
        if (x.element != element) return wrong(r, e, "holds another element");
        if (!x.once) return wrong(r, e, "holds a contribution twice");
        for (Rank from = 0; from < ranks(); ++from)
          if ((x.ranks[static_cast<std::size_t>(from) / 64] >> (from % 64) & 1) != (from < operands ? 1 : 0))
            return wrong(
                r, e,
                from < operands ? "lacks a contribution" : "holds a contribution of rank " + std::to_string(from));
        if (alike && v != values(first, Buffer::output)[static_cast<std::size_t>(e)])
          return wrong(r, e, "is combined in another order than on rank 0, so results are not bitwise equal");
        if (alike && r != first) continue;
        verdict_.rank_order = verdict_.rank_order && x.ordered;
        verdict_.association = mix64(verdict_.association ^ x.association);
      }
    if (!call_.commutative && !verdict_.rank_order)
      fail(Fault::wrong_result, 0, ops(0).size(), "operands of a non-commutative operator are not in rank order");
  }

  /// Barrier: records the ranks that must have arrived before an operation completes. The completion of a send proves
  /// no arrival of its receiver, because the send may be eager.
  void learn(Rank r, std::size_t i) {
    auto& known = arrivals_[global(r, i)];
    const auto add = [&](const std::vector<bool>& more) {
      for (std::size_t k = 0; k < known.size(); ++k) known[k] = known[k] || more[k];
    };
    known[static_cast<std::size_t>(r)] = true;
    const Operation& op = ops(r)[i];
    for (int d = 0; d < op.dep_count; ++d) add(arrivals_[global(r, static_cast<std::size_t>(op.deps[d]))]);
    if (op.kind != OpKind::recv) return;
    // The sender must have arrived, and so must all ranks whose arrival preceded the send.
    const Operation& sent = operation(peer_[global(r, i)]);
    known[static_cast<std::size_t>(op.peer)] = true;
    for (int d = 0; d < sent.dep_count; ++d) add(arrivals_[global(op.peer, static_cast<std::size_t>(sent.deps[d]))]);
  }

  void check_barrier() {
    for (Rank r = 0; r < ranks(); ++r) {
      std::vector<bool> known(static_cast<std::size_t>(ranks()));
      known[static_cast<std::size_t>(r)] = true;
      for (std::size_t i = 0; i < ops(r).size(); ++i)
        for (std::size_t k = 0; k < known.size(); ++k) known[k] = known[k] || arrivals_[global(r, i)][k];
      for (Rank other = 0; other < ranks(); ++other)
        if (!known[static_cast<std::size_t>(other)])
          return fail(Fault::wrong_result, r, ops(r).size(),
                      "may leave before rank " + std::to_string(other) + " arrives");
    }
    verdict_.rank_order = true;
  }

  void check_movement() {
    for (Rank r = 0; r < ranks(); ++r)
      for (Elements e = 0; e < buffer_elements(call_, r, Buffer::output); ++e) {
        const std::int32_t v = values(r, Buffer::output)[static_cast<std::size_t>(e)];
        if (v == 0) return wrong(r, e, "was never written");
        const Expression& x = expressions_[static_cast<std::size_t>(v)];
        const auto [from, element] = origin(call_, r, e);
        if (x.low != from || x.high != from || x.element != element)
          return wrong(r, e,
                       "holds element " + std::to_string(x.element) + " of rank " + std::to_string(x.low) +
                           " instead of " + std::to_string(element) + " of " + std::to_string(from));
      }
    // Data movement associates no operands, so the fingerprint covers the sender and the receiver of each message.
    for (Rank r = 0; r < ranks(); ++r)
      for (const Operation& op : ops(r))
        if (op.communicates())
          verdict_.association =
              mix64(verdict_.association ^ (static_cast<std::uint64_t>(r) << 32 | static_cast<std::uint32_t>(op.peer)));
  }

  const Call& call_;
  const std::vector<RankProgram>& programs_;
  std::vector<std::size_t> base_;  // [ranks + 1], first global index per rank, then the total
  std::vector<std::size_t> peer_;  // global index of the matching operation, by global index
  std::vector<Ancestors> ancestors_;
  std::vector<std::vector<std::size_t>> dependents_;
  std::vector<Expression> expressions_;
  std::unordered_map<std::uint64_t, std::int32_t> pairs_;
  std::vector<std::vector<std::int32_t>> memory_;
  std::vector<std::vector<bool>> arrivals_;  // barrier: [operation][rank], see learn()
  ScheduleVerdict verdict_;
};

}  // namespace

std::string_view name_of(Fault fault) { return kFaultNames[static_cast<int>(fault)]; }

std::string describe_operation(const Operation& op) {
  switch (op.kind) {
    case OpKind::send:
      return "send to " + std::to_string(op.peer) + " of " + text_of(op.src) + " on channel " +
             std::to_string(op.channel);
    case OpKind::recv:
      return "receive from " + std::to_string(op.peer) + " into " + text_of(op.dst) + " on channel " +
             std::to_string(op.channel);
    case OpKind::reduce:
      return "reduce " + text_of(op.src) + " into " + text_of(op.dst);
    case OpKind::copy:
      return "copy " + text_of(op.src) + " to " + text_of(op.dst);
  }
  return "";
}

ScheduleVerdict verify(const Call& call, const std::vector<RankProgram>& programs) {
  return Verifier(call, programs).run();
}

namespace {

/// Block sizes of an irregular collective. Each count of the sweep gets another kind: equal, random with empty blocks,
/// one block in four large, or two large blocks among empty ones.
std::vector<Bytes> sizes_for(Collective op, int ranks, Elements kind) {
  std::vector<Bytes> out;
  for (Rank r = 0; is_irregular(op) && kind > 0 && r < ranks; ++r) {
    const auto drawn = static_cast<Bytes>(mix64(static_cast<std::uint64_t>(r + 100 * kind)) % 4);
    out.push_back(kind == 1           ? 1000
                  : kind == ranks - 1 ? (drawn == 0 ? 50'000 : 1)
                  : kind == ranks     ? (r == 0 || r == ranks - 1 ? 100'000 : 0)
                                      : drawn * 777);
  }
  return out;
}

}  // namespace

SweepResult sweep(const Algorithm& algorithm, int ranks, Rank root, const std::vector<Pattern>& arrivals) {
  SweepResult result;
  std::vector<Pattern> patterns = arrivals;
  if (patterns.empty()) {
    patterns.emplace_back();
    for (const char* spec : {"ascending:1ms", "descending:1ms", "randlate:3ms:1", "randlate:300us:2"})
      patterns.push_back(*parse_arrivals(spec, ranks));
    patterns.push_back(*parse_arrivals("onelate:" + std::to_string(ranks / 2) + ":50ms", ranks));
  }
  Parameters parameters;
  // Derived: a step takes about 10 us (with large irregular blocks up to 110 us). So the patterns above span 0, 30,
  // 100, 300 and 5,000 steps, from none to far more than an algorithm has.
  parameters.network.alpha_ns = 1e4;
  parameters.network.beta_ns_per_byte = 1;
  parameters.network.copy_ns_per_byte = 0.5;
  const int p = ranks;
  for (const Elements count : {0, 1, p - 1, p, 2 * p + 3})
    for (const bool in_place : {false, true}) {
      if (in_place && traits(algorithm.op).in_place == InPlace::none) continue;
      for (const bool overlap : {true, false})
        for (const bool commutative : {true, false}) {
          if (!commutative && (!algorithm.keeps_rank_order() || !is_reduction(algorithm.op))) continue;
          for (const int segments : {0, 3}) {
            std::uint64_t association = 0;
            for (std::size_t i = 0; i < patterns.size(); ++i) {
              Call call{algorithm.op, ranks, root, count, 8, in_place, commutative};
              parameters.overlap = overlap;
              parameters.segments = segments;
              parameters.sizes = sizes_for(algorithm.op, ranks, count);
              const Instance instance(call, patterns[i], parameters);
              const ScheduleVerdict verdict = verify(call, materialize(algorithm, instance));
              ++result.cases;
              if (!verdict.ok()) {
                result.failures.push_back({std::string(algorithm.name), ranks, root,
                                           std::string(name_of(verdict.fault)) + ": count " + std::to_string(count) +
                                               (in_place ? ", in place" : "") + (overlap ? "" : ", lockstep") +
                                               ", pattern " + std::to_string(i) + ": " + verdict.what});
                continue;
              }
              if (count > 0) result.rank_order = result.rank_order && verdict.rank_order;
              if (i == 0) association = verdict.association;
              else result.pattern_independent = result.pattern_independent && association == verdict.association;
            }
            if (algorithm.segments == Segments::none) break;
          }
        }
    }
  return result;
}

}  // namespace latecomer::core
