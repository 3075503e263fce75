// SPDX-License-Identifier: BSD-3-Clause
// The streams of this process's messages, and the numbers of communicators.
#include "shim/causes/message_ends.hpp"

#include <algorithm>

#include "shim/causes/usage.hpp"
#include "shim/causes/waits_for.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/world.hpp"

namespace latecomer::shim {

constinit MessageEnds message_ends;

void MessageEnds::begin_numbers() {
  communicators_[numbers_++] = {MPI_COMM_WORLD, kWorld};
  for (const std::size_t at : {kUnknown, kUnknown + 1}) {
    streams_[at].tag_and_way = static_cast<std::uint32_t>(at - kUnknown);
    facts_[at] = {kNoNumber, -1, true};
  }
  on_ = true;
}

MessageEnds::Numbered* MessageEnds::numbered(MPI_Comm comm) {
  if (comm == MPI_Comm{}) return nullptr;
  for (std::size_t i = 0; i < numbers_; ++i)
    if (communicators_[i].comm == comm) return &communicators_[i];
  return nullptr;
}

std::uint64_t MessageEnds::number_next(MPI_Comm parent, std::uint32_t call) {
  Numbered* there = counts() ? numbered(parent) : nullptr;
  if (!there) return 0;
  const std::uint64_t made = ++there->made << 16 | call;
  return std::clamp(core::mix64(core::mix64(there->number) + core::mix64(made)), kWorld + 1, kNoNumber - 1);
}

void MessageEnds::number_communicator(MPI_Comm made, std::uint64_t number) {
  if (made == MPI_COMM_NULL || !on_) return;
  close_communicator(made);  // another one that had the handle
  if (number == 0) return;
  const auto free = std::ranges::find(communicators_, MPI_Comm{}, &Numbered::comm);
  if (free == communicators_.end()) return;
  *free = {made, number};
  numbers_ = std::max(numbers_, static_cast<std::size_t>(free - communicators_.begin()) + 1);
}

void MessageEnds::close_communicator(MPI_Comm comm) {
  if (!on_) return;
  if (Numbered* there = numbered(comm)) *there = {};
  started_messages.close_communicator(comm);
  if (probed_.comm == comm) probed_ = {};
  for (Stream& stream : streams_)
    if (stream.comm == comm) stream.comm = {};
  for (std::size_t i = 0; i < doubts_;) {
    if (doubt_[i].comm == comm) doubt_[i] = doubt_[--doubts_];
    else ++i;
  }
}

profiles::StreamKey MessageEnds::key_of(std::size_t at) const {
  const StreamFacts& facts = facts_[at];
  const Rank own = job_world().rank;
  const bool sends = streams_[at].way() == Way::send;
  return {facts.communicator, sends ? own : facts.peer, sends ? facts.peer : own, streams_[at].tag()};
}

std::size_t MessageEnds::find_stream(MPI_Comm comm, int peer, std::uint32_t tag_and_way) const {
  const std::size_t at = place_of(comm, peer, tag_and_way), set = at - at % kSet;
  for (std::size_t i = set; i < set + kSet; ++i)
    if (streams_[i].is(comm, peer, tag_and_way)) return i;
  return kStreams;
}

[[gnu::noinline]] KeptNow MessageEnds::count_in_set(MPI_Comm comm, int peer, std::uint32_t tag_and_way,
                                                    std::size_t at) {
  if (peer < 0) return {};  // MPI_PROC_NULL
  if (const std::size_t there = find_stream(comm, peer, tag_and_way); there < kStreams) return count_at(there);
  const std::size_t set = at - at % kSet;
  std::size_t free = kStreams;
  for (std::size_t i = 0; i < kSet; ++i) {
    const std::size_t there = set + (at + i) % kSet;
    if (free == kStreams && facts_[there].communicator == 0) free = there;
  }
  if (free == kStreams) return count_unknown(static_cast<Way>(tag_and_way & 1));
  const KeepErrno keep;
  const Numbered* const known = numbered(comm);
  Stream& stream = streams_[free];
  StreamFacts& facts = facts_[free];
  stream = {comm, peer, tag_and_way, 0, UINT64_MAX};
  facts = {known ? known->number : kNoNumber, known ? peer_of(comm, peer) : -1, !known};
  for (std::size_t i = 0; i < doubts_; ++i) facts.doubtful |= doubt_[i].covers(stream);
  // A rank's messages to itself are of no interest.
  if (!known || (facts.peer >= 0 && facts.peer != job_world().rank))
    stream.next = profiles::MessageChoice(key_of(free).seed()).first(level_);
  return count_at(free);
}

[[gnu::noinline]] KeptNow MessageEnds::keep_message(std::size_t at) {
  const profiles::MessageChoice choice(key_of(at).seed());
  const std::uint64_t number = streams_[at].messages - 1;
  const int level = choice.level_of(number);
  KeptMessage* free = nullptr;
  while (!free && level >= level_) {
    for (std::size_t i = 0; i < kKept && !free; ++i)
      if (KeptMessage& one = kept_[(next_free_ + i) % kKept]; one.levels == 0) {
        free = &one;
        next_free_ = (next_free_ + i + 1) % kKept;
      }
    if (!free) raise_level();
  }
  streams_[at].next = choice.after(number, level_);
  if (!free) return {};
  *free = {};
  free->stream = static_cast<std::uint16_t>(at);
  free->levels = static_cast<std::int8_t>(level + 1);
  free->end.bytes = -1;
  free->end.number = number;
  free->end.uncertainty = job_clocks().uncertainty_now();
  free->end.posted = job_clocks().common_now();
  if (const Stream& stream = streams_[at];
      stream.is(probed_.comm, probed_.peer, probed_.tag_and_way) && number == probed_.number)
    note_wait(*free, probed_.key, probed_.begin, probed_.end, Waited::alone);
  return KeptNow(*free);
}

void MessageEnds::raise_level() {
  ++level_;
  for (KeptMessage& one : kept_)
    if (one.levels <= level_) one.levels = 0;
  for (std::size_t at = 0; at < streams_.size(); ++at) {
    Stream& stream = streams_[at];
    if (facts_[at].communicator == 0 || stream.next == UINT64_MAX) continue;
    const profiles::MessageChoice choice(key_of(at).seed());
    stream.next = stream.messages == 0 ? choice.first(level_) : choice.after(stream.messages - 1, level_);
  }
}

void MessageEnds::doubt(MPI_Comm comm, int peer, int tag, Way way) {
  if (peer == MPI_PROC_NULL) return;
  const auto same = [&](const Doubt& one) {
    return one.comm == comm && one.peer == peer && one.tag == tag && one.way == way;
  };
  const auto known = doubt_.begin() + static_cast<std::ptrdiff_t>(doubts_);
  if (std::find_if(doubt_.begin(), known, same) != known) return;
  if (!numbered(comm)) return;  // its streams are not known anyway
  if (doubts_ == kDoubts) {
    if (peer == MPI_ANY_SOURCE && tag == MPI_ANY_TAG) return doubt_all();
    const auto rest = std::remove_if(doubt_.begin(), doubt_.end(),
                                     [&](const Doubt& one) { return one.comm == comm && one.way == way; });
    doubts_ = static_cast<std::size_t>(rest - doubt_.begin());
    return doubts_ < kDoubts ? doubt(comm, MPI_ANY_SOURCE, MPI_ANY_TAG, way) : doubt_all();
  }
  const Doubt& added = doubt_[doubts_++] = {comm, peer, tag, way};
  for (std::size_t at = 0; at < kStreams; ++at)
    if (facts_[at].communicator != 0) facts_[at].doubtful |= added.covers(streams_[at]);
}

void MessageEnds::doubt_peer(Rank world, Way way) {
  for (std::size_t at = 0; at < kStreams; ++at)
    facts_[at].doubtful |= facts_[at].peer == world && streams_[at].way() == way;
}

void MessageEnds::note_wait(KeptMessage& kept, const CallPlace& place, Nanoseconds begin, Nanoseconds end,
                            Waited waited) {
  note_wait(kept, has_sites() ? site_at(place).key : profiles::TimedKey{}, begin, end, waited);
}

void MessageEnds::note_wait(KeptMessage& kept, const profiles::TimedKey& key, Nanoseconds begin, Nanoseconds end,
                            Waited waited) {
  if (kept.end.waited()) return;
  kept.end.wait_end = end;
  kept.end.uncertainty = std::max(kept.end.uncertainty, job_clocks().uncertainty_now());
  kept.end.wait_begin = begin;
  kept.end.others_too = waited == Waited::shared;
  kept.request = {};
  if (key.other_threads) return;  // kinds are by sites of the thread that started MPI
  kept.end.site = key.site;
  kept.end.call = key.call;
}

void MessageEnds::note_probed(MPI_Comm comm, int peer, int tag, const profiles::TimedKey& key, Nanoseconds waited) {
  const std::uint32_t tag_and_way = static_cast<std::uint32_t>(tag) << 1 | static_cast<std::uint32_t>(Way::receive);
  const std::size_t at = find_stream(comm, peer, tag_and_way);
  const Nanoseconds end = job_clocks().common_now();
  probed_ = {comm, peer, tag_and_way, at == kStreams ? 0 : streams_[at].messages, key, end - waited, end};
}

void CountedMessage::end_kept(KeptMessage& kept, const CallPlace& place, Waited waited) {
  MessageEnds::note_wait(kept, place, kept.end.posted, job_clocks().common_now(), waited);
}

void count_received(const CallPlace& place, MPI_Comm comm, const MPI_Status& status, std::int64_t bytes,
                    Nanoseconds posted, Waited waited) {
  const Nanoseconds end = job_clocks().common_now();
  if (status.MPI_SOURCE < 0) return;  // MPI_PROC_NULL
  const KeptNow kept = message_ends.count_message(comm, status.MPI_SOURCE, status.MPI_TAG, MessageEnds::Way::receive);
  if (KeptMessage* const there = kept.get()) {
    MessageEnds::note_wait(*there, place, posted, end, waited);
    there->end.posted = posted;
    there->end.bytes = bytes;
  }
}

void MessageEnds::list_ends(std::vector<profiles::StreamEnd>& out) const {
  out.clear();
  std::vector<std::size_t> index(streams_.size(), SIZE_MAX);
  for (std::size_t at = 0; at < streams_.size(); ++at) {
    if (facts_[at].communicator == 0 || streams_[at].messages == 0 || streams_[at].next == UINT64_MAX) continue;
    index[at] = out.size();
    profiles::StreamEnd& end = out.emplace_back();
    end.key = key_of(at);
    end.messages = streams_[at].messages;
    end.level = level_;
    end.sends = streams_[at].way() == Way::send;
    end.doubtful = doubtful_ || facts_[at].doubtful;
  }
  for (const KeptMessage& one : kept_)
    if (one.levels > 0 && index[one.stream] != SIZE_MAX) out[index[one.stream]].kept.push_back(one.end);
  for (profiles::StreamEnd& end : out) std::ranges::sort(end.kept, {}, &profiles::MessageEnd::number);
}

}  // namespace latecomer::shim
