// SPDX-License-Identifier: BSD-3-Clause
// Keeps the tag contexts of this process.
#include "shim/exchange/contexts.hpp"

#include "shim/state/process.hpp"

namespace latecomer::shim {

std::uint32_t Contexts::next_number() {
  const std::lock_guard lock(mutex_);
  return ++numbers_;
}

bool Contexts::offer_contexts(std::uint64_t number, Words& used) {
  const std::lock_guard lock(mutex_);
  bool offered = !job_process().threads;
  if (!offered && number != 0) {
    waiting_.insert(number);
    offered = !offering_ && *waiting_.begin() == number;
  }
  offering_ = offering_ || offered;
  used = used_;
  return offered;
}

void Contexts::settle_round(std::uint64_t number, bool offered, int context, bool over) {
  const std::lock_guard lock(mutex_);
  if (context < kContexts) used_[static_cast<std::size_t>(context) / 64] |= std::uint64_t{1} << (context % 64);
  if (offered) offering_ = false;
  if (over) waiting_.erase(number);
}

void Contexts::give_back(int context) {
  const std::lock_guard lock(mutex_);
  used_[static_cast<std::size_t>(context) / 64] &= ~(std::uint64_t{1} << (context % 64));
}

Contexts& contexts() {
  static auto& made = *new Contexts;  // never destroyed: callbacks may come after exit handlers
  return made;
}

}  // namespace latecomer::shim
