// SPDX-License-Identifier: BSD-3-Clause
// Prepares lines, and runs them.
#include "shim/range/straight.hpp"

#include <algorithm>
#include <cstring>

namespace latecomer::range {

using core::Buffer;
using core::Elements;
using shim::kShortMessage;
using Kind = core::Collective;

namespace {

/// The distance of the chunks. The data of a chunk are aligned for any basic datatype.
constexpr std::size_t kChunk = (sizeof(Envelope) + kShortMessage + 63) / 64 * 64;

/// Derived: the chunks of a process take at most 528 KiB. Beyond, the loop sends.
constexpr int kMostChunks = 64;
/// The scratch memory of a line, in bytes.
constexpr Elements kMostScratch = 1 << 20;

/// The size of an item, if items lie one behind the other without gaps; else -1. MPI is asked once for each basic
/// datatype that the program uses in turn with few others.
MPI_Count gapless_size(MPI_Datatype type) {
  struct Known {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Count size = 0;
  };
  // Calls come from one thread at a time.
  static Known known[4];
  static unsigned next = 0;
  for (const Known& k : known)
    if (k.type == type && type != MPI_DATATYPE_NULL) return k.size;
  shim::Layout layout;
  if (layout.read_type(type) != MPI_SUCCESS || !layout.gapless) return -1;
  if (shim::is_basic(type)) known[next++ % 4] = {type, layout.size};  // basic datatypes are never freed
  return layout.size;
}

bool commutes(MPI_Op op) {
  if (op == MPI_SUM || op == MPI_MAX || op == MPI_MIN) return true;
  int yes = 0;
  return PMPI_Op_commutative(op, &yes) == MPI_SUCCESS && yes;
}

}  // namespace

const Straight::Prepared& Straight::prepare_line(const Key& key) {
  std::size_t at = static_cast<std::size_t>(key.op) * 31 + static_cast<std::size_t>(key.ranks) * 7 +
                   static_cast<std::size_t>(key.me) * 3 + static_cast<std::size_t>(key.root) * 59 +
                   static_cast<std::size_t>(key.element_bytes) * 5;
  at += (key.in_place ? 101u : 0u) + (key.commutative ? 0u : 151u) + (key.empty ? 17u : 0u);
  auto& place = lines_[at % lines_.size()];
  if (place && place->key == key) return *place;

  core::Call call;
  call.op = key.op;
  call.ranks = key.ranks;
  call.root = key.root;
  call.count = !key.empty;
  call.element_bytes = key.element_bytes;
  call.in_place = key.in_place;
  call.commutative = key.commutative;
  const core::Line line = core::range_line(call, key.me);
  auto fresh = std::make_unique<Prepared>();
  fresh->key = key;
  fresh->scratch = line.scratch;
  fresh->most = line.most;
  if (line.longest > 0 && key.element_bytes > 0)
    fresh->most = std::min<Elements>(fresh->most, kShortMessage / (line.longest * key.element_bytes));
  if (line.scratch > 0 && key.element_bytes > 0)
    fresh->most = std::min<Elements>(fresh->most, kMostScratch / (line.scratch * key.element_bytes));
  std::size_t last_receive = 0;
  for (std::size_t i = 0; i < line.steps.size(); ++i)
    if (line.steps[i].kind == core::OpKind::recv) last_receive = i + 1;
  for (std::size_t i = 0; i < line.steps.size(); ++i) {
    Step step{line.steps[i]};
    if (step.kind == core::OpKind::send) {
      const auto trails = [&](std::size_t at) { return at >= last_receive; };
      // Where a send waits for its receiver, only the last send may wait: else a rank waits for each receiver in turn.
      step.waits = trails(i) && (!shim::kSendWaits || i + 1 == line.steps.size());
      // All sends that wait use the first chunk. Each send in flight has a chunk of its own, after the first.
      if (!step.waits) step.chunk = ++fresh->chunks;
      if (trails(i) && i > 0) {
        const Step& before = fresh->steps.back();
        step.again = before.channel == step.channel &&
                     ((before.kind == core::OpKind::send && trails(i - 1) && before.src == step.src) ||
                      (before.kind == core::OpKind::recv && before.dst == step.src));
      }
    }
    fresh->steps.push_back(step);
  }
  if (++fresh->chunks > kMostChunks) {
    fresh->most = -1;
    fresh->steps = {};
    fresh->chunks = 0;
  }
  place = std::move(fresh);
  return *place;
}

bool Straight::run_collective(const latecomer_range& range, const Arguments& a, int* rc) {
  Key key{a.op, false, true, false, range.size, range.rank, core::is_rooted(a.op) ? a.root : 0, 1};
  Elements count = 0;
  if (a.op == Kind::barrier) {
    key.empty = true;
  } else if (core::is_reduction(a.op)) {
    const MPI_Count size = gapless_size(a.recv_type);
    if (size <= 0) return false;
    key.element_bytes = size;
    count = a.recv_count;
    key.in_place = a.send == MPI_IN_PLACE;
    key.commutative = commutes(a.reduction);
  } else {
    if (a.send_counts || a.recv_counts || core::is_irregular(a.op)) return false;
    const bool root = range.rank == a.root, scatters = a.op == Kind::scatter, gathers = a.op == Kind::gather,
               bcasts = a.op == Kind::bcast;
    key.in_place = scatters  ? root && a.recv == MPI_IN_PLACE
                   : gathers ? root && a.send == MPI_IN_PLACE
                             : !bcasts && a.send == MPI_IN_PLACE;
    const bool input = !bcasts && (scatters ? root : !key.in_place),
               output = (!gathers || root) && !(scatters && key.in_place),
               by_send = input && !(gathers && root);  // the side that gives the bytes of a block, as in the loop
    const MPI_Count sent = input ? gapless_size(a.send_type) : 0, received = output ? gapless_size(a.recv_type) : 0;
    if (sent < 0 || received < 0) return false;
    count = by_send ? sent * a.send_count : received * a.recv_count;
  }
  if (a.op != Kind::barrier) key.empty = count == 0;
  const Prepared& line = prepare_line(key);
  if (count > line.most) return false;
  *rc = run_line(line, range, a, count, key.element_bytes);
  return true;
}

int Straight::run_line(const Prepared& line, const latecomer_range& range, const Arguments& a, Elements count,
                       core::Bytes element_bytes) {
  Hub& hub = hub_of(range);
  const Elements unit = count * element_bytes;
  Envelope envelope{identity_of(range), 0, hub.next_collective(identity_of(range)), 0, 0};
  const std::size_t need = static_cast<std::size_t>(line.scratch * unit) + 64;
  if (scratch_.size() < need) scratch_ = std::vector<char>(need);
  if (chunks_.size() < static_cast<std::size_t>(line.chunks) * kChunk) {
    chunks_ = std::vector<char>(static_cast<std::size_t>(line.chunks) * kChunk);
    requests_.resize(static_cast<std::size_t>(line.chunks));
  }
  char* const base[core::kBuffers] = {
      static_cast<char*>(const_cast<void*>(a.send)), static_cast<char*>(a.recv),
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(scratch_.data()) + 63) & ~std::uintptr_t{63})};
  static_assert(static_cast<int>(Buffer::input) == 0 && static_cast<int>(Buffer::output) == 1);
  const auto at = [&](const core::Slice& s) { return base[static_cast<int>(s.buffer)] + s.offset * unit; };
  int rc = MPI_SUCCESS, in_flight = 0;
  const char* last = nullptr;  // the chunk of the step before
  for (const Step& s : line.steps) {
    switch (s.kind) {
      case core::OpKind::send: {
        const Elements bytes = s.src.count * unit;
        const char* from = s.again ? last : nullptr;
        if (!from) {
          char* const chunk = chunks_.data() + static_cast<std::size_t>(s.chunk) * kChunk;
          envelope.tag = s.channel;
          envelope.bytes = bytes;
          std::memcpy(chunk, &envelope, sizeof envelope);
          if (bytes > 0) std::memcpy(chunk + sizeof envelope, at(s.src), static_cast<std::size_t>(bytes));
          from = chunk;
        }
        const Rank to = to_mpi(range, s.peer);
        if (s.waits) {
          rc = hub.send_straight(from, bytes, to);
        } else {
          MPI_Request& request = requests_[static_cast<std::size_t>(in_flight++)];
          request = MPI_REQUEST_NULL;
          rc = hub.isend_straight(from, bytes, to, &request);
        }
        last = from;
        break;
      }
      case core::OpKind::recv:
        envelope.tag = s.channel;
        rc = hub.receive_straight(at(s.dst), s.dst.count * unit, to_mpi(range, s.peer), envelope);
        last = hub.last_chunk();
        break;
      case core::OpKind::reduce:
        rc = PMPI_Reduce_local(at(s.src), at(s.dst), static_cast<int>(s.dst.count * count), a.recv_type, a.reduction);
        break;
      case core::OpKind::copy:
        if (at(s.dst) != at(s.src)) std::memcpy(at(s.dst), at(s.src), static_cast<std::size_t>(s.dst.count * unit));
        break;
    }
    if (rc != MPI_SUCCESS) break;
  }
  // MPI may not have taken the chunks yet.
  for (int i = 0; i < in_flight; ++i)
    if (const int one = PMPI_Wait(&requests_[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE); rc == MPI_SUCCESS)
      rc = one;
  return rc;
}

}  // namespace latecomer::range
