// SPDX-License-Identifier: BSD-3-Clause
// The mailbox of a process. It sends messages to other processes in pieces of bounded size, and puts messages together
// from the pieces that arrive. A few pieces per peer are on their way, the others wait here. So no message needs MPI's
// protocol for large messages, and MPI buffers few bytes of latecomer. Knows no MPI: a wire carries the pieces.
//
// A piece carries bytes of the stream from one process to another. In the stream, each message follows its length.
// Small messages share a piece. Each piece also says how many pieces its sender has taken from its receiver.
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
  /// The most bytes of a piece. Derived: the smallest limit of eager messages in use is 1 KiB (the tests set it), and
  /// an MPI library counts its own header of up to 64 bytes. The usual limits are 4 KiB and more.
  static constexpr std::size_t kPiece = 960;
  /// The most pieces on their way to one peer: sent, and not acknowledged by the peer. Derived: a log of 128 calls
  /// takes two pieces, so a peer that is four epochs behind still gets all logs. With 32 children, MPI holds at most
  /// 0.5 MB for a node. With a smaller window, a long message waits for more round trips.
  static constexpr std::uint32_t kWindow = 16;

  /// The connection that carries the pieces, such as MPI.
  class Wire {
   public:
    virtual ~Wire() = default;
    /// Sends a piece without waiting. Pieces to one process arrive in their order. Returns false if the wire cannot
    /// take the piece now.
    virtual bool send_piece(Rank to, std::span<const char> piece) = 0;
  };
  /// The receiver of complete messages.
  class Reader {
   public:
    virtual ~Reader() = default;
    /// May put_message() messages. Must not throw.
    virtual void read_message(Rank from, std::span<const char> message) noexcept = 0;
  };

  /// Allocates memory for messages from and to this peer, so that they need no allocation later: small ones, and ones
  /// of up to that many bytes.
  void expect_peer(Rank peer, std::size_t from = 0, std::size_t to = 0);
  /// From now on, a message from a peer for which there is no memory is lost, and the messages behind it arrive. Else
  /// they would wait for the memory.
  void drop_messages_that_do_not_fit() { drops_messages_ = true; }

  /// Adds a message, of a kind, to those that wait. If it throws std::bad_alloc, nothing has changed.
  void put_message(Rank to, char kind, std::span<const char> head, std::span<const char> body);
  /// Sends the pieces that the windows allow.
  void send_pieces(Wire& wire);
  /// Takes a piece that has arrived, and reads the messages that are complete. Damaged pieces are dropped. If it throws
  /// std::bad_alloc, the piece is not taken, so the caller keeps it and takes it again later.
  void take_piece(Rank from, std::span<const char> piece, Reader& reader);

  /// Bytes to this peer that wait in the mailbox.
  std::size_t waiting_bytes(Rank to) const;
  /// Whether any bytes wait in the mailbox.
  bool has_waiting_bytes() const { return waiting_ > 0; }
  /// Pieces to this peer that it has not acknowledged.
  std::uint32_t under_way(Rank to) const;

 private:
  struct Peer {
    std::vector<char> out;                ///< the stream to this peer
    std::size_t begin = 0;                ///< number of bytes of `out` that were sent
    std::vector<char> in;                 ///< the stream from this peer: a message that is not complete
    std::uint32_t sent = 0, arrived = 0;  ///< pieces sent to this peer, and pieces that it has acknowledged
    std::uint32_t taken = 0, told = 0;    ///< pieces taken from this peer, and pieces acknowledged to it
    std::uint64_t dropped = 0;            ///< bytes of a lost message that are still to come
    std::size_t expected_in = 0;          ///< bytes that `in` keeps memory for
    std::size_t expected_out = 0;         ///< the same of `out`
  };
  static bool drop_message(Peer& peer);
  bool send_piece(Rank to, Peer& peer, std::size_t bytes, Wire& wire);

  std::map<Rank, Peer> peers_;
  std::size_t waiting_ = 0;  ///< bytes to all peers
  bool drops_messages_ = false;
  bool owes_ = false;  ///< some peer may need an acknowledgement of its pieces
};

}  // namespace latecomer::core
