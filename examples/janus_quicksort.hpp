// SPDX-License-Identifier: BSD-3-Clause
// Janus Quicksort (Axtmann, Wiebigke and Sanders 2018, section VII). Sorts n elements on P processes, for any n and P.
// Process i ends with elements [i n / P, (i + 1) n / P) of the sorted order. The first n mod P processes have one more.
//
// The sorted order has n places, and every process owns an interval of places. A task sorts an interval of places on
// the processes that own one of them. A process at the end of a task may also own places of the next task. Such a janus
// process works on both tasks, on whichever can proceed. One level of a task:
// - The median of a sample becomes the pivot.
// - A scan counts the elements less than, equal to and greater than the pivot.
// - Every element goes to an owner of a place of its part (see Assignment).
// - The smaller and the greater elements are the next tasks. The equal elements are in place.
// The paper alternates between < and <= to handle duplicates. Three parts always make progress and never move equal
// elements again. Tasks on one or two processes are base cases, which run when no larger task is left.
//
// The code is generic over the element (trivially copyable, with operator<) and over the communicator: see Ranges and
// MpiComms.
#pragma once

#include <sched.h>

#include <algorithm>
#include <bit>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <latecomer/range.hpp>
#if __has_include(<ips4o.hpp>)  // Debian's libips4o-dev
#include <ips4o.hpp>
#define JANUS_HAS_IPS4O 1
#endif
#include <list>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace janus {

using Count = std::int64_t;

/// Range communicators, which are created locally.
struct Ranges {
  using Comm = latecomer::range::Comm;
  using Request = latecomer::range::Request;
  static Comm world(const Comm& all) { return all; }
  static Comm part(const Comm& of, int first, int last) { return of.part(first, last); }
  static Comm beside(const Comm& all) { return all.with_context(all.get()->context + 1); }
  static void release(Comm&) {}
  static int rank(const Comm& c) { return c.rank(); }
  static int size(const Comm& c) { return c.size(); }
  /// Accounts for the time of `Count` comparisons on a modelled cluster.
  static void spend(const Comm&, Count) {}
  static void ibcast(void* data, Count bytes, int root, const Comm& c, Request* r) {
    c.ibcast(data, MPI_Count{bytes}, MPI_BYTE, root, r);
  }
  static void iscan(const Count* in, Count* out, int n, const Comm& c, Request* r) {
    c.iscan(in, out, MPI_Count{n}, MPI_INT64_T, MPI_SUM, r);
  }
  static void iallgather(const Count* in, Count* out, int n, const Comm& c, Request* r) {
    c.iallgather(in, MPI_Count{n}, MPI_INT64_T, out, MPI_Count{n}, MPI_INT64_T, r);
  }
  static void isend(const void* data, Count bytes, int to, int tag, const Comm& c, Request* r) {
    c.isend(data, MPI_Count{bytes}, MPI_BYTE, to, tag, r);
  }
  static bool all_done(std::vector<Request>& r) {
    int flag = 0;
    latecomer_range_testall(static_cast<int>(r.size()), r.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  }
  /// Receives a message if one has arrived, to the address that `room(tag, bytes)` returns.
  template <typename Room>
  static bool take(int from, int tag, const Comm& c, Room room) {
    int flag = 0;
    latecomer_range_message message;
    MPI_Status status;
    c.improbe(from, tag, &flag, &message, &status);
    if (!flag) return false;
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    latecomer_range_mrecv(room(status.MPI_TAG, bytes), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return true;
  }
  /// The same for messages with one of `tags` tags, beginning with `tag`. The communicator has no other messages.
  template <typename Room>
  static bool take_any(int, int, const Comm& c, Room room) {
    return take(MPI_ANY_SOURCE, MPI_ANY_TAG, c, room);
  }
};

#if MPI_VERSION >= 4
#define JANUS_COUNTED(function) function##_c
using Length = MPI_Count;
#else
#define JANUS_COUNTED(function) function
using Length = int;
#endif

/// MPI communicators from MPI_Comm_create_group. All members must take part. With MPI 3.1, a message has less than 2
/// GiB.
struct MpiComms {
  using Comm = MPI_Comm;
  using Request = MPI_Request;
  static Comm part(Comm of, int first, int last) {
    MPI_Group all, some;
    MPI_Comm_group(of, &all);
    int triple[1][3] = {{first, last, 1}};
    MPI_Group_range_incl(all, 1, triple, &some);
    Comm out;
    MPI_Comm_create_group(of, some, 0, &out);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return out;
  }
  static Comm world(Comm all) {
    Comm out;
    MPI_Comm_dup(all, &out);
    return out;
  }
  static Comm beside(Comm all) { return world(all); }
  static void release(Comm& c) { MPI_Comm_free(&c); }
  static int rank(Comm c) {
    int out;
    MPI_Comm_rank(c, &out);
    return out;
  }
  static int size(Comm c) {
    int out;
    MPI_Comm_size(c, &out);
    return out;
  }
  static void spend(Comm, Count) {}
  static void ibcast(void* data, Count bytes, int root, Comm c, Request* r) {
    JANUS_COUNTED(MPI_Ibcast)(data, static_cast<Length>(bytes), MPI_BYTE, root, c, r);
  }
  static void iscan(const Count* in, Count* out, int n, Comm c, Request* r) {
    MPI_Iscan(in, out, n, MPI_INT64_T, MPI_SUM, c, r);
  }
  static void iallgather(const Count* in, Count* out, int n, Comm c, Request* r) {
    MPI_Iallgather(in, n, MPI_INT64_T, out, n, MPI_INT64_T, c, r);
  }
  static void isend(const void* data, Count bytes, int to, int tag, Comm c, Request* r) {
    JANUS_COUNTED(MPI_Isend)(data, static_cast<Length>(bytes), MPI_BYTE, to, tag, c, r);
  }
  static bool all_done(std::vector<Request>& r) {
    int flag = 0;
    MPI_Testall(static_cast<int>(r.size()), r.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  }
  template <typename Room>
  static bool take(int from, int tag, Comm c, Room room) {
    int flag = 0;
    MPI_Message message;
    MPI_Status status;
    MPI_Improbe(from, tag, c, &flag, &message, &status);
    if (!flag) return false;
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    JANUS_COUNTED(MPI_Mrecv)
    (room(status.MPI_TAG, bytes), static_cast<Length>(bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return true;
  }
  template <typename Room>
  static bool take_any([[maybe_unused]] int tag, [[maybe_unused]] int tags, Comm c, Room room) {
#ifdef OPEN_MPI
    // MPI_Comm_create_group sends its own messages with the user's tag, so a receive of any tag takes them.
    for (int one = tag; one < tag + tags; ++one)
      if (take(MPI_ANY_SOURCE, one, c, room)) return true;
    return false;
#else
    return take(MPI_ANY_SOURCE, MPI_ANY_TAG, c, room);
#endif
  }
};

/// Sorts the elements of one process, by in-place super scalar samplesort where it is installed.
template <typename T>
void sort_locally(T* begin, T* end) {
#ifdef JANUS_HAS_IPS4O
  ips4o::sort(begin, end);
#else
  std::sort(begin, end);
#endif
}

/// The places that each process owns.
struct Places {
  Count n;
  int processes;
  Count begin(int i) const { return i * (n / processes) + std::min<Count>(i, n % processes); }
  int owner(Count place) const {
    const Count each = n / processes, more = n % processes;
    return static_cast<int>(place < more * (each + 1) ? place / (each + 1) : more + (place - more * (each + 1)) / each);
  }
};

/// The assignment of a part's elements to processes (Axtmann, Wiebigke and Sanders 2018, section VII). Greedy: in the
/// order of the senders, computed by one scan; a process may receive from all others. Deterministic: first spreads the
/// small pieces evenly over the processes that own only places of the part, then fills the rest with large pieces.
/// Processes that know one piece of both sides match them. A process then sends at most eight messages per level, and
/// it receives at most 3 r + 3 messages of a part. Here r is the number of the task's processes, divided by the number
/// of processes that the part fills.
enum class Assignment { greedy, deterministic };

/// Measurements of one sort.
struct Statistics {
  int levels = 0;         ///< depth of the deepest task on this process
  int communicators = 0;  ///< created on this process
  Count messages = 0;     ///< messages with elements that this process sent
  int most_sent = 0;      ///< at one level of one task
  int most_received = 0;  ///< of one part, at one level of one task
  int over = 0;           ///< parts with more messages than deterministic assignment guarantees
};

template <typename Kind, typename T>
class Sorter {
 public:
  using Comm = typename Kind::Comm;
  using Request = typename Kind::Request;

  /// Collective over `all`. Every process passes any number of elements and gets its share of the sorted order.
  static std::vector<T> sort(Comm all, std::vector<T> data, Assignment assignment = Assignment::greedy,
                             std::uint64_t seed = 1, Statistics* statistics = nullptr) {
    Sorter s(all, std::move(data), assignment, seed);
    // Derived: 20 steps that find nothing take less than 10 us. A step may move a message that only the next step
    // finds, so a yield after each step would make it wait for the other ranks of the core.
    constexpr int kSpins = 20;
    for (int idle = 0; !s.done();)
      if (s.step()) idle = 0;
      else if (++idle > kSpins) sched_yield();
    if (statistics) *statistics = s.statistics();
    return std::move(s.sorted());
  }

  /// The same sort in steps.
  Sorter(Comm all, std::vector<T> data, Assignment assignment, std::uint64_t seed)
      : all_(Kind::world(all)),
        beside_(Kind::beside(all_)),
        seed_(seed),
        assignment_(assignment),
        me_(Kind::rank(all_)) {
    jobs_.push_back(begin(std::move(data)));
  }
  ~Sorter() {
    for (const Job& j : jobs_) j.handle.destroy();
    Kind::release(beside_);
    Kind::release(all_);
  }
  Sorter(const Sorter&) = delete;
  Sorter& operator=(const Sorter&) = delete;
  /// Advances every task that can proceed. Returns false if none can.
  bool step() {
    bool moved = false;
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      const auto handle = at->handle;
      if (!handle.promise().ready || handle.promise().ready()) {
        handle.promise().ready = nullptr;
        handle.resume();
        moved = true;
      }
      if (handle.done()) {
        handle.destroy();
        at = jobs_.erase(at);
      } else ++at;
    }
    // Base cases run only when no larger task waits for this process.
    if (jobs_.empty())
      for (BaseCase& b : std::exchange(bases_, {})) jobs_.push_back(base(std::move(b)));
    return moved;
  }
  bool done() const { return jobs_.empty(); }
  std::vector<T>& sorted() { return sorted_; }
  const Statistics& statistics() const { return statistics_; }

 private:
  /// A task of this process, suspended while it waits for other processes.
  struct Job {
    struct promise_type {
      std::function<bool()> ready;
      Job get_return_object() { return Job{std::coroutine_handle<promise_type>::from_promise(*this)}; }
      std::suspend_always initial_suspend() noexcept { return {}; }
      std::suspend_always final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }
      struct Wait {
        bool await_ready() { return false; }
        void await_suspend(std::coroutine_handle<>) {}
        void await_resume() {}
      };
      Wait await_transform(std::function<bool()> condition) {
        ready = std::move(condition);
        return {};
      }
    };
    std::coroutine_handle<promise_type> handle;
  };
  struct BaseCase {
    Count lo, hi;
    bool spare;  // whether the elements are in spare_
  };
  /// Sums of `n` counts over the ranks of a communicator. An allgather takes half of the rounds of a scan and a
  /// broadcast. Derived: 64 ranks and two counts are 1 KiB, which is still a short message.
  static constexpr int kMostGathered = 64;
  struct Sums {
    std::vector<Count> mine, all, before, total;  // before: of the preceding ranks
    std::vector<Request> requests = std::vector<Request>(1);
    bool gathers = false;
  };
  static constexpr int kParts = 3;  // less, equal, greater
  enum Tag {
    kSample = 1,
    kBase,
    kFirst,
    kData,
    kSmall = kData + kParts,
    kClaim = kSmall + kParts,
    kShare = kClaim + kParts
  };

  /// The exchange of elements at one level.
  struct Exchange {
    struct Part {
      Count lo, hi;   // places
      Count mine;     // elements on this process
      Count before;   // elements on preceding processes
      const T* data;  // the elements on this process
      T* into;        // the places of this process
      Count room;     // the number of these places
      Count got = 0;  // elements there
      int messages = 0, copies = 0;

      T* next(Count count) { return into + std::exchange(got, got + count); }
    };
    Comm comm;
    int first;  // process of the communicator's first rank
    Part parts[kParts];
    int sent = 0;  // messages of elements of this task only: a janus process works on two tasks
    bool done = false;
  };
  /// Deterministic assignment: an interval of positions in a part's large pieces, or in the free places for them.
  struct Claim {
    Count begin, length;
    std::int32_t rank, receives;
  };
  struct Portion {
    Count begin, length;
    std::int64_t to;
  };

  template <typename Item>
  static char* grow(std::vector<Item>& v, Count bytes) {
    const std::size_t before = v.size();
    v.resize(before + static_cast<std::size_t>(bytes) / sizeof(Item));
    return reinterpret_cast<char*>(v.data() + before);
  }
  template <typename Item>
  static void post(const std::vector<Item>& items, int to, int tag, const Comm& comm, std::vector<Request>& requests) {
    requests.emplace_back();
    Kind::isend(items.data(), static_cast<Count>(items.size() * sizeof(Item)), to, tag, comm, &requests.back());
  }
  static Count overlap(Count a_lo, Count a_hi, Count b_lo, Count b_hi) {
    return std::max<Count>(0, std::min(a_hi, b_hi) - std::max(a_lo, b_lo));
  }
  /// The elements of this process at one level are in sorted_, and at the next level in spare_. Both have room for the
  /// places of this process. The address of a place:
  T* at(Count place, bool spare) { return (spare ? spare_.get() : sorted_.data()) + (place - places_.begin(me_)); }
  static void copy(const T* from, Count count, T* to) {
    if (count > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
  typename Exchange::Part part(Count lo, Count hi, Count mine, Count before, const T* data, bool spare) {
    const Count begin = places_.begin(me_), end = places_.begin(me_ + 1);
    return {lo, hi, mine, before, data, at(std::clamp(lo, begin, end), spare), overlap(lo, hi, begin, end)};
  }

  /// Sends elements of a part to the owners of consecutive places, starting at `place`. Copies those of this process.
  /// `first`: the first process of the group. Returns the number of messages.
  int deal(typename Exchange::Part& part, Count place, int first, int tag, const Comm& comm,
           std::vector<Request>& requests) {
    int messages = 0;
    const T* data = part.data;
    for (Count count = part.mine; count > 0;) {
      const int owner = places_.owner(place);
      const Count n = std::min(count, places_.begin(owner + 1) - place);
      if (owner == me_) {
        copy(data, n, part.next(n));
      } else {
        requests.emplace_back();
        Kind::isend(data, n * static_cast<Count>(sizeof(T)), owner - first, tag, comm, &requests.back());
        ++messages;
      }
      data += n;
      count -= n;
      place += n;
    }
    return messages;
  }

  /// Begins the sums of `s.mine`. They are in `s.before` and `s.total` when have_sums() has returned true.
  static void begin_sums(Sums& s, const Comm& comm) {
    const std::size_t n = s.mine.size(), members = static_cast<std::size_t>(Kind::size(comm));
    s.gathers = Kind::size(comm) <= kMostGathered;
    s.before.assign(n, 0);
    s.total.assign(n, 0);
    if (s.gathers) {
      s.all.resize(n * members);
      Kind::iallgather(s.mine.data(), s.all.data(), static_cast<int>(n), comm, &s.requests[0]);
    } else Kind::iscan(s.mine.data(), s.before.data(), static_cast<int>(n), comm, &s.requests[0]);
  }
  /// Whether the sums are complete.
  static bool have_sums(Sums& s, const Comm& comm) {
    if (!Kind::all_done(s.requests)) return false;
    const std::size_t n = s.mine.size();
    const int members = Kind::size(comm), me = Kind::rank(comm);
    if (s.gathers) {
      for (std::size_t i = 0; i < s.all.size(); ++i)
        (i / n < static_cast<std::size_t>(me) ? s.before : s.total)[i % n] += s.all[i];
      for (std::size_t i = 0; i < n; ++i) s.total[i] += s.before[i];
      return true;
    }
    if (s.all.empty()) {
      // The scan is complete, and the last rank has the total.
      s.all = s.total = s.before;
      for (std::size_t i = 0; i < n; ++i) s.before[i] -= s.mine[i];
      s.requests.assign(1, Request{});
      Kind::ibcast(s.total.data(), static_cast<Count>(n * sizeof(Count)), members - 1, comm, &s.requests[0]);
      return false;
    }
    return true;
  }

  /// Distributes the input evenly.
  Job begin(std::vector<T> data) {
    if (Kind::size(all_) <= 2) {
      jobs_.push_back(sort_few(std::move(data)));
      co_return;
    }
    const Count mine = static_cast<Count>(data.size());
    Sums sums;
    sums.mine = {mine};
    begin_sums(sums, all_);
    co_await [&] { return have_sums(sums, all_); };
    places_ = {sums.total[0], Kind::size(all_)};
    const Count first = places_.begin(me_), share = places_.begin(me_ + 1) - first;
    spare_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(share));
    if (sums.before[0] == first && mine == share) {
      sorted_ = std::move(data);
    } else {
      std::vector<Request> requests;
      sorted_.resize(static_cast<std::size_t>(share));
      auto whole = part(0, places_.n, mine, sums.before[0], data.data(), false);
      statistics_.messages += deal(whole, whole.before, 0, kFirst, beside_, requests);
      while (whole.got < whole.room)
        co_await [&] {
          return Kind::take(MPI_ANY_SOURCE, kFirst, beside_, [&](int, Count bytes) { return room(whole, bytes); });
        };
      co_await [&] { return Kind::all_done(requests); };
    }
    if (share > 0) place(0, places_.n, all_, false, 0, 0);
  }
  static char* room(typename Exchange::Part& part, Count bytes) {
    return reinterpret_cast<char*>(part.next(bytes / static_cast<Count>(sizeof(T))));
  }

  /// All elements on one or two processes: each gets the other's and keeps its own part. The counts need no message.
  Job sort_few(std::vector<T> data) {
    std::unique_ptr<T[]> both;
    Count others = 0;
    if (Kind::size(all_) == 2) {
      std::vector<Request> requests(1);
      Kind::isend(data.data(), static_cast<Count>(data.size() * sizeof(T)), 1 - me_, kFirst, beside_, &requests[0]);
      co_await [&] {
        return Kind::take(1 - me_, kFirst, beside_, [&](int, Count bytes) {
          others = bytes / static_cast<Count>(sizeof(T));
          both = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(others) + data.size());
          return reinterpret_cast<char*>(both.get());
        });
      };
      co_await [&] { return Kind::all_done(requests); };
    }
    places_ = {others + static_cast<Count>(data.size()), Kind::size(all_)};
    if (Kind::size(all_) == 2) {
      copy(data.data(), static_cast<Count>(data.size()), both.get() + others);
      data.resize(static_cast<std::size_t>(places_.begin(me_ + 1) - places_.begin(me_)));
    }
    sorted_ = std::move(data);
    sort_own(both.get(), 0, places_.n);
  }

  /// Sorts the part of this process out of the elements of places [lo, hi), which belong to two processes; nullptr: the
  /// elements are in place.
  void sort_own(T* elements, Count lo, Count hi) {
    const Count begin = std::max(lo, places_.begin(me_)), share = std::min(hi, places_.begin(me_ + 1)) - begin;
    T* const own = at(begin, false);
    if (elements) {
      const Count cut = begin == lo ? share : begin - lo;
      if (cut < hi - lo) std::nth_element(elements, elements + cut, elements + (hi - lo));
      copy(elements + (begin - lo), share, own);
    }
    sort_locally(own, own + share);
    Kind::spend(all_, share * std::bit_width(static_cast<std::uint64_t>(share)));
  }

  /// Continues with places [lo, hi), of which this process has its share of elements. `from`: the first process of the
  /// parent.
  void place(Count lo, Count hi, Comm parent, bool spare, int level, int from) {
    if (lo >= hi) return;
    const int first = places_.owner(lo), last = places_.owner(hi - 1);
    if (me_ < first || me_ > last) return;
    if (last - first <= 1) {
      bases_.push_back({lo, hi, spare});
      return;
    }
    ++statistics_.communicators;
    jobs_.push_back(task(lo, hi, Kind::part(parent, first - from, last - from), spare, level));
  }

  Job task(Count lo, Count hi, Comm comm, bool spare, int level) {
    statistics_.levels = std::max(statistics_.levels, level + 1);
    const int first = places_.owner(lo), members = Kind::size(comm), me = Kind::rank(comm);
    const Count begin = std::max(lo, places_.begin(me_)), share = std::min(hi, places_.begin(me_ + 1)) - begin;
    T* const data = at(begin, spare);
    std::vector<Request> requests;

    // The pivot. All members choose the same places for the sample because they use the same seed.
    std::uint64_t state = seed_ ^ (static_cast<std::uint64_t>(lo) * 0x9e3779b97f4a7c15u) ^
                          (static_cast<std::uint64_t>(hi) << 20) ^ static_cast<std::uint64_t>(level);
    const auto draw = [&state] {
      state += 0x9e3779b97f4a7c15u;
      std::uint64_t z = state;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      return z ^ (z >> 31);
    };
    const Count wanted = std::min<Count>(
        hi - lo, std::max<Count>({15, 4 * std::bit_width(static_cast<unsigned>(members)), (hi - lo) / members / 64}));
    std::vector<T> sample;
    Count others = 0;
    for (Count i = 0; i < wanted; ++i) {
      const Count at = lo + static_cast<Count>(draw() % static_cast<std::uint64_t>(hi - lo));
      if (at >= begin && at < begin + share) sample.push_back(data[at - begin]);
      else ++others;
    }
    T pivot{};
    if (me == 0) {
      while (others > 0)
        co_await [&] {
          return Kind::take(MPI_ANY_SOURCE, kSample, comm, [&](int, Count bytes) {
            others -= bytes / static_cast<Count>(sizeof(T));
            return grow(sample, bytes);
          });
        };
      std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2), sample.end());
      pivot = sample[sample.size() / 2];
    } else if (!sample.empty()) {
      requests.emplace_back();
      Kind::isend(sample.data(), static_cast<Count>(sample.size() * sizeof(T)), 0, kSample, comm, &requests.back());
    }
    requests.emplace_back();
    Kind::ibcast(&pivot, sizeof(T), 0, comm, &requests.back());
    co_await [&] { return Kind::all_done(requests); };

    // Split into three parts, and count the elements of each part on the preceding processes.
    T* const less_end = std::partition(data, data + share, [&](const T& x) { return x < pivot; });
    T* const equal_end = std::partition(less_end, data + share, [&](const T& x) { return !(pivot < x); });
    Kind::spend(comm, share);
    Sums sums;
    sums.mine = {less_end - data, equal_end - less_end};
    begin_sums(sums, comm);
    co_await [&] { return have_sums(sums, comm); };
    const Count less = sums.mine[0], equal = sums.mine[1], less_hi = lo + sums.total[0],
                greater_lo = less_hi + sums.total[1], less_before = sums.before[0], equal_before = sums.before[1],
                greater_before = begin - lo - less_before - equal_before;

    Exchange exchange{comm,
                      first,
                      {part(lo, less_hi, less, less_before, data, !spare),
                       part(less_hi, greater_lo, equal, equal_before, less_end, !spare),
                       part(greater_lo, hi, share - less - equal, greater_before, equal_end, !spare)}};
    jobs_.push_back(assignment_ == Assignment::greedy ? exchange_greedily(exchange) : exchange_bounded(exchange));
    co_await [&] { return exchange.done; };
    statistics_.messages += exchange.sent;
    statistics_.most_sent = std::max(statistics_.most_sent, exchange.sent);
    const auto& in_place = exchange.parts[1];
    if (in_place.room > 0) copy(in_place.into, in_place.room, at(std::max(begin, less_hi), false));
    place(lo, less_hi, comm, !spare, level + 1, first);
    place(greater_lo, hi, comm, !spare, level + 1, first);
    Kind::release(comm);
  }

  /// Receives a message with elements of any part. Returns false if none has arrived. Other messages of the task do not
  /// come before it is complete, except in the deterministic assignment.
  bool take_elements(Exchange& x, int tag) {
    const auto into = [&](int with, Count bytes) {
      auto& part = x.parts[with - tag];
      statistics_.most_received = std::max(statistics_.most_received, ++part.messages);
      return room(part, bytes);
    };
    if (assignment_ == Assignment::greedy) return Kind::take_any(tag, kParts, x.comm, into);
    for (int q = 0; q < kParts; ++q)
      if (x.parts[q].got < x.parts[q].room && Kind::take(MPI_ANY_SOURCE, tag + q, x.comm, into)) return true;
    return false;
  }
  static bool has_all(const Exchange& x) {
    return std::all_of(std::begin(x.parts), std::end(x.parts), [](const auto& part) { return part.got >= part.room; });
  }

  Job exchange_greedily(Exchange& x) {
    std::vector<Request> requests;
    for (int q = 0; q < kParts; ++q)
      x.sent += deal(x.parts[q], x.parts[q].lo + x.parts[q].before, x.first, kData + q, x.comm, requests);
    while (!has_all(x)) co_await [&] { return take_elements(x, kData); };
    co_await [&] { return Kind::all_done(requests); };
    x.done = true;
  }

  /// Sends elements of part `q` to a rank, or copies them to the places of this process.
  void send(Exchange& x, int q, Count from, Count count, int to, int tag, std::vector<Request>& requests) {
    auto& part = x.parts[q];
    if (to == Kind::rank(x.comm)) {
      copy(part.data + from, count, part.next(count));
      ++part.copies;
      return;
    }
    requests.emplace_back();
    Kind::isend(part.data + from, count * static_cast<Count>(sizeof(T)), to, tag + q, x.comm, &requests.back());
    ++x.sent;
  }

  Job exchange_bounded(Exchange& x) {
    const int members = Kind::size(x.comm), me = Kind::rank(x.comm);
    const Count share = places_.n / places_.processes;
    std::vector<Request> requests;
    // A piece is small if the most pieces that a process can get fill at most half of its places.
    struct Plan {
      int full, filled;       // the first process that owns only places of this part, and the number of such processes
      Count rate, threshold;  // processes of the task per such process; greatest size of a small piece
      Count smalls, large;    // total
      Count small_before, large_before, small_each, room_before, width;
      bool small;
      int offers = 0;
    } plans[kParts];
    Sums sums;
    sums.mine.resize(2 * kParts);
    auto &mine = sums.mine, &before = sums.before, &total = sums.total;
    for (int q = 0; q < kParts; ++q) {
      const auto& part = x.parts[q];
      Plan& p = plans[q];
      p.full = 0;
      p.filled = 0;
      if (part.lo < part.hi) {
        const int from = places_.owner(part.lo), to = places_.owner(part.hi - 1);
        p.full = part.lo == places_.begin(from) ? from : from + 1;
        p.filled = std::max(0, (part.hi == places_.begin(to + 1) ? to + 1 : to) - p.full);
      }
      p.rate = p.filled > 0 ? (members + p.filled - 1) / p.filled : members;
      p.threshold = p.filled > 0 ? share / (2 * p.rate) : 0;
      p.small = part.mine > 0 && part.mine <= p.threshold;
      mine[q] = p.small;
      mine[kParts + q] = p.small ? 0 : part.mine;
    }
    begin_sums(sums, x.comm);
    co_await [&] { return have_sums(sums, x.comm); };

    for (int q = 0; q < kParts; ++q) {
      Plan& p = plans[q];
      p.smalls = total[q];
      p.large = total[kParts + q];
      p.small_before = before[q];
      p.large_before = before[kParts + q];
      p.small_each = p.filled > 0 ? (p.smalls + p.filled - 1) / p.filled : 0;
      p.width = std::max<Count>({1, share / 2, (p.large + members - 1) / members});
      if (!p.small) continue;
      send(x, q, 0, x.parts[q].mine, p.full + static_cast<int>(p.small_before / p.small_each) - x.first, kSmall,
           requests);
    }
    for (;;) {
      const bool waits = [&] {
        for (int q = 0; q < kParts; ++q) {
          const Plan& p = plans[q];
          const Count nth = me_ - p.full;
          if (nth >= 0 && nth < p.filled &&
              x.parts[q].messages + x.parts[q].copies <
                  std::min(p.smalls, (nth + 1) * p.small_each) - nth * p.small_each)
            return true;
        }
        return false;
      }();
      if (!waits) break;
      co_await [&] { return take_elements(x, kSmall); };
    }

    // The position of the remaining places of this process among all remaining places.
    Count left[kParts], left_upto[kParts];
    for (int q = 0; q < kParts; ++q) left[q] = x.parts[q].room - x.parts[q].got;
    requests.emplace_back();
    Kind::iscan(left, left_upto, kParts, x.comm, &requests.back());
    co_await [&] { return Kind::all_done(requests); };

    // Both sides send their positions to the matching processes.
    requests.clear();
    std::list<std::vector<Claim>> claims_out;
    std::vector<Claim> claims[kParts];
    Count unmatched[kParts];
    for (int q = 0; q < kParts; ++q) {
      Plan& p = plans[q];
      p.room_before = left_upto[q] - left[q];
      unmatched[q] = 2 * overlap(me * p.width, (me + 1) * p.width, 0, p.large);
      const auto tell = [&](Count begin, Count length, bool receives) {
        for (Count h = begin / p.width; length > 0 && h * p.width < begin + length; ++h) {
          claims_out.push_back({{begin, length, me, receives}});
          post(claims_out.back(), static_cast<int>(h), kClaim + q, x.comm, requests);
          p.offers += !receives;
        }
      };
      tell(p.large_before, mine[kParts + q], false);
      tell(p.room_before, left[q], true);
    }
    for (int q = 0; q < kParts; ++q)
      while (unmatched[q] > 0) {
        const std::size_t before = claims[q].size();
        co_await [&] {
          return Kind::take(MPI_ANY_SOURCE, kClaim + q, x.comm,
                            [&](int, Count bytes) { return grow(claims[q], bytes); });
        };
        for (std::size_t i = before; i < claims[q].size(); ++i)
          unmatched[q] -= overlap(me * plans[q].width, (me + 1) * plans[q].width, claims[q][i].begin,
                                  claims[q][i].begin + claims[q][i].length);
      }
    std::list<std::vector<Portion>> portions_out;
    for (int q = 0; q < kParts; ++q)
      for (const Claim& sends : claims[q]) {
        if (sends.receives) continue;
        portions_out.emplace_back();
        for (const Claim& gets : claims[q]) {
          const Count from = std::max({me * plans[q].width, sends.begin, gets.begin}),
                      to = std::min({(me + 1) * plans[q].width, sends.begin + sends.length, gets.begin + gets.length});
          if (gets.receives && from < to) portions_out.back().push_back({from, to - from, gets.rank});
        }
        post(portions_out.back(), sends.rank, kShare + q, x.comm, requests);
      }
    for (int q = 0; q < kParts; ++q) {
      const Plan& p = plans[q];
      std::vector<Portion> portions;
      for (int i = 0; i < p.offers; ++i)
        co_await [&] {
          return Kind::take(MPI_ANY_SOURCE, kShare + q, x.comm,
                            [&](int, Count bytes) { return grow(portions, bytes); });
        };
      std::sort(portions.begin(), portions.end(), [](const Portion& a, const Portion& b) { return a.begin < b.begin; });
      for (std::size_t i = 0; i < portions.size();) {
        Count length = 0;
        std::size_t next = i;
        while (next < portions.size() && portions[next].to == portions[i].to) length += portions[next++].length;
        send(x, q, portions[i].begin - p.large_before, length, static_cast<int>(portions[i].to), kData, requests);
        i = next;
      }
    }
    while (!has_all(x)) co_await [&] { return take_elements(x, kData); };
    co_await [&] { return Kind::all_done(requests); };
    for (int q = 0; q < kParts; ++q)
      statistics_.over += plans[q].filled > 0 && x.parts[q].messages > 3 * plans[q].rate + 3;
    x.done = true;
  }

  /// A task on one or two processes: each gets the other's elements and keeps its own part.
  Job base(BaseCase b) {
    const int first = places_.owner(b.lo), last = places_.owner(b.hi - 1);
    const Count begin = std::max(b.lo, places_.begin(me_)), share = std::min(b.hi, places_.begin(me_ + 1)) - begin;
    if (first == last) {
      copy(at(begin, b.spare), share, at(begin, false));
      sort_own(nullptr, b.lo, b.hi);
      co_return;
    }
    const auto both = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(b.hi - b.lo));
    Count got = share;
    copy(at(begin, b.spare), share, both.get());
    const int other = me_ == first ? last : first;
    std::vector<Request> requests(1);
    Kind::isend(at(begin, b.spare), share * static_cast<Count>(sizeof(T)), other, kBase, beside_, &requests[0]);
    co_await [&] {
      return Kind::take(other, kBase, beside_, [&](int, Count bytes) {
        return reinterpret_cast<char*>(both.get() + std::exchange(got, got + bytes / static_cast<Count>(sizeof(T))));
      });
    };
    co_await [&] { return Kind::all_done(requests); };
    sort_own(both.get(), b.lo, b.hi);
  }

  Comm all_, beside_;
  const std::uint64_t seed_;
  const Assignment assignment_;
  const int me_;
  Places places_{0, 1};
  std::vector<T> sorted_;
  std::unique_ptr<T[]> spare_;
  std::vector<BaseCase> bases_;
  std::list<Job> jobs_;
  Statistics statistics_;
};

}  // namespace janus
