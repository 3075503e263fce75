// SPDX-License-Identifier: BSD-3-Clause
// The buffers of pieces that are on their way over the private communicator.
#include "shim/state/post.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>

#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

/// A piece on its way. Buffers are used again, so that the exchange allocates nothing once warm.
struct Outgoing {
  std::array<char, kPieceBytes> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  bool busy = false;
};
std::list<Outgoing>& outgoing() {
  static auto& list = *new std::list<Outgoing>;  // never destroyed: callbacks may come after exit handlers
  return list;
}
std::mutex outgoing_mutex;
// The number of buffers from which MPI is asked for pieces that have left. Derived: 64 buffers take 60 KiB, and the
// tests 1.1 us (measured, 2 ranks in shared memory).
constexpr std::size_t kAskFrom = 64;

bool has_left(Outgoing& o) {
  int left = 0;
  return !o.busy || (PMPI_Test(&o.request, &left, MPI_STATUS_IGNORE) == MPI_SUCCESS && left);
}

/// The buffer of a piece that has left, or nullptr.
Outgoing* find_left() {
  const auto found = std::ranges::find_if(outgoing(), has_left);
  return found == outgoing().end() ? nullptr : &*found;
}

Outgoing* take_buffer(bool may_refuse) {
  for (Outgoing& o : outgoing())
    if (!o.busy) return &o;
  // A test of a piece that was just sent may give the core away (courteous waiting). So prefer a few more buffers.
  if (outgoing().size() >= kAskFrom) {
    Outgoing* const left = find_left();
    if (left || may_refuse) return left;
  }
  try {
    return &outgoing().emplace_back();
  } catch (const std::bad_alloc&) {
    if (Outgoing* const left = find_left()) return left;
    throw;
  }
}

bool start_piece(Rank world, int tag, std::span<const char> piece, bool may_refuse) {
  const std::lock_guard lock(outgoing_mutex);
  Outgoing* o = take_buffer(may_refuse);
  if (!o) return false;
  std::memcpy(o->bytes.data(), piece.data(), piece.size());
  o->busy = PMPI_Isend(o->bytes.data(), static_cast<int>(piece.size()), MPI_BYTE, world, tag, job_world().comm,
                       &o->request) == MPI_SUCCESS;
  return o->busy;
}

}  // namespace

bool post_piece(Rank world, int tag, std::span<const char> piece) { return start_piece(world, tag, piece, false); }

bool post_or_refuse(Rank world, int tag, std::span<const char> piece) { return start_piece(world, tag, piece, true); }

void expect_outgoing(std::size_t pieces) {
  const std::lock_guard lock(outgoing_mutex);
  while (outgoing().size() < pieces) outgoing().emplace_back();
}

void sweep_outgoing() {
  const std::lock_guard lock(outgoing_mutex);
  for (Outgoing& o : outgoing())
    if (has_left(o)) o.busy = false;
}

bool all_has_left() {
  sweep_outgoing();
  const std::lock_guard lock(outgoing_mutex);
  return std::ranges::none_of(outgoing(), &Outgoing::busy);
}

void Incoming::expect_pieces(std::size_t pieces) {
  pieces_.reserve(pieces);
  spare_.reserve(pieces);
  while (pieces_.size() + spare_.size() < pieces) spare_.push_back(std::make_unique<Piece>());
}

/// Takes the next piece out of MPI's queue, if there is one.
void Incoming::fetch_pieces(Rank from) {
  // Memory first: a piece that is taken out of the queue must be received. Without it, this one waits for the others.
  try {
    if (spare_.empty()) expect_pieces(pieces_.size() + 1);
  } catch (const std::bad_alloc&) {
    if (pieces_.empty()) throw;
    return;
  }
  int there = 0, size = 0;
  MPI_Message message;
  MPI_Status status;
  if (PMPI_Improbe(from, tag_, job_world().comm, &there, &message, &status) != MPI_SUCCESS || !there) return;
  Piece& piece = *spare_.back();
  PMPI_Get_count(&status, MPI_BYTE, &size);
  piece.from = status.MPI_SOURCE;
  piece.size = std::min(static_cast<std::size_t>(std::max(size, 0)), kPieceBytes);
  if (PMPI_Imrecv(piece.bytes.data(), static_cast<int>(kPieceBytes), MPI_BYTE, &message, &piece.request) != MPI_SUCCESS)
    return;
  pieces_.push_back(std::move(spare_.back()));
  spare_.pop_back();
}

/// The place of the oldest piece from `from` that has arrived, if no older piece of the same source is still on its
/// way. Else pieces_.size().
std::size_t Incoming::find_piece(Rank from) {
  fetch_pieces(from);
  for (std::size_t at = 0; at < pieces_.size(); ++at) {
    Piece& piece = *pieces_[at];
    if (from != MPI_ANY_SOURCE && piece.from != from) continue;
    const auto older = pieces_.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::any_of(pieces_.begin(), older, [&](const auto& one) { return one->from == piece.from; })) continue;
    int arrived = 0;
    if (PMPI_Test(&piece.request, &arrived, MPI_STATUS_IGNORE) == MPI_SUCCESS && !arrived) continue;
    return at;
  }
  return pieces_.size();
}

void Incoming::release_piece(std::size_t at) {
  spare_.push_back(std::move(pieces_[at]));  // its memory was here before
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace latecomer::shim
