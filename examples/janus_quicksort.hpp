// SPDX-License-Identifier: BSD-3-Clause
// Janus Quicksort (paper 004, section VII): sorts n elements on P processes so that process i ends with elements
// [i n / P, (i + 1) n / P) of the sorted order, the first n mod P processes with one more; for any n and P.
//
// The sorted order has n places, of which every process owns an interval. A task is an interval of places that is being
// sorted by the processes that own one of them; a process at its end may own places of the next task too (a janus process)
// and works on both, whichever can go on. A level of a task: the median of a sample is the pivot; elements less than, equal
// to and greater than it are counted by a scan; every element goes to the owner of the place that it is given (greedy
// message assignment); what is less and what is greater are the next tasks, what is equal has arrived. (The paper switches
// between < and <= to handle duplicates; three parts always make progress, and equal elements are never moved again.)
// Tasks on one or two processes are base cases, done when no larger task is left.
//
// Generic over the element (trivially copyable, with operator<) and over what a communicator is: see Ranges and MpiComms.
#pragma once

#include <latecomer/range.hpp>

#include <algorithm>
#include <bit>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <sched.h>
#include <utility>
#include <vector>

namespace janus {

using Count = std::int64_t;

/// Range communicators: local creation.
struct Ranges {
  using Comm = latecomer::range::Comm;
  using Request = latecomer::range::Request;
  static Comm world(const Comm& all) { return all; }
  static Comm part(const Comm& of, int first, int last) { return of.part(first, last); }
  static Comm beside(const Comm& all) { return all.with_context(all.get()->context + 1); }
  static void release(Comm&) {}
  static int rank(const Comm& c) { return c.rank(); }
  static int size(const Comm& c) { return c.size(); }
  static void ibcast(void* data, Count bytes, int root, const Comm& c, Request* r) { c.ibcast(data, MPI_Count{bytes}, MPI_BYTE, root, r); }
  static void iscan(const Count* in, Count* out, int n, const Comm& c, Request* r) { c.iscan(in, out, MPI_Count{n}, MPI_INT64_T, MPI_SUM, r); }
  static void isend(const void* data, Count bytes, int to, int tag, const Comm& c, Request* r) { c.isend(data, MPI_Count{bytes}, MPI_BYTE, to, tag, r); }
  static bool all_done(std::vector<Request>& r) {
    int flag = 0;
    latecomer_range_testall(static_cast<int>(r.size()), r.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0;
  }
  /// A message, if one is there: its bytes are appended by `room(tag, bytes)`, which says where.
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
};

/// Communicators of MPI, created by MPI_Comm_create_group: all members have to come.
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
    MPI_Group_free(&all), MPI_Group_free(&some);
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
  static void ibcast(void* data, Count bytes, int root, Comm c, Request* r) { MPI_Ibcast_c(data, bytes, MPI_BYTE, root, c, r); }
  static void iscan(const Count* in, Count* out, int n, Comm c, Request* r) { MPI_Iscan(in, out, n, MPI_INT64_T, MPI_SUM, c, r); }
  static void isend(const void* data, Count bytes, int to, int tag, Comm c, Request* r) { MPI_Isend_c(data, bytes, MPI_BYTE, to, tag, c, r); }
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
    MPI_Mrecv_c(room(status.MPI_TAG, bytes), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return true;
  }
};

/// The places that processes own.
struct Places {
  Count n;
  int processes;
  Count begin(int i) const { return i * (n / processes) + std::min<Count>(i, n % processes); }
  int owner(Count place) const {
    const Count each = n / processes, more = n % processes;
    return static_cast<int>(place < more * (each + 1) ? place / (each + 1) : more + (place - more * (each + 1)) / each);
  }
};

/// What a sort has done, for people who measure.
struct Statistics {
  int levels = 0;         ///< of the deepest task that this process was in
  int communicators = 0;  ///< created here
  Count messages = 0;     ///< of elements, sent from here
};

template <typename Kind, typename T>
class Sorter {
 public:
  using Comm = typename Kind::Comm;
  using Request = typename Kind::Request;

  /// Collective over `all`: every process brings any number of elements. Returns its share of the sorted order.
  static std::vector<T> sort(Comm all, std::vector<T> data, std::uint64_t seed = 1, Statistics* statistics = nullptr) {
    Sorter s(all, seed);
    s.run(std::move(data));
    if (statistics) *statistics = s.statistics_;
    return std::move(s.sorted_);
  }

 private:
  /// A task of this process, suspended wherever it waits for others.
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
    std::vector<T> data;
  };
  enum Tag { kLess = 1, kEqual = 2, kGreater = 3, kSample = 4, kBase = 5, kFirst = 6 };

  Sorter(Comm all, std::uint64_t seed) : all_(Kind::world(all)), beside_(Kind::beside(all_)), seed_(seed), me_(Kind::rank(all_)) {}
  ~Sorter() { Kind::release(beside_), Kind::release(all_); }

  static char* grow(std::vector<T>& v, Count bytes) {
    const std::size_t before = v.size();
    v.resize(before + static_cast<std::size_t>(bytes) / sizeof(T));
    return reinterpret_cast<char*>(v.data() + before);
  }

  /// Sends elements that belong to consecutive places from `place` on to whoever owns them. `first`: the group's first process.
  void deal(const T* data, Count count, Count place, int first, int tag, const Comm& comm, std::vector<Request>& requests) {
    while (count > 0) {
      const int owner = places_.owner(place);
      const Count n = std::min(count, places_.begin(owner + 1) - place);
      requests.emplace_back();
      Kind::isend(data, n * static_cast<Count>(sizeof(T)), owner - first, tag, comm, &requests.back());
      data += n, count -= n, place += n;
      ++statistics_.messages;
    }
  }

  void run(std::vector<T> data) {
    jobs_.push_back(begin(std::move(data)));
    drive();
    // Base cases: no larger task waits for this process any more.
    for (BaseCase& b : bases_) jobs_.push_back(base(std::move(b)));
    drive();
  }

  void drive() {
    while (!jobs_.empty()) {
      bool moved = false;
      for (auto at = jobs_.begin(); at != jobs_.end();) {
        const auto handle = at->handle;
        if (!handle.promise().ready || handle.promise().ready()) {
          handle.promise().ready = nullptr;
          handle.resume();
          moved = true;
        }
        if (handle.done()) handle.destroy(), at = jobs_.erase(at);
        else ++at;
      }
      if (!moved) sched_yield();
    }
  }

  /// Brings the elements into balance, whoever has them.
  Job begin(std::vector<T> data) {
    const Count mine = static_cast<Count>(data.size());
    Count before = 0, total = 0;
    std::vector<Request> requests(1);
    Kind::iscan(&mine, &before, 1, all_, &requests[0]);
    co_await [&] { return Kind::all_done(requests); };
    total = before;
    requests.assign(1, Request{});
    Kind::ibcast(&total, sizeof total, Kind::size(all_) - 1, all_, &requests[0]);
    co_await [&] { return Kind::all_done(requests); };
    places_ = {total, Kind::size(all_)};
    const Count share = places_.begin(me_ + 1) - places_.begin(me_);
    sorted_.resize(static_cast<std::size_t>(share));
    std::vector<T> balanced;
    requests.clear();
    deal(data.data(), mine, before - mine, 0, kFirst, beside_, requests);
    while (static_cast<Count>(balanced.size()) < share)
      co_await [&] { return Kind::take(MPI_ANY_SOURCE, kFirst, beside_, [&](int, Count bytes) { return grow(balanced, bytes); }); };
    co_await [&] { return Kind::all_done(requests); };
    if (share > 0) place(0, total, all_, std::move(balanced), 0, nullptr);
  }

  /// What is to be done with places [lo, hi), of which this process has its share of elements. `parent`: null for all_.
  void place(Count lo, Count hi, Comm parent, std::vector<T> data, int level, const int* parent_first) {
    if (lo >= hi) return;
    const int first = places_.owner(lo), last = places_.owner(hi - 1);
    if (me_ < first || me_ > last) return;
    if (last - first <= 1) {
      bases_.push_back({lo, hi, std::move(data)});
      return;
    }
    ++statistics_.communicators;
    const int from = parent_first ? *parent_first : 0;
    jobs_.push_back(task(lo, hi, Kind::part(parent, first - from, last - from), std::move(data), level));
  }

  Job task(Count lo, Count hi, Comm comm, std::vector<T> data, int level) {
    statistics_.levels = std::max(statistics_.levels, level + 1);
    const int first = places_.owner(lo), members = Kind::size(comm), me = Kind::rank(comm);
    const Count begin = std::max(lo, places_.begin(me_)), share = std::min(hi, places_.begin(me_ + 1)) - begin;
    std::vector<Request> requests;

    // The pivot: all members know which places are in the sample, since they draw alike.
    std::uint64_t state = seed_ ^ (static_cast<std::uint64_t>(lo) * 0x9e3779b97f4a7c15u) ^ (static_cast<std::uint64_t>(hi) << 20) ^ static_cast<std::uint64_t>(level);
    const auto draw = [&state] {
      state += 0x9e3779b97f4a7c15u;
      std::uint64_t z = state;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      return z ^ (z >> 31);
    };
    const Count wanted = std::min<Count>(hi - lo, std::max<Count>({15, 4 * std::bit_width(static_cast<unsigned>(members)), (hi - lo) / members / 64}));
    std::vector<T> sample;
    Count others = 0;
    for (Count i = 0; i < wanted; ++i) {
      const Count at = lo + static_cast<Count>(draw() % static_cast<std::uint64_t>(hi - lo));
      if (at >= begin && at < begin + share) sample.push_back(data[static_cast<std::size_t>(at - begin)]);
      else ++others;
    }
    T pivot{};
    if (me == 0) {
      while (others > 0)
        co_await [&] { return Kind::take(MPI_ANY_SOURCE, kSample, comm, [&](int, Count bytes) { return others -= bytes / static_cast<Count>(sizeof(T)), grow(sample, bytes); }); };
      std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2), sample.end());
      pivot = sample[sample.size() / 2];
    } else if (!sample.empty()) {
      requests.emplace_back();
      Kind::isend(sample.data(), static_cast<Count>(sample.size() * sizeof(T)), 0, kSample, comm, &requests.back());
    }
    requests.emplace_back();
    Kind::ibcast(&pivot, sizeof(T), 0, comm, &requests.back());
    co_await [&] { return Kind::all_done(requests); };

    // Three parts, and how much of each lies on the processes before this one.
    const auto less_end = std::partition(data.begin(), data.end(), [&](const T& x) { return x < pivot; });
    const auto equal_end = std::partition(less_end, data.end(), [&](const T& x) { return !(pivot < x); });
    const Count mine[2] = {less_end - data.begin(), equal_end - less_end};
    Count upto[2] = {0, 0}, total[2] = {0, 0};
    requests.assign(1, Request{});
    Kind::iscan(mine, upto, 2, comm, &requests[0]);
    co_await [&] { return Kind::all_done(requests); };
    total[0] = upto[0], total[1] = upto[1];
    requests.assign(1, Request{});
    Kind::ibcast(total, sizeof total, members - 1, comm, &requests[0]);
    co_await [&] { return Kind::all_done(requests); };
    const Count less_hi = lo + total[0], greater_lo = less_hi + total[1];
    const Count less_before = upto[0] - mine[0], equal_before = upto[1] - mine[1], greater_before = begin - lo - less_before - equal_before;

    requests.clear();
    const Count greater = share - mine[0] - mine[1];
    deal(data.data(), mine[0], lo + less_before, first, kLess, comm, requests);
    deal(data.data() + mine[0], mine[1], less_hi + equal_before, first, kEqual, comm, requests);
    deal(data.data() + mine[0] + mine[1], greater, greater_lo + greater_before, first, kGreater, comm, requests);
    std::vector<T> less, equal, above;
    for (Count missing = share; missing > 0;)
      co_await [&] {
        return Kind::take(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, [&](int tag, Count bytes) {
          missing -= bytes / static_cast<Count>(sizeof(T));
          return grow(tag == kLess ? less : tag == kEqual ? equal : above, bytes);
        });
      };
    co_await [&] { return Kind::all_done(requests); };
    std::copy(equal.begin(), equal.end(), sorted_.begin() + (std::max(begin, less_hi) - places_.begin(me_)));
    place(lo, less_hi, comm, std::move(less), level + 1, &first);
    place(greater_lo, hi, comm, std::move(above), level + 1, &first);
    Kind::release(comm);
  }

  /// One or two processes: each gets all that the other has, and keeps its part.
  Job base(BaseCase b) {
    const int first = places_.owner(b.lo), last = places_.owner(b.hi - 1);
    const Count begin = std::max(b.lo, places_.begin(me_)), share = std::min(b.hi, places_.begin(me_ + 1)) - begin;
    std::vector<T> all = b.data;
    if (first != last) {
      std::vector<Request> requests(1);
      Kind::isend(b.data.data(), static_cast<Count>(b.data.size() * sizeof(T)), me_ == first ? last : first, kBase, beside_, &requests[0]);
      co_await [&] { return Kind::take(me_ == first ? last : first, kBase, beside_, [&](int, Count bytes) { return grow(all, bytes); }); };
      co_await [&] { return Kind::all_done(requests); };
      const auto cut = all.begin() + (me_ == first ? share : static_cast<Count>(all.size()) - share);
      std::nth_element(all.begin(), cut, all.end());
      if (me_ == first) all.erase(cut, all.end());
      else all.erase(all.begin(), cut);
    }
    std::sort(all.begin(), all.end());
    std::copy(all.begin(), all.end(), sorted_.begin() + (begin - places_.begin(me_)));
  }

  Comm all_, beside_;
  const std::uint64_t seed_;
  const int me_;
  Places places_{0, 1};
  std::vector<T> sorted_;
  std::vector<BaseCase> bases_;
  std::list<Job> jobs_;
  Statistics statistics_;
};

}  // namespace janus
