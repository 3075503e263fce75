// SPDX-License-Identifier: BSD-3-Clause
// Finds the packing copies that an indexed datatype makes unnecessary.
#include "core/schedule/pieces.hpp"

#include <algorithm>

namespace latecomer::core {
namespace {

bool reads(const Operation& op) { return op.kind != OpKind::recv; }
bool writes(const Operation& op) { return op.kind != OpKind::send; }
bool touches(const Operation& op, const Slice& s) {
  return (reads(op) && op.src.overlaps(s)) || (writes(op) && op.dst.overlaps(s));
}

/// The copies that pack or unpack the message, in its order. Empty if any other operation touches the packed scratch.
std::vector<std::size_t> copies_of(const std::vector<Operation>& ops, std::size_t message) {
  const bool sends = ops[message].kind == OpKind::send;
  const Slice& packed = sends ? ops[message].src : ops[message].dst;
  const auto in_scratch = [&](std::size_t i) -> const Slice& { return sends ? ops[i].dst : ops[i].src; };
  const auto outside = [&](std::size_t i) -> const Slice& { return sends ? ops[i].src : ops[i].dst; };
  std::vector<std::size_t> copies;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (i == message || !touches(ops[i], packed)) continue;
    const Buffer program = sends ? Buffer::input : Buffer::output;
    if (ops[i].kind != OpKind::copy || ops[i].lane != Lane::foreground || in_scratch(i).buffer != Buffer::scratch ||
        outside(i).buffer != program || (i < message) != sends)
      return {};
    copies.push_back(i);
  }
  std::sort(copies.begin(), copies.end(),
            [&](std::size_t a, std::size_t b) { return in_scratch(a).offset < in_scratch(b).offset; });
  Elements at = packed.offset;
  for (const std::size_t c : copies) {
    if (in_scratch(c).offset != at) return {};
    at = in_scratch(c).end();
    for (std::size_t i = 0; !sends && i < ops.size(); ++i)
      if (i != c && touches(ops[i], outside(c))) return {};
  }
  return at == packed.end() ? copies : std::vector<std::size_t>{};
}

}  // namespace

std::vector<Pieces> skip_packing(RankProgram& program, Elements least) {
  std::vector<Pieces> out;
  auto& ops = program.ops;
  for (std::size_t m = 0; m < ops.size(); ++m) {
    if (!ops[m].communicates() || ops[m].lane != Lane::foreground || ops[m].count() < std::max<Elements>(least, 1))
      continue;
    const bool sends = ops[m].kind == OpKind::send;
    if ((sends ? ops[m].src : ops[m].dst).buffer != Buffer::scratch) continue;
    const auto copies = copies_of(ops, m);
    if (copies.empty()) continue;
    Pieces& pieces = out.emplace_back();
    pieces.message = static_cast<OpId>(m);
    for (const std::size_t c : copies) {
      pieces.where.push_back(sends ? ops[c].src : ops[c].dst);
      ops[c].src = ops[c].dst = Slice{};
    }
  }
  if (out.empty()) return out;
  program.scratch = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (next < out.size() && out[next].message == static_cast<OpId>(i)) {
      ++next;
      continue;
    }
    for (const Slice* s : {reads(ops[i]) ? &ops[i].src : nullptr, writes(ops[i]) ? &ops[i].dst : nullptr})
      if (s && s->buffer == Buffer::scratch) program.scratch = std::max(program.scratch, s->end());
  }
  return out;
}

}  // namespace latecomer::core
