// SPDX-License-Identifier: BSD-3-Clause
// The definition of waiting: which ranks of a collective can wait, for which rank, and for how long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "profiles/record/record.hpp"

namespace latecomer::profiles {

enum class WaitRule : std::uint8_t {
  all_for_last,     ///< every rank for the rank that arrives last
  root_for_last,    ///< the root for the last of the other ranks
  others_for_root,  ///< every rank for the root
  for_lower_ranks,  ///< every rank for the last of the ranks below it
  unknown,          ///< neighbours, which the records do not name: waits for them count as messages
};

constexpr WaitRule waiting_in(core::Collective op) {
  const core::CollectiveTraits& t = core::traits(op);
  const bool gathers = t.output.root != core::Extent::none && t.output.others == core::Extent::none;
  if (core::is_rooted(op)) return gathers ? WaitRule::root_for_last : WaitRule::others_for_root;
  if (t.combines == core::Combines::up_to_me || t.combines == core::Combines::before_me)
    return WaitRule::for_lower_ranks;
  return op >= core::Collective::neighbor_allgather ? WaitRule::unknown : WaitRule::all_for_last;
}

/// The definition of a collective in words, for reports.
constexpr std::string_view waiting_text(core::Collective op) {
  switch (waiting_in(op)) {
    case WaitRule::all_for_last:
      return "every rank waits for the last one";
    case WaitRule::root_for_last:
      return "the root waits for the last of the others";
    case WaitRule::others_for_root:
      return "the others wait for the root";
    case WaitRule::for_lower_ranks:
      return "a rank waits for the last of the ranks below it";
    case WaitRule::unknown:
      break;
  }
  return "a rank waits for its neighbours, which counts as a wait for messages";
}

/// Calls note(index that waits, index that it waits for) for every rank that can wait in a call. arrival(i): arrival of
/// rank i of the communicator. If the root of a rooted call is unknown, it does nothing.
template <typename Arrival, typename Note>
void for_each_awaited(core::Collective op, core::Rank root_rank, std::size_t ranks, Arrival arrival, Note note) {
  const auto later = [&](std::size_t a, std::size_t b) { return arrival(b) > arrival(a) ? b : a; };
  const auto root = static_cast<std::size_t>(root_rank);
  if (core::is_rooted(op) && root >= ranks) return;
  switch (waiting_in(op)) {
    case WaitRule::all_for_last: {
      std::size_t last = 0;
      for (std::size_t r = 1; r < ranks; ++r) last = later(last, r);
      for (std::size_t r = 0; r < ranks; ++r) note(r, last);
      return;
    }
    case WaitRule::root_for_last: {
      std::size_t last = root == 0 && ranks > 1 ? 1 : 0;
      for (std::size_t r = 0; r < ranks; ++r)
        if (r != root) last = later(last, r);
      return note(root, last);
    }
    case WaitRule::others_for_root:
      for (std::size_t r = 0; r < ranks; ++r) note(r, root);
      return;
    case WaitRule::for_lower_ranks: {
      std::size_t last = 0;
      for (std::size_t r = 1; r < ranks; ++r) {
        note(r, last);
        last = later(last, r);
      }
      return;
    }
    case WaitRule::unknown:
      return;
  }
}

/// Calls note(index that waits, index that it waits for, nanoseconds) for every rank of a blocking call that waited. A
/// wait begins with a rank's arrival and ends with the arrival of the awaited rank or with its own exit, whichever
/// comes first. arrival(i), exit(i): of rank i of the communicator.
template <typename Arrival, typename Exit, typename Note>
void for_each_wait(core::Collective op, core::Rank root, std::size_t ranks, Arrival arrival, Exit exit, Note note) {
  for_each_awaited(op, root, ranks, arrival, [&](std::size_t r, std::size_t awaited) {
    const Nanoseconds until = std::min(arrival(awaited), exit(r));
    if (r != awaited && until > arrival(r)) note(r, awaited, until - arrival(r));
  });
}

/// Calls note() as above for the records of one call, [comm_size]. Ranks do not wait in non-blocking calls.
template <typename Note>
void for_each_wait(std::span<const CallRecord* const> records, Note note) {
  const CallRecord& any = *records[0];
  if (any.kind != core::CallKind::blocking) return;
  for_each_wait(
      any.op, any.root, records.size(), [&](std::size_t r) { return records[r]->arrival; },
      [&](std::size_t r) { return records[r]->exit; }, note);
}

}  // namespace latecomer::profiles
