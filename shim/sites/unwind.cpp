// SPDX-License-Identifier: BSD-3-Clause
// Walks the stack from an intercepted call to its site.
#include "shim/sites/unwind.hpp"

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "shim/sites/modules.hpp"
#include "shim/sites/python.hpp"
#include "shim/sites/table.hpp"
#include "shim/state/cost.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): glibc makes this name
extern "C" void* __libc_stack_end;

namespace latecomer::shim {

bool one_frame = true;
int frames_per_site = 1, frames_per_call = 1;

namespace {

constexpr int kMostFrames = 16;  // of a site and its callers: the limit of the policy keys
// Frames of a walk. Derived: up to 16 frames of a site and its callers, and 32 of MPI and its bindings around them.
// Beyond, the site has fewer frames.
constexpr int kStack = 48;
bool python = false;

// libunwind takes 20 ns per frame from its cache, and one or two system calls without it. Its result for a return
// address is always the same. The caller's frame ends at a fixed distance from rsp or from rbp. The register rbp is
// saved at a fixed distance from there, or not at all. So ask libunwind for this rule once per return address, and
// follow the rule afterwards. At depth 4 an observed call from one site then takes 60 ns more than a bare wrapper
// (tests/bench/overhead, 2 ranks).

/// Gives the end of the frame of a return address. Packed into one word beside its key.
struct FrameRule {
  enum Base : std::uint8_t { from_rsp, from_rbp, outermost, irregular };
  Base base = irregular;
  bool mpi = false;         ///< the frame is passed over: it belongs to MPI, or is generated code
  std::int32_t length = 0;  ///< bytes from the base to the end of the frame, just after the return address
  std::int32_t saved = 0;   ///< rbp is saved this many bytes before the end; 0: not saved

  static constexpr std::int32_t kLongest = (1 << 28) - 1;  // derived from the bits of packed()
  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(base) | std::uint64_t{mpi} << 2 | std::uint64_t{1} << 3 |
           static_cast<std::uint64_t>(length + kLongest) << 4 | static_cast<std::uint64_t>(saved) << 34;
  }
  static FrameRule unpack(std::uint64_t w) {
    return {static_cast<Base>(w & 3), (w & 4) != 0, static_cast<std::int32_t>(w >> 4 & ((1u << 30) - 1)) - kLongest,
            static_cast<std::int32_t>(w >> 34)};
  }
};
// Derived: 8,192 entries of 16 bytes take 128 KiB, mapped as used. Three quarters are filled: 6,144 return addresses.
// An address beyond has no rule, and its walks use libunwind.
constexpr int kRuleBits = 13;
constexpr std::size_t kRules = std::size_t{1} << kRuleBits;
struct RuleSlot {
  std::atomic<std::uint64_t> address{0}, rule{0};
};
constinit RuleSlot rules[kRules];
std::size_t rules_used = 0;

/// The packed rule of a return address; 0 if it is unknown.
std::uint64_t rule_of(std::uintptr_t address) {
  for (std::size_t i = address_place(address, kRuleBits);; i = (i + 1) % kRules) {
    const std::uint64_t there = rules[i].address.load(std::memory_order_acquire);
    if (there == address) [[likely]]
      return rules[i].rule.load(std::memory_order_relaxed);
    if (there == 0) return 0;
  }
}

/// The caller holds the mutex. A full table takes no more rules.
void keep_rule(std::uintptr_t address, const FrameRule& rule) {
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

/// Whether the frame of a return address is no part of a site.
bool is_passed(std::uintptr_t address) {
  if (in_mpi(address)) return true;
  const std::uint64_t packed = rule_of(address);
  return packed != 0 ? FrameRule::unpack(packed).mpi : in_generated(address);
}

/// The current position of a walk along the stack.
struct Place {
  std::uintptr_t address, rsp, rbp;
};
/// Steps from one return address to the next. Returns false if the rule gives an impossible frame.
bool follow(const FrameRule& rule, std::uintptr_t limit, Place& at) {
  const std::uintptr_t end = (rule.base == FrameRule::from_rsp ? at.rsp : at.rbp) +
                             static_cast<std::uintptr_t>(static_cast<std::intptr_t>(rule.length));
  if (end <= at.rsp || end > limit || end % 8 != 0 || static_cast<std::uintptr_t>(rule.saved) > end - at.rsp)
    return false;
  at.address = *reinterpret_cast<const std::uintptr_t*>(end - 8);
  if (rule.saved != 0) at.rbp = *reinterpret_cast<const std::uintptr_t*>(end - static_cast<std::uintptr_t>(rule.saved));
  at.rsp = end;
  return true;
}

/// The walk from a return address outwards by rules.
struct Walk {
  int count = -1;      ///< frames outside MPI, at most `frames_per_call`; -1: the walk failed
  bool learns = true;  ///< it failed at a frame whose rule is missing or wrong
  std::uintptr_t chosen[kMostFrames];
};

Walk walk_by_rules(std::uintptr_t from, std::uintptr_t frame) {
  Walk out;
  const std::uintptr_t limit = stack_end();
  Place at{from, frame + 16, *reinterpret_cast<const std::uintptr_t*>(frame)};
  for (int count = 0, steps = 0; steps < kStack; ++steps) {
    const std::uint64_t packed = rule_of(at.address);
    if (packed == 0) return out;
    const FrameRule rule = FrameRule::unpack(packed);
    if (rule.base == FrameRule::irregular) {
      out.learns = false;
      return out;  // of one variable only: a copy of it takes 20 ns
    }
    if (!rule.mpi) out.chosen[count++] = at.address;
    if (rule.base == FrameRule::outermost || count == frames_per_call) {
      out.count = count;
      return out;
    }
    if (!follow(rule, limit, at)) return out;
  }
  return out;
}

/// One step of libunwind from given registers. Returns the result of unw_step; `end`: the end of the frame.
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

/// Finds the rule of the cursor's frame. Moves rsp and rbp, and finds out which of them the end of the frame follows.
FrameRule find_rule(unw_cursor_t& cursor) {
  FrameRule out;
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
  const auto address = static_cast<std::uintptr_t>(values[REG_RIP]);
  out.mpi = in_mpi(address);
  // Other code may take its place.
  if (in_generated(address)) return {FrameRule::irregular, true, 0, 0};
  const auto rsp = static_cast<std::uintptr_t>(values[REG_RSP]), rbp = static_cast<std::uintptr_t>(values[REG_RBP]);
  std::uintptr_t end = 0, saved = 0, moved = 0, ignored = 0;
  if (unw_cursor_t ahead = cursor; unw_step(&ahead) <= 0) {
    out.base = FrameRule::outermost;
    return out;
  }
  if (step_from(registers, &end, &saved) <= 0 || end <= rsp) return out;
  constexpr std::uintptr_t kDown = 16;  // downwards: this memory is certainly mapped
  unw_context_t other = registers;
  other.uc_mcontext.gregs[REG_RSP] -= kDown;
  const bool with_rsp = step_from(other, &moved, &ignored) >= 0 && moved == end - kDown;
  const bool not_with_rsp = moved == end;
  if (with_rsp) {
    other = registers;
    other.uc_mcontext.gregs[REG_RBP] -= kDown;
    if (step_from(other, &moved, &ignored) < 0 || moved != end) return out;
    out.base = FrameRule::from_rsp;
    out.length = static_cast<std::int32_t>(end - rsp);
  } else {
    // Follow only a frame pointer that points into this frame.
    if (!not_with_rsp || rbp < rsp || rbp >= end) return out;
    other = registers;
    other.uc_mcontext.gregs[REG_RBP] -= kDown;
    if (step_from(other, &moved, &ignored) < 0 || moved != end - kDown) return out;
    out.base = FrameRule::from_rbp;
    out.length = static_cast<std::int32_t>(end - rbp);
  }
  if (end - rsp >= static_cast<std::uintptr_t>(FrameRule::kLongest)) return {FrameRule::irregular, out.mpi, 0, 0};
  if (saved >= rsp && saved < end) out.saved = static_cast<std::int32_t>(end - saved);
  return out;
}

/// The frames from libunwind's own cache. Rules must agree with them.
int frames_by_trace(std::uintptr_t from, std::uintptr_t* chosen) {
  void* stack[kStack];
  int count = 0;
  for (int want = frames_per_call + 6;; want = kStack) {
    const int have = unw_backtrace(stack, want);
    int i = 0;
    count = 0;
    while (i < have && reinterpret_cast<std::uintptr_t>(stack[i]) != from) ++i;
    for (; i < have && count < frames_per_call; ++i)
      if (!is_passed(reinterpret_cast<std::uintptr_t>(stack[i])))
        chosen[count++] = reinterpret_cast<std::uintptr_t>(stack[i]);
    if (count == frames_per_call || have < want || want == kStack) return count;
  }
}

struct Learnt {
  bool rules = false;  ///< at least one rule was unknown
  int count = -1;      ///< as of frames_by_trace(); -1: unknown
  std::uintptr_t chosen[kMostFrames];
};
/// Learns the unknown rules of the frames from `from` outwards, and gives the frames. libunwind's cache, which
/// frames_by_trace() makes, takes 64 page faults: only calls whose rules fail again need it.
Learnt learn_rules(std::uintptr_t from) {
  const std::lock_guard lock(sites_mutex);
  find_wrappers();
  Learnt out;
  if (rules_used > kRules * 3 / 4) return out;
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return out;
  bool begun = false;
  out.count = 0;
  for (int steps = 0; steps < kStack && out.count < frames_per_call; ++steps) {
    unw_word_t ip = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0) break;
    begun = begun || ip == from;
    if (begun) {
      if (rule_of(ip) == 0) {
        keep_rule(ip, find_rule(cursor));
        out.rules = true;
      }
      if (!is_passed(ip)) out.chosen[out.count++] = ip;
    }
    if (unw_step(&cursor) <= 0) break;
  }
  return out;
}

/// The frames between MPI and a new site: the frame of a wrapper library (0: no such frame), and generated code.
struct Between {
  std::uintptr_t wrapper = 0;
  bool generated = false;
};
Between look_between(std::uintptr_t from) {
  Between out;
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return out;
  bool begun = false;
  for (int steps = 0; steps < kStack; ++steps) {
    unw_word_t at = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &at) != 0 || at == 0) break;
    begun = begun || at == from;
    if (begun && !is_passed(at)) break;
    if (begun && out.wrapper == 0 && in_wrapper(at)) out.wrapper = at;
    out.generated = out.generated || (begun && in_generated(at));
    if (unw_step(&cursor) <= 0) break;
  }
  return out;
}

std::uint64_t key_of(const std::uintptr_t* chosen, int count) {
  std::uint64_t key = chosen[0];
  if (frames_per_call == 1) return key;
  // Mix each address by itself: a chain of mix64 takes 4 ns more of every call at depth 4.
  for (int i = 1; i < count; ++i) key = key * 0xd1342543de82ef95ull + core::mix64(chosen[i]);
  return key | kSeveral;
}

bool usable(const Slot* slot) { return slot && slot->site.load(std::memory_order_relaxed) != 0; }

/// The slot of frames whose addresses are not in the table yet.
[[gnu::noinline, gnu::cold]] Slot& new_way(const std::uintptr_t* chosen, int count, std::uint64_t key,
                                           std::uintptr_t from) {
  const Spending work(profiles::CostOf::start);
  if (count > frames_per_site && callers_full()) {
    count = frames_per_site;
    key = key_of(chosen, count);
    if (Slot* slot = find_slot(key); usable(slot)) return *slot;
  }
  std::vector<profiles::Frame> found;
  found.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) found.push_back(frame_at(chosen[i]));
  while (static_cast<int>(found.size()) > frames_per_site && starts_program(chosen[found.size() - 1], found.back()))
    found.pop_back();
  const bool direct = frames_per_site == 1 && !python && chosen[0] == from;
  const Between between = chosen[0] != from ? look_between(from) : Between{};
  Slot& slot = add_site(key, std::move(found), direct ? from : 0, between.generated);
  if (between.wrapper != 0) keep_wrapper(frame_at(between.wrapper), slot.site.load(std::memory_order_relaxed));
  return slot;
}

Slot& site_of_frames(const std::uintptr_t* chosen, int count, std::uintptr_t from) {
  const std::uint64_t key = key_of(chosen, count);
  if (Slot* slot = find_slot(key); usable(slot)) [[likely]]
    return *slot;
  return new_way(chosen, count, key, from);
}

/// After a walk that failed.
[[gnu::noinline]] Slot& traced(std::uintptr_t from, std::uintptr_t frame, const Walk& walk) {
  const Spending work(profiles::CostOf::start);
  Learnt learnt;
  if (walk.learns) learnt = learn_rules(from);
  std::uintptr_t* const chosen = learnt.chosen;
  int count = learnt.count >= 0 ? learnt.count : frames_by_trace(from, chosen);
  if (walk.learns) {
    const Walk again = walk_by_rules(from, frame);
    // A rule that leads elsewhere than libunwind is wrong. A walk that fails again would be learnt at every call.
    const bool wrong = again.count >= 0 && (again.count != count || !std::equal(chosen, chosen + count, again.chosen));
    if (wrong || (!learnt.rules && again.count < 0)) {
      const std::lock_guard lock(sites_mutex);
      keep_rule(from, {FrameRule::irregular, is_passed(from), 0, 0});
    }
  }
  if (count == 0) chosen[count++] = from;
  return site_of_frames(chosen, count, from);
}

Slot& unwound(std::uintptr_t from, std::uintptr_t frame) {
  Walk walk = walk_by_rules(from, frame);
  if (walk.count < 0) [[unlikely]]
    return traced(from, frame, walk);
  if (walk.count == 0) walk.chosen[walk.count++] = from;
  return site_of_frames(walk.chosen, walk.count, from);
}

}  // namespace

void sites_depth(int depth, int callers, bool python_wanted, const std::vector<std::string>& wrappers) {
  frames_per_site = std::min(depth, kMostFrames);
  frames_per_call = std::min(depth + callers, kMostFrames);
  python = python_wanted;
  one_frame = frames_per_call == 1 && !python;
  name_wrappers(wrappers);
}

std::uintptr_t stack_end() {
  thread_local std::uintptr_t end = 0;
  if (end == 0) [[unlikely]] {
    // For the first thread, pthread_getattr_np() reads the list of all mappings. Its frames end where the program
    // began.
    if (gettid() == getpid()) return end = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
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

std::uintptr_t plain_address(const SiteSlot& slot, std::uintptr_t address, std::uintptr_t frame,
                             std::int32_t& through) {
  through = 0;
  if (const std::uintptr_t direct = slot.address.load(std::memory_order_relaxed); direct != 0) return direct;
  const std::uint64_t packed = rule_of(address);
  if (packed == 0 || python || frames_per_site > 1) return 0;
  const FrameRule rule = FrameRule::unpack(packed);
  Place at{address, frame + 16, *reinterpret_cast<const std::uintptr_t*>(frame)};
  if (!rule.mpi || rule.base != FrameRule::from_rsp || !follow(rule, stack_end(), at) || is_passed(at.address))
    return 0;
  through = static_cast<std::int32_t>(at.rsp - frame);
  return at.address;
}

void forget_rules() {
  for (RuleSlot& rule : rules) rule.address.store(0, std::memory_order_relaxed);
  rules_used = 0;
}

SiteSlot& rarer_site(std::uintptr_t address, std::uintptr_t frame) {
  if (python)
    if (Slot* slot = python_site()) return *slot;
  if (frames_per_call > 1) return unwound(address, frame);
  // If Python may lead to the same address, the address alone does not identify the site (site_of).
  const std::uint64_t key = python ? address | kSeveral : address;
  Slot* slot = find_slot(key);
  if (!slot) {
    // The first call from here. MPI's Fortran and C++ bindings are not sites; their callers are.
    const auto skips = [&] {
      const std::lock_guard lock(sites_mutex);
      find_wrappers();
      return is_passed(address);
    };
    if (!skips()) return add_site(key, {frame_at(address)}, python ? 0 : address);
    const std::lock_guard lock(sites_mutex);
    slot = &add_key(key, 0);
  }
  return slot->site.load(std::memory_order_relaxed) != 0 ? *slot : unwound(address, frame);
}

}  // namespace latecomer::shim
