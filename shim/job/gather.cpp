// SPDX-License-Identifier: BSD-3-Clause
// Gathers the profile of all ranks at the end of the job, along the tree of core/agreement/tree.hpp. A rank merges the
// parts of its children with its own, one after the other, and sends the result to its parent. So no rank holds more
// than its own merged part and one part that it has received.
#include "shim/job/gather.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "profiles/format/profile.hpp"
#include "profiles/record/merged.hpp"
#include "shim/call/record.hpp"
#include "shim/exchange/branch.hpp"
#include "shim/exchange/exchange.hpp"
#include "shim/exchange/mail.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/job/contribution.hpp"
#include "shim/job/history.hpp"
#include "shim/job/snapshots.hpp"
#include "shim/log.hpp"
#include "shim/sites/names.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/output.hpp"
#include "shim/state/post.hpp"
#include "shim/state/shared.hpp"
#include "shim/state/world.hpp"
#include "shim/waiting/alive.hpp"

namespace latecomer::shim {
namespace {

// Derived: the merged sites and the JSON values of a profile take less than four times the parts, and these amounts for
// a small job. The texts of the 256 decisions of a leader take 1 KiB each.
constexpr std::size_t kForProfile = 8 << 20, kForDecisions = 1 << 20;

/// Throws if this memory is not available. nlohmann/json needs this look ahead: its destructors allocate, and would
/// end a process without memory.
void need_memory(std::size_t bytes) {
  void* some = ::operator new(bytes);
  ::operator delete(some);
}

/// Returns whether the profile is on disk.
bool write_whole(profiles::Merged& all) {
  std::vector<std::string> never_ran;
  const Nanoseconds begin = now();
  const auto result = profiles::write_profile_file(
      job_output().path, job_output().replaces,
      [&](const profiles::Sink& sink) { profiles::write_profile(all, sink, &never_ran, name_frames); });
  if (result) {
    job_output().written = *result;
    job_output().wrote = now() - begin;
  }
  std::string lines;
  for (const std::string& line : never_ran) lines += (lines.empty() ? "" : "; ") + line;
  if (!lines.empty()) warn("a rule's algorithm never ran: %s", lines.c_str());
  if (!result && job_output().spool.written())
    warn("%s; the snapshots stay: to get a profile, run latecomer recover %s", result.error().c_str(),
         job_output().spool.directory().c_str());
  else if (!result && !job_output().loss_said) warn("%s; the profile is lost", result.error().c_str());
  else if (result) say(*result == job_output().path ? 1 : 0, "profile written to %s", result->c_str());
  say(2, "schedules built: %d ahead of their plan, %d inside a call; exchanges planned: %llu",
      Executor::built_ahead.load(), Executor::built_inside.load(), static_cast<unsigned long long>(plans_made()));
  return static_cast<bool>(result);
}

/// Exchanges messages and waits courteously until `done`. Returns false if a rank has died that the others wait for
/// (RankWait).
template <typename Done>
bool wait_until(Done done) {
  RankWait wait;
  for (;;) {
    pump_mail();
    if (done()) return true;
    if (!wait.again()) return false;
  }
}

bool wait_for(MPI_Request& request) {
  return wait_until([&] {
    int done = 0;
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

/// Waits until all ranks are here. Writes a snapshot before a long wait, because the launcher may end the job
/// meanwhile.
bool meet_ranks() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  PMPI_Ibarrier(job_world().comm, &all_here);
  RankWait wait;
  for (int done = 0;;) {
    PMPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    pump_mail();
    if (done) return true;
    if (wait.became_long() && !job_output().profile_gathered)
      attempt([&] {
        const JobLock lock;
        write_snapshot(lock, false);
      });
    if (!wait.again()) return false;
  }
}

/// Whether all ranks say `good`. Returns `cut` if a rank dies first.
Gathered agree(bool good) {
  static int all;  // MPI may still write it after a wait that was given up
  all = good;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, job_world().comm, &request);
  return !wait_for(request) ? Gathered::cut : all != 0 ? Gathered::whole : Gathered::partly;
}

/// The messages of a part: its size and kind; the parent's answer, 0 without memory for it; the part, in messages of
/// kPartBytes.
struct Offer {
  long long bytes = 0;   ///< 0: the rank could not make it
  long long merged = 0;  ///< 0: of one rank (profiles::Contribution); 1: of several (profiles::Merged)
};
// Derived: this and what may be under way is all that the mailboxes hold of a part.
constexpr std::size_t kPartBytes = 16 << 10;

/// The contents of the messages so far.
struct {
  std::array<std::pair<Rank, Offer>, core::kFanOut> offers;
  std::size_t offered = 0, used = 0;
  std::optional<long long> answer;
  std::size_t come = 0;  ///< bytes of the part that was asked for last
} heard;
/// Of this rank, for the user.
struct {
  long long messages = 0, bytes = 0;
} taken;
std::string& part_bytes() {
  alignas(std::string) static char place[sizeof(std::string)];
  static auto& bytes = *new (place) std::string;
  return bytes;
}

/// Puts a message into the mailbox, once it finds memory. Returns false if a rank has died meanwhile.
bool send_bytes(Rank to, Mail kind, std::span<const char> bytes) {
  return wait_until([&] { return static_cast<bool>(attempt([&] { put_mail(to, kind, bytes); })); });
}
template <typename T>
bool send_value(Rank to, Mail kind, const T& value) {
  return send_bytes(to, kind, {reinterpret_cast<const char*>(&value), sizeof value});
}

}  // namespace

void read_part(Rank world, Mail kind, std::span<const char> message) noexcept {
  if (kind == Mail::offer && message.size() == sizeof(Offer) && heard.offered < heard.offers.size()) {
    auto& [rank, offer] = heard.offers[heard.offered++];
    rank = world;
    std::memcpy(&offer, message.data(), sizeof offer);
  } else if (kind == Mail::answer && message.size() == sizeof(long long)) {
    std::memcpy(&heard.answer.emplace(), message.data(), message.size());
  } else if (kind == Mail::part && message.size() <= part_bytes().size() - heard.come) {
    std::memcpy(part_bytes().data() + heard.come, message.data(), message.size());
    heard.come += message.size();
  }
}

namespace {

/// The part that a rank has merged so far. An empty one allocates memory, too, so `attempt` makes it.
using Part = std::optional<profiles::Merged>;

/// Makes the bytes of the part: of this rank alone, if it has merged nothing. Returns whether it could.
bool make_part(const Part& all, Offer& offer) {
  const Outcome made = attempt([&] {
    if (all) all->serialize(part_bytes());
    else JobLock()->mine.serialize(part_bytes());
    expect_mail(job_world().place.parent, 0, kPartBytes);
  });
  if (!made) warn("the profile lacks this rank%s: %s", all ? " and those below it" : "", made.why);
  offer = {made ? static_cast<long long>(part_bytes().size()) : 0, all.has_value()};
  return static_cast<bool>(made);
}

/// Returns whether the part has left, or nothing if a rank died.
std::optional<bool> send_part(const Offer& offer, Rank parent) {
  if (!send_value(parent, Mail::offer, offer)) return {};
  if (offer.bytes == 0) return false;
  if (!wait_until([&] { return heard.answer.has_value(); })) return {};
  if (*heard.answer == 0) return false;
  std::span<const char> rest = part_bytes();
  const bool left = wait_until([&] {
    while (!rest.empty() && mail_waiting(parent) == 0) {
      const auto next = rest.first(std::min(rest.size(), kPartBytes));
      put_mail(parent, Mail::part, next);  // memory was taken before the offer
      rest = rest.subspan(next.size());
      pump_mail();
    }
    return rest.empty() && !mail_waits() && all_has_left();
  });
  return left ? std::optional(true) : std::nullopt;
}

/// Adds this rank to the part. Returns whether it could.
bool add_own(Part& all) {
  const Outcome added = attempt([&] { all.emplace().add(JobLock()->mine); });
  if (added) return true;
  warn("the profile lacks this rank: %s", added.why);
  all.reset();
  return false;
}

/// Receives the next part, of any child. Returns whether it is good, or nothing if a rank died.
std::optional<bool> receive_part(Part& all) {
  if (!wait_until([] { return heard.used < heard.offered; })) return {};
  const auto& next = heard.offers[heard.used++];
  const Rank rank = next.first;
  const Offer offer = next.second;
  if (offer.bytes == 0) return false;
  const auto size = static_cast<std::size_t>(offer.bytes);
  heard.come = 0;
  // Merging takes less than twice the part. A part that is merged in half is wrong, so test this first.
  Outcome done = attempt([&] {
    part_bytes().resize(size);
    expect_mail(rank, kPartBytes);
    need_memory(4 * size);
  });
  if (!send_value(rank, Mail::answer, done ? 1LL : 0LL)) return {};
  bool good = false, merging = false;
  if (done) {
    if (!wait_until([&] { return heard.come == size; })) return {};
    ++taken.messages;
    taken.bytes += static_cast<long long>(size);
    done = attempt([&] {
      profiles::Merged several;
      profiles::Contribution one;
      good = offer.merged != 0 ? profiles::Merged::deserialize(part_bytes(), several)
                               : profiles::Contribution::deserialize(part_bytes(), one);
      std::string().swap(part_bytes());
      if (!good) return;
      if (!all) all.emplace();
      merging = true;
      if (offer.merged != 0) all->merge(std::move(several));
      else all->add(one);
    });
  }
  if (done) return good;
  std::string().swap(part_bytes());
  warn("no part of rank %d%s: %s", rank, merging ? ", or of those before" : "", done.why);
  // A part that is merged in half is wrong.
  if (merging) {
    all.reset();
    add_own(all);
  }
  return false;
}

/// Merges the parts of the children with this rank's own. Returns whether all are in it, or nothing if a rank died.
std::optional<bool> gather_below(Part& all) {
  bool good = true;
  if (const Outcome mine = attempt([] { refresh_contribution(JobLock(), true); }); !mine) {
    warn("the profile lacks data of this rank: %s", mine.why);
    good = false;
  }
  if (job_world().place.children.empty() && job_world().place.parent >= 0) return good;
  good = add_own(all) && good;
  for (std::size_t left = job_world().place.children.size(); left > 0; --left) {
    const std::optional<bool> one = receive_part(all);
    if (!one) return {};
    good = good && *one;
  }
  say(2, "the profile: %lld parts of %lld bytes came from other ranks", taken.messages, taken.bytes);
  return good;
}

/// The ranks without a part, as text.
std::string missing_ranks(const Part& all) {
  std::vector<bool> there(static_cast<std::size_t>(job_world().size));
  if (all)
    for (const profiles::Member& one : all->members) there[static_cast<std::size_t>(one.rank)] = true;
  std::vector<core::Rank> missing;
  for (int r = 0; r < job_world().size; ++r)
    if (!there[static_cast<std::size_t>(r)]) missing.push_back(r);
  return missing.empty() ? "" : profiles::ranks_text(std::move(missing));
}

/// On rank 0. Returns whether the profile is written, with the parts of all ranks.
bool write_parts(Part& all, bool complete) {
  const char* where = job_output().spool.begun() ? "; the last snapshots of all ranks are in " : "";
  const char* folder = job_output().spool.begun() ? job_output().spool.directory().c_str() : "";
  if (!complete)
    attempt([&] {
      const std::string missing = missing_ranks(all);
      warn("%s %s could not send %s part of the profile%s%s", missing.empty() ? "some" : "ranks",
           missing.empty() ? "ranks" : missing.c_str(), missing.empty() ? "all of their" : "their", where, folder);
    });
  bool written = false;
  const Outcome done = attempt([&] {
    need_memory(kForProfile + 2 * static_cast<std::size_t>(taken.bytes));
    // Warnings of the merging above.
    {
      const JobLock lock;
      const std::vector<std::string>& texts = lock->mine.warnings;
      const std::size_t known = texts.size();
      take_warnings(lock);
      if (all)
        for (std::size_t i = known; i < texts.size(); ++i) all->warnings.push_back({job_world().rank, texts[i]});
    }
    if (!all || all->empty()) return;
    written = write_whole(*all);
  });
  if (!done) warn("cannot write '%s': %s%s%s", job_output().path.c_str(), done.why, where, folder);
  return written && complete;
}

/// Waits until no message of a tree can come any more. A tree whose rank has had no memory may stay open. All ranks are
/// at their end here, so a message needs a few milliseconds; with many more ranks than cores up to a second was seen.
void settle_trees() {
  constexpr Nanoseconds kSilence = 3'000'000'000;
  RankWait wait;
  Nanoseconds silent_since = now();
  while (trees_are_open()) {
    if (exchange_mail()) silent_since = now();
    else if (now() - silent_since > kSilence || !wait.again()) return;
  }
}

}  // namespace

Gathered gather_profile() noexcept {
  try_patterns([&] {
    for (CommState* s = JobLock()->states; s; s = s->next) {
      weigh_epoch(*s, job_clocks().common_now());
      end_last_epoch(*s);
    }
  });
  if (!meet_ranks()) return Gathered::cut;
  try_patterns([&] {
    settle_trees();
    need_memory(kForDecisions);
    for (CommState* s = JobLock()->states; s; s = s->next) {
      note_outcome(*s);
      retain_log(*s);
      s->log(JobLock()).records.clear();
    }
    retain_open_logs();
  });
  drop_mail_that_does_not_fit();
  say(2, "trees of communicators that are gone: %zu", trees_left());
  std::string learned;
  {
    const JobLock lock;
    if (lock->retained_missed > 0)
      warn("%zu calls have no arrival patterns: the logs kept until the end were full", lock->retained_missed);
    if (lock->missing_calls > 0)
      warn("%llu calls have no arrival patterns: %s", static_cast<unsigned long long>(lock->missing_calls),
           patterns_lacked_memory.load(std::memory_order_relaxed) ? "this rank was out of memory"
                                                                  : "the logs of some ranks are missing");
    if (lock->different_calls > 1)
      warn("%llu calls have no arrival patterns: the program's ranks made different calls",
           static_cast<unsigned long long>(lock->different_calls));
    job_output().profile_gathered = true;
    attempt([&] { learned = lock->mine.learned; });
  }
  Part all;
  const std::optional<bool> below = gather_below(all);
  std::optional<bool> good = below;
  if (job_world().rank == 0) {
    good = write_parts(all, below == true);
    if (!below) return Gathered::cut;
  } else {
    // After a death in the subtree, the others' parts are still good.
    Offer offer;
    const bool made = make_part(all, offer);
    const std::optional<bool> sent = send_part(offer, job_world().place.parent);
    if (!sent || !below) return Gathered::cut;
    good = made && *sent && *below;
  }
  all.reset();
  if (job_world().rank == 0) keep_history(learned);
  // The snapshots stay until the profile is written. Rank 0 may take long for a large profile.
  return agree(*good);
}

}  // namespace latecomer::shim
