// SPDX-License-Identifier: BSD-3-Clause
// Carries the pieces of the mailbox, and gives each message to its reader.
#include "shim/exchange/mail.hpp"

#include "core/agreement/mailbox.hpp"
#include "shim/executor/executor.hpp"
#include "shim/log.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/post.hpp"
#include "shim/state/process.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {
namespace {

class Office final : core::Mailbox::Wire, core::Mailbox::Reader {
 public:
  bool exchange() {
    // Derived: a node's 32 children and its parent send two pieces each per epoch.
    constexpr int kMostAtOnce = 128;
    int pieces = 0;
    box.send_pieces(*this);  // also where there is no memory to take a piece
    while (pieces < kMostAtOnce && incoming_.take_piece(MPI_ANY_SOURCE, [&](Rank from, std::span<const char> piece) {
      box.take_piece(from, piece, *this);
    }))
      ++pieces;
    box.send_pieces(*this);
    return pieces > 0;
  }

  /// Takes memory for the small messages at the end of the job.
  void expect_ends() {
    const core::TreePlace& place = job_world().place;
    for (const Rank child : place.children) box.expect_peer(child);
    if (place.parent >= 0) box.expect_peer(place.parent);
    incoming_.expect_pieces(place.children.size() + 1);
    expect_outgoing(4);
  }

  /// A piece of full length to and from each neighbour: UCX connects buffers for longer messages at the first of them.
  static void greet_neighbours() {
    const core::TreePlace& place = job_world().place;
    std::vector<Rank> neighbours(place.children.begin(), place.children.end());
    if (place.parent >= 0) neighbours.push_back(place.parent);
    std::array<char, kPieceBytes> piece{};
    for (const Rank neighbour : neighbours) post_piece(neighbour, kMailTag, piece);
    for (const Rank neighbour : neighbours)
      PMPI_Recv(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, neighbour, kMailTag, job_world().comm,
                MPI_STATUS_IGNORE);
  }

  core::Mailbox box;
  std::recursive_mutex mutex;

 private:
  bool send_piece(Rank to, std::span<const char> piece) override {
    try {
      return post_piece(to, kMailTag, piece);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void read_message(Rank from, std::span<const char> message) noexcept override {
    if (message.empty()) return;
    const auto kind = static_cast<Mail>(message[0]);
    message = message.subspan(1);
    switch (kind) {
      case Mail::digest:
      case Mail::end:
      case Mail::announcement:
        return read_of_tree(kind, message);
      case Mail::offer:
      case Mail::answer:
      case Mail::part:
        return read_part(from, kind, message);
    }
  }

  static constexpr int kMailTag = tag_of(kWorldContext, kMailChannel);
  Incoming incoming_{kMailTag};
};

Office& office() {
  static auto& made = *new Office;  // never destroyed: callbacks may come after exit handlers
  return made;
}

}  // namespace

void greet_neighbours() { Office::greet_neighbours(); }
void expect_mail_at_end() { office().expect_ends(); }

void expect_mail(Rank world, std::size_t from, std::size_t to) {
  const MailLock lock;
  office().box.expect_peer(world, from, to);
}

void drop_mail_that_does_not_fit() {
  const MailLock lock;
  office().box.drop_messages_that_do_not_fit();
}

MailLock::MailLock(bool wait) : lock_(office().mutex, std::defer_lock) {
  if (!job_process().threads) return;
  if (wait) lock_.lock();
  else taken_ = !lock_.try_lock();
}

void put_mail(Rank world, Mail kind, std::span<const char> head, std::span<const char> body) {
  office().box.put_message(world, static_cast<char>(kind), head, body);
}

std::size_t mail_waiting(Rank world) {
  const MailLock lock;
  return office().box.waiting_bytes(world);
}

bool mail_waits() {
  const MailLock lock;
  return office().box.has_waiting_bytes();
}

bool exchange_mail() {
  if (!job_world().together) return false;
  const MailLock lock(false);
  return !lock.taken() && office().exchange();
}

void pump_mail() noexcept {
  try {
    exchange_mail();
  } catch (...) {
    // The piece stays, and nothing waits for it but a plan, whose wait has memory of its own.
  }
}

}  // namespace latecomer::shim
