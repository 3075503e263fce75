// SPDX-License-Identifier: BSD-3-Clause
// Sends and takes the messages of the exchange.
#include "shim/dispatch/exchange/messages.hpp"

#include <algorithm>
#include <cstring>

#include "shim/dispatch/executor/executor.hpp"
#include "shim/log.hpp"
#include "shim/state/post.hpp"

namespace latecomer::shim {

namespace exchange {

void BoundaryWait::again() {
  // A shorter time would warn in programs whose leader only computes for long. A longer one would leave the user of a
  // hanging program without a hint.
  constexpr Nanoseconds kLong = 10'000'000'000;
  patience_.wait();
  if (silent_ || ++turns_ % 64 != 0 || now() - begin_ < kLong) return;
  silent_ = true;
  warn(
      "rank %d has waited 10 s before call %llu of a communicator of %d, a boundary at which plans for rooted "
      "collectives are agreed on, for rank %d (rank 0 there) or another that is "
      "not there yet; \"rooted_waits\": false in the policy never waits",
      job().rank, static_cast<unsigned long long>(state_.sequence.next_number() - 1), state_.size, state_.world[0]);
}

void post_down(const CommState& state, const Header& header, const void* data, std::size_t size) {
  for (const Rank child : state.place.children)
    with_reserve([&] {
      return shim::post(state.world[static_cast<std::size_t>(child)], tag_of(state.context, kPlanChannel), &header,
                        sizeof header, data, size, false);
    });
}

bool take(Rank world, int tag, std::uint64_t identity, Header& header, std::vector<char>& body) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    // One thread at a time takes messages with the tag of a communicator, so the message stays there if no memory is
    // left for it.
    if (PMPI_Iprobe(world, tag, job().comm, &there, &status) != MPI_SUCCESS || !there) return false;
    int size = 0;
    PMPI_Get_count(&status, MPI_BYTE, &size);
    body.resize(static_cast<std::size_t>(std::max(size, 0)));
    if (PMPI_Recv(body.data(), size, MPI_BYTE, world, tag, job().comm, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (body.size() < sizeof header) continue;
    std::memcpy(&header, body.data(), sizeof header);
    if (header.identity == identity) return true;
  }
}

}  // namespace exchange

}  // namespace latecomer::shim
