// SPDX-License-Identifier: BSD-3-Clause
// Tests the mailbox over a wire that is as bad as MPI allows: a piece arrives only while its sender is inside MPI. Then
// announcements come down a tree over it, and ranks that wait for each other's programs between their calls never hang.
#include "core/agreement/mailbox.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/agreement/agreement.hpp"
#include "core/agreement/tree.hpp"
#include "core/base/text.hpp"

using namespace latecomer::core;

namespace {
/// Larger allocations fail.
std::size_t largest_allocation = SIZE_MAX;
}  // namespace

// Not inlined: the compiler would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const out = bytes > largest_allocation ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (!out) throw std::bad_alloc();
  return out;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes > largest_allocation ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

/// Processes with a mailbox each. What a process sends stays with it until it is inside MPI: then some of it arrives.
class Processes {
 public:
  Processes(std::size_t size, SplitMix64& random) : random_(random) {
    for (std::size_t r = 0; r < size; ++r) all_.push_back(std::make_unique<One>(*this, static_cast<Rank>(r)));
  }

  struct One final : Mailbox::Wire, Mailbox::Reader {
    One(Processes& of_, Rank r) : of(of_), rank(r) {}
    bool send_piece(Rank to, std::span<const char> piece) override {
      REQUIRE(piece.size() <= Mailbox::kPiece);
      if (of.random_.below(50) == 0) return false;
      const auto counted = static_cast<std::uint32_t>(piece.size() > sizeof(std::uint32_t));
      of.most_under_way = std::max(of.most_under_way, box.under_way(to) + counted);
      unsent[to].emplace_back(piece.begin(), piece.end());
      ++of.pieces;
      return true;
    }
    void read_message(Rank from, std::span<const char> message) noexcept override { of.read(*this, from, message); }

    Processes& of;
    Rank rank;
    Mailbox box;
    std::map<Rank, std::deque<std::string>> unsent;   ///< in its MPI
    std::map<Rank, std::deque<std::string>> arrived;  ///< by source
    std::map<Rank, std::vector<std::string>> got;
  };

  /// What a process does in a call: its MPI moves what it has, and its mailbox takes and sends.
  void pump(Rank r) {
    One& me = *all_[static_cast<std::size_t>(r)];
    for (auto& [to, queue] : me.unsent)
      for (auto n = random_.below(6); n > 0 && !queue.empty(); --n) {
        all_[static_cast<std::size_t>(to)]->arrived[r].push_back(std::move(queue.front()));
        queue.pop_front();
      }
    for (auto& [from, queue] : me.arrived)
      for (; !queue.empty(); queue.pop_front()) me.box.take_piece(from, queue.front(), me);
    me.box.send_pieces(me);
  }
  One& operator[](Rank r) { return *all_[static_cast<std::size_t>(r)]; }

  std::uint32_t most_under_way = 0;
  std::uint64_t pieces = 0;
  std::function<void(One&, Rank, std::span<const char>)> answer;

 private:
  void read(One& me, Rank from, std::span<const char> message) {
    me.got[from].emplace_back(message.begin() + 1, message.end());
    if (answer) answer(me, from, message);
  }
  SplitMix64& random_;
  std::vector<std::unique_ptr<One>> all_;
};

std::string random_message(SplitMix64& random) {
  const std::size_t sizes[] = {0, 1, 40, 900, 956, 960, 5'000, 60'000};
  std::string out(static_cast<std::size_t>(random.below(sizes[random.below(8)] + 1)), ' ');
  for (char& c : out) c = static_cast<char>(random.below(256));
  return out;
}

}  // namespace

TEST_CASE("mailbox: messages arrive whole and in order, with few pieces under way", "[mailbox]") {
  SplitMix64 random(3);
  for (int round = 0; round < 20; ++round) {
    const auto size = static_cast<Rank>(2 + random.below(5));
    Processes processes(static_cast<std::size_t>(size), random);
    std::map<std::pair<Rank, Rank>, std::vector<std::string>> sent;
    const auto any = [&] { return static_cast<Rank>(random.below(static_cast<std::uint64_t>(size))); };
    for (int step = 0; step < 500; ++step) {
      const Rank from = any(), to = any();
      if (from != to) {
        const std::string message = random_message(random);
        sent[{from, to}].push_back(message);
        processes[from].box.put_message(to, 'm', std::span(message).first(message.size() / 3),
                                        std::span(message).subspan(message.size() / 3));
      }
      processes.pump(any());
    }
    for (int i = 0; i < 3'000; ++i)
      for (Rank r = 0; r < size; ++r) processes.pump(r);
    for (const auto& [way, messages] : sent) REQUIRE(processes[way.second].got[way.first] == messages);
    for (Rank r = 0; r < size; ++r) REQUIRE_FALSE(processes[r].box.has_waiting_bytes());
    REQUIRE(processes.most_under_way <= Mailbox::kWindow);
  }
}

TEST_CASE("mailbox: what a peer does not take waits here, and small messages share a piece", "[mailbox]") {
  SplitMix64 random(4);
  Processes processes(2, random);
  const std::string small(20, 'x');
  for (int i = 0; i < 10'000; ++i) {
    processes[0].box.put_message(1, 'm', small, {});
    processes[0].box.send_pieces(processes[0]);  // the other one is not inside MPI
  }
  CHECK(processes.pieces == Mailbox::kWindow);
  CHECK(processes[0].box.waiting_bytes(1) > 10'000 * small.size() - Mailbox::kWindow * Mailbox::kPiece);
  while (processes[1].got[0].size() < 10'000)
    for (const Rank r : {0, 1}) processes.pump(r);
  CHECK(processes.pieces < 10'000 / 20);
}

TEST_CASE("mailbox: without memory for a long message, the messages behind it arrive at the end of the job",
          "[mailbox]") {
  SplitMix64 random(6);
  for (const bool began_before : {false, true}) {
    Processes processes(2, random);
    const std::string small(20, 'x'), within(16 << 10, 'w'), too_long(100'000, 'l'), longest(200'000, 'l');
    const auto put = [&](const std::string& message) { processes[0].box.put_message(1, 'm', message, {}); };
    const auto pump = [&] {
      for (int i = 0; i < 3'000; ++i)
        for (const Rank r : {0, 1}) try {
            processes.pump(r);
          } catch (const std::bad_alloc&) {
          }
    };
    processes[1].box.expect_peer(0, within.size());
    processes[0].box.expect_peer(1);
    for (const std::string* message : {&small, &too_long, &small, &longest, &within, &small}) put(*message);
    if (began_before)  // a part of the long message is here when the memory ends
      for (int i = 0; i < 3; ++i)
        for (const Rank r : {0, 1}) processes.pump(r);
    largest_allocation = 32 << 10;
    pump();
    const bool waits = processes[1].got[0] == std::vector{small};
    processes[1].box.drop_messages_that_do_not_fit();
    pump();
    largest_allocation = SIZE_MAX;
    CHECK(waits);
    CHECK(processes[1].got[0] == std::vector{small, small, within, small});
    CHECK_FALSE(processes[0].box.has_waiting_bytes());
    put(longest);
    pump();
    CHECK(processes[1].got[0].back() == longest);
  }
}

TEST_CASE("mailbox: damaged pieces do no harm", "[mailbox]") {
  SplitMix64 random(5);
  Processes processes(2, random);
  for (const std::size_t size : {0, 1, 3}) processes[0].box.take_piece(1, std::string(size, '\x7f'), processes[0]);
  std::string ahead(4, '\x7f');  // says that it has taken pieces that were not sent
  processes[0].box.take_piece(1, ahead, processes[0]);
  CHECK(processes[0].box.under_way(1) == 0);
  CHECK(processes[0].got[1].empty());
}

namespace {

enum class Variant { sound, leaves_alone };

/// Ranks of a tree make calls that depend on all of them. Plans of many pieces come down the tree. After each call a
/// rank leaves MPI, and comes back only when all ranks have left this call: the program makes them wait for each other
/// by other means than MPI. Returns the number of plans that came into force, or -1 if all ranks wait for ever.
int announcements(const std::vector<int>& hosts, int calls, SplitMix64& random, Variant variant) {
  const auto size = static_cast<Rank>(hosts.size());
  const std::vector<TreePlace> places = places_in_tree(hosts);
  const auto place = [&](Rank r) -> const TreePlace& { return places[static_cast<std::size_t>(r)]; };
  Processes processes(hosts.size(), random);
  processes.answer = [&](Processes::One& me, Rank, std::span<const char> message) {
    for (const Rank child : place(me.rank).children) me.box.put_message(child, 'p', message.subspan(1), {});
  };
  struct State {
    Sequence sequence;
    std::size_t at = 0, heard = 0;
    enum { outside, inside, meets, has_it } where = outside;
  };
  std::vector<State> ranks(hosts.size());
  std::vector<Rank> entered(static_cast<std::size_t>(calls)), left(entered), met(entered);
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 8;
  std::size_t announced = 0;
  int in_force = 0, idle = 0;
  const auto has = [&](Rank r, std::size_t number) {
    return (r == 0 ? announced : processes[r].got[place(r).parent].size()) >= number;
  };
  for (auto to_leave = static_cast<std::int64_t>(size) * calls; to_leave > 0;) {
    const auto me = static_cast<Rank>(random.below(static_cast<std::uint64_t>(size)));
    State& r = ranks[static_cast<std::size_t>(me)];
    if (++idle > 3'000 * size) return -1;
    if (r.at == entered.size()) continue;
    if (r.where == State::outside) {
      if (r.at > 0 && left[r.at - 1] < size) continue;
      const auto before = r.sequence.begin_call(s, true, true);
      if (before.hear) {
        REQUIRE(has(me, ++r.heard));
        in_force += me == 0;
        r.sequence.set_epoch_length(4);
      }
      if (before.announce && me == 0) {
        const std::string plan(1 + random.below(40'000), 'p');
        for (const Rank child : place(0).children) processes[0].box.put_message(child, 'p', plan, {});
        ++announced;
      }
      r.where = State::inside;
      ++entered[r.at];
      idle = 0;
    }
    processes.pump(me);
    if (r.where == State::inside) {
      if (entered[r.at] < size) continue;
      if (r.sequence.end_call(true).meet) r.where = State::meets;
    }
    if (r.where == State::meets) {
      if (!has(me, r.heard + 1)) continue;
      r.where = State::has_it;
      ++met[r.at];
      idle = 0;
    }
    if (r.where == State::has_it && variant == Variant::sound && met[r.at] < size) continue;
    r.where = State::outside;
    ++left[r.at++];
    --to_leave;
    idle = 0;
  }
  return in_force;
}

}  // namespace

TEST_CASE("mailbox: plans come down a tree whose ranks wait for each other outside MPI", "[mailbox]") {
  SplitMix64 random(6);
  for (const int size : {2, 5, 33, 40, 70}) {
    std::vector<int> hosts(static_cast<std::size_t>(size));
    for (int& host : hosts) host = static_cast<int>(random.below(4));
    CHECK(announcements(hosts, 60, random, Variant::sound) == 7);
  }
}

TEST_CASE("mailbox: a rank that leaves before all others have the plan is caught", "[mailbox]") {
  SplitMix64 random(7);
  CHECK(announcements(std::vector<int>(40), 60, random, Variant::leaves_alone) == -1);
}
