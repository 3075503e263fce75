// SPDX-License-Identifier: BSD-3-Clause
// Generator `wide`: what `rows` does, with whole sets in registers of 512 bits (AVX-512). Compiler vectors cannot say
// which of their words are not zero, and every message waits for that answer: so this file alone is not portable. For
// other processors, and for more than 512 processes or segments, `rows` serves. See docs/clairvoyant.md for where the
// time goes.
#include "core/algorithms/clairvoyant/rounds.hpp"
#include "core/algorithms/clairvoyant/tables.hpp"

namespace latecomer::core::clairvoyant {
void plan_rows(const Problem& problem, const Emit& emit);
}

#if defined(__x86_64__)
// GCC 12's own header is said to read what it leaves undefined (its bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <vector>

// On every function by itself: what is compiled for this processor must not be taken for a portable namesake.
#define LATECOMER_TARGET "avx512f,avx512dq,bmi,bmi2"
#define LATECOMER_AVX512 __attribute__((target(LATECOMER_TARGET), always_inline))

namespace latecomer::core::clairvoyant {
namespace {

constexpr int kMost = 8 * kWordBits;

/// A set of processes or of segments below kMost. Unlike __m512i it may not alias whatever lies in memory: the compiler
/// need not read all else again where one was written.
typedef Word Set __attribute__((vector_size(64)));
struct alignas(64) Cell {
  Set set;
};
/// Which words of a set have members.
using Words = unsigned;

LATECOMER_AVX512 inline Words words(Set a) { return _mm512_test_epi64_mask((__m512i)a, (__m512i)a); }
LATECOMER_AVX512 inline bool any(Set a) { return words(a) != 0; }
LATECOMER_AVX512 inline Set in_word(int word, Word bits) {
  return (Set)_mm512_maskz_set1_epi64(static_cast<__mmask8>(1u << word), static_cast<long long>(bits));
}
LATECOMER_AVX512 inline Set only(int i) { return in_word(static_cast<int>(word(i)), bit(i)); }
LATECOMER_AVX512 inline Set from_to(int begin, int end) {
  Set out{};
  for (int w = begin / kWordBits; w * kWordBits < end; ++w) {
    Word bits = ~Word{0};
    if (w == begin / kWordBits) bits &= ~Word{0} << (begin % kWordBits);
    if (end - w * kWordBits < kWordBits) bits &= (Word{1} << (end - w * kWordBits)) - 1;
    out |= in_word(w, bits);
  }
  return out;
}
// Of a set that is not empty, with its words: the lowest word with members, the lowest member, the set of that alone
// (which is known sooner than its number).
LATECOMER_AVX512 inline Word first_word(Set a, Words filled) {
  return static_cast<Word>(_mm_cvtsi128_si64(
      _mm512_castsi512_si128(_mm512_maskz_compress_epi64(static_cast<__mmask8>(filled), (__m512i)a))));
}
LATECOMER_AVX512 inline int first(Set a, Words filled) {
  return std::countr_zero(filled) * kWordBits + std::countr_zero(first_word(a, filled));
}
LATECOMER_AVX512 inline Set only_first(Set a, Words filled) {
  return (Set)_mm512_maskz_and_epi64(static_cast<__mmask8>(filled & -filled), (__m512i)a, (__m512i)-a);
}
constexpr Word lowest_bit(Word w) { return w & -w; }

/// Bits by columns and by rows as in `Rows`. A sender's and a segment's state are written and read as whole registers,
/// so that a read finds what was just written without waiting for the cache.
class Wide {
 public:
  LATECOMER_AVX512 explicit Wide(const Problem& problem)
      : problem_(problem),
        places_(problem),
        rounds_(problem),
        held_(problem.arrivals.size(), Cell{from_to(0, problem.segments)}),
        holders_(static_cast<std::size_t>(problem.segments), Cell{from_to(0, problem.ranks())}),
        members_(holders_.size(), 0),
        gone_(held_.size(), 0),
        receivers_(held_.size() + 1),
        sent_(held_.size()),
        messages_(held_.size()),
        root_(places_.of(problem.root)) {}

  LATECOMER_AVX512 void run(const Emit& emit) {
    std::int64_t to_go =
        static_cast<std::int64_t>(problem_.ranks() - 1) * problem_.segments;  // held by others than the root
    here_ = shared_ = everybody_ = upper_ = Set{};
    bool idle = false;
    while (to_go > 0 && rounds_.next(idle)) {
      if (rounds_.changed()) gather();
      senders_ = everybody_, senders_left_ = static_cast<int>(rounds_.group().size());
      alive_ = shared_, counted_ = false, in_vain_ = 0;
      // Where many found nothing in the last round it pays to count twice (`usable`); elsewhere it costs more than it
      // gains.
      sparse_ = sent_count_ * 4 < senders_left_ * 3, sent_count_ = 0;
      if (serve_sink() && sink_ != root_) ++to_go;
      serve_others();
      idle = sent_count_ == 0;
      to_go -= end_round(emit);
    }
  }

 private:
  struct Sent {
    int src, dst, segment;
  };
  /// Whom to serve next, looked up while the one before is served: reading its column after the last message was
  /// written would make every message wait for the whole way of the one before.
  struct Next {
    int place;
    Set mine, candidates;
    Words filled;
    int segment;
    Set row;
  };

  LATECOMER_AVX512 void gather() {
    for (const auto& newcomer : rounds_.newcomers()) {
      const int p = places_.of(newcomer.rank);
      everybody_ |= only(p), root_came_ |= p == root_;
      shared_ |= here_, here_ = from_to(0, problem_.segments);  // it comes with all its segments
      for (int& m : members_) ++m;
    }
    const auto group = rounds_.group();
    const int head = places_.of(group.front());
    sink_ = root_came_ ? root_ : head, others_ = 0;
    for (const Rank r : group)
      receivers_[static_cast<std::size_t>(others_)] = places_.of(r), others_ += places_.of(r) != sink_;
    receivers_[static_cast<std::size_t>(others_)] = sink_;  // looked up, not served
    upper_ = from_to(head, kMost);
  }

  /// Segment `j` goes to `p`, from the first of `hits` in the group's order. Returns the sender's place.
  LATECOMER_AVX512 int deliver(int p, Set mine, int j, Set row, Set hits, Words filled) {
    const Set segment = only(j), above = hits & upper_;
    if (const Words w = words(above)) hits = above, filled = w;
    const Set sender = only_first(hits, filled);
    senders_ &= ~sender, --senders_left_;
    const int z = first(hits, filled);
    held(p) = mine & ~segment, held(z) &= ~segment;
    holders(j) = row & ~(sender | only(p));
    sent_[static_cast<std::size_t>(sent_count_++)] = {z, p, j};
    return z;
  }

  /// Whether the sink received a segment that it did not hold.
  LATECOMER_AVX512 bool serve_sink() {
    const Set mine = held(sink_), others = senders_ & ~only(sink_);
    Set candidates = (mine & shared_) | (here_ & ~mine);
    while (const Words filled = words(candidates)) {
      const int j = first(candidates, filled);
      const Set row = holders(j), hits = row & others;
      if (const Words w = words(hits)) {
        deliver(sink_, mine, j, row, hits, w);
        const bool held_it = any(mine & only(j));
        members_[static_cast<std::size_t>(j)] += !held_it;
        return !held_it;
      }
      candidates &= ~only(j);
    }
    return false;
  }

  /// What a process may find. If it has not sent, it is itself one of a segment's senders, and there has to be another:
  /// who waits for one late process would else look through all that only he holds, round after round.
  LATECOMER_AVX512 Set usable(int place) const {
    if (!counted_) return alive_;
    if (any(senders_ & only(place))) return alive_ & twice_;
    return alive_;
  }

  LATECOMER_AVX512 Next look_up(int place) {
    Next out;
    out.place = place, out.mine = held(place), out.candidates = out.mine & usable(place),
    out.filled = words(out.candidates);
    out.segment = out.filled ? first(out.candidates, out.filled) : 0, out.row = holders(out.segment);
    return out;
  }

  LATECOMER_AVX512 void serve_others() {
    Next now = look_up(receivers_[0]);
    for (int i = 0; i < others_; ++i) {
      Next next = look_up(receivers_[static_cast<std::size_t>(i) + 1]);
      if (now.filled) {
        const Set others = senders_ & ~only(now.place);
        Set hits = now.row & others;
        Words filled = words(hits);
        bool again = false, anew = false;
        if (!filled) {
          again = true;
          if (search(now, others)) hits = now.row & others, filled = words(hits);
        }
        if (filled) {
          const int z = deliver(now.place, now.mine, now.segment, now.row, hits, filled);
          if (z == next.place) next.mine &= ~only(now.segment), next.candidates &= next.mine, anew = counted_;
          again |= next.segment == now.segment;
        }
        // What was looked up may be out of date by now.
        if (anew || (again && next.filled)) {
          next.candidates = next.mine & usable(next.place);
          if (anew || !any(next.candidates & only(next.segment))) {
            next.filled = words(next.candidates);
            next.segment = next.filled ? first(next.candidates, next.filled) : 0;
          }
          next.row = holders(next.segment);
        }
      }
      now = next;
    }
  }

  /// The lowest segment was looked at in vain: the lowest of the others that has a sender, four looked at together.
  LATECOMER_AVX512 bool search(Next& now, Set others) {
    const Set tried = only(now.segment);
    if (!any(now.row & senders_)) alive_ &= ~tried;
    now.candidates &= ~tried;
    for (int looks = 1;; looks = 4) {
      if ((in_vain_ += looks) * kColumnsPerLook > senders_left_) count_alive(), now.candidates &= usable(now.place);
      const Words filled = words(now.candidates);
      if (!filled) return false;
      const int at = std::countr_zero(filled);
      Word left[4] = {first_word(now.candidates, filled)}, hit = 0, dead = 0;
      for (int k = 1; k < 4; ++k) {
        const Word rest = left[k - 1] & (left[k - 1] - 1);
        left[k] = rest ? rest : left[k - 1];
      }
      for (const Word w : left) {
        const Set row = holders(at * kWordBits + std::countr_zero(w));
        // Without a branch: nobody could guess it.
        hit |= lowest_bit(w) & -Word{any(row & others)};
        dead |= lowest_bit(w) & (Word{any(row & senders_)} - 1);
      }
      alive_ &= ~in_word(at, dead);
      if (hit) {
        now.segment = at * kWordBits + std::countr_zero(hit), now.row = holders(now.segment);
        return true;
      }
      now.candidates &= ~in_word(at, lowest_bit(left[3]) | (lowest_bit(left[3]) - 1));
    }
  }

  /// Which segments still have a sender, from the senders' columns.
  LATECOMER_AVX512 void count_alive() {
    Set some{}, two{};
    for (Set left = senders_; const Words filled = words(left);) {
      const int at = std::countr_zero(filled);
      const Word bits = first_word(left, filled);
      for (Word b = bits; b; b &= b - 1) {
        const Set column = held(at * kWordBits + std::countr_zero(b));
        if (sparse_) two |= some & column;
        some |= column;
      }
      left &= ~in_word(at, bits);
    }
    alive_ &= some, in_vain_ = 0;
    if (sparse_) twice_ = alive_ & two, counted_ = true;
  }

  /// By how much less the others than the root hold.
  LATECOMER_AVX512 std::int64_t end_round(const Emit& emit) {
    std::int64_t less = sent_count_;
    for (int i = 0; i < sent_count_; ++i) {
      const auto [src, dst, j] = sent_[static_cast<std::size_t>(i)];
      held(dst) |= only(j), holders(j) |= only(dst);
      if (--members_[static_cast<std::size_t>(j)] == 1) shared_ &= ~only(j);
      less -= src == root_;
      messages_[static_cast<std::size_t>(i)] = {rounds_.round(), places_.rank_at(src), places_.rank_at(dst), j};
    }
    if (sent_count_ > 0) emit({messages_.data(), static_cast<std::size_t>(sent_count_)});
    bool somebody = false;
    for (int i = 0; i < sent_count_; ++i)
      if (const int src = sent_[static_cast<std::size_t>(i)].src; src != root_ && !any(held(src)))
        gone_[static_cast<std::size_t>(places_.rank_at(src))] = 1, somebody = true, everybody_ &= ~only(src);
    if (somebody) rounds_.drop([&](Rank r) { return gone_[static_cast<std::size_t>(r)] != 0; });
    return less;
  }

  Set& held(int place) { return held_[static_cast<std::size_t>(place)].set; }
  Set& holders(int segment) { return holders_[static_cast<std::size_t>(segment)].set; }

  /// A look in vain costs as much as this many columns of senders.
  static constexpr int kColumnsPerLook = 2;

  const Problem& problem_;
  Places places_;
  Rounds rounds_;
  std::vector<Cell> held_, holders_;  // [place] of segments, [segment] of places
  std::vector<int> members_;          // of the group, that hold the segment
  std::vector<char> gone_;            // [rank]
  std::vector<int> receivers_;        // all but the sink, as they are served
  std::vector<Sent> sent_;            // in this round
  std::vector<Message> messages_;     // the same, by ranks
  const int root_;
  bool root_came_ = false;
  bool sparse_ = false, counted_ = false;  // whether this round counts segments with two senders; whether it has
  int sink_ = 0, others_ = 0, sent_count_ = 0, senders_left_ = 0, in_vain_ = 0;
  // Segments that somebody in the group holds, that two do, that may still be sent in this round, and that had two
  // senders when they were counted; the group; who of it has not sent; places from the head's on, which come before the
  // others.
  Set here_, shared_, alive_, twice_, everybody_, senders_, upper_;
};

__attribute__((target(LATECOMER_TARGET))) void run_wide(const Problem& problem, const Emit& emit) {
  Wide table(problem);
  table.run(emit);
}

}  // namespace

void plan_wide(const Problem& problem, const Emit& emit) {
  const int most = std::max(problem.ranks(), problem.segments);
  const bool served = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (served && most <= kMost) run_wide(problem, emit);
  else plan_rows(problem, emit);
}

}  // namespace latecomer::core::clairvoyant
#else
namespace latecomer::core::clairvoyant {
void plan_wide(const Problem& problem, const Emit& emit) { plan_rows(problem, emit); }
}  // namespace latecomer::core::clairvoyant
#endif
