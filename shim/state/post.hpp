// SPDX-License-Identifier: BSD-3-Clause
// Pieces of bounded size over the private communicator. Neither side waits: MPI is asked whether a piece has left or
// arrived. This file owns the buffers of pieces. It must not know their contents.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/agreement/mailbox.hpp"
#include "shim/mpi/api.hpp"

namespace latecomer::shim {

using core::Nanoseconds;
using core::Rank;

inline constexpr std::size_t kPieceBytes = core::Mailbox::kPiece;

/// Sends a piece without waiting. Returns false if MPI fails. Thread-safe.
bool post_piece(Rank world, int tag, std::span<const char> piece);

/// Sends a plain value. Returns false if many pieces are under way already.
bool post_or_refuse(Rank world, int tag, std::span<const char> piece);
template <typename T>
bool post_bytes(Rank world, int tag, const T& value) {
  return post_or_refuse(world, tag, std::span(reinterpret_cast<const char*>(&value), sizeof value));
}

/// Allocates memory for this number of pieces, so that posting them allocates none.
void expect_outgoing(std::size_t pieces);

/// Frees buffers of pieces that have left. Bounded work.
void sweep_outgoing();

/// At teardown: whether MPI has sent all pieces that were posted.
bool all_has_left();

/// The pieces of one tag that arrive. A matched probe takes a piece out of MPI's queue, and a request that is tested
/// receives it. So a piece that needs the progress of its sender stops neither this rank nor other senders. One thread
/// at a time may use it.
class Incoming {
 public:
  explicit Incoming(int tag) : tag_(tag) {}
  /// Allocates memory for this number of pieces, so that receiving them allocates none.
  void expect_pieces(std::size_t pieces);
  /// Gives the oldest piece from `from` (or MPI_ANY_SOURCE), if one has arrived, to f(source, bytes). Pieces of one
  /// source come in their order. If f throws, the piece stays.
  template <typename F>
  bool take_piece(Rank from, F f) {
    const std::size_t at = find_piece(from);
    if (at == pieces_.size()) return false;
    f(pieces_[at]->from, std::span<const char>(pieces_[at]->bytes.data(), pieces_[at]->size));
    release_piece(at);
    return true;
  }

 private:
  struct Piece {
    std::array<char, kPieceBytes> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    Rank from = -1;
    std::size_t size = 0;
  };
  void fetch_pieces(Rank from);
  std::size_t find_piece(Rank from);
  void release_piece(std::size_t at);

  int tag_;
  std::vector<std::unique_ptr<Piece>> pieces_;  ///< in their order
  std::vector<std::unique_ptr<Piece>> spare_;
};

}  // namespace latecomer::shim
