// SPDX-License-Identifier: BSD-3-Clause
// The tag contexts of this process: which ones are free, and which agreement may take one. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <set>

#include "shim/tags.hpp"

namespace latecomer::shim {

class Contexts {
 public:
  static constexpr int kWords = kContexts / 64;
  using Words = std::array<std::uint64_t, kWords>;

  /// A number for the next agreement that this process leads. The numbers of a process increase.
  std::uint32_t next_number();
  /// Copies the bit set of the contexts in use. Returns whether the agreement of this number may take a free context:
  /// only the agreement with the lowest number may. 0: the agreement has no number yet.
  bool offer_contexts(std::uint64_t number, Words& used);
  /// After a round of the agreement. `offered`: the result of offer_contexts(). `context`: the context that the
  /// agreement takes, or kContexts. `over`: the agreement asks no more.
  void settle_round(std::uint64_t number, bool offered, int context, bool over);
  /// Gives a context back.
  void give_back(int context);

 private:
  std::mutex mutex_;  // never held while waiting for another rank
  std::uint32_t numbers_ = 0;
  Words used_{1};                    // the context of MPI_COMM_WORLD
  bool offering_ = false;            // an agreement may take a context
  std::set<std::uint64_t> waiting_;  // numbers of agreements, if several threads may be inside MPI
};

Contexts& contexts();

}  // namespace latecomer::shim
