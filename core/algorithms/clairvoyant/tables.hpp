// SPDX-License-Identifier: BSD-3-Clause
// The segments that each rank holds, as bits by columns and by rows, and the ranks that may still send in a round.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/algorithms/clairvoyant/rounds.hpp"

namespace latecomer::core::clairvoyant {

using Word = std::uint64_t;
inline constexpr int kWordBits = 64;
constexpr std::size_t words_for(int bits) { return static_cast<std::size_t>(bits + kWordBits - 1) / kWordBits; }
constexpr Word bit(int i) { return Word{1} << (i % kWordBits); }
constexpr std::size_t word(int i) { return static_cast<std::size_t>(i) / kWordBits; }

/// Four words at once: GCC makes one instruction of it where the processor has one, two or four elsewhere.
typedef Word Vector __attribute__((vector_size(32), aligned(8), may_alias));
inline constexpr std::size_t kVectorWords = sizeof(Vector) / sizeof(Word);

// The processor's widest vectors, chosen at run time; everything below is inlined. Sanitizers are not ready yet when
// the dynamic linker makes that choice; clang does not combine the two attributes.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define LATECOMER_WIDEST __attribute__((flatten, target_clones("avx512f", "avx2", "default")))
#else
#define LATECOMER_WIDEST
#endif

/// `count` sets of `bits` bits each, filled up to whole vectors.
class BitRows {
 public:
  BitRows(int count, int bits, bool full = false)
      : width_((words_for(bits) + kVectorWords - 1) / kVectorWords * kVectorWords),
        words_(static_cast<std::size_t>(count) * width_) {
    for (int i = 0; full && i < count; ++i) fill((*this)[i], bits);
  }
  Word* operator[](int i) { return words_.data() + static_cast<std::size_t>(i) * width_; }
  const Word* operator[](int i) const { return words_.data() + static_cast<std::size_t>(i) * width_; }
  bool test(int i, int b) const { return ((*this)[i][word(b)] & bit(b)) != 0; }
  void set(int i, int b) { (*this)[i][word(b)] |= bit(b); }
  void clear(int i, int b) { (*this)[i][word(b)] &= ~bit(b); }
  std::size_t width() const { return width_; }
  std::size_t bytes() const { return words_.size() * sizeof(Word); }
  static void fill(Word* set, int bits) {
    for (int at = 0; at < bits; at += kWordBits) set[word(at)] = bits - at >= kWordBits ? ~Word{0} : bit(bits - at) - 1;
  }

 private:
  std::size_t width_;
  std::vector<Word> words_;
};

/// The table of generator `rows`, which makes the plan of an allreduce, too. Processes are known by their places.
class Rows {
 public:
  explicit Rows(const Problem& problem)
      : segments_(problem.segments),
        places_(problem),
        held_(problem.ranks(), segments_, true),
        holders_(segments_, problem.ranks(), true),
        here_(words_for(segments_)),
        shared_(here_),
        found_here_(here_),
        found_shared_(here_),
        members_(static_cast<std::size_t>(segments_), 0),
        senders_(holders_.width(), 0),
        words_(words_for(problem.ranks())),
        count_(problem.arrivals.size(), segments_),
        joined_(count_.size(), 0) {}

  void begin_round(std::span<const Rank> group) {
    head_ = place(group.front());
    std::fill(senders_.begin(), senders_.end(), 0);
    for (const Rank r : group) {
      const int p = place(r);
      senders_[word(p)] |= bit(p);
      if (joined_[static_cast<std::size_t>(p)]) continue;
      joined_[static_cast<std::size_t>(p)] = 1;  // with all its segments
      for (int j = 0; j < segments_; ++j)
        if (++members_[static_cast<std::size_t>(j)] == 2) shared_[word(j)] |= bit(j);
        else here_[word(j)] |= bit(j);
    }
    found_here_ = here_;
    found_shared_ = shared_;
    senders_left_ = static_cast<int>(group.size());
    received_.clear();
  }

  Found find(Rank rank, bool sink) {
    const int p = place(rank);
    const Without without(*this, p);
    const Word* mine = held_[p];
    if (senders_left_ - without.was_there() <= kFew) return find_among_few(mine, sink);
    for (std::size_t w = 0; w < here_.size(); ++w)
      for (Word left = (mine[w] & found_shared_[w]) | (sink ? ~mine[w] & found_here_[w] : 0); left; left &= left - 1) {
        const int j = static_cast<int>(w) * kWordBits + std::countr_zero(left);
        const int from = first_in(holders_[j]);
        if (from >= 0) return {places_.rank_at(from), j};
        if (!(without.was_there() && holders_.test(j, p))) {
          found_here_[w] &= ~bit(j);
          found_shared_[w] &= ~bit(j);
        }
      }
    return {};
  }

  bool move(Rank from, Rank to, int j) {
    const int s = place(from), d = place(to);
    sent(from);
    clear(s, j);
    --count(s);
    const bool held = held_.test(d, j);
    clear(d, j);
    if (!held) ++count(d);
    else if (--members_[static_cast<std::size_t>(j)] == 1) {
      shared_[word(j)] &= ~bit(j);
      found_shared_[word(j)] &= ~bit(j);
    }
    received_.push_back({d, j});
    return held;
  }
  void end_round() {
    for (const auto& [d, j] : received_) {
      held_.set(d, j);
      holders_.set(j, d);
    }
  }
  int holds(Rank r) const { return count_[static_cast<std::size_t>(place(r))]; }

  // Only the plan of an allreduce needs the following functions.
  /// The part of a segment that the rank holds is no share any more.
  void retire(Rank r, int j) { clear(place(r), j); }
  bool may_send(Rank r) const { return (senders_[word(place(r))] & bit(place(r))) != 0; }
  void sent(Rank r) {
    senders_[word(place(r))] &= ~bit(place(r));
    --senders_left_;
  }
  int place(Rank r) const { return places_.of(r); }

 private:
  void clear(int place, int j) {
    held_.clear(place, j);
    holders_.clear(j, place);
  }

  /// Takes a receiver out of the senders during the search for its own sender.
  class Without {
   public:
    Without(Rows& rows, int place) : senders_(rows.senders_[word(place)]), mine_(senders_ & bit(place)) {
      senders_ &= ~mine_;
    }
    ~Without() { senders_ |= mine_; }
    Without(const Without&) = delete;
    Without& operator=(const Without&) = delete;
    bool was_there() const { return mine_ != 0; }

   private:
    Word& senders_;
    Word mine_;
  };

  /// Near the end of a round most ranks have sent, and most rows are empty. The columns of the few other ranks then
  /// answer sooner than the rows.
  Found find_among_few(const Word* mine, bool sink) const {
    int few[kFew], count = 0;
    const std::size_t h = word(head_);
    const auto take = [&](std::size_t w, Word bits) {
      for (; bits; bits &= bits - 1) few[count++] = static_cast<int>(w) * kWordBits + std::countr_zero(bits);
    };
    take(h, senders_[h] & ~(bit(head_) - 1));
    for (std::size_t w = h + 1; w < words_; ++w) take(w, senders_[w]);
    for (std::size_t w = 0; w < h; ++w) take(w, senders_[w]);
    take(h, senders_[h] & (bit(head_) - 1));
    for (std::size_t w = 0; w < here_.size(); ++w) {
      Word theirs = 0;
      for (int i = 0; i < count; ++i) theirs |= held_[few[i]][w];
      if (const Word both = theirs & (sink ? ~Word{0} : mine[w])) {
        const int j = static_cast<int>(w) * kWordBits + std::countr_zero(both);
        for (int i = 0;; ++i)
          if (held_.test(few[i], j)) return {places_.rank_at(few[i]), j};
      }
    }
    return {};
  }
  /// From the head on: the upper part of its word comes first and the lower part last.
  int first_in(const Word* set) const {
    Vector any{};
    for (std::size_t w = 0; w < senders_.size(); w += kVectorWords)
      any |= reinterpret_cast<const Vector&>(set[w]) & reinterpret_cast<const Vector&>(senders_[w]);
    if ((any[0] | any[1] | any[2] | any[3]) == 0) return -1;
    const std::size_t h = word(head_);
    const Word upper = ~(bit(head_) - 1);
    std::size_t w = h;
    Word found = set[w] & senders_[w] & upper;
    while (!found) {
      w = w + 1 == words_ ? 0 : w + 1;
      found = set[w] & senders_[w];
    }
    return static_cast<int>(w) * kWordBits + std::countr_zero(found);
  }
  int& count(int place) { return count_[static_cast<std::size_t>(place)]; }

  /// Measured for 1, 8, 16, 24 and 48: planning a reduce on 48 ranks in 512 segments takes 86, 73, 68, 91 and 87 ns per
  /// message if arrivals span 1,000 rounds. With balanced arrivals, it takes 20, 22, 27, 35 and 80 ns.
  static constexpr int kFew = 24;
  int segments_, head_ = 0, senders_left_ = 0;
  Places places_;
  BitRows held_;     // [place][segment]
  BitRows holders_;  // [segment][place]
  // Segments that at least one rank of the group holds, and that at least two hold. A segment that only the receiver
  // holds has no sender. A segment without a sender is left out until the round ends.
  std::vector<Word> here_, shared_, found_here_, found_shared_;
  std::vector<int> members_;   // of the group, that hold the segment
  std::vector<Word> senders_;  // [place], the processes that may still send
  std::size_t words_;          // of a row that are in use
  std::vector<int> count_;
  std::vector<char> joined_;
  struct Received {
    int place, segment;
  };
  std::vector<Received> received_;
};

}  // namespace latecomer::core::clairvoyant
