// SPDX-License-Identifier: BSD-3-Clause
// Packs data with gaps before a schedule of bytes runs, and unpacks them after it.
#include "shim/runner/operands.hpp"

#include "shim/runner/packing.hpp"

namespace latecomer::shim {

Bytewise::Bytewise(const core::Call& call, Rank me, MPI_Comm comm, const Operands& operands, std::vector<char>& memory)
    : call_(call), me_(me), comm_(comm) {
  const core::Elements in = core::buffer_elements(call, me, core::Buffer::input),
                       out = core::buffer_elements(call, me, core::Buffer::output);
  if (in > 0)
    input_ = {const_cast<void*>(operands.send), operands.send_count * in / call.count, operands.send_type, in};
  if (out > 0) output_ = {operands.recv, operands.count * out / call.count, operands.datatype, out};
  std::size_t need = 0;
  for (Side* side : {&input_, &output_}) {
    if (side->bytes == 0) continue;
    if (rc_ == MPI_SUCCESS) rc_ = side->layout.read_type(side->type);
    if (!side->layout.gapless) {
      side->staged = true;
      need += static_cast<std::size_t>(side->bytes);
    }
  }
  if (memory.size() < need) memory.resize(need);
  char* at = memory.data();
  for (Side* side : {&input_, &output_})
    if (side->staged) {
      side->plain = at;
      at += side->bytes;
    } else side->plain = static_cast<char*>(side->user);
  if (input_.staged) move_items(true, input_, 0, input_.bytes);
  if (const core::ContributionRange own = core::contribution_of(call, me);
      output_.staged && own.buffer == core::Buffer::output)
    move_items(true, output_, own.at, own.at + own.count);
}

int Bytewise::finish_copies() {
  if (!output_.staged) return rc_;
  // A contribution that lies in the output stays as it is, unless the ranks exchange blocks. The root's buffer of a
  // bcast must not be written: other threads of the program may read it.
  const core::ContributionRange own = core::contribution_of(call_, me_);
  const bool stays = own.buffer == core::Buffer::output && core::traits(call_.op).input.root != core::Extent::blocks;
  move_items(false, output_, 0, stays ? own.at : output_.bytes);
  if (stays) move_items(false, output_, own.at + own.count, output_.bytes);
  return rc_;
}

void Bytewise::move_items(bool pack, Side& side, core::Elements from, core::Elements to) {
  if (rc_ != MPI_SUCCESS || from >= to) return;
  const auto items = [&](core::Elements bytes) {
    return static_cast<MPI_Count>(static_cast<__int128>(side.count) * bytes / side.bytes);
  };
  char* user = static_cast<char*>(side.user) + items(from) * side.layout.extent;
  const MPI_Count count = items(to) - items(from);
  rc_ = pack ? shim::pack_items(user, count, side.type, side.plain + from, to - from, comm_)
             : unpack_items(side.plain + from, to - from, user, count, side.type, comm_);
}

}  // namespace latecomer::shim
