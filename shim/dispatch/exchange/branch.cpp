// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives the messages of the trees, and adds what they say to the profile and the learner.
#include "shim/dispatch/exchange/branch.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/patience.hpp"
#include "shim/state/post.hpp"

namespace latecomer::shim {
namespace {

/// The nodes of this process by the identity of their communicators.
struct Branches {
  std::map<std::uint64_t, std::unique_ptr<Branch>> all;
  /// Messages of communicators of which this rank has no node yet: a child may be ahead of it.
  std::vector<std::vector<char>> early;
  std::vector<char> message;  ///< work space
  std::recursive_mutex mutex;
};

Branches& branches() {
  static auto& made = *new Branches;  // never destroyed: callbacks may come after exit handlers
  return made;
}

/// Locks the nodes if several threads may be inside MPI. `wait`: else it gives up if another thread has them.
class BranchLock {
 public:
  explicit BranchLock(bool wait = true) : lock_(branches().mutex, std::defer_lock) {
    if (!job().threads) return;
    if (wait) lock_.lock();
    else taken_ = !lock_.try_lock();
  }
  bool taken() const { return taken_; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool taken_ = false;
};

void take(std::span<const char> message) {
  Branches& b = branches();
  const auto found = b.all.find(profiles::DigestNode::identity_of(message));
  if (found == b.all.end()) {
    // Derived: a communicator has at most 33 neighbours here, and few are identified at the same time. What does not
    // fit belongs to communicators that are gone.
    constexpr std::size_t kMostEarly = 128;
    if (b.early.size() >= kMostEarly) b.early.erase(b.early.begin());
    b.early.emplace_back(message.begin(), message.end());
    return;
  }
  Branch& branch = *found->second;
  branch.node.take(message, branch);
  if (!branch.state && branch.node.idle()) b.all.erase(found);
}

/// Takes one message, if one has arrived and there is memory for it.
bool take_one() {
  Branches& b = branches();
  const int tag = tag_of(kWorldContext, kDigestChannel);
  int there = 0;
  MPI_Status status;
  if (PMPI_Iprobe(MPI_ANY_SOURCE, tag, job().comm, &there, &status) != MPI_SUCCESS || !there) return false;
  int size = 0;
  PMPI_Get_count(&status, MPI_BYTE, &size);
  if (!try_patterns([&] { b.message.resize(static_cast<std::size_t>(std::max(size, 0))); })) return false;
  if (PMPI_Recv(b.message.data(), size, MPI_BYTE, status.MPI_SOURCE, tag, job().comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  try_patterns([&] { take(b.message); });
  return true;
}

}  // namespace

Branch::Branch(CommState& of)
    : state(&of),
      node(of.identity, of.rank, of.size, of.place, job().policy.record_arrivals),
      own_world(of.world[static_cast<std::size_t>(of.rank)]) {
  const auto add = [&](Rank r) { peers.emplace_back(r, of.world[static_cast<std::size_t>(r)]); };
  if (of.place.parent >= 0) add(of.place.parent);
  std::ranges::for_each(of.place.children, add);
  if (of.rank == 0) world = of.world;
}

bool Branch::send(Rank to, std::span<const char> message) {
  const auto peer = std::ranges::find(peers, to, &std::pair<Rank, Rank>::first);
  // What goes up may be refused, since a rank may be far ahead of its parent. What goes down answers what came up.
  const bool up = to == node.place().parent;
  if (post(peer->second, tag_of(kWorldContext, kDigestChannel), message.data(), message.size(), nullptr, 0, up))
    return true;
  warn("rank %d does not take the logs of its calls: some arrival patterns are lost", peer->second);
  return false;
}

profiles::CallSums Branch::own(const profiles::CallRecord& record, const profiles::CallFacts& facts,
                               std::uint32_t stands_for) {
  const JobLock lock;
  return job().mine.patterns.add_own(record, facts, node.rank(), own_world, node.size(), stands_for);
}

void Branch::whole(std::uint64_t n, const profiles::CallDigest& call, const profiles::CallFacts& facts,
                   const profiles::CallSampled& sampled, std::uint32_t stands_for) {
  Job& j = job();
  {
    const JobLock lock;
    profiles::SiteBook& book = j.mine.patterns;
    if (!group) group = book.groups.of(world);
    const profiles::Members members{world, *group};
    book.add_call(call, members, facts, j.policy.network_given ? &j.policy.network : nullptr);
    if (!sampled.arrivals.empty()) {
      book.add_scan(call, members, sampled.arrivals, stands_for);
      if (book.records_arrivals())
        book.record({{call.site, call.op, node.size()},
                     members.group,
                     call.root,
                     call.bytes,
                     call.algorithm,
                     call.kind == core::CallKind::blocking},
                    sampled.arrivals, sampled.exits);
    }
  }
  if (!state || !state->leadership || state->broken) return;
  if (!try_patterns([&] { learn(*state->leadership, n, call, facts, sampled); })) state->broken = true;
}

void Branch::summed(const profiles::CallDigest& call, const profiles::CallFacts& facts,
                    const profiles::CallSums& sums) {
  const JobLock lock;
  if (group) job().mine.patterns.add_awaited(call, {world, *group}, facts, sums);
}

void Branch::missing(std::uint64_t calls) {
  const JobLock lock;
  job().missing_calls += calls;
}

void Branch::different(std::uint64_t n, const profiles::CallDigest& call) {
  {
    const JobLock lock;
    if (job().different_calls++ > 0) return;
  }
  const auto text = [&](Rank rank, core::Collective op, std::int32_t root) {
    return "rank " + std::to_string(world[static_cast<std::size_t>(rank)]) + " " + std::string(core::name_of(op)) +
           (root >= 0 ? " to or from root " + std::to_string(root) : "");
  };
  std::string one = text(call.maker, call.op, call.root), two = text(call.other, call.other_op, call.other_root);
  if (call.other < call.maker) std::swap(one, two);
  warn("the program makes different calls as call %llu on %s: %s, %s; such calls have no arrival patterns",
       static_cast<unsigned long long>(n),
       node.identity() == profiles::kWorldIdentity
           ? "MPI_COMM_WORLD"
           : ("a communicator of " + std::to_string(node.size()) + " ranks").c_str(),
       one.c_str(), two.c_str());
}

void Branch::waited(Nanoseconds sum) {
  if (!state || !state->leadership) return;
  const LearnerLock lock(*state->leadership);
  state->leadership->waited += sum;
}

void grow(CommState& state) {
  const BranchLock lock;
  Branches& b = branches();
  const bool made = try_patterns([&] {
    state.branch = b.all.insert_or_assign(state.identity, std::make_unique<Branch>(state)).first->second.get();
  });
  for (auto at = b.early.begin(); at != b.early.end();) {
    if (profiles::DigestNode::identity_of(*at) == state.identity) {
      if (made) try_patterns([&] { state.branch->node.take(*at, *state.branch); });
      at = b.early.erase(at);
    } else {
      ++at;
    }
  }
}

void pass_log(CommState& state, std::uint64_t first, std::span<const profiles::CallRecord> log, std::uint64_t next) {
  const BranchLock lock;
  Branch& branch = *state.branch;
  branch.next = next;
  branch.node.end_epoch(first, log, job().clocks.domains == 1 ? 0 : job().clocks.uncertainty_now(), state.waited,
                        branch);
}

void flush_digests(CommState& state) {
  const BranchLock lock;
  try_patterns([&] { state.branch->node.flush(*state.branch); });
}

bool expects_digests(const CommState& state) {
  const BranchLock lock;
  return state.branch->node.expects();
}

void pump_digests() {
  if (!job().together) return;
  const BranchLock lock(false);
  if (lock.taken()) return;
  // Derived: no more messages than all children and the parent send in an epoch.
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce && take_one(); ++i) {
  }
}

void settle_digests(const std::function<bool()>& goes_on) {
  const BranchLock lock;
  Branches& b = branches();
  // A rank that has had an error sends nothing more. All ranks are at their end here, so a message needs a few
  // milliseconds; with many more ranks than cores up to a second was seen.
  constexpr Nanoseconds kSilence = 3'000'000'000;
  const auto open = [&] {
    return std::ranges::any_of(b.all, [](const auto& one) {
      try_patterns([&] { one.second->node.flush(*one.second); });
      return !one.second->node.idle();
    });
  };
  Nanoseconds silent_since = now();
  while (open()) {
    if (take_one()) {
      silent_since = now();
      continue;
    }
    sweep_outgoing();
    if (now() - silent_since > kSilence || !goes_on()) return;
  }
}

void outlive(CommState& state) {
  if (!state.branch) return;
  const BranchLock lock;
  Branch& branch = *std::exchange(state.branch, nullptr);
  branch.state = nullptr;
  try_patterns([&] { branch.node.flush(branch); });
  // After an error this rank hears nothing more of the communicator.
  if (state.broken || branch.node.idle()) branches().all.erase(state.identity);
}

std::unique_lock<std::recursive_mutex> add_open_logs(std::vector<profiles::LiveLog>& logs, bool last) {
  std::unique_lock lock(branches().mutex, std::try_to_lock);
  if (!lock) return lock;
  for (const auto& entry : branches().all) {
    const profiles::DigestNode& node = entry.second->node;
    const auto add = [&](std::uint64_t first, std::span<const profiles::CallRecord> records, bool counted) {
      logs.push_back({entry.first, node.size(), node.rank(), entry.second->own_world, first, records, counted});
    };
    if (!last || !node.idle()) node.each_open(add);
    if (node.place().parent < 0) add(node.counted_until(entry.second->next), {}, false);
  }
  return lock;
}

}  // namespace latecomer::shim
