// SPDX-License-Identifier: BSD-3-Clause
// Describe: a call of the program becomes an ObservedCall with U(n). Nothing else reads its arguments.
#pragma once

#include <atomic>
#include <utility>

#include "shim/causes/waits_for.hpp"
#include "shim/executor/call.hpp"
#include "shim/mpi/type_sizes.hpp"

namespace latecomer::shim {

/// Counts what this rank sends to others in a collective, on the thread that started MPI.
template <typename Count, typename Types>
void count_blocks(const CommState& state, const Count* counts, Types types) {
  for (int r = 0; counts && mpi_time.watched && r < state.size; ++r) {
    if (r == state.rank || counts[r] <= 0) continue;
    MPI_Datatype type;
    if constexpr (std::is_same_v<Types, MPI_Datatype>) type = types;
    else type = types[r];
    const Rank peer = peer_of(state.comm, r);
    if (const core::Bytes bytes = bytes_of_message(counts[r], type); peer >= 0 && bytes > 0)
      peer_table.of(peer).add(bytes);
  }
}

/// The same for an alltoallv or an alltoallw. `types`: one for all ranks, or one for each.
template <typename Count, typename Types>
void count_exchange(const CommState& state, const void* send, const Count* counts, Types types,
                    const Count* recv_counts, Types recv_types) {
  if (send != MPI_IN_PLACE) count_blocks(state, counts, types);
  else count_blocks(state, recv_counts, recv_types);
}

/// Fills U(n) from the arguments of one call; see shim/front/functions.def.
class Describe {
 public:
  explicit Describe(ObservedCall& call)
      : call_(call), state_(*call.state), signature_(call.signature), operands_(call.operands) {}

  int size() const { return state_.size; }
  bool is(int root) const { return state_.rank == root; }
  /// MPI refuses the call on all ranks, because they have the same argument. Such arguments are a root that is no rank
  /// of the communicator, a negative count, and an operator that MPI does not define for the datatype.
  Describe& rooted(int root) {
    signature_.refused = root < 0 || root >= size();
    signature_.root = signature_.refused ? -1 : root;
    return *this;
  }
  Describe& operated(MPI_Datatype type, MPI_Op op);
  void empty() { signature_.bytes = 0; }
  void unsized() { signature_.bytes = -1; }
  /// An alltoallv or an alltoallw, with the arguments of count_exchange().
  void exchanges(auto... blocks) {
    unsized();
    if (signature_.kind != core::CallKind::persistent) count_exchange(state_, blocks...);
  }
  Describe& total(MPI_Count count, MPI_Datatype type, int times) {
    signature_.refused |= count < 0;
    measure(count, type, times);
    return *this;
  }
  void bcast(void* buffer, MPI_Count count, MPI_Datatype type) {
    total(count, type, 1);
    movement(nullptr, 0, MPI_DATATYPE_NULL, buffer, count, type);
  }
  /// A scatter or a gather. The size comes from the arguments with all blocks at the root, and from those with one
  /// block on other ranks.
  void blocks(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
              MPI_Datatype recv_type) {
    if (is(signature_.root) == core::is_scatter(signature_.op)) measure(send_count, send_type, size());
    else measure(recv_count, recv_type, size());
    movement(send, send_count, send_type, recv, recv_count, recv_type);
  }
  /// A gatherv or a scatterv. Its sizes are not equal on all ranks, so U(n) contains none.
  template <typename Count, typename Displacement>
  void gatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, const Count* counts,
               const Displacement* displacements, MPI_Datatype recv_type) {
    irregular(counts, recv_type, send_count, send_type);
    operands_ = {send,        recv,       0,         recv_type,
                 MPI_OP_NULL, send_count, send_type, {counts, displacements, sizeof(Count) > sizeof(int)}};
  }
  template <typename Count, typename Displacement>
  void scatterv(const void* send, const Count* counts, const Displacement* displacements, MPI_Datatype send_type,
                void* recv, MPI_Count recv_count, MPI_Datatype recv_type) {
    irregular(counts, send_type, recv_count, recv_type);
    operands_ = {send,        recv, recv_count, recv_type,
                 MPI_OP_NULL, 0,    send_type,  {counts, displacements, sizeof(Count) > sizeof(int)}};
  }
  template <typename Count>
  Describe& sum(const Count* counts, MPI_Datatype type) {
    MPI_Count all = 0;
    for (int i = 0; counts && i < size(); ++i) all += counts[i];
    signature_.bytes = bytes_of(all, type, 1);
    return *this;
  }
  void reduction(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op) {
    total(count, type, 1).operated(type, op);
    signature_.count = count;
    if (!call_.decides || signature_.bytes < 0 || !has_its_root()) return;
    if (core::is_dispatched(signature_.op)) operands_ = {send, recv, count, type, op, count, type, {}};
    signature_.servable = signature_.servable && !signature_.refused && signature_.bytes <= most_count;
  }

  /// The predefined datatype of the last call that had one, and its size in bytes.
  static std::pair<MPI_Datatype, std::int32_t> known_type() { return last_type.get(); }
  /// The operator of the last reduction in an idle epoch, if MPI does not refuse it for that datatype.
  static MPI_Op accepted_for(MPI_Datatype type);

 private:
  void measure(MPI_Count count, MPI_Datatype type, int times) {
    // Programs use few datatypes, so try the predefined type of the last call first.
    const std::int32_t last = last_type.size_of(type);
    signature_.bytes = last >= 0 && count >= 0 && count <= INT32_MAX ? core::Bytes{last} * count * times
                                                                     : bytes_of(count, type, times);
  }
  bool has_its_root() const { return !core::is_rooted(signature_.op) || signature_.root >= 0; }
  /// The data move as bytes, so each rank may use datatypes of its own.
  void movement(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                MPI_Datatype recv_type) {
    if (!call_.decides || signature_.bytes <= 0 || !has_its_root()) return;
    signature_.count = core::has_blocks(signature_.op) ? signature_.bytes / size() : signature_.bytes;
    signature_.servable = signature_.bytes <= most_count;  // MPI's largest count
    signature_.exact = true;
    operands_ = {send, recv, recv_count, recv_type, MPI_OP_NULL, send_count, send_type, {}};
  }
  template <typename Count>
  void irregular(const Count* counts, MPI_Datatype all_type, MPI_Count own_count, MPI_Datatype own_type) {
    signature_.bytes = -1;
    signature_.count = 1;
    signature_.servable = signature_.exact = call_.decides && has_its_root();
    if (!is(signature_.root)) {
      call_.block = bytes_of(own_count, own_type, 1);
    } else if (counts) {
      MPI_Count all = 0;
      for (int r = 0; r < size(); ++r) all += counts[r];
      call_.all_blocks = bytes_of(all, all_type, 1);
      call_.block = bytes_of(counts[state_.rank], all_type, 1);
    }
  }
  static core::Bytes bytes_of(MPI_Count count, MPI_Datatype type, int times);
  ObservedCall& call_;
  const CommState& state_;
  core::Signature& signature_;
  Operands& operands_;
};

}  // namespace latecomer::shim
