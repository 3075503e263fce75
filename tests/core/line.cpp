// SPDX-License-Identifier: BSD-3-Clause
// The lines of range communicators: they have the operations of their schedules at every count, and no run hangs.
#include "core/select/line.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "core/select/by_call.hpp"

using namespace latecomer::core;

namespace {

std::vector<Collective> regular_collectives() {
  std::vector<Collective> out;
  for (const Algorithm& a : catalogue())
    if (a.range.some && !is_irregular(a.op) && std::find(out.begin(), out.end(), a.op) == out.end())
      out.push_back(a.op);
  return out;
}

/// The calls of a collective on that number of ranks: roots, in place or not, commutative or not.
std::vector<Call> calls(Collective op, int ranks, Bytes element_bytes) {
  std::vector<Call> out;
  Call call;
  call.op = op;
  call.ranks = ranks;
  call.element_bytes = is_reduction(op) ? element_bytes : 1;
  for (const Rank root : {0, 1, ranks / 2, ranks - 1})
    for (const bool in_place : {false, true})
      for (const bool commutative : {false, true}) {
        if (root >= ranks || (root > 0 && !is_rooted(op)) ||
            (in_place && (op == Collective::bcast || op == Collective::barrier)) || (!commutative && !is_reduction(op)))
          continue;
        call.root = root;
        call.in_place = in_place;
        call.commutative = commutative;
        call.count = op != Collective::barrier;
        out.push_back(call);
      }
  return out;
}

/// One operation, independent of its position in the list.
using Entry = std::tuple<OpKind, Rank, int, Buffer, Elements, Elements, Buffer, Elements, Elements>;
std::vector<Entry> sorted(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  return entries;
}
template <typename Op>
Entry entry(const Op& op, Elements count) {
  const auto& [d, s] = std::tie(op.dst, op.src);
  return {op.kind,         op.peer,  op.channel,       d.buffer,       d.offset * count,
          d.count * count, s.buffer, s.offset * count, s.count * count};
}

/// Runs all lines from top to bottom. Returns false if they hang or if messages are left over.
bool runs(const std::vector<Line>& lines) {
  std::vector<std::size_t> at(lines.size());
  std::map<std::tuple<Rank, Rank, int>, int> under_way;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < lines.size(); ++r)
      for (; at[r] < lines[r].steps.size(); ++at[r], moved = true) {
        const Line::Step& s = lines[r].steps[at[r]];
        const Rank me = static_cast<Rank>(r);
        if (s.kind == OpKind::send) ++under_way[{me, s.peer, s.channel}];
        if (s.kind == OpKind::recv && --under_way[{s.peer, me, s.channel}] < 0) {
          ++under_way[{s.peer, me, s.channel}];
          break;
        }
      }
  }
  for (std::size_t r = 0; r < lines.size(); ++r)
    if (at[r] < lines[r].steps.size()) return false;
  return std::all_of(under_way.begin(), under_way.end(), [](const auto& m) { return m.second == 0; });
}

}  // namespace

TEST_CASE("line: has the operations of the schedule at every count", "[range]") {
  for (const Collective op : regular_collectives())
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17})
      for (Call call : calls(op, ranks, 8))
        for (Rank me = 0; me < ranks; ++me) {
          const Line line = range_line(call, me);
          for (const Elements count :
               {Elements{1}, Elements{2}, Elements{5}, Elements{127}, Elements{1001}, line.most}) {
            if (op == Collective::barrier ? count != 1 : count > std::min<Elements>(line.most, 1 << 20)) continue;
            Call longer = call;
            longer.count = op == Collective::barrier ? 0 : count;
            const RankProgram program =
                materialize(range_algorithm(longer), Instance(longer, Pattern(), Parameters{}), me);
            std::vector<Entry> expected, got;
            for (const Operation& o : program.ops)
              if (o.communicates() || o.count() > 0) expected.push_back(entry(o, 1));
            for (const Line::Step& s : line.steps) got.push_back(entry(s, count));
            INFO(name_of(op) << " on " << ranks << " ranks, rank " << me << ", count " << count);
            REQUIRE(sorted(expected) == sorted(got));
            REQUIRE(program.scratch == line.scratch * count);
          }
        }
}

TEST_CASE("line: no run hangs", "[range]") {
  for (const Collective op : regular_collectives())
    for (int ranks = 1; ranks <= 40; ++ranks)
      for (const Call& call : calls(op, ranks, 8)) {
        std::vector<Line> lines;
        for (Rank me = 0; me < ranks; ++me) lines.push_back(range_line(call, me));
        INFO(name_of(op) << " on " << ranks << " ranks, root " << call.root);
        REQUIRE(runs(lines));
        // The check finds a rank that leaves out its last message.
        if (ranks != 5 || lines[1].steps.empty()) continue;
        auto broken = lines;
        while (!broken[1].steps.empty() && broken[1].steps.back().kind != OpKind::send &&
               broken[1].steps.back().kind != OpKind::recv)
          broken[1].steps.pop_back();
        if (broken[1].steps.empty()) continue;
        broken[1].steps.pop_back();
        REQUIRE_FALSE(runs(broken));
      }
}

TEST_CASE("line: the size class ends where another algorithm begins", "[range]") {
  Call call;
  call.op = Collective::bcast;
  call.ranks = 8;
  CHECK(range_class_end(call) == 12287);
  call.ranks = 7;
  CHECK(range_class_end(call) == INT64_MAX);
  call.op = Collective::allreduce;
  call.element_bytes = 8;
  call.ranks = 16;
  CHECK(range_class_end(call) == 256);
  call.ranks = 300;
  CHECK(range_class_end(call) == 299);  // one element per rank at least
  call.commutative = false;
  CHECK(range_class_end(call) == INT64_MAX);
  call.op = Collective::allgather;
  call.element_bytes = 1;
  call.ranks = 4;
  call.commutative = true;
  CHECK(range_class_end(call) == 20480);
}
