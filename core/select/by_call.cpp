// SPDX-License-Identifier: BSD-3-Clause
// Looks up the rows of the catalogue that serve a call.
#include "core/select/by_call.hpp"

namespace latecomer::core {
namespace {

const Algorithm* last_that_serves(const Call& call, DefaultCalls Traits::*calls) {
  const Algorithm* found = nullptr;
  for (const Algorithm& a : catalogue())
    if (a.op == call.op && (a.*calls).include(call)) found = &a;
  return found;
}

}  // namespace

const Algorithm* native_stand_in(const Call& call) { return last_that_serves(call, &Traits::native); }
const Algorithm& range_algorithm(const Call& call) { return *last_that_serves(call, &Traits::range); }

}  // namespace latecomer::core
