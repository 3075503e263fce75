// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives the messages of the trees, and adds their contents to the profile and the learner.
#include "shim/exchange/branch.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "profiles/format/decisions.hpp"
#include "shim/exchange/mail.hpp"
#include "shim/executor/executor.hpp"
#include "shim/guard.hpp"
#include "shim/log.hpp"
#include "shim/state/clocks.hpp"
#include "shim/state/communicator.hpp"
#include "shim/state/cost.hpp"
#include "shim/state/rules.hpp"
#include "shim/state/shared.hpp"

namespace latecomer::shim {
namespace {

/// The nodes of this process by the identity of their communicators. Under the mail's lock.
struct Branches {
  std::map<std::uint64_t, std::unique_ptr<Branch>> all;
  /// Messages of communicators that this rank is about to identify: a neighbour has left the agreement before it.
  std::map<std::uint64_t, std::vector<std::pair<Mail, std::vector<char>>>> early;
};

Branches& branches() {
  static auto& made = *new Branches;  // never destroyed: callbacks may come after exit handlers
  return made;
}

/// In front of the last message of a node, as DigestNode has it in front of its own.
struct EndHead {
  std::uint64_t identity;
  Rank from;
};

/// In front of a message of any kind of tree.
std::uint64_t tree_of(std::span<const char> message) {
  std::uint64_t identity = 0;
  if (message.size() >= sizeof identity) std::memcpy(&identity, message.data(), sizeof identity);
  return identity;
}

/// Passes an announcement on and keeps it. All ranks wait for the announcement, so use the reserve of memory.
void keep_announcement(Branch& branch, std::span<const char> message) {
  if (branch.ended) return;
  for (const Rank child : branch.node.place().children)
    with_reserve([&] { put_mail(branch.world_of(child), Mail::announcement, message); });
  with_reserve([&] { branch.announcement.assign(message.begin(), message.end()); });
}

void read_by_branch(Branch& branch, Mail kind, std::span<const char> message) {
  if (kind == Mail::announcement) return keep_announcement(branch, message);
  try_patterns([&] {
    EndHead head{};
    if (kind == Mail::digest) {
      branch.node.take_message(message, branch);
    } else if (message.size() == sizeof head) {
      std::memcpy(&head, message.data(), sizeof head);
      branch.take_last_message(head.from);
    }
  });
}

void read_for_tree(Mail kind, std::span<const char> message) {
  Branches& b = branches();
  const std::uint64_t identity = tree_of(message);
  const auto found = b.all.find(identity);
  if (found == b.all.end()) {
    with_reserve([&] { b.early[identity].emplace_back(kind, std::vector<char>(message.begin(), message.end())); });
    return;
  }
  Branch& branch = *found->second;
  read_by_branch(branch, kind, message);
  branch.say_end();
  if (!branch.state && branch.is_over()) b.all.erase(found);
}

}  // namespace

void read_of_tree(Mail kind, std::span<const char> message) noexcept {
  if (kind != Mail::announcement) {
    try_patterns([&] { read_for_tree(kind, message); });
  } else if (!attempt([&] { read_for_tree(kind, message); })) {
    no_memory_left("a plan");
  }
}

Branch::Branch(CommState& of)
    : state(&of),
      node(of.identity, of.rank, of.size, of.tree.place, job_rules().policy.record_arrivals),
      own_world(of.world[static_cast<std::size_t>(of.rank)]) {
  const auto add = [&](Rank r) { peers.emplace_back(r, of.world[static_cast<std::size_t>(r)]); };
  if (of.tree.place.parent >= 0) add(of.tree.place.parent);
  std::ranges::for_each(of.tree.place.children, add);
  if (of.rank == 0) world = of.world;
  if (job_rules().samples_epochs) node.let_rest();
}

Rank Branch::world_of(Rank peer) const { return std::ranges::find(peers, peer, &std::pair<Rank, Rank>::first)->second; }

bool Branch::send_message(Rank to, std::span<const char> message) {
  // A rank may be far ahead of its parent, which takes 16 epochs of a child that is ahead. Derived: these take 200 KiB.
  // What goes down answers what came up.
  constexpr std::size_t kMostWaiting = 512 << 10;
  const Rank peer = world_of(to);
  if (to == node.place().parent && mail_waiting(peer) > kMostWaiting) {
    warn("rank %d does not take the logs of its calls: some arrival patterns are lost", peer);
    return false;
  }
  put_mail(peer, Mail::digest, message);
  return true;
}

void Branch::tell_end(Rank to) {
  const EndHead head{node.identity(), node.rank()};
  with_reserve([&] { put_mail(world_of(to), Mail::end, {reinterpret_cast<const char*>(&head), sizeof head}); });
}

void Branch::take_last_message(Rank from) {
  if (from == node.place().parent) {
    ended_parent = true;
    node.give_up();
    return;
  }
  const bool all = ++ended_children == node.place().children.size();
  if (broken) return;
  try {
    node.end_child(from, *this);
    if (all) node.end_children(*this);
  } catch (...) {
    broken = true;
    node.give_up();
    throw;
  }
}

void Branch::say_end() {
  if (!ended && !ended_parent) return;
  const bool children_ended = ended_children == node.place().children.size(),
             done = children_ended && ended && (node.idle() || broken || ended_parent);
  if (done && !is_leader() && !std::exchange(told_parent, true)) tell_end(node.place().parent);
  if (((is_leader() && done) || ended_parent || (ended && broken)) && !std::exchange(told_children, true))
    for (const Rank child : node.place().children) tell_end(child);
}

bool Branch::is_over() const {
  return ended && ended_children == node.place().children.size() && told_children &&
         (is_leader() || (ended_parent && told_parent));
}

profiles::CallSums Branch::apply_facts(const profiles::CallRecord& record, const profiles::CallFacts& facts,
                                       const profiles::StandsFor& stands_for) {
  const JobLock lock;
  return lock->mine.patterns.add_own(record, facts, node.rank(), own_world, node.size(), stands_for);
}

void Branch::take_call(std::uint64_t n, const profiles::CallDigest& call, const profiles::CallFacts& facts,
                       const profiles::CallSampled& sampled, const profiles::StandsFor& stands_for) {
  {
    const JobLock lock;
    profiles::SiteBook& book = lock->mine.patterns;
    if (!group) group = book.groups.of(world);
    const profiles::Members members{world, *group};
    book.add_call(call, members, facts, job_rules().policy.network_given ? &job_rules().policy.network : nullptr,
                  stands_for);
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
  if (!state || !state->tree.leadership || state->tree.broken) return;
  if (!try_patterns([&] { learn_from_call(*state->tree.leadership, n, call, facts, sampled); }))
    state->tree.broken = true;
}

void Branch::take_sums(const profiles::CallDigest& call, const profiles::CallFacts& facts,
                       const profiles::CallSums& sums, const profiles::StandsFor& stands_for) {
  const JobLock lock;
  if (group) lock->mine.patterns.add_awaited(call, {world, *group}, facts, sums, stands_for);
}

void Branch::count_missing(std::uint64_t calls) {
  const JobLock lock;
  lock->missing_calls += calls;
}

void Branch::report_difference(std::uint64_t n, const profiles::CallDigest& call) {
  {
    const JobLock lock;
    if (lock->different_calls++ > 0) return;
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

void Branch::add_wait(Nanoseconds sum) {
  if (!state || !state->tree.leadership) return;
  const LearnerLock lock(*state->tree.leadership);
  state->tree.leadership->waited += sum;
}

void make_branch(CommState& state) {
  const MailLock lock;
  Branches& b = branches();
  const auto made = [&] {
    const auto expect = [&](Rank r) { expect_mail(state.world[static_cast<std::size_t>(r)]); };
    if (state.tree.place.parent >= 0) expect(state.tree.place.parent);
    std::ranges::for_each(state.tree.place.children, expect);
    state.tree.branch = b.all.insert_or_assign(state.identity, std::make_unique<Branch>(state)).first->second.get();
  };
  if (!try_patterns([&] { with_reserve(made); })) {
    if (job_rules().announces) no_memory_left("a communicator");  // its plans would not arrive
    return;
  }
  const auto early = b.early.extract(state.identity);
  if (early.empty()) return;
  for (const auto& one : early.mapped()) read_of_tree(one.first, one.second);
}

void pass_log(CommState& state, std::uint64_t first, std::span<const profiles::CallRecord> log, std::uint64_t next) {
  const MailLock lock;
  Branch& branch = *state.tree.branch;
  branch.next = next;
  branch.node.end_epoch(first, log,
                        {.uncertainty = job_clocks().domains == 1 ? 0 : job_clocks().uncertainty_now(),
                         .waited = state.tree.waited,
                         .price = price_of_log(),
                         .level = state.choice.level,
                         .length = state.choice.length},
                        branch);
}

Nanoseconds agree_on_price(CommState& state, Nanoseconds own) {
  if (!state.tree.branch) return own;
  const MailLock lock;
  Branch& branch = *state.tree.branch;
  if (state.rank == 0) try_patterns([&] { branch.node.tell_price(std::max(own, branch.node.price()), branch); });
  return std::max(own, branch.node.price());
}

void note_left_out(CommState& state, Nanoseconds length) {
  if (!state.tree.branch) return;
  const MailLock lock;
  state.tree.branch->node.leave_out(length);
}

void flush_digests(CommState& state) {
  const MailLock lock;
  try_patterns([&] { state.tree.branch->node.flush_parts(*state.tree.branch); });
}

bool expects_mail(const CommState& state) {
  const MailLock lock;
  return state.tree.branch->node.expects() || mail_waits();
}

void announce_below(const CommState& state, std::span<const char> announcement) {
  const MailLock lock;
  const std::span head(reinterpret_cast<const char*>(&state.identity), sizeof state.identity);
  for (const Rank child : state.tree.place.children)
    with_reserve([&] { put_mail(state.tree.branch->world_of(child), Mail::announcement, head, announcement); });
}

bool take_announcement(CommState& state, std::vector<char>& out) {
  const MailLock lock;
  if (state.tree.branch->announcement.empty()) return false;
  out.swap(state.tree.branch->announcement);
  state.tree.branch->announcement.clear();
  return true;
}

void end_branch(CommState& state) {
  if (!state.tree.branch) return;
  const MailLock lock;
  Branch& branch = *state.tree.branch;
  branch.ended = true;
  branch.broken = state.tree.broken;
  if (branch.broken) branch.node.give_up();  // this rank's logs are not whole
  try_patterns([&] { branch.node.end_calls(branch); });
  branch.say_end();
}

void detach_branch(CommState& state) {
  if (!state.tree.branch) return;
  const MailLock lock;
  Branch& branch = *std::exchange(state.tree.branch, nullptr);
  branch.state = nullptr;
  if (branch.is_over()) branches().all.erase(state.identity);
}

bool trees_are_open() {
  const MailLock lock;
  return !std::ranges::all_of(branches().all, [](const auto& one) { return one.second->is_over(); });
}

std::size_t trees_left() {
  const MailLock lock;
  return static_cast<std::size_t>(
      std::ranges::count_if(branches().all, [](const auto& one) { return !one.second->state; }));
}

MailLock add_open_logs(std::vector<profiles::LiveLog>& logs, bool last) {
  MailLock lock(false);
  if (lock.taken()) return lock;
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
