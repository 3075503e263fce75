// SPDX-License-Identifier: BSD-3-Clause
// Up the tree and down again.
#include "shim/engine/edges.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "shim/engine/engine.hpp"
#include "shim/patience.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/rules.hpp"
#include "shim/tags.hpp"

namespace latecomer::shim {
namespace {
// Derived: with this unit, 32 bits hold leads up to 214 s. A longer lead counts as 214 s.
constexpr Nanoseconds kLeadUnit = 100;
}  // namespace

Rank Edges::Member::parent() const { return (watched->rank - 1) / kChildren; }

void Edges::add_communicator(std::shared_ptr<Watched> watched) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t identity = watched->identity;
  Member& member = members_[identity];
  // Ranks of this part of the tree, level by level: of rank r's children the first is 8 r + 1.
  member.below = 0;
  for (std::int64_t first = watched->rank, many = 1; first < watched->size;
       first = kChildren * first + 1, many *= kChildren)
    member.below += static_cast<int>(std::min<std::int64_t>(many, watched->size - first));
  member.watched = std::move(watched);
  for (const auto& message : std::exchange(early_, {})) {
    Header header;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.identity == identity) read_message(member, message);
    else early_.push_back(message);
  }
}

void Edges::remove_communicator(const Watched& watched) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(watched.identity);
  const bool edged = found != members_.end() && found->second.edged;
  if (found != members_.end()) members_.erase(found);
  if (current_ == watched.identity) current_ = 0;
  // Drop messages that arrive for this communicator later.
  if (edged) gone_.insert(watched.identity);
}

void Edges::expect_predictions(const Watched& watched, std::span<const Nanoseconds> offsets) {
  const std::lock_guard lock(mutex_);
  active_ = true;
  if (current_ == 0) current_ = watched.identity;
  Member& member = members_[watched.identity];
  member.edged = true;
  member.offsets.assign(offsets.begin(), offsets.end());
}

Edges::Round& Edges::find_round(Member& member, std::uint64_t number) {
  Round& out = member.rounds[number];
  if (out.entries.empty()) out.entries.assign(static_cast<std::size_t>(member.watched->size), {-1, -1, kUnsaid});
  return out;
}

void Edges::add_entry(Round& round, const Entry& entry) {
  if (entry.rank < 0 || entry.rank >= static_cast<Rank>(round.entries.size()) || !entry.known()) return;
  if (Entry& known = round.entries[static_cast<std::size_t>(entry.rank)]; !known.known()) {
    known = entry;
    ++round.have;
  }
}

void Edges::predict_arrival(Nanoseconds arrival, Nanoseconds now) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(current_);
  if (found == members_.end()) return;
  Member& member = found->second;
  Round& r = find_round(member, member.next);
  if (r.frozen) return;
  add_entry(r,
            {member.watched->rank,
             static_cast<std::int32_t>(std::clamp<Nanoseconds>((arrival - now) / kLeadUnit, 0, INT32_MAX)), arrival});
  send_up(member, member.next, false);
}

void Edges::send_up(Member& member, std::uint64_t number, bool urgent) {
  Round& r = member.rounds[number];
  if (r.frozen) return;
  if (member.watched->rank == 0) {
    if (urgent || r.have == member.watched->size) freeze_round(member, number);
    return;
  }
  if (urgent ? r.urged : r.told || r.urged || r.have < member.below) return;
  (urgent ? r.urged : r.told) = true;
  std::vector<Entry> entries;
  std::copy_if(r.entries.begin(), r.entries.end(), std::back_inserter(entries),
               [](const Entry& e) { return e.known(); });
  send_message(member.watched->world[static_cast<std::size_t>(member.parent())],
               {member.watched->identity, number, urgent ? Kind::urgent : Kind::complete}, entries.data(),
               entries.size() * sizeof(Entry));
}

namespace {
Nanoseconds median(std::vector<Nanoseconds>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
}  // namespace

void Edges::freeze_round(Member& member, std::uint64_t number) {
  Round& r = member.rounds[number];
  r.frozen = true;
  member.says.resize(r.entries.size());
  const bool forecast = member.offsets.size() == r.entries.size();
  const auto offset = [&](std::size_t rank) { return forecast ? member.offsets[rank] : 0; };
  std::vector<Nanoseconds> leads, begins;
  for (std::size_t rank = 0; rank < r.entries.size(); ++rank) {
    const Entry& e = r.entries[rank];
    if (e.known()) begins.push_back(e.arrival - offset(rank));
    if (e.lead >= 0) {
      leads.push_back(e.lead * kLeadUnit);
      member.says[rank] = number + 1;
    }
  }
  if (!leads.empty()) {
    // A rank that stops predicting counts as late in 16 further calls at most. A smaller number would forget a rank
    // that is late, and so cannot predict in time, in several calls in a row.
    constexpr std::uint64_t kLongAgo = 16;
    const Nanoseconds begin = median(begins), silent = job_clocks().common_now() + median(leads);
    std::vector<Nanoseconds> arrivals;
    for (std::size_t rank = 0; rank < r.entries.size(); ++rank) {
      const Entry& e = r.entries[rank];
      const bool says = member.says[rank] + kLongAgo > number && member.says[rank] > 0;
      arrivals.push_back(e.known() ? e.arrival : says ? std::max(silent, begin + offset(rank)) : begin + offset(rank));
    }
    const Nanoseconds first = *std::min_element(arrivals.begin(), arrivals.end());
    for (Nanoseconds& a : arrivals) a -= first;
    r.pattern.emplace(std::move(arrivals));
  }
  send_down(member, number, r);
}

void Edges::send_down(const Member& member, std::uint64_t number, const Round& r) {
  const std::int64_t first = std::int64_t{kChildren} * member.watched->rank + 1;
  for (std::int64_t child = first; child < std::min<std::int64_t>(first + kChildren, member.watched->size); ++child) {
    const Header header{member.watched->identity, number, r.pattern ? Kind::pattern : Kind::plans};
    const auto arrivals = r.pattern ? r.pattern->arrivals() : std::span<const Nanoseconds>();
    send_message(member.watched->world[static_cast<std::size_t>(child)], header, arrivals.data(),
                 arrivals.size_bytes());
  }
}

void Edges::greet_rank(Rank world) {
  const std::lock_guard lock(mutex_);
  active_ = true;
  if (sent_[static_cast<std::size_t>(world)] == 0) send_message(world, {kNobody, 0, Kind::plans}, nullptr, 0);
}

void Edges::send_message(Rank world, const Header& header, const void* data, std::size_t size) {
  auto free = std::find_if(outgoing_.begin(), outgoing_.end(), [](Outgoing& o) {
    int done = o.request == MPI_REQUEST_NULL;
    if (!done) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
  if (free == outgoing_.end()) free = outgoing_.emplace(outgoing_.end());
  free->bytes.resize(sizeof header + size);
  std::memcpy(free->bytes.data(), &header, sizeof header);
  if (size) std::memcpy(free->bytes.data() + sizeof header, data, size);
  if (PMPI_Isend_c(free->bytes.data(), static_cast<MPI_Count>(free->bytes.size()), MPI_BYTE, world, kEdgeChannel, comm_,
                   &free->request) != MPI_SUCCESS)
    free->request = MPI_REQUEST_NULL;
  else {
    ++sent_[static_cast<std::size_t>(world)];
    ++messages_;
  }
}

void Edges::read_message(Member& member, const std::vector<char>& message) {
  Header header;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.number < member.next) return;  // a late prediction: the process has left that call
  Round& r = find_round(member, header.number);
  const std::size_t size = message.size() - sizeof header;
  const char* data = message.data() + sizeof header;
  if (header.kind == Kind::pattern || header.kind == Kind::plans) {
    std::vector<Nanoseconds> arrivals(size / sizeof(Nanoseconds));
    if (size) std::memcpy(arrivals.data(), data, arrivals.size() * sizeof(Nanoseconds));
    r.frozen = true;
    if (header.kind == Kind::pattern) r.pattern.emplace(std::move(arrivals));
    send_down(member, header.number, r);
    return;
  }
  if (r.frozen) return;
  for (std::size_t i = 0; i < size / sizeof(Entry); ++i) {
    Entry entry;
    std::memcpy(&entry, data + i * sizeof(Entry), sizeof entry);
    add_entry(r, entry);
  }
  send_up(member, header.number, header.kind == Kind::urgent);
}

bool Edges::take_message_locked() {
  if (!active_) return false;
  int there = 0, size = 0;
  MPI_Message message;
  MPI_Status status;
  // MPICH searches its queue before it polls the network. So only the second probe finds a message that the first one
  // has received from the network.
  for (int look = 0; look < 2 && !there; ++look)
    if (PMPI_Improbe(MPI_ANY_SOURCE, kEdgeChannel, comm_, &there, &message, &status) != MPI_SUCCESS) return false;
  if (!there) return false;
  PMPI_Get_count(&status, MPI_BYTE, &size);
  std::vector<char> bytes(static_cast<std::size_t>(std::max(size, 0)));
  if (PMPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS) return true;
  ++received_;
  Header header;
  if (closed_ || bytes.size() < sizeof header) return true;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.identity == kNobody) return true;
  if (const auto found = members_.find(header.identity); found != members_.end()) read_message(found->second, bytes);
  else if (!gone_.contains(header.identity)) early_.push_back(std::move(bytes));
  return true;
}

bool Edges::take_message() {
  const std::lock_guard lock(mutex_);
  return take_message_locked();
}

std::optional<OwnPattern> Edges::take_pattern(const Watched& watched, std::span<const Nanoseconds> offsets,
                                              Nanoseconds arrival) {
  Patience patience(job_rules().courteous);
  std::unique_lock lock(mutex_);
  Member& member = members_.at(watched.identity);
  active_ = true;
  member.offsets.assign(offsets.begin(), offsets.end());
  current_ = watched.identity;
  const std::uint64_t number = member.next;
  while (take_message_locked()) {
  }  // takes the predictions that have arrived
  if (Round& r = find_round(member, number); !r.frozen) {
    add_entry(r, {watched.rank, -1, arrival});
    send_up(member, number, true);
  }
  while (!member.rounds[number].frozen) {
    if (take_message_locked()) continue;
    lock.unlock();
    patience.wait();
    lock.lock();
  }
  std::optional<core::Pattern> out = std::move(member.rounds[number].pattern);
  member.rounds.erase(number);
  ++member.next;
  if (!out) return {};
  ++patterns_;
  return OwnPattern{std::move(*out), number};
}

std::optional<core::Pattern> Edges::frozen_pattern(const Watched& watched, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(watched.identity);
  if (member == members_.end()) return {};
  const auto round = member->second.rounds.find(number);
  return round == member->second.rounds.end() || !round->second.frozen ? std::nullopt : round->second.pattern;
}

bool Edges::awaits_messages() {
  const std::lock_guard lock(mutex_);
  return std::any_of(members_.begin(), members_.end(), [](const auto& m) {
    return !m.second.rounds.empty() && !m.second.rounds.rbegin()->second.frozen;
  });
}

void Edges::stop_sending() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void Edges::finish_sends() {
  for (Outgoing& o : outgoing_)
    for (int done = o.request == MPI_REQUEST_NULL; !done;) PMPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
}

}  // namespace latecomer::shim
