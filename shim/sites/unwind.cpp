// SPDX-License-Identifier: BSD-3-Clause
// The way from an intercepted call outwards to its site.
#include "shim/sites/parts.hpp"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text.hpp"

namespace latecomer::shim {

bool one_frame = true;
int frames_per_site = 1;

namespace {

constexpr int kMostFrames = 16, kStack = 48;
bool python = false;

// Unwinding costs libunwind 20 ns per frame from its cache and a system call or two without. What it finds is the
// same for a return address every time: the caller's frame ends a fixed distance from rsp or from rbp, and
// rbp was saved a fixed distance from there or not at all. So the rule is asked of libunwind once per return
// address, and followed from then on.

/// Where the frame that a return address belongs to ends. Packed into one word beside its key.
struct Rule {
  enum Base : std::uint8_t { from_rsp, from_rbp, outermost, irregular };
  Base base = irregular;
  bool mpi = false;         ///< the frame is MPI's own
  std::int32_t length = 0;  ///< bytes from the base to the end of the frame, which the return address precedes
  std::int32_t saved = 0;   ///< rbp was saved so many bytes before the end; 0: not saved

  static constexpr std::int32_t kMost = (1 << 28) - 1;
  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(base) | std::uint64_t{mpi} << 2 | std::uint64_t{1} << 3 |
           static_cast<std::uint64_t>(length + kMost) << 4 | static_cast<std::uint64_t>(saved) << 34;
  }
  static Rule unpack(std::uint64_t w) {
    return {static_cast<Base>(w & 3), (w & 4) != 0, static_cast<std::int32_t>(w >> 4 & ((1u << 30) - 1)) - kMost,
            static_cast<std::int32_t>(w >> 34)};
  }
};
constexpr int kRuleBits = 13;
constexpr std::size_t kRules = std::size_t{1} << kRuleBits;
struct RuleSlot {
  std::atomic<std::uint64_t> address{0}, rule{0};
};
constinit RuleSlot rules[kRules];
std::size_t rules_used = 0;

/// The packed rule of a return address; 0 if it is not known.
std::uint64_t rule_of(std::uintptr_t address) {
  for (std::size_t i = address_place(address, kRuleBits);; i = (i + 1) % kRules) {
    const std::uint64_t there = rules[i].address.load(std::memory_order_acquire);
    if (there == address) [[likely]]
      return rules[i].rule.load(std::memory_order_relaxed);
    if (there == 0) return 0;
  }
}

/// The caller holds the mutex. When the table is full nothing more is learnt.
void keep_rule(std::uintptr_t address, const Rule& rule) {
  if (rules_used > kRules * 3 / 4) return;
  std::size_t i = address_place(address, kRuleBits);
  while (rules[i].address.load(std::memory_order_relaxed) != 0) {
    if (rules[i].address.load(std::memory_order_relaxed) == address) break;
    i = (i + 1) % kRules;
  }
  if (rules[i].address.load(std::memory_order_relaxed) == 0) ++rules_used;
  rules[i].rule.store(rule.packed(), std::memory_order_relaxed);
  rules[i].address.store(address, std::memory_order_release);
}

/// The end of this thread's stack: rules are followed inside it only, whatever they say.
std::uintptr_t stack_end() {
  thread_local std::uintptr_t end = 0;
  if (end == 0) [[unlikely]] {
    end = 1;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* low = nullptr;
      std::size_t size = 0;
      if (pthread_attr_getstack(&attributes, &low, &size) == 0) end = reinterpret_cast<std::uintptr_t>(low) + size;
      pthread_attr_destroy(&attributes);
    }
  }
  return end;
}

/// Where a walk along the stack has come to.
struct Place {
  std::uintptr_t address, rsp, rbp;
};
/// From one return address to the next. False where what the rule says cannot be.
bool follow(const Rule& rule, std::uintptr_t limit, Place& at) {
  const std::uintptr_t end = (rule.base == Rule::from_rsp ? at.rsp : at.rbp) +
                             static_cast<std::uintptr_t>(static_cast<std::intptr_t>(rule.length));
  if (end <= at.rsp || end > limit || end % 8 != 0 || static_cast<std::uintptr_t>(rule.saved) > end - at.rsp)
    return false;
  at.address = *reinterpret_cast<const std::uintptr_t*>(end - 8);
  if (rule.saved != 0) at.rbp = *reinterpret_cast<const std::uintptr_t*>(end - static_cast<std::uintptr_t>(rule.saved));
  at.rsp = end;
  return true;
}
Place first_place(std::uintptr_t from, std::uintptr_t frame) {
  return {from, frame + 16, *reinterpret_cast<const std::uintptr_t*>(frame)};
}

/// The way from a return address outwards, as rules lead.
struct Walk {
  int count = -1;  ///< frames outside MPI, at most `frames_per_site`; -1: a rule is missing
  std::uintptr_t chosen[kMostFrames];
  int steps = 0;
  Rule rule[kStack];  ///< of each step, and the return address that it led to
  std::uintptr_t address[kStack];
};

Walk walk_by_rules(std::uintptr_t from, std::uintptr_t frame) {
  Walk out;
  const std::uintptr_t limit = stack_end();
  Place at = first_place(from, frame);
  for (int count = 0; out.steps < kStack; ++out.steps) {
    const std::uint64_t packed = rule_of(at.address);
    if (packed == 0) return out;
    const Rule rule = Rule::unpack(packed);
    if (rule.base == Rule::irregular) return out;
    if (!rule.mpi) out.chosen[count++] = at.address;
    if (rule.base == Rule::outermost || count == frames_per_site) {
      out.count = count;
      return out;
    }
    if (!follow(rule, limit, at)) return out;
    out.rule[out.steps] = rule, out.address[out.steps] = at.address;
  }
  return out;
}

/// A short walk and its site, in one cache line: walks repeat, and looking up each rule takes most of their time. A
/// return address has one rule, so where the rules of the last walk lead to its return addresses again, so would a new
/// walk. Read without a lock: if the version is odd, or another afterwards, nothing read may be used.
struct alignas(64) Way {
  static constexpr int kMost = 4;
  std::atomic<std::uint32_t> version{0};
  std::atomic<std::uint16_t> slot{0}, steps{0};
  std::atomic<std::uint64_t> from{0};
  std::atomic<std::uint64_t> address[kMost]{};
  std::atomic<std::uint32_t> rule[kMost]{};
};
static_assert(sizeof(Way) == 64, "a cache line");
constexpr int kWayBits = 12;
constinit Way ways[std::size_t{1} << kWayBits];
/// The slots of ways once more, where they stay in the cache: so that a slot is fetched while its way is.
constinit std::atomic<std::uint16_t> slots_of_ways[std::size_t{1} << kWayBits];

/// Programs come to one address by several ways, mostly with as many depths of the stack. Two places each, side by
/// side.
std::size_t place_of_way(std::uintptr_t from, std::uintptr_t frame) {
  return address_place(from + (frame >> 3), kWayBits);
}

/// A rule in half a word: base, length and what is saved in eights of bytes. 0 if it does not fit.
std::uint32_t short_rule(const Rule& rule) {
  const bool fits = rule.length % 8 == 0 && rule.length / 8 == static_cast<std::int16_t>(rule.length / 8) &&
                    rule.saved % 8 == 0 && rule.saved / 8 < 1 << 14;
  if (!fits) return 0;
  return std::uint32_t{static_cast<std::uint16_t>(rule.length / 8)} << 16 |
         static_cast<std::uint32_t>(rule.saved / 8) << 2 | (rule.base == Rule::from_rbp ? 2u : 0u) | 1u;
}
Rule rule_from(std::uint32_t w) {
  return {(w & 2) != 0 ? Rule::from_rbp : Rule::from_rsp, false, static_cast<std::int16_t>(w >> 16) * 8,
          static_cast<std::int32_t>(w >> 2 & ((1u << 14) - 1)) * 8};
}

/// The site, if this way leads from here to it again; otherwise nullptr.
Slot* follow(const Way& way, std::uintptr_t from, std::uintptr_t frame) {
  const std::uint32_t version = way.version.load(std::memory_order_acquire);
  if (way.from.load(std::memory_order_acquire) != from) return nullptr;
  // What is read is ordered before the second look at the version, what is written after the first change of it.
  const int steps = way.steps.load(std::memory_order_acquire);
  std::uint64_t address[Way::kMost];
  std::uint32_t rule[Way::kMost];
  for (int i = 0; i < Way::kMost; ++i)
    address[i] = way.address[i].load(std::memory_order_acquire), rule[i] = way.rule[i].load(std::memory_order_acquire);
  Slot* slot = &site_slots[way.slot.load(std::memory_order_acquire)];
  if (version % 2 != 0 || way.version.load(std::memory_order_relaxed) != version) return nullptr;
  const std::uintptr_t limit = stack_end();
  Place at = first_place(from, frame);
  for (int i = 0; i < steps; ++i)
    if (!follow(rule_from(rule[i]), limit, at) || at.address != address[i]) return nullptr;
  return slot;
}

Slot* known_way(std::uintptr_t from, std::uintptr_t frame) {
  const std::size_t place = place_of_way(from, frame);
  __builtin_prefetch(&site_slots[slots_of_ways[place].load(std::memory_order_relaxed)]);
  if (Slot* slot = follow(ways[place], from, frame)) [[likely]]
    return slot;
  return follow(ways[place ^ 1], from, frame);
}

void keep_way(std::uintptr_t from, std::uintptr_t frame, const Walk& walk, const Slot& slot) {
  if (walk.steps > Way::kMost || &slot < site_slots || &slot >= site_slots + kSlots) return;
  const auto slot_number = static_cast<std::uint16_t>(&slot - site_slots);
  std::uint32_t short_rules[Way::kMost];
  for (int i = 0; i < walk.steps; ++i)
    if ((short_rules[i] = short_rule(walk.rule[i])) == 0) return;
  const std::size_t place = place_of_way(from, frame);
  const bool free = ways[place].from.load(std::memory_order_relaxed) == 0,
             other_free = ways[place ^ 1].from.load(std::memory_order_relaxed) == 0;
  // Where more than two share their places, keeping each would cost more than it gains: every eighth, here and there in
  // turn.
  static std::atomic<unsigned> turned_away{0};
  const unsigned before = turned_away.load(std::memory_order_relaxed);
  if (!free && !other_free) {
    turned_away.store(before + 1, std::memory_order_relaxed);
    if (before % 8 != 0) return;
  }
  const std::size_t chosen = free ? place : other_free ? place ^ 1 : place ^ (before >> 3 & 1);
  Way& way = ways[chosen];
  const std::lock_guard lock(sites_mutex);
  const std::uint32_t version = way.version.load(std::memory_order_relaxed);
  way.version.store(version + 1, std::memory_order_relaxed);
  way.from.store(from, std::memory_order_release);
  way.slot.store(slot_number, std::memory_order_release);
  way.steps.store(static_cast<std::uint16_t>(walk.steps), std::memory_order_release);
  for (int i = 0; i < walk.steps; ++i) {
    way.address[i].store(walk.address[i], std::memory_order_release);
    way.rule[i].store(short_rules[i], std::memory_order_release);
  }
  slots_of_ways[chosen].store(slot_number, std::memory_order_relaxed);
  way.version.store(version + 2, std::memory_order_release);
}

/// One step of libunwind from made-up registers. Returns what unw_step does; `end`: of the frame.
int step_from(const unw_context_t& registers, std::uintptr_t* end, std::uintptr_t* saved_rbp) {
  unw_context_t copy = registers;
  unw_cursor_t cursor;
  if (unw_init_local(&cursor, &copy) != 0) return -1;
  const int rc = unw_step(&cursor);
  unw_word_t sp = 0;
  unw_get_reg(&cursor, UNW_REG_SP, &sp);
  *end = sp;
  unw_save_loc_t location;
  *saved_rbp = unw_get_save_loc(&cursor, UNW_X86_64_RBP, &location) == 0 && location.type == UNW_SLT_MEMORY
                   ? location.u.addr
                   : 0;
  return rc;
}

/// Finds the rule of the frame that the cursor is at, by moving rsp and rbp and looking which one the end of
/// the frame moves with.
Rule find_rule(unw_cursor_t& cursor) {
  Rule out;
  unw_context_t registers{};
  greg_t* values = registers.uc_mcontext.gregs;
  const std::pair<int, int> kept[] = {{UNW_X86_64_RIP, REG_RIP}, {UNW_X86_64_RSP, REG_RSP}, {UNW_X86_64_RBP, REG_RBP},
                                      {UNW_X86_64_RBX, REG_RBX}, {UNW_X86_64_R12, REG_R12}, {UNW_X86_64_R13, REG_R13},
                                      {UNW_X86_64_R14, REG_R14}, {UNW_X86_64_R15, REG_R15}};
  for (const auto& [reg, place] : kept) {
    unw_word_t value = 0;
    if (unw_get_reg(&cursor, reg, &value) != 0) return out;
    values[place] = static_cast<greg_t>(value);
  }
  out.mpi = in_mpi(static_cast<std::uintptr_t>(values[REG_RIP]));
  const auto rsp = static_cast<std::uintptr_t>(values[REG_RSP]), rbp = static_cast<std::uintptr_t>(values[REG_RBP]);
  std::uintptr_t end = 0, saved = 0, moved = 0, ignored = 0;
  if (unw_cursor_t ahead = cursor; unw_step(&ahead) <= 0) {
    out.base = Rule::outermost;
    return out;
  }
  if (step_from(registers, &end, &saved) <= 0 || end <= rsp) return out;
  constexpr std::uintptr_t kDown = 16;  // downwards: memory that is certainly there
  unw_context_t other = registers;
  other.uc_mcontext.gregs[REG_RSP] -= kDown;
  const bool with_rsp = step_from(other, &moved, &ignored) >= 0 && moved == end - kDown;
  const bool not_with_rsp = moved == end;
  if (with_rsp) {
    other = registers;
    other.uc_mcontext.gregs[REG_RBP] -= kDown;
    if (step_from(other, &moved, &ignored) < 0 || moved != end) return out;
    out.base = Rule::from_rsp, out.length = static_cast<std::int32_t>(end - rsp);
  } else {
    // Only a frame pointer that points into this frame is worth following.
    if (!not_with_rsp || rbp < rsp || rbp >= end) return out;
    other = registers;
    other.uc_mcontext.gregs[REG_RBP] -= kDown;
    if (step_from(other, &moved, &ignored) < 0 || moved != end - kDown) return out;
    out.base = Rule::from_rbp, out.length = static_cast<std::int32_t>(end - rbp);
  }
  if (end - rsp >= static_cast<std::uintptr_t>(Rule::kMost)) return {Rule::irregular, out.mpi, 0, 0};
  if (saved >= rsp && saved < end) out.saved = static_cast<std::int32_t>(end - saved);
  return out;
}

/// The frames by libunwind's own cache: what rules must agree with.
int frames_by_trace(std::uintptr_t from, std::uintptr_t* chosen) {
  void* stack[kStack];
  int count = 0;
  for (int want = frames_per_site + 6;; want = kStack) {
    const int have = unw_backtrace(stack, want);
    int i = 0;
    count = 0;
    while (i < have && reinterpret_cast<std::uintptr_t>(stack[i]) != from) ++i;
    for (; i < have && count < frames_per_site; ++i)
      if (!in_mpi(reinterpret_cast<std::uintptr_t>(stack[i])))
        chosen[count++] = reinterpret_cast<std::uintptr_t>(stack[i]);
    if (count == frames_per_site || have < want || want == kStack) return count;
  }
}

/// Learns the rules of the frames from `from` on outwards that are not known yet. False if there was nothing to learn.
bool learn_rules(std::uintptr_t from) {
  const std::lock_guard lock(sites_mutex);
  if (rules_used > kRules * 3 / 4) return false;
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return false;
  bool begun = false, learnt = false;
  for (int steps = 0, count = 0; steps < kStack && count < frames_per_site; ++steps) {
    unw_word_t ip = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0) break;
    begun = begun || ip == from;
    if (begun) {
      if (rule_of(ip) == 0) keep_rule(ip, find_rule(cursor)), learnt = true;
      if (!in_mpi(ip)) ++count;
    }
    if (unw_step(&cursor) <= 0) break;
  }
  return learnt;
}

Slot& site_of_frames(const std::uintptr_t* chosen, int count) {
  std::uint64_t key = chosen[0];
  if (frames_per_site > 1) {
    for (int i = 1; i < count; ++i) key = core::mix64(key ^ core::mix64(chosen[i]));
    key |= kSeveral;
  }
  if (Slot* slot = known(key); slot && slot->site.load(std::memory_order_relaxed) != 0) return *slot;
  std::vector<profiles::Frame> found;
  found.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) found.push_back(frame_at(chosen[i]));
  return insert(key, std::move(found));
}

Slot& unwound(std::uintptr_t from, std::uintptr_t frame) {
  if (Slot* slot = known_way(from, frame)) [[likely]]
    return *slot;
  Walk walk = walk_by_rules(from, frame);
  if (walk.count >= 0) {
    if (walk.count == 0) walk.chosen[walk.count++] = from;
    Slot& slot = site_of_frames(walk.chosen, walk.count);
    keep_way(from, frame, walk, slot);
    return slot;
  }
  std::uintptr_t chosen[kMostFrames];
  int count = frames_by_trace(from, chosen);
  if (learn_rules(from)) {
    const Walk again = walk_by_rules(from, frame);
    if (again.count >= 0 && (again.count != count || !std::equal(chosen, chosen + count, again.chosen))) {
      const std::lock_guard lock(sites_mutex);
      keep_rule(from, Rule{});
    }
  }
  if (count == 0) chosen[count++] = from;
  return site_of_frames(chosen, count);
}

}  // namespace

void sites_depth(int frames_wanted, bool python_wanted) {
  frames_per_site = std::min(frames_wanted, kMostFrames), python = python_wanted,
  one_frame = frames_per_site == 1 && !python;
}

void forget_ways() {
  for (RuleSlot& rule : rules) rule.address.store(0, std::memory_order_relaxed);
  rules_used = 0;
  for (Way& way : ways) way.from.store(0, std::memory_order_relaxed);
}

SiteSlot& rarer_site(std::uintptr_t address, std::uintptr_t frame) {
  if (python)
    if (Slot* slot = python_site()) return *slot;
  if (frames_per_site > 1) return unwound(address, frame);
  // Where Python may lead to the same address, the address alone is not found at once (site_of).
  const std::uint64_t key = python ? address | kSeveral : address;
  Slot* slot = known(key);
  if (!slot) {
    // The first call from here. MPI's Fortran and C++ bindings are not sites, their callers are.
    if (!in_mpi(address)) return insert(key, {frame_at(address)});
    const std::lock_guard lock(sites_mutex);
    slot = &remember(key, 0);
  }
  return slot->site.load(std::memory_order_relaxed) != 0 ? *slot : unwound(address, frame);
}

}  // namespace latecomer::shim
