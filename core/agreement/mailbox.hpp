// SPDX-License-Identifier: BSD-3-Clause
// The mailbox of a process: messages to other processes leave it in pieces of bounded size, and are put together again
// where the pieces arrive. A few pieces per peer are on their way; the others wait here. So no message needs a way that
// MPI keeps for large ones, and MPI holds little of ours. Knows no MPI: a wire carries the pieces.
//
// A piece carries bytes of the stream from one process to another, in which each message follows its length. Small
// messages share a piece. Each piece also says how many pieces its sender has taken from the other side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/base/types.hpp"

namespace latecomer::core {

class Mailbox {
 public:
  /// Bytes of a piece at most. Derived: the smallest limit of eager messages in use is 1 KiB (the tests set it), and an
  /// MPI library counts its own header of up to 64 bytes. The usual limits are 4 KiB and more.
  static constexpr std::size_t kPiece = 960;
  /// Pieces to one peer that are on their way at most: not yet taken there, as far as this process knows. Derived: a
  /// log of 128 calls takes two pieces, so a peer that is four epochs behind still gets all of them. With 32 children,
  /// MPI holds 0.5 MB of a node at most. A smaller window makes a long message wait for more round trips.
  static constexpr std::uint32_t kWindow = 16;

  /// What carries the pieces.
  class Wire {
   public:
    virtual ~Wire() = default;
    /// Sends a piece without waiting. Pieces to one process arrive in their order. Returns false if it cannot take the
    /// piece now.
    virtual bool send(Rank to, std::span<const char> piece) = 0;
  };
  /// What the messages are for.
  class Reader {
   public:
    virtual ~Reader() = default;
    /// May put() messages. Must not throw.
    virtual void read(Rank from, std::span<const char> message) noexcept = 0;
  };

  /// Takes memory for small messages from and to this process, so that they need none later.
  void expect(Rank peer);

  /// Adds a message to those that wait: a kind, and bytes. If it throws std::bad_alloc, nothing has changed.
  void put(Rank to, char kind, std::span<const char> head, std::span<const char> body);
  /// Sends what may be on its way.
  void push(Wire& wire);
  /// Takes a piece that has arrived, and reads the messages that are complete. Damaged pieces are dropped. If it throws
  /// std::bad_alloc, nothing has changed, so the caller keeps the piece and takes it again later.
  void take(Rank from, std::span<const char> piece, Reader& reader);

  /// Bytes for this process that wait here.
  std::size_t waiting(Rank to) const;
  /// Whether anything waits here.
  bool waits() const { return waiting_ > 0; }
  /// Pieces to this process that are on their way, as far as is known.
  std::uint32_t under_way(Rank to) const;

 private:
  struct Peer {
    std::vector<char> out;                ///< the stream to this process
    std::size_t begin = 0;                ///< of `out`: what has left
    std::vector<char> in;                 ///< the stream from there: a message that is not complete
    std::uint32_t sent = 0, arrived = 0;  ///< pieces to this process, and those that it has taken
    std::uint32_t taken = 0, told = 0;    ///< pieces from there, and how many of them it knows to be taken
  };
  bool send_piece(Rank to, Peer& peer, std::size_t bytes, Wire& wire);

  std::map<Rank, Peer> peers_;
  std::size_t waiting_ = 0;  ///< bytes, to all
  bool owes_ = false;        ///< a peer may wait for a word about its pieces
};

}  // namespace latecomer::core
