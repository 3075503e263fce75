// SPDX-License-Identifier: BSD-3-Clause
// Cuts streams of messages into pieces, counts the pieces, and puts messages together from pieces.
#include "core/agreement/mailbox.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace latecomer::core {
namespace {

using Length = std::uint64_t;

/// The first bytes of each piece.
struct PieceHead {
  std::uint32_t taken;  ///< number of pieces that the sender of this piece has taken from its receiver
};

/// A process tells a peer how many pieces it has taken, at the latest when the peer has used half of its window.
constexpr std::uint32_t kTellAfter = Mailbox::kWindow / 2;

/// Frees most of the memory of an empty buffer that has held a long message. Such messages are rare.
void give_back(std::vector<char>& buffer, std::size_t expected) {
  constexpr std::size_t kKept = 64 << 10;
  if (buffer.capacity() <= kKept) return;
  try {
    std::vector<char> smaller;
    smaller.reserve(std::max(expected, 2 * Mailbox::kPiece));
    buffer.swap(smaller);
  } catch (const std::bad_alloc&) {
    // The buffer keeps its memory.
  }
}

}  // namespace

void Mailbox::put_message(Rank to, char kind, std::span<const char> head, std::span<const char> body) {
  Peer& peer = peers_[to];
  const Length length = 1 + head.size() + body.size();
  if (peer.begin > 0) {
    peer.out.erase(peer.out.begin(), peer.out.begin() + static_cast<std::ptrdiff_t>(peer.begin));
    peer.begin = 0;
  }
  const std::size_t at = peer.out.size();
  peer.out.resize(at + sizeof length + length);
  char* to_here = peer.out.data() + at;
  std::memcpy(to_here, &length, sizeof length);
  to_here += sizeof length;
  *to_here++ = kind;
  if (!head.empty()) std::memcpy(to_here, head.data(), head.size());
  if (!body.empty()) std::memcpy(to_here + head.size(), body.data(), body.size());
  waiting_ += sizeof length + length;
}

bool Mailbox::send_piece(Rank to, Peer& peer, std::size_t bytes, Wire& wire) {
  std::array<char, kPiece> piece;
  const PieceHead head{peer.taken};
  std::memcpy(piece.data(), &head, sizeof head);
  if (bytes > 0) std::memcpy(piece.data() + sizeof head, peer.out.data() + peer.begin, bytes);
  if (!wire.send_piece(to, std::span(piece).first(sizeof head + bytes))) return false;
  peer.told = peer.taken;
  peer.begin += bytes;
  waiting_ -= bytes;
  peer.sent += bytes > 0;
  if (peer.begin < peer.out.size()) return true;
  peer.out.clear();
  peer.begin = 0;
  give_back(peer.out, peer.expected_out);
  return true;
}

void Mailbox::send_pieces(Wire& wire) {
  if (waiting_ == 0 && !owes_) return;
  owes_ = false;
  for (auto& [to, peer] : peers_) {
    while (peer.begin < peer.out.size() && peer.sent - peer.arrived < kWindow)
      if (!send_piece(to, peer, std::min(peer.out.size() - peer.begin, kPiece - sizeof(PieceHead)), wire)) break;
    // A piece without bytes of the stream does not count, so the peer need not acknowledge it.
    if (peer.taken - peer.told >= kTellAfter && !send_piece(to, peer, 0, wire)) owes_ = true;
  }
}

/// Loses the message that is not complete. Returns false if its length has not arrived.
bool Mailbox::drop_message(Peer& peer) {
  Length length;
  if (peer.in.size() < sizeof length) return false;
  std::memcpy(&length, peer.in.data(), sizeof length);
  peer.dropped = sizeof length + length - peer.in.size();
  peer.in.clear();
  give_back(peer.in, peer.expected_in);
  return true;
}

void Mailbox::take_piece(Rank from, std::span<const char> piece, Reader& reader) {
  PieceHead head;
  if (piece.size() < sizeof head) return;
  std::memcpy(&head, piece.data(), sizeof head);
  Peer& peer = peers_[from];
  const std::size_t lost = std::min<std::uint64_t>(peer.dropped, piece.size() - sizeof head);
  std::span<const char> stream = piece.subspan(sizeof head + lost);
  const auto next = [&](std::size_t at) -> std::size_t {  // bytes of a complete message with its length, or 0
    Length length;
    if (stream.size() - at < sizeof length) return 0;
    std::memcpy(&length, stream.data() + at, sizeof length);
    return stream.size() - at - sizeof length < length ? 0 : sizeof length + length;
  };
  // Allocate first, so that an exception leaves the state as it is.
  const bool joins = !peer.in.empty();
  if (joins) {
    try {
      peer.in.resize(peer.in.size() + stream.size());  // g++ 14 warns in insert()
      std::copy(stream.begin(), stream.end(), peer.in.end() - static_cast<std::ptrdiff_t>(stream.size()));
    } catch (const std::bad_alloc&) {
      if (!drops_messages_ || !drop_message(peer)) throw;
      return take_piece(from, piece, reader);
    }
    stream = peer.in;
  } else {
    std::size_t whole = 0;
    for (std::size_t bytes = next(0); bytes > 0; bytes = next(whole)) whole += bytes;
    peer.in.assign(stream.begin() + static_cast<std::ptrdiff_t>(whole), stream.end());
  }
  peer.dropped -= lost;
  if (head.taken - peer.arrived <= peer.sent - peer.arrived) peer.arrived = head.taken;
  peer.taken += piece.size() > sizeof head;
  owes_ = owes_ || peer.taken - peer.told >= kTellAfter;
  std::size_t read = 0;
  for (std::size_t bytes = next(0); bytes > 0; bytes = next(read)) {
    reader.read_message(from, stream.subspan(read + sizeof(Length), bytes - sizeof(Length)));
    read += bytes;
  }
  if (!joins) return;
  peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<std::ptrdiff_t>(read));
  if (peer.in.empty()) give_back(peer.in, peer.expected_in);
}

void Mailbox::expect_peer(Rank peer, std::size_t from, std::size_t to) {
  // The length of a message, its kind, and the rest of the piece that it ends in; and a small message.
  constexpr std::size_t kBeside = sizeof(Length) + 1 + 2 * kPiece;
  Peer& it = peers_[peer];
  it.in.reserve(from + kBeside);
  it.expected_in = std::max(it.expected_in, from + kBeside);
  it.out.reserve(to + kBeside);
  it.expected_out = std::max(it.expected_out, to + kBeside);
}

std::size_t Mailbox::waiting_bytes(Rank to) const {
  const auto peer = peers_.find(to);
  return peer == peers_.end() ? 0 : peer->second.out.size() - peer->second.begin;
}

std::uint32_t Mailbox::under_way(Rank to) const {
  const auto peer = peers_.find(to);
  return peer == peers_.end() ? 0 : peer->second.sent - peer->second.arrived;
}

}  // namespace latecomer::core
