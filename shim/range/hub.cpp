// SPDX-License-Identifier: BSD-3-Clause
// Sends, matches and delivers envelopes.
#include "shim/range/hub.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/text.hpp"
#include "shim/mpi/progress.hpp"
#include "shim/runner/packing.hpp"
#include "shim/tags.hpp"

namespace latecomer::range {

using namespace shim;  // mpi_3.hpp, where MPI has no functions with MPI_Count

namespace {

// The number of short sends in flight from which progress() tests them. Derived: a test of 64 requests takes 0.4 us
// (measured, 2 ranks in shared memory), and 64 chunks of 8 KiB take 512 KiB.
constexpr std::size_t kMany = 64;

/// Whether the ranks of a communicator on this host have at least as many cores. Collective over the communicator.
bool fits_the_cores(MPI_Comm comm) {
  MPI_Comm host = MPI_COMM_NULL;
  if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS) return false;
  // A rank that is bound sees its own cores only.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  int ranks = 0;
  bool ok = sched_getaffinity(0, sizeof cores, &cores) == 0;
  ok = PMPI_Comm_size(host, &ranks) == MPI_SUCCESS && ok;
  ok = PMPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, host) == MPI_SUCCESS && ok;
  PMPI_Comm_free(&host);
  return ok && ranks <= CPU_COUNT(&cores);
}

}  // namespace

Identity identity_of(const latecomer_range& r) { return {r.first, r.size, r.stride, r.depth, r.context}; }

std::size_t IdentityHash::operator()(const Identity& i) const {
  std::uint64_t h = 0;
  for (const std::int32_t x : {i.first, i.size, i.stride, i.depth, i.context})
    h = core::mix64(h ^ static_cast<std::uint32_t>(x));
  return static_cast<std::size_t>(h);
}

KeptType::KeptType(MPI_Datatype type) : type_(type) {
  // Compare with common datatypes first: a query of MPI takes as long as a short message.
  for (const MPI_Datatype known : {MPI_BYTE, MPI_CHAR, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_LONG, MPI_LONG_LONG,
                                   MPI_INT64_T, MPI_UINT64_T, MPI_DATATYPE_NULL})
    if (type == known) return;
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  owned_ = combiner != MPI_COMBINER_NAMED && PMPI_Type_dup(type, &type_) == MPI_SUCCESS;
}

KeptType::~KeptType() {
  int finalized = 0;
  if (owned_) PMPI_Finalized(&finalized);
  if (owned_ && !finalized) PMPI_Type_free(&type_);
}

Hub::Hub(MPI_Comm comm) : matching_({MPI_ANY_SOURCE, MPI_ANY_TAG}), landing_(sizeof(Envelope) + kShortMessage) {
  rc_ = PMPI_Comm_dup(comm, &comm_);
  if (rc_ != MPI_SUCCESS) return;
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  PMPI_Comm_size(comm_, &size_);
  PMPI_Comm_rank(comm_, &rank_);
  int* upper = nullptr;
  int known = 0;
  rc_ = PMPI_Comm_get_attr(comm_, MPI_TAG_UB, &upper, &known);
  tags_ = ((known ? *upper : 32767) - kFirstPayload) / 2;
  may_wait_in_mpi_ = fits_the_cores(comm_) || shim::waits_yield();
}

Hub::~Hub() {
  if (comm_ == MPI_COMM_NULL) return;
  // Short sends are complete for the program earlier than for MPI, and they must arrive. Any call of the receiver
  // fetches them. Do not wait longer for a receiver that makes no more calls. A shorter wait could lose messages to a
  // rank without a core, a longer one delays the end of the communicator. Seconds.
  constexpr double kWaitForSends = 1.0;
  const double until = PMPI_Wtime() + kWaitForSends;
  shim::Patience patience(true);
  for (;;) {
    bool left = false;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      if (requests_[i] != MPI_REQUEST_NULL && owners_[i]->sends) {
        PMPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
        left = left || !done;
      }
    }
    if (!left || PMPI_Wtime() > until) break;
    patience.wait();
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (!owners_[i]->sends) PMPI_Cancel(&requests_[i]);
    PMPI_Request_free(&requests_[i]);
    for (auto& m : pool_)
      if (m.get() == owners_[i]) static_cast<void>(m.release());  // MPI may still read from it
  }
  PMPI_Comm_free(&comm_);
}

RangeMessage* Hub::make_message() {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<RangeMessage>());
    free_.push_back(pool_.back().get());
    free_.reserve(pool_.size());
  }
  RangeMessage* const m = free_.back();
  free_.pop_back();
  m->sends = m->complete = m->dropped = false;
  m->rc = MPI_SUCCESS;
  return m;
}

void Hub::track_request(RangeMessage* message, MPI_Request request) {
  requests_.push_back(request);
  owners_.push_back(message);
  if (finished_.size() < requests_.size()) finished_.resize(requests_.capacity());
  ++message->in_flight;
  awaited_ += !message->complete;
}

void Hub::finish_message(RangeMessage* m) {
  m->complete = true;
  m->type_kept.reset();
  if (m->dropped && m->in_flight == 0) free_.push_back(m);
}

void Hub::release_message(RangeMessage* m) {
  m->dropped = true;
  if (m->complete && m->in_flight == 0) {
    free_.push_back(m);
  } else if (!m->sends && !m->complete && m->in_flight == 0) {
    matching_.withdraw_receive(m);
    free_.push_back(m);
  }
}

RangeMessage* Hub::send_message(const void* data, MPI_Count count, MPI_Datatype type, Rank to, const Envelope& key,
                                bool synchronous, int* rc) {
  shim::Layout layout;
  *rc = count > 0 ? layout.read_type(type) : MPI_SUCCESS;
  if (*rc != MPI_SUCCESS) return nullptr;
  RangeMessage* const m = make_message();
  m->sends = true;
  m->envelope = key;
  m->envelope.bytes = layout.size * count;
  const bool apart = synchronous || m->envelope.bytes > kShortMessage;
  if (apart) m->envelope.payload = kFirstPayload + static_cast<int>(sent_++ % static_cast<std::uint32_t>(tags_));
  const std::size_t head = sizeof(Envelope), body = apart ? 0 : static_cast<std::size_t>(m->envelope.bytes);
  m->chunk.resize(head + body);
  std::memcpy(m->chunk.data(), &m->envelope, head);
  if (body > 0) {
    if (layout.gapless) std::memcpy(m->chunk.data() + head, data, body);
    else *rc = shim::pack_items(data, count, type, m->chunk.data() + head, static_cast<MPI_Count>(body), comm_);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (*rc == MPI_SUCCESS)
    *rc =
        PMPI_Isend_c(m->chunk.data(), static_cast<MPI_Count>(head + body), MPI_BYTE, to, kEnvelopeTag, comm_, &request);
  if (*rc != MPI_SUCCESS) {
    free_.push_back(m);
    return nullptr;
  }
  // A short message is complete for its owner, because it uses no buffer of the program.
  m->complete = !apart;
  track_request(m, request);
  if (!apart) {
    // A root that only sends never waits, so test its requests here.
    if (requests_.size() >= std::max(kMany, next_collect_)) {
      *rc = finish_completed();
      next_collect_ = 2 * requests_.size();
    }
    if (*rc == MPI_SUCCESS) return m;
    release_message(m);
    return nullptr;
  }
  *rc = synchronous ? PMPI_Issend_c(data, count, type, to, m->envelope.payload, comm_, &request)
                    : PMPI_Isend_c(data, count, type, to, m->envelope.payload, comm_, &request);
  if (*rc == MPI_SUCCESS) {
    track_request(m, request);
    return m;
  }
  // The envelope is already sent.
  --awaited_;
  m->rc = *rc;
  m->complete = m->dropped = true;
  return nullptr;
}

void Hub::deliver_arrival(RangeMessage& m, Arrival& arrival) {
  const MPI_Count room = [&] {
    MPI_Count size = 0;
    if (m.count > 0) PMPI_Type_size_x(m.type, &size);
    return size * m.count;
  }();
  m.envelope = arrival.envelope;
  m.source = arrival.source;
  if (arrival.envelope.payload != 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    // For a message that is too long, MPI would call the error handler of MPI_COMM_WORLD when requests are tested.
    // Receive it into a private buffer.
    const bool fits = room >= arrival.envelope.bytes;
    if (!fits) m.chunk.resize(static_cast<std::size_t>(arrival.envelope.bytes));
    const int rc = fits ? PMPI_Irecv_c(m.data, m.count, m.count > 0 ? m.type : MPI_BYTE, m.source,
                                       arrival.envelope.payload, comm_, &request)
                        : PMPI_Irecv_c(m.chunk.data(), arrival.envelope.bytes, MPI_BYTE, m.source,
                                       arrival.envelope.payload, comm_, &request);
    m.rc = rc == MPI_SUCCESS && !fits ? MPI_ERR_TRUNCATE : rc;
    if (rc == MPI_SUCCESS) track_request(&m, request);
    else finish_message(&m);
    return;
  }
  const char* const from = arrival.chunk.data() + sizeof(Envelope);
  const MPI_Count bytes = std::min<MPI_Count>(room, arrival.envelope.bytes);
  if (bytes < arrival.envelope.bytes) m.rc = MPI_ERR_TRUNCATE;
  if (bytes > 0) {
    shim::Layout layout;
    int rc = layout.read_type(m.type);
    if (rc == MPI_SUCCESS && layout.gapless) {
      std::memcpy(m.data, from, static_cast<std::size_t>(bytes));
    } else if (rc == MPI_SUCCESS) {  // MPI fills any datatype, even a part of the last item
      const int tag = shim::tag_of(0, shim::kSelfChannel);
      rc = PMPI_Sendrecv_c(from, bytes, MPI_PACKED, rank_, tag, m.data, m.count, m.type, rank_, tag, comm_,
                           MPI_STATUS_IGNORE);
    }
    if (m.rc == MPI_SUCCESS) m.rc = rc;
  }
  finish_message(&m);
}

RangeMessage* Hub::make_receive(void* data, MPI_Count count, MPI_Datatype type) {
  RangeMessage* const m = make_message();
  m->data = static_cast<char*>(data);
  m->count = count;
  m->type = type;
  return m;
}

RangeMessage* Hub::receive_message(void* data, MPI_Count count, MPI_Datatype type, std::unique_ptr<Arrival> arrival) {
  RangeMessage* const m = make_receive(data, count, type);
  deliver_arrival(*m, *arrival);
  spare_.push_back(std::move(arrival));
  return m;
}

RangeMessage* Hub::receive_message(void* data, MPI_Count count, MPI_Datatype type, Rank from, const Envelope& key) {
  if (auto arrival = take_arrival(from, key)) return receive_message(data, count, type, std::move(arrival));
  RangeMessage* const m = make_receive(data, count, type);
  m->source = from;
  m->envelope = key;
  // The program may free its datatype while the receive waits.
  m->type_kept.emplace(type);
  m->type = m->type_kept->get();
  matching_.post_receive(m);
  return m;
}

int Hub::progress() {
  bool looked_on = false;
  for (;;) {
    int there = 0;
    MPI_Message handle;
    MPI_Status status;
    int rc = PMPI_Improbe(MPI_ANY_SOURCE, kEnvelopeTag, comm_, &there, &handle, &status);
    if (rc != MPI_SUCCESS) return rc;
    if (looked_on) bursts_ = there ? 8 : std::max(0, bursts_ - 1);
    looked_on = false;
    if (!there) break;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (spare_.empty()) spare_.push_back(std::make_unique<Arrival>());
    auto arrival = std::move(spare_.back());
    spare_.pop_back();
    arrival->chunk.resize(static_cast<std::size_t>(bytes));
    rc = PMPI_Mrecv(arrival->chunk.data(), bytes, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS) return rc;
    arrival->source = status.MPI_SOURCE;
    std::memcpy(&arrival->envelope, arrival->chunk.data(), sizeof(Envelope));
    RangeMessage* const m = matching_.match_arrival(arrival);
    if (!m) continue;
    deliver_arrival(*m, *arrival);
    spare_.push_back(std::move(arrival));
    // A receive is complete. A further probe that finds nothing yields the core in the middle of a collective. Without
    // it, a burst of messages (from a root that is ahead) arrives one by one. So probe again until 8 probes since the
    // last burst have found nothing, and at every 16th receive to notice bursts. A probe that finds nothing takes 0.02
    // us (measured, 2 ranks in shared memory), and a yield.
    looked_on = bursts_ > 0 || ++matched_ % 16 == 0;
    if (!looked_on) break;
  }
  // Test short sends only now and then: every test may yield the core.
  return awaited_ == 0 && requests_.size() < kMany ? MPI_SUCCESS : finish_completed();
}

int Hub::unload_chunk(const Envelope& envelope, const char* chunk, Rank source, char* into, MPI_Count room) {
  if (envelope.payload == 0) {
    const auto bytes = static_cast<std::size_t>(std::min<MPI_Count>(room, envelope.bytes));
    if (bytes > 0) std::memcpy(into, chunk + sizeof(Envelope), bytes);  // a barrier has no buffer
    return envelope.bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  }
  // The sender has more data than any short message: the program's counts differ. The data still have to be received.
  auto arrival = std::make_unique<Arrival>();
  arrival->envelope = envelope;
  arrival->source = source;
  arrival->chunk.assign(chunk, chunk + sizeof(Envelope));
  RangeMessage* const m = receive_message(into, room, MPI_BYTE, std::move(arrival));
  shim::Patience patience(true);
  int rc = MPI_SUCCESS;
  while (rc == MPI_SUCCESS && !m->complete) {
    rc = progress();
    patience.wait();
  }
  if (rc == MPI_SUCCESS) rc = m->rc;
  release_message(m);
  return rc;
}

int Hub::receive_straight(char* into, MPI_Count room, Rank from, const Envelope& key) {
  last_chunk_ = nullptr;
  if (auto arrival = matching_.take_of_collective(from, key)) {
    const int rc = unload_chunk(arrival->envelope, arrival->chunk.data(), from, into, room);
    spare_.push_back(std::move(arrival));
    return rc;
  }
  int rc = MPI_SUCCESS;
  Envelope envelope;
  const auto next = [&]() -> const Envelope* {
    const int size = static_cast<int>(landing_.size());
    if (may_wait_in_mpi_) {
      // This saves the probe, and where MPI yields, every second yield. The sender's messages arrive in its order.
      rc = PMPI_Recv(landing_.data(), size, MPI_BYTE, from, kEnvelopeTag, comm_, MPI_STATUS_IGNORE);
    } else {
      int there = 0;
      MPI_Message handle;
      MPI_Status status;
      rc = PMPI_Improbe(from, kEnvelopeTag, comm_, &there, &handle, &status);
      if (rc != MPI_SUCCESS || !there) return nullptr;
      rc = PMPI_Mrecv(landing_.data(), size, MPI_BYTE, &handle, MPI_STATUS_IGNORE);
    }
    if (rc != MPI_SUCCESS) return nullptr;
    std::memcpy(&envelope, landing_.data(), sizeof envelope);
    return &envelope;
  };
  const auto hand_over = [&] {
    if (spare_.empty()) spare_.push_back(std::make_unique<Arrival>());
    auto arrival = std::move(spare_.back());
    spare_.pop_back();
    arrival->envelope = envelope;
    arrival->source = from;
    const auto data = static_cast<std::ptrdiff_t>(envelope.payload == 0 ? envelope.bytes : 0);
    arrival->chunk.assign(landing_.begin(), landing_.begin() + static_cast<std::ptrdiff_t>(sizeof envelope) + data);
    if (RangeMessage* const m = matching_.match_arrival(arrival)) {
      deliver_arrival(*m, *arrival);
      spare_.push_back(std::move(arrival));
    }
  };
  shim::Patience patience(true);
  while (!Matching<RangeMessage>::advance_to(key, next, hand_over)) {
    if (rc != MPI_SUCCESS) return rc;
    patience.wait();
  }
  if (envelope.payload == 0 && envelope.bytes == room) last_chunk_ = landing_.data();
  return unload_chunk(envelope, landing_.data(), from, into, room);
}

int Hub::finish_completed() {
  int count = 0;
  const int rc = PMPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(),
                               MPI_STATUSES_IGNORE);
  if (rc != MPI_SUCCESS || count <= 0) return rc;
  for (int k = 0; k < count; ++k) {
    RangeMessage* const m = owners_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(k)])];
    awaited_ -= !m->complete;
    if (--m->in_flight == 0) {
      if (m->complete && m->dropped) free_.push_back(m);
      else if (!m->complete) finish_message(m);
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (requests_[i] != MPI_REQUEST_NULL) {
      requests_[kept] = requests_[i];
      owners_[kept++] = owners_[i];
    }
  requests_.resize(kept);
  owners_.resize(kept);
  return MPI_SUCCESS;
}

}  // namespace latecomer::range
