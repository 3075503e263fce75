// SPDX-License-Identifier: BSD-3-Clause
// Makes lines from schedules.
#include "core/select/line.hpp"

#include <algorithm>

#include "core/select/by_call.hpp"

namespace latecomer::core {

Elements range_class_end(Call call) {
  call.count = 1;
  const Bytes unit = call.bytes();
  // The counts at which the set of algorithms that serve the call can change.
  std::vector<Elements> changes{call.ranks};
  for (const Algorithm& a : catalogue()) {
    if (a.op != call.op || !a.range.some || unit == 0) continue;
    changes.push_back((a.range.least + unit - 1) / unit);
    if (a.range.most < INT64_MAX) changes.push_back(a.range.most / unit + 1);
  }
  std::sort(changes.begin(), changes.end());
  const Algorithm* const first = &range_algorithm(call);
  for (const Elements count : changes) {
    if (count <= 1) continue;
    call.count = count;
    if (&range_algorithm(call) != first) return count - 1;
  }
  return INT64_MAX;
}

Line range_line(Call call, Rank me) {
  Line line;
  line.most = call.count == 0 ? 0 : range_class_end(call);
  if (call.count != 0) call.count = 1;
  RankProgram program = materialize(range_algorithm(call), Instance(call, Pattern(), Parameters{}), me);
  line.scratch = program.scratch;
  // A receive waits, so start every operation that can start before a receive.
  std::vector<bool> done(program.ops.size());
  const auto ready = [&](std::size_t i) {
    const Operation& op = program.ops[i];
    for (int d = 0; d < op.dep_count; ++d)
      if (!done[static_cast<std::size_t>(op.deps[static_cast<std::size_t>(d)])]) return false;
    return !done[i];
  };
  std::size_t left = program.ops.size();
  const auto add = [&](std::size_t i) {
    const Operation& op = program.ops[i];
    done[i] = true;
    --left;
    if (!op.communicates() && op.count() == 0) return;  // joins dependencies
    line.steps.push_back({op.kind, op.peer, op.channel, op.dst, op.src});
    if (op.communicates()) line.longest = std::max(line.longest, op.count());
  };
  while (left > 0) {
    std::size_t receive = program.ops.size();
    // Dependencies refer to earlier operations, so one pass finds all that do not wait.
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      if (!ready(i)) continue;
      if (program.ops[i].kind != OpKind::recv) add(i);
      else receive = std::min(receive, i);
    }
    if (receive < program.ops.size()) add(receive);
  }
  return line;
}

}  // namespace latecomer::core
