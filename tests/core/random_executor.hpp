// SPDX-License-Identifier: BSD-3-Clause
// An executor for the tests of the verifier, independent of the verifier's code. It runs schedules on values that
// record their operands in order. Interleavings, eager or synchronous sends, and the times of reads and writes between
// the start and the end of an operation are random.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/text.hpp"
#include "core/schedule/pieces.hpp"
#include "core/verify/verify.hpp"

namespace latecomer::test {

using namespace latecomer::core;

/// Runs schedules once. Returns "" if the result is correct, otherwise the kind of the fault. `pieces`: shape [ranks],
/// the messages in pieces of each rank, or empty.
inline std::string run_once(const Call& call, const std::vector<RankProgram>& programs, std::uint64_t seed,
                            const std::vector<std::vector<Pieces>>& pieces = {}) {
  SplitMix64 random(seed);
  const int P = call.ranks;
  const bool lazy_sends = random.below(2) == 0;  // sends read their data as late as possible
  const int eager_percent = static_cast<int>(random.below(3)) * 50;
  // One string per element: "element:" and its operands in order. "?" is an uninitialized element.
  std::vector<std::vector<std::string>> memory(static_cast<std::size_t>(P) * 3);
  const auto mem = [&](Rank r, Buffer b) -> std::vector<std::string>& {
    return memory[static_cast<std::size_t>(r) * 3 + static_cast<std::size_t>(b)];
  };
  // The sizes of input and output, and the place of the contribution, as MPI defines them for each collective.
  const Collective op = regular(call.op);
  const bool moves = op == Collective::scatter || op == Collective::gather || op == Collective::bcast ||
                     op == Collective::allgather || op == Collective::alltoall;
  for (Rank r = 0; r < P; ++r) {
    const bool root = r == call.root;
    Elements in = call.count, out = call.count, own_at = 0, own = call.count;
    bool own_in_output = call.in_place;
    switch (op) {
      case Collective::reduce:
        out = root ? call.count : 0;
        own_in_output = call.in_place && root;
        break;
      case Collective::scatter:
        in = root ? P * call.count : 0;
        own = in;
        out = root && call.in_place ? 0 : call.count;
        own_in_output = false;
        break;
      case Collective::gather:
        out = root ? P * call.count : 0;
        own_in_output = call.in_place && root;
        own_at = own_in_output ? r * call.count : 0;
        break;
      case Collective::bcast:
        in = 0;
        own = root ? call.count : 0;
        own_in_output = true;
        break;
      case Collective::barrier:
        in = out = own = 0;
        break;
      case Collective::allgather:
        out = P * call.count;
        own_at = own_in_output ? r * call.count : 0;
        break;
      case Collective::alltoall:
        in = out = own = P * call.count;
        break;
      case Collective::reduce_scatter_block:
        in = own = P * call.count;
        out = call.in_place ? P * call.count : call.count;
        break;
      default:
        break;
    }
    if (own_in_output) in = 0;
    mem(r, Buffer::input).assign(static_cast<std::size_t>(in), "?");
    mem(r, Buffer::output).assign(static_cast<std::size_t>(out), "?");
    mem(r, Buffer::scratch).assign(static_cast<std::size_t>(programs[static_cast<std::size_t>(r)].scratch), "?");
    auto& mine = mem(r, own_in_output ? Buffer::output : Buffer::input);
    for (Elements e = 0; e < own; ++e)
      mine[static_cast<std::size_t>(own_at + e)] = std::to_string(e) + ":" + std::to_string(r) + ",";
  }
  enum State : char { waiting, started, moved, ended };
  struct Live {
    int missing = 0;
    State state = waiting;
    bool eager = false;
  };
  std::vector<std::vector<Live>> live(static_cast<std::size_t>(P));
  std::vector<std::pair<Rank, int>> open;  // started, not ended
  struct Message {
    std::vector<std::string> data;
    bool filled = false;
    std::pair<Rank, int> sender{-1, -1};
  };
  std::map<std::tuple<Rank, Rank, int>, std::vector<std::pair<Rank, int>>> sends, recvs;  // in order of start
  std::map<std::pair<Rank, int>, Message> messages;                                       // by sender
  const auto ops = [&](Rank r) -> const std::vector<Operation>& { return programs[static_cast<std::size_t>(r)].ops; };
  const auto start = [&](Rank r, int i) {
    Live& l = live[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
    l.state = started;
    open.emplace_back(r, i);
    const Operation& op = ops(r)[static_cast<std::size_t>(i)];
    if (op.kind == OpKind::send) {
      l.eager = static_cast<int>(random.below(100)) < eager_percent;
      sends[{r, op.peer, op.channel}].emplace_back(r, i);
      messages[{r, i}];
    }
    if (op.kind == OpKind::recv) recvs[{op.peer, r, op.channel}].emplace_back(r, i);
  };
  for (Rank r = 0; r < P; ++r) {
    live[static_cast<std::size_t>(r)].resize(ops(r).size());
    for (std::size_t i = 0; i < ops(r).size(); ++i) live[static_cast<std::size_t>(r)][i].missing = ops(r)[i].dep_count;
  }
  const auto arrive = [&](Rank r) {
    for (std::size_t i = 0; i < ops(r).size(); ++i)
      if (ops(r)[i].dep_count == 0) start(r, static_cast<int>(i));
  };
  // The last rank of a barrier arrives when no other rank can proceed. No rank may have left before.
  Rank absent = op == Collective::barrier ? static_cast<Rank>(random.below(static_cast<std::uint64_t>(P))) : -1;
  for (Rank r = 0; r < P; ++r)
    if (r != absent) arrive(r);
  const auto end = [&](std::size_t at) {
    const auto [r, i] = open[at];
    open[at] = open.back();
    open.pop_back();
    live[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)].state = ended;
    for (std::size_t k = 0; k < ops(r).size(); ++k)
      for (int d = 0; d < ops(r)[k].dep_count; ++d)
        if (ops(r)[k].deps[d] == i && --live[static_cast<std::size_t>(r)][k].missing == 0)
          start(r, static_cast<int>(k));
  };
  const auto read = [&](Rank r, const Slice& s) {
    const auto& from = mem(r, s.buffer);
    return std::vector<std::string>(from.begin() + s.offset, from.begin() + s.end());
  };
  const auto places_of = [&](Rank r, int i, const Slice& whole) {
    if (!pieces.empty())
      for (const Pieces& p : pieces[static_cast<std::size_t>(r)])
        if (p.message == i) return p.where;
    return std::vector<Slice>{whole};
  };
  std::string problem;
  const auto fill = [&](std::pair<Rank, int> sender) {
    Message& m = messages[sender];
    if (m.filled) return;
    m.filled = true;
    for (const Slice& s :
         places_of(sender.first, sender.second, ops(sender.first)[static_cast<std::size_t>(sender.second)].src))
      for (const std::string& element : read(sender.first, s)) m.data.push_back(element);
  };
  /// Performs one step of an open operation. Returns false if the operation cannot proceed now.
  const auto step = [&](std::size_t at) {
    const auto [r, i] = open[at];
    const Operation& op = ops(r)[static_cast<std::size_t>(i)];
    Live& l = live[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
    if (op.kind == OpKind::reduce || op.kind == OpKind::copy) {
      auto& to = mem(r, op.dst.buffer);
      const auto from = read(r, op.src);
      for (Elements e = 0; e < op.dst.count; ++e) {
        std::string& slot = to[static_cast<std::size_t>(op.dst.offset + e)];
        const std::string& left = from[static_cast<std::size_t>(e)];
        if (op.kind == OpKind::copy) {
          slot = left;
          continue;
        }
        const auto colon_l = left.find(':'), colon_r = slot.find(':');
        if (colon_l == std::string::npos || colon_r == std::string::npos ||
            left.substr(0, colon_l) != slot.substr(0, colon_r))
          slot = "?";
        else slot = left + slot.substr(colon_r + 1);
      }
      end(at);
      return true;
    }
    if (op.kind == OpKind::send) {
      if (l.state == started && (l.eager || !lazy_sends || random.below(4) == 0)) fill({r, i});
      if (l.eager && messages[{r, i}].filled) {
        end(at);
        return true;
      }
      if (l.state == moved) {
        end(at);
        return true;
      }
      return false;
    }
    // The k-th started receive of a channel matches the k-th started send.
    const auto& mine = recvs[{op.peer, r, op.channel}];
    const auto& theirs = sends[{op.peer, r, op.channel}];
    std::size_t k = 0;
    while (mine[k] != std::pair<Rank, int>{r, i}) ++k;
    if (k >= theirs.size()) return false;
    fill(theirs[k]);
    const auto& data = messages[theirs[k]].data;
    if (data.size() != static_cast<std::size_t>(op.dst.count)) {
      problem = "size";
      return true;
    }
    auto next = data.begin();
    for (const Slice& s : places_of(r, i, op.dst))
      for (Elements e = s.offset; e < s.end(); ++e) mem(r, s.buffer)[static_cast<std::size_t>(e)] = *next++;
    Live& sender = live[static_cast<std::size_t>(theirs[k].first)][static_cast<std::size_t>(theirs[k].second)];
    if (sender.state == started) sender.state = moved;
    end(at);
    return true;
  };
  while ((!open.empty() || absent >= 0) && problem.empty()) {
    // Tries operations, from a random one on, until one proceeds.
    const std::size_t n = open.size(), first = n > 0 ? random.below(n) : 0;
    bool any = false;
    for (std::size_t k = 0; k < n && !any; ++k) any = step((first + k) % n);
    if (any) continue;
    // No operation proceeded. A lazy eager send can proceed in a later attempt; otherwise this is a deadlock.
    bool could = false;
    for (const auto& [r, i] : open) {
      const Live& l = live[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)];
      could = could || (ops(r)[static_cast<std::size_t>(i)].kind == OpKind::send && l.eager);
    }
    if (could) continue;
    if (absent < 0) return "deadlock";
    for (Rank r = 0; r < P; ++r)
      if (r != absent && std::all_of(live[static_cast<std::size_t>(r)].begin(), live[static_cast<std::size_t>(r)].end(),
                                     [](const Live& l) { return l.state == ended; }))
        return "left early";
    arrive(absent);
    absent = -1;
  }
  if (!problem.empty()) return problem;
  for (Rank r = 0; r < P; ++r)
    for (const Live& l : live[static_cast<std::size_t>(r)])
      if (l.state != ended) return "deadlock";
  for (const auto& [channel, list] : sends)
    if (recvs[channel].size() != list.size()) return "left over";
  for (Rank r = 0; moves && r < P; ++r) {
    const auto& out = mem(r, Buffer::output);
    for (Elements e = 0; e < static_cast<Elements>(out.size()); ++e) {
      const bool by_block = op == Collective::gather || op == Collective::allgather || op == Collective::alltoall;
      const Rank from = by_block ? static_cast<Rank>(e / call.count) : call.root;
      const Elements element = op == Collective::alltoall  ? r * call.count + e % call.count
                               : by_block                  ? e % call.count
                               : op == Collective::scatter ? r * call.count + e
                                                           : e;
      if (out[static_cast<std::size_t>(e)] != std::to_string(element) + ":" + std::to_string(from) + ",")
        return "wrong element";
    }
  }
  const bool reduces = !moves && op != Collective::barrier;
  for (Rank r = 0; reduces && r < P; ++r) {
    if (op == Collective::reduce && r != call.root) continue;
    // The results of rank r combine the operands of ranks 0 to operands - 1.
    const int operands = op == Collective::scan ? r + 1 : op == Collective::exscan ? r : P;
    for (Elements e = 0; operands > 0 && e < call.count; ++e) {
      const std::string& result = mem(r, Buffer::output)[static_cast<std::size_t>(e)];
      if (op == Collective::allreduce && result != mem(0, Buffer::output)[static_cast<std::size_t>(e)])
        return "ranks differ";
      const auto colon = result.find(':');
      const Elements element = op == Collective::reduce_scatter_block ? r * call.count + e : e;
      if (colon == std::string::npos || result.substr(0, colon) != std::to_string(element)) return "wrong element";
      std::vector<int> seen(static_cast<std::size_t>(P), 0);
      std::string rest = result.substr(colon + 1);
      int last = -1;
      bool ordered = true;
      while (!rest.empty()) {
        const auto comma = rest.find(',');
        const int from = std::stoi(rest.substr(0, comma));
        ++seen[static_cast<std::size_t>(from)];
        ordered = ordered && from > last;
        last = from;
        rest.erase(0, comma + 1);
      }
      for (int from = 0; from < P; ++from)
        if (seen[static_cast<std::size_t>(from)] != (from < operands ? 1 : 0)) return "contributions";
      if (!call.commutative && !ordered) return "order";
    }
  }
  return "";
}

}  // namespace latecomer::test
