// SPDX-License-Identifier: BSD-3-Clause
// Compiles schedules to flat arrays, and runs them.
#include "shim/runner/running.hpp"

#include <cxxabi.h>

#include <cstring>
#include <new>

#include "shim/state/process.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {

Compiled::Compiled(core::RankProgram program, const std::vector<core::Pieces>& pieces)
    : ops(std::move(program.ops)), scratch(program.scratch) {
  const std::size_t n = ops.size();
  dependent_begin.assign(n + 1, 0);
  initial_waiting.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    initial_waiting[i] = ops[i].dep_count;
    messages += ops[i].communicates();
    foreground += ops[i].lane == core::Lane::foreground;
    for (int d = 0; d < ops[i].dep_count; ++d) ++dependent_begin[static_cast<std::size_t>(ops[i].deps[d]) + 1];
  }
  for (std::size_t i = 0; i < n; ++i) dependent_begin[i + 1] += dependent_begin[i];
  dependents.resize(static_cast<std::size_t>(dependent_begin[n]));
  std::vector<std::int32_t> at(dependent_begin.begin(), dependent_begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i)
    for (int d = 0; d < ops[i].dep_count; ++d)
      dependents[static_cast<std::size_t>(at[static_cast<std::size_t>(ops[i].deps[d])]++)] =
          static_cast<std::int32_t>(i);
  // An operation that is held back until the process arrives becomes ready twice.
  waiting.resize(n);
  ready.resize(2 * n);
  held.resize(n);
  active.resize(n);
  finished.resize(n);
  requests.resize(n);
  statuses.resize(n);
  tickets.resize(n);
  for (const core::Pieces& p : pieces) {
    std::vector<MPI_Count> lengths, places;
    for (const core::Slice& s : p.where) {
      lengths.push_back(s.count);
      places.push_back(s.offset);
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int rc = PMPI_Type_create_hindexed_c(static_cast<MPI_Count>(lengths.size()), lengths.data(), places.data(),
                                         MPI_BYTE, &type);
    if (rc == MPI_SUCCESS) rc = PMPI_Type_commit(&type);
    if (rc != MPI_SUCCESS) throw std::bad_alloc();
    indexed.push_back({p.message, p.where.front().buffer, type});
  }
}

Compiled::~Compiled() {
  int finalized = 0;
  if (!indexed.empty()) PMPI_Finalized(&finalized);
  for (Indexed& i : indexed)
    if (!finalized) PMPI_Type_free(&i.type);
}

void Running::begin_schedule(Compiled& program, const Where& where, Herald* herald, Blockwise* blocks) {
  program_ = &program;
  where_ = where;
  herald_ = herald;
  blocks_ = blocks;
  table_ = nullptr;
  head_ = tail_ = held_ = done_ = 0;
  active_ = 0;
  unposted_ = program.messages;
  foreground_left_ = program.foreground;
  arrived_ = false;
  type_ = MPI_BYTE;
  op_ = MPI_OP_NULL;
  failure_ = MPI_SUCCESS;
  free_slot_type();
  for (char*& base : base_) base = nullptr;
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    if ((program.waiting[i] = program.initial_waiting[i]) == 0) program.ready[tail_++] = static_cast<std::int32_t>(i);
}

void Running::give_scratch(char* memory, const Layout& layout) {
  layout_ = layout;
  // The items are aligned for any type. The first byte in use is at true_lower.
  auto aligned = reinterpret_cast<std::uintptr_t>(memory) - static_cast<std::uintptr_t>(layout.true_lower);
  aligned = (aligned + 63) & ~std::uintptr_t{63};
  base_[static_cast<int>(core::Buffer::scratch)] = reinterpret_cast<char*>(aligned);
}

void Running::set_buffers(char* input, char* output, MPI_Datatype type, MPI_Op op, const Layout& layout,
                          MPI_Count items) {
  base_[static_cast<int>(core::Buffer::input)] = input;
  base_[static_cast<int>(core::Buffer::output)] = output;
  type_ = type;
  op_ = op;
  layout_ = layout;
  per_element_ = items;
  if (const int rc = failure_ == MPI_SUCCESS ? make_slot_type() : MPI_SUCCESS; rc != MPI_SUCCESS) note_failure(rc);
  arrived_ = true;
  for (std::size_t i = 0; i < held_; ++i) program_->ready[tail_++] = program_->held[i];
  held_ = 0;
}

void Running::set_buffers(const Blocks& blocks) {
  set_buffers(blocks.input.base, blocks.output.base, MPI_BYTE, MPI_OP_NULL, Layout::bytes());
  table_ = &blocks;
}

int Running::make_slot_type() {
  if (layout_.pitch == layout_.extent) return MPI_SUCCESS;
  int rc = PMPI_Type_create_resized_c(type_, layout_.lower, layout_.pitch, &slot_type_);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_commit(&slot_type_);
  return rc;
}

void Running::free_slot_type() {
  if (slot_type_ == MPI_DATATYPE_NULL) return;
  int finalized = 0;
  PMPI_Finalized(&finalized);
  if (!finalized) PMPI_Type_free(&slot_type_);  // pending messages keep it
  slot_type_ = MPI_DATATYPE_NULL;
}

Running::Items Running::items_of(const core::Slice& s) const {
  if (!table_ || s.count == 0)
    return {at(s), s.count * per_element_, distance(s.buffer) == layout_.extent ? type_ : slot_type_};
  const Blocks::Side& side = table_->of(s.buffer);
  return {side.at(s.offset), side.items(s.offset), side.type};
}

Running::Items Running::items_of(core::OpId message) const {
  if (const Compiled::Indexed* pieces = entry_of(program_->indexed, message))
    return {base_[static_cast<int>(pieces->buffer)], 1, pieces->type};
  const core::Operation& op = program_->ops[static_cast<std::size_t>(message)];
  return items_of(op.kind == core::OpKind::send ? op.src : op.dst);
}

void Running::complete_operation(std::int32_t op) {
  Compiled& p = *program_;
  ++done_;
  foreground_left_ -= p.ops[static_cast<std::size_t>(op)].lane == core::Lane::foreground;
  for (std::int32_t e = p.dependent_begin[static_cast<std::size_t>(op)];
       e < p.dependent_begin[static_cast<std::size_t>(op) + 1]; ++e) {
    const std::int32_t next = p.dependents[static_cast<std::size_t>(e)];
    if (--p.waiting[static_cast<std::size_t>(next)] == 0) p.ready[tail_++] = next;
  }
}

/// Posts a message. `posted`: false if a receive must wait until its message has arrived.
int Running::post_message(std::int32_t id, bool& posted) {
  Compiled& p = *program_;
  const core::Operation& op = p.ops[static_cast<std::size_t>(id)];
  const bool sends = op.kind == core::OpKind::send;
  const auto slot = static_cast<std::size_t>(active_);
  int rc = MPI_SUCCESS;
  posted = true;
  if (where_.wire) {
    const auto [data, count, type] = items_of(id);
    rc = sends ? where_.wire->send(data, count, type, op.peer, op.channel, &p.tickets[slot])
               : where_.wire->receive(data, count, type, op.peer, op.channel, &p.tickets[slot]);
  } else {
    const Rank peer = where_.world[static_cast<std::size_t>(op.peer)];
    const int tag = tag_of(where_.context, op.channel);
    MPI_Request* const request = &p.requests[slot];
    *request = MPI_REQUEST_NULL;
    if (failure_ == MPI_SUCCESS) try {
        if (blocks_) {
          rc = sends ? blocks_->send_blocks(op, id, peer, tag, where_.comm, request)
                     : blocks_->receive_blocks(op, id, peer, tag, where_.comm, request, posted);
        } else {
          const auto [data, count, type] = items_of(id);
          rc = sends ? PMPI_Isend_c(data, count, type, peer, tag, where_.comm, request)
                     : PMPI_Irecv_c(data, count, type, peer, tag, where_.comm, request);
        }
        if (rc != MPI_SUCCESS) note_failure(rc);
      } catch (const std::bad_alloc&) {
        note_failure(MPI_ERR_NO_MEM);
      }
    if (failure_ != MPI_SUCCESS && *request == MPI_REQUEST_NULL) {
      posted = true;
      // A receive drops the data, and MPI calls it truncated.
      rc = sends ? PMPI_Isend_c(nullptr, 0, MPI_BYTE, peer, tag, where_.comm, request)
                 : PMPI_Irecv_c(nullptr, 0, MPI_BYTE, peer, tag, where_.comm, request);
    }
  }
  if (rc == MPI_SUCCESS && posted) {
    p.active[slot] = id;
    ++active_;
    --unposted_;
  }
  return rc;
}

int Running::apply_operator(const void* in, void* inout, MPI_Count count) try {
  return PMPI_Reduce_local_c(in, inout, count, type_, op_);
} catch (abi::__forced_unwind&) {  // the end of the thread
  throw;
} catch (...) {
  if (where_.wire) throw;
  thrown_ = std::current_exception();
  return MPI_ERR_OTHER;
}

int Running::reduce_elements(const core::Operation& op) {
  if (distance(op.src.buffer) == layout_.extent && distance(op.dst.buffer) == layout_.extent)
    return apply_operator(at(op.src), at(op.dst), op.dst.count * per_element_);
  // The operator knows the program's datatype only, and that has another distance of items than scratch memory.
  int rc = MPI_SUCCESS;
  for (core::Elements i = 0; i < op.dst.count && rc == MPI_SUCCESS; ++i)
    rc = apply_operator(at(op.src, i), at(op.dst, i), 1);
  return rc;
}

int Running::copy_elements(const core::Operation& op) const {
  const int tag = tag_of(where_.context, kSelfChannel);
  if (blocks_) return blocks_->copy_blocks(op, where_.self, tag, where_.comm);
  const Items from = items_of(op.src), to = items_of(op.dst);
  // No data to move: a root with MPI_IN_PLACE in a call that the engine began, or an operation that only joins
  // dependencies.
  if (to.data == from.data || op.dst.count == 0) return MPI_SUCCESS;
  if (layout_.gapless && !table_) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(op.dst.count * layout_.extent));
    return MPI_SUCCESS;
  }
  return PMPI_Sendrecv_c(from.data, from.count, from.type, where_.self, tag, to.data, to.count, to.type, where_.self,
                         tag, where_.comm, MPI_STATUS_IGNORE);
}

int Running::start_operation(std::int32_t id) {
  Compiled& p = *program_;
  const core::Operation& op = p.ops[static_cast<std::size_t>(id)];
  if (op.communicates()) {
    if (herald_ && (op.kind == core::OpKind::send || op.dst.count == 0)) herald_->before_message(op.peer);
    bool posted = false;
    const int rc = post_message(id, posted);
    if (rc == MPI_SUCCESS && !posted) p.held[held_++] = id;
    return rc;
  }
  int rc = MPI_SUCCESS;
  if (failure_ == MPI_SUCCESS) try {
      rc = op.kind == core::OpKind::reduce ? reduce_elements(op) : copy_elements(op);
    } catch (const std::bad_alloc&) {
      rc = MPI_ERR_NO_MEM;
    }
  complete_operation(id);
  if (rc == MPI_SUCCESS || where_.wire) return rc;
  note_failure(rc);
  return MPI_SUCCESS;
}

int Running::step(bool& moved) {
  Compiled& p = *program_;
  int rc = MPI_SUCCESS;
  moved = false;
  while (head_ < tail_ && rc == MPI_SUCCESS) {
    const std::int32_t id = p.ready[head_++];
    if (!arrived_ && p.ops[static_cast<std::size_t>(id)].lane == core::Lane::foreground) {
      p.held[held_++] = id;
      continue;
    }
    rc = start_operation(id);
    moved = true;
  }
  for (std::size_t i = 0; arrived_ && i < held_ && rc == MPI_SUCCESS;) {
    bool posted = false;
    rc = post_message(p.held[i], posted);
    if (posted) {
      p.held[i] = p.held[--held_];
      moved = true;
    } else ++i;
  }
  if (active_ == 0 || rc != MPI_SUCCESS) return rc;
  int count = 0;
  rc = test_requests(count);
  if (rc != MPI_SUCCESS || count <= 0) return rc;
  moved = true;
  for (int k = 0; k < count; ++k)
    complete_operation(p.active[static_cast<std::size_t>(p.finished[static_cast<std::size_t>(k)])]);
  keep_unfinished();
  return rc;
}

/// Fills `finished` with the completed messages, and clears their requests or tickets.
int Running::test_requests(int& count) {
  Compiled& p = *program_;
  int rc = MPI_SUCCESS;
  count = 0;
  if (where_.wire) {
    for (int k = 0; k < active_ && rc == MPI_SUCCESS; ++k)
      if (void*& ticket = p.tickets[static_cast<std::size_t>(k)]; where_.wire->done(ticket, &rc)) {
        ticket = nullptr;
        if (rc == MPI_SUCCESS) p.finished[static_cast<std::size_t>(count++)] = k;
      }
    return rc;
  }
  rc = PMPI_Testsome(active_, p.requests.data(), &count, p.finished.data(), p.statuses.data());
  int error_class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) PMPI_Error_class(rc, &error_class);
  if (rc != MPI_SUCCESS && error_class != MPI_ERR_IN_STATUS) return rc;
  for (int k = 0; k < count; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const std::int32_t id = p.active[static_cast<std::size_t>(p.finished[at])];
    if (rc == MPI_SUCCESS) p.statuses[at].MPI_ERROR = MPI_SUCCESS;  // MPI sets it only if it returns an error
    if (const int broken = check_received(id, p.statuses[at]); broken != MPI_SUCCESS) return broken;
  }
  return MPI_SUCCESS;
}

/// A message is complete. Returns an MPI error code if the run cannot go on.
int Running::check_received(std::int32_t id, MPI_Status& status) {
  const core::Operation& op = program_->ops[static_cast<std::size_t>(id)];
  if (status.MPI_ERROR != MPI_SUCCESS) {
    int error_class = MPI_SUCCESS;
    PMPI_Error_class(status.MPI_ERROR, &error_class);
    if (error_class != MPI_ERR_TRUNCATE) return status.MPI_ERROR;
    note_failure(status.MPI_ERROR);
  }
  if (failure_ != MPI_SUCCESS || op.kind != core::OpKind::recv || (!blocks_ && op.dst.count == 0)) return MPI_SUCCESS;
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (blocks_) {
    if (const int rc = blocks_->accept_blocks(op, id, bytes); rc != MPI_SUCCESS) note_failure(rc);
  } else if (bytes == 0) {
    note_failure(MPI_ERR_OTHER);
  }
  return MPI_SUCCESS;
}

void Running::keep_unfinished() {
  Compiled& p = *program_;
  int kept = 0;
  for (int k = 0; k < active_; ++k) {
    const auto from = static_cast<std::size_t>(k), to = static_cast<std::size_t>(kept);
    if (where_.wire ? p.tickets[from] == nullptr : p.requests[from] == MPI_REQUEST_NULL) continue;
    if (where_.wire) p.tickets[to] = p.tickets[from];
    else p.requests[to] = p.requests[from];
    p.active[to] = p.active[from];
    ++kept;
  }
  active_ = kept;
}

void Running::drop_messages() {
  Compiled& p = *program_;
  for (int k = 0; k < active_; ++k) {
    if (where_.wire) {
      if (p.tickets[static_cast<std::size_t>(k)]) where_.wire->drop(p.tickets[static_cast<std::size_t>(k)]);
      continue;
    }
    MPI_Request& request = p.requests[static_cast<std::size_t>(k)];
    if (request == MPI_REQUEST_NULL) continue;
    if (p.ops[static_cast<std::size_t>(p.active[static_cast<std::size_t>(k)])].kind == core::OpKind::recv)
      PMPI_Cancel(&request);
    PMPI_Request_free(&request);
  }
  active_ = 0;
}

}  // namespace latecomer::shim
