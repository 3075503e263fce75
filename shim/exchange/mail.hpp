// SPDX-License-Identifier: BSD-3-Clause
// The mailbox of this process (core/agreement/mailbox.hpp) over the private communicator, and who reads its messages.
// Every message of latecomer goes through it, but those inside a dispatched call and the pings of clocks.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "core/base/types.hpp"

namespace latecomer::shim {

using core::Rank;

/// The first byte of a message.
enum class Mail : std::uint8_t {
  digest,        ///< of a node of a tree: profiles::DigestNode
  end,           ///< the last message of a node
  announcement,  ///< of a leader, on its way down
  offer,         ///< at the end of the job: a part of the profile is ready
  answer,        ///< whether there is memory for it
  part           ///< of the profile
};

/// Locks the mailbox and the nodes of the trees if several threads may be inside MPI. It is never held during a wait.
class MailLock {
 public:
  explicit MailLock(bool wait = true);
  bool taken() const { return taken_; }  ///< another thread has it, and `wait` was false

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool taken_ = false;
};

/// Puts a message for a rank of MPI_COMM_WORLD into the mailbox. pump_mail() sends it. The caller holds the lock.
void put_mail(Rank world, Mail kind, std::span<const char> head, std::span<const char> body = {});
/// In MPI_Init: exchanges a piece with each neighbour in the tree over all ranks. Collective. MPI libraries
/// connect two processes at their first message, and a process that has given up its rights by then cannot connect.
void greet_neighbours();
/// At the start: takes memory for the messages of the end of the job, at which there may be none.
void expect_mail_at_end();
/// The same for messages from and to a rank, small ones and ones of up to that many bytes. Throws std::bad_alloc.
void expect_mail(Rank world, std::size_t from = 0, std::size_t to = 0);
/// At the end: messages of trees for which there is no memory are lost. Else the parts of the profile, which are behind
/// them, would wait for ever.
void drop_mail_that_does_not_fit();
/// Bytes for this rank that wait in the mailbox.
std::size_t mail_waiting(Rank world);
/// Whether anything waits in the mailbox.
bool mail_waits();

/// Takes pieces that have arrived, gives complete messages to their readers, and sends pieces. Never waits. One thread
/// at a time does so. Returns whether a piece has arrived. Throws std::bad_alloc without memory for a piece: it stays.
bool exchange_mail();
/// Calls exchange_mail(). Without memory for a piece, the next call tries again.
void pump_mail() noexcept;

// The readers. branch.cpp reads the messages of trees, shim/job/gather.cpp the parts of the profile. None may throw.

void read_of_tree(Mail kind, std::span<const char> message) noexcept;
void read_part(Rank world, Mail kind, std::span<const char> message) noexcept;

}  // namespace latecomer::shim
