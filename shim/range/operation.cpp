// SPDX-License-Identifier: BSD-3-Clause
// Collectives on ranges: chooses the schedule and the memory, and advances all operations in flight.
#include "shim/range/operation.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/text.hpp"
#include "core/select/by_call.hpp"
#include "core/select/line.hpp"
#include "shim/runner/packing.hpp"

void latecomer_range_operation::fill(MPI_Status* status) const { latecomer::range::empty_status(status); }

namespace latecomer::range {

using core::Elements;
using Kind = core::Collective;

Library& library() {
  static Library* const instance = new Library;  // must outlive exit handlers
  return *instance;
}

int from_mpi(const Identity& where, int rank) {
  const latecomer_range range{nullptr,     where.first,   where.size,   where.stride,
                              where.depth, where.context, MPI_UNDEFINED};
  return latecomer_range_from_mpi(&range, rank);
}

void fill_status(MPI_Status* status, int source, int tag, MPI_Count bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  status->MPI_ERROR = MPI_SUCCESS;
}

void fill_received(MPI_Status* status, const Envelope& e, Rank source) {
  fill_status(status, from_mpi(e.where, source), e.tag, e.bytes);
}

void empty_status(MPI_Status* status) { fill_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0); }

PointToPoint::~PointToPoint() {
  if (message_ && library().knows_hub(hub_)) hub_->release_message(message_);
}

bool PointToPoint::look() {
  complete = !message_ || message_->complete;
  if (message_ && complete) rc = message_->rc;
  return complete;
}

void PointToPoint::fill(MPI_Status* status) const {
  if (!message_) return fill_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  if (message_->sends) return Operation::fill(status);
  fill_received(status, message_->envelope, message_->source);
}

namespace {

bool same(const core::Call& a, const core::Call& b) {
  return a.op == b.op && a.ranks == b.ranks && a.root == b.root && a.count == b.count &&
         a.element_bytes == b.element_bytes && a.in_place == b.in_place && a.commutative == b.commutative;
}

}  // namespace

std::vector<char> Library::borrow_memory(std::size_t bytes) {
  std::vector<char> out;
  auto best = spare_.end();
  for (auto at = spare_.begin(); at != spare_.end(); ++at)
    if (best == spare_.end() ||
        (best->size() < bytes ? at->size() > best->size() : at->size() >= bytes && at->size() < best->size()))
      best = at;
  if (best != spare_.end()) {
    out = std::move(*best);
    *best = std::move(spare_.back());
    spare_.pop_back();
  }
  if (out.size() < bytes) out = std::vector<char>(bytes);  // a new vector does not copy the old bytes
  return out;
}

void Library::give_back_memory(std::vector<char> memory) {
  // The number and the greatest size of the kept buffers. Derived: at most 512 MiB per process, and only after eight
  // collectives of that size ran at once. Beyond, a buffer is freed, and the next collective allocates another.
  constexpr std::size_t kSpare = 8, kLargest = 64 << 20;
  if (spare_.size() < kSpare && memory.size() <= kLargest && !memory.empty()) spare_.push_back(std::move(memory));
}

Library::Schedule Library::find_schedule(const core::Call& call, Rank me, bool scales) {
  const auto compiled = [me](const core::Call& of) {
    return std::make_shared<shim::Compiled>(
        core::materialize(core::range_algorithm(of), core::Instance(of, core::Pattern(), core::Parameters{}), me));
  };
  if (scales && call.count > 0) {
    // Derived: a class of 16 ranks takes about 5 KB, so 256 classes take 1.3 MB. Two that need one place replace each
    // other.
    constexpr std::size_t kClasses = 256;
    if (classes_.empty()) classes_.resize(kClasses);
    core::Call unit = call;
    unit.count = 1;
    std::uint64_t hash = static_cast<std::uint64_t>(call.op);
    for (const std::int64_t x : {std::int64_t{call.ranks}, std::int64_t{call.root}, std::int64_t{me},
                                 std::int64_t{call.element_bytes}, std::int64_t{call.in_place + 2 * call.commutative}})
      hash = hash * 31 + static_cast<std::uint64_t>(x);
    KeptClass& k = classes_[core::mix64(hash) % kClasses];
    if (k.me != me || !same(k.call, unit)) {
      k.call = unit;
      k.me = me;
      k.program = nullptr;
      k.most = core::range_class_end(unit);
    }
    if (call.count <= k.most) {
      if (!k.program || k.program.use_count() > 1) k.program = compiled(unit);
      return {k.program, call.count};
    }
  }
  // Derived: a schedule takes about 150 bytes per operation, so 64 schedules of 100 operations take 1 MB. Beyond, an
  // old schedule makes room for each new one in turn, and its next call builds it again.
  constexpr std::size_t kKept = 64;
  bool busy = false;
  for (const Kept& k : kept_)
    if (k.me == me && same(k.call, call)) {
      if (k.program.use_count() == 1) return {k.program};
      busy = true;
    }
  auto program = compiled(call);
  if (busy) return {program};
  if (kept_.size() < kKept) kept_.push_back({call, me, program});
  else kept_[next_victim_++ % kKept] = {call, me, program};
  return {program};
}

RangeCollective::RangeCollective(const latecomer_range& range, const Arguments& a)
    : range_(range),
      number_(hub_of(range).next_collective(identity_of(range))),
      send_type_(a.send_type),
      recv_type_(a.recv_type) {
  rc = begin_call(a);
  if (rc != MPI_SUCCESS) complete = true;
  else step();
  if (!complete) library().drive_operation(this);
}

RangeCollective::~RangeCollective() {
  library().forget_operation(this);
  if (!complete && program_ && library().knows_hub(&hub_of(range_))) running_.drop_messages();
  if (complete && rc == MPI_SUCCESS) library().give_back_memory(std::move(scratch_));
}

int RangeCollective::begin_call(const Arguments& a) {
  core::Call call;
  call.op = a.op;
  call.ranks = range_.size;
  call.root = a.root;
  call.element_bytes = 1;
  if (a.op == Kind::barrier) {
    compile_schedule(call, false);
    running_.set_buffers(nullptr, nullptr, MPI_BYTE, MPI_OP_NULL, shim::Layout::bytes());
    return MPI_SUCCESS;
  }
  if (core::is_reduction(a.op)) return begin_reduction(call, a);
  return a.send_counts || a.recv_counts || core::is_irregular(a.op) ? begin_irregular(call, a)
                                                                    : begin_movement(call, a);
}

MPI_Count RangeCollective::compile_schedule(const core::Call& call, bool scales) {
  Library::Schedule schedule = library().find_schedule(call, range_.rank, scales);
  program_ = std::move(schedule.program);
  Hub& hub = hub_of(range_);
  running_.begin_schedule(*program_, {hub.comm(), 0, {}, hub.rank(), this}, nullptr);
  return schedule.items;
}

int RangeCollective::begin_reduction(core::Call call, const Arguments& a) {
  shim::Layout layout;
  int rc = layout.read_type(recv_type_.get());
  int commutes = 0;
  if (rc == MPI_SUCCESS) rc = PMPI_Op_commutative(a.reduction, &commutes);
  if (rc != MPI_SUCCESS) return rc;
  call.count = a.recv_count;
  call.element_bytes = layout.size;
  call.commutative = commutes != 0;
  call.in_place = a.send == MPI_IN_PLACE;
  const MPI_Count items = compile_schedule(call, layout.gapless);
  if (items > 1) layout = layout.times(items);
  scratch_ = library().borrow_memory(layout.bytes_for(program_->scratch) + 64);
  running_.give_scratch(scratch_.data(), layout);
  running_.set_buffers(call.in_place ? nullptr : static_cast<char*>(const_cast<void*>(a.send)),
                       static_cast<char*>(a.recv), recv_type_.get(), a.reduction, layout, items);
  return MPI_SUCCESS;
}

int RangeCollective::begin_movement(core::Call call, const Arguments& a) {
  const bool root = range_.rank == a.root, scatters = a.op == Kind::scatter;
  call.in_place = scatters               ? root && a.recv == MPI_IN_PLACE
                  : a.op == Kind::gather ? root && a.send == MPI_IN_PLACE
                                         : a.op != Kind::bcast && a.send == MPI_IN_PLACE;
  // The bytes of a block, from the side that is significant on this rank.
  const bool by_send = scatters ? root : a.op != Kind::bcast && !call.in_place && !(a.op == Kind::gather && root);
  MPI_Count size = 0;
  const int rc = PMPI_Type_size_x(by_send ? send_type_.get() : recv_type_.get(), &size);
  if (rc != MPI_SUCCESS) return rc;
  call.count = size * (by_send ? a.send_count : a.recv_count);
  const MPI_Count items = compile_schedule(call, true);
  const shim::Layout layout = shim::Layout::bytes().times(items);
  bytes_ = std::make_unique<shim::Bytewise>(
      call, range_.rank, hub_of(range_).comm(),
      shim::Operands{a.send, a.recv, a.recv_count, recv_type_.get(), MPI_OP_NULL, a.send_count, send_type_.get(), {}},
      staged_);
  if (bytes_->rc() != MPI_SUCCESS) return bytes_->rc();
  scratch_ = library().borrow_memory(layout.bytes_for(program_->scratch) + 64);
  running_.give_scratch(scratch_.data(), layout);
  running_.set_buffers(bytes_->input(), bytes_->output(), MPI_BYTE, MPI_OP_NULL, layout, items);
  return MPI_SUCCESS;
}

int RangeCollective::begin_irregular(core::Call call, const Arguments& a) {
  // An element is a block.
  const bool root = range_.rank == a.root;
  call.op = core::regular(a.op);
  call.count = 1;
  call.element_bytes = 0;
  call.in_place = a.op == Kind::scatterv ? root && a.recv == MPI_IN_PLACE
                                         : (a.op != Kind::gatherv || root) && a.send == MPI_IN_PLACE;
  const auto side = [&](const void* base, const KeptType& type, MPI_Count count, const MPI_Count* counts,
                        const MPI_Aint* displacements, shim::Blocks::Side& out) {
    shim::Layout layout;
    const int rc = layout.read_type(type.get());
    out = {static_cast<char*>(const_cast<void*>(base)), type.get(), layout.extent, counts, displacements, count};
    return rc;
  };
  const bool has_input = core::buffer_elements(call, range_.rank, core::Buffer::input) > 0,
             has_output = core::buffer_elements(call, range_.rank, core::Buffer::output) > 0;
  int rc = MPI_SUCCESS;
  if (has_output) rc = side(a.recv, recv_type_, a.recv_count, a.recv_counts, a.recv_displacements, blocks_.output);
  if (rc == MPI_SUCCESS && has_input)
    rc = side(a.send, send_type_, a.send_count, a.send_counts, a.send_displacements, blocks_.input);
  if (rc != MPI_SUCCESS) return rc;
  if (call.op == Kind::alltoall && call.in_place) {
    // The data to send lie where other ranks' blocks arrive: pack them first and send the copy.
    MPI_Count size = 0, total = 0;
    rc = PMPI_Type_size_x(recv_type_.get(), &size);
    for (int r = 0; r < range_.size; ++r) {
      packed_counts_.push_back(size * a.recv_counts[r]);
      packed_places_.push_back(total);
      total += packed_counts_.back();
    }
    staged_.resize(static_cast<std::size_t>(total));
    for (int r = 0; r < range_.size && rc == MPI_SUCCESS; ++r)
      rc = shim::pack_items(blocks_.output.at(r), blocks_.output.items(r), recv_type_.get(),
                            staged_.data() + packed_places_[static_cast<std::size_t>(r)],
                            packed_counts_[static_cast<std::size_t>(r)], hub_of(range_).comm());
    if (rc != MPI_SUCCESS) return rc;
    blocks_.input = {staged_.data(), MPI_PACKED, 1, packed_counts_.data(), packed_places_.data(), 0};
    call.in_place = false;
  }
  compile_schedule(call, false);
  if (program_->scratch > 0) return MPI_ERR_INTERN;  // a schedule that forwards blocks
  running_.set_buffers(blocks_);
  return MPI_SUCCESS;
}

void RangeCollective::step() {
  if (complete) return;
  bool moved = true;
  while (rc == MPI_SUCCESS && moved && !running_.done()) rc = running_.step(moved);
  if (rc == MPI_SUCCESS && !running_.done()) return;
  if (rc != MPI_SUCCESS) running_.drop_messages();
  else if (bytes_) rc = bytes_->finish_copies();
  complete = true;
  program_.reset();
}

int RangeCollective::send(const void* data, MPI_Count count, MPI_Datatype type, Rank to, int channel, void** ticket) {
  int rc = MPI_SUCCESS;
  *ticket = hub_of(range_).send_message(data, count, type, to_mpi(range_, to),
                                        {identity_of(range_), channel, number_, 0, 0}, false, &rc);
  return rc;
}

int RangeCollective::receive(void* data, MPI_Count count, MPI_Datatype type, Rank from, int channel, void** ticket) {
  *ticket = hub_of(range_).receive_message(data, count, type, to_mpi(range_, from),
                                           {identity_of(range_), channel, number_, 0, 0});
  return MPI_SUCCESS;
}

bool RangeCollective::done(void* ticket, int* rc) {
  auto* const message = static_cast<RangeMessage*>(ticket);
  if (!message->complete) return false;
  *rc = message->rc;
  hub_of(range_).release_message(message);
  return true;
}

void RangeCollective::drop(void* ticket) { hub_of(range_).release_message(static_cast<RangeMessage*>(ticket)); }

void Library::discard_operation(Operation* operation) {
  operation->next_discarded = discarded_.load(std::memory_order_relaxed);
  while (!discarded_.compare_exchange_weak(operation->next_discarded, operation, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
}

void Library::delete_discarded(bool incomplete) {
  if (!discarded_.load(std::memory_order_relaxed)) return;
  for (Operation* next = discarded_.exchange(nullptr, std::memory_order_acquire); next;) {
    Operation* const o = std::exchange(next, next->next_discarded);
    if (incomplete || o->complete || o->look()) delete o;
    else discard_operation(o);
  }
}

int Library::progress() {
  delete_discarded(false);
  int rc = MPI_SUCCESS;
  for (const auto& hub : hubs_)
    if (const int one = hub->progress(); rc == MPI_SUCCESS) rc = one;
  for (std::size_t i = 0; i < driven_.size();) {
    driven_[i]->step();
    if (driven_[i]->complete) {
      driven_[i] = driven_.back();
      driven_.pop_back();
    } else ++i;
  }
  return rc;
}

void Library::forget_operation(Operation* operation) { std::erase(driven_, operation); }

bool Library::knows_hub(const Hub* hub) const {
  return std::any_of(hubs_.begin(), hubs_.end(), [&](const auto& h) { return h.get() == hub; });
}

int Library::attach_hub(MPI_Comm comm, Hub** hub) {
  int rc = MPI_SUCCESS;
  if (keyval_ == MPI_KEYVAL_INVALID) {
    int level = MPI_THREAD_MULTIPLE;
    PMPI_Query_thread(&level);
    one_thread_ = level < MPI_THREAD_MULTIPLE;
    rc = PMPI_Comm_create_keyval(
        MPI_COMM_NULL_COPY_FN,
        [](MPI_Comm, int, void* value, void*) {
          const std::lock_guard guard(library().lock);
          library().detach_hub(static_cast<Hub*>(value));
          return MPI_SUCCESS;
        },
        &keyval_, nullptr);
    // MPI_Finalize deletes the attributes of MPI_COMM_SELF first.
    if (rc == MPI_SUCCESS)
      rc = PMPI_Comm_create_keyval(
          MPI_COMM_NULL_COPY_FN,
          [](MPI_Comm, int, void*, void*) {
            const std::lock_guard guard(library().lock);
            library().end_all();
            return MPI_SUCCESS;
          },
          &end_keyval_, nullptr);
    if (rc == MPI_SUCCESS) rc = PMPI_Comm_set_attr(MPI_COMM_SELF, end_keyval_, nullptr);
    if (rc != MPI_SUCCESS) return rc;
  }
  void* known = nullptr;
  int there = 0;
  rc = PMPI_Comm_get_attr(comm, keyval_, &known, &there);
  if (rc != MPI_SUCCESS) return rc;
  if (there) {
    *hub = static_cast<Hub*>(known);
    return MPI_SUCCESS;
  }
  auto fresh = std::make_unique<Hub>(comm);
  if (fresh->rc() != MPI_SUCCESS) return fresh->rc();
  rc = PMPI_Comm_set_attr(comm, keyval_, fresh.get());
  if (rc != MPI_SUCCESS) return rc;
  *hub = fresh.get();
  hubs_.push_back(std::move(fresh));
  return MPI_SUCCESS;
}

void Library::detach_hub(Hub* hub) {
  std::erase_if(hubs_, [&](const auto& h) { return h.get() == hub; });
}

void Library::end_all() {
  delete_discarded(true);
  kept_.clear();
  classes_.clear();
  spare_.clear();
  hubs_.clear();
  // Free the keyvals. Attributes that are still set keep their callbacks, which then do nothing.
  PMPI_Comm_free_keyval(&keyval_);
  PMPI_Comm_free_keyval(&end_keyval_);
}

}  // namespace latecomer::range
