// SPDX-License-Identifier: BSD-3-Clause
// Turns plain values, texts and containers into bytes and back, for processes of one build: between ranks, and in
// snapshots. Refuses bytes that are too short, and values that no writer makes.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "profiles/record/call_record.hpp"
#include "profiles/record/call_sample.hpp"
#include "profiles/record/site_key.hpp"

namespace latecomer::profiles {

/// A struct that lists its members in the order of their bytes:
/// `static auto members(auto& x) { return std::tie(x.a, x.b); }`.
template <typename T>
concept Listed = requires(T& x) {
  T::members(x);
};

/// Values whose bytes are their memory, and which need no check when they are read.
template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && !Listed<T> && !std::is_same_v<T, bool> &&
                !std::is_same_v<T, SiteKey> && !std::is_same_v<T, CallRecord>;

/// Writes plain values in their memory layout (all processes run the same build), listed structs member by member, and
/// texts and containers with a leading count.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out, bool append = false) : out_(out) {
    if (!append) out_.clear();
  }
  template <typename... T>
  void write(const T&... values) {
    (put(values), ...);
  }
  template <typename C, typename F>
  void each(const C& c, F f) {
    put<std::uint64_t>(c.size());
    for (const auto& x : c) f(x);
  }

 private:
  template <typename T>
  void put(const T& v) {
    if constexpr (Listed<const T>) {
      put(T::members(v));
    } else if constexpr (std::ranges::sized_range<T>) {
      each(v, [&](const auto& x) { put(x); });
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      append(&v, sizeof v);
    }
  }
  void put(const std::string& s) {
    put<std::uint64_t>(s.size());
    out_.append(s);
  }
  template <Plain T>
  void put(const std::vector<T>& a) {
    put<std::uint64_t>(a.size());
    append(a.data(), a.size() * sizeof(T));
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& both) {
    write(both.first, both.second);
  }
  template <typename... T>
  void put(const std::tuple<T...>& all) {
    std::apply([&](const auto&... one) { write(one...); }, all);
  }
  template <typename T>
  void put(const std::optional<T>& v) {
    write(v.has_value(), v.value_or(T{}));
  }
  void put(const CallSample& s) { write(s.stretch(), s.stride(), s.counted, s.calls()); }
  void append(const void* from, std::size_t bytes) { out_.append(static_cast<const char*>(from), bytes); }

  std::string& out_;
};

/// Reads what ByteWriter has written. Vectors of plain values are replaced; other containers keep their elements.
class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}
  bool good = true;
  /// Reads one value after the other. An argument must not depend on a value that the same call reads.
  template <typename... T>
  void read(T&&... values) {
    (get(values), ...);
  }
  template <typename F>
  void each(F f) {
    std::uint64_t n = 0;
    get(n);
    for (std::uint64_t i = 0; i < n && good; ++i) f();
  }

 private:
  static bool known(core::Collective op) { return static_cast<int>(op) < core::kCollectives; }
  void get(bool& v) {
    std::uint8_t byte = 0;
    get(byte);
    v = byte != 0;
    good = good && byte <= 1;
  }
  void get(SiteKey& key) {
    bytes(key);
    good = good && known(key.op);
  }
  void get(CallRecord& record) {
    bytes(record);
    good = good && known(record.op) && record.kind <= core::CallKind::persistent;
  }
  void get(CallSample& sample) {
    std::uint64_t stretch = 0, stride = 1;
    std::vector<SampledCall> calls;
    read(stretch, stride, sample.counted, calls);
    good = good && sample.restore(std::move(calls), stretch, stride);
  }
  template <typename T>
  void get(T& v) {
    if constexpr (Listed<T>) read(T::members(v));
    else bytes(v);
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& both) {
    read(both.first, both.second);
  }
  template <typename... T>
  void get(std::tuple<T...>& all) {
    std::apply([&](auto&... one) { read(one...); }, all);
  }
  template <typename T>
  void get(std::optional<T>& v) {
    bool known = false;
    T value{};
    read(known, value);
    v = known ? std::optional(value) : std::nullopt;
  }
  void get(std::string& s) {
    std::uint64_t n = 0;
    get(n);
    if (!good || in_.size() < n) {
      good = false;
      return;
    }
    s.assign(in_.substr(0, n));
    in_.remove_prefix(n);
  }
  template <typename T>
  void get(std::vector<T>& a) {
    each([&] { get(a.emplace_back()); });
  }
  template <typename K, typename V>
  void get(std::map<K, V>& rows) {
    each([&] {
      K key{};
      get(key);
      get(rows[key]);
    });
  }
  template <typename T>
  void get(std::set<T>& all) {
    each([&] {
      T one{};
      get(one);
      all.insert(one);
    });
  }
  template <Plain T>
  void get(std::vector<T>& a) {
    std::uint64_t n = 0;
    get(n);
    if (!good || in_.size() / sizeof(T) < n) {
      good = false;
      return;
    }
    a.resize(n);
    if (n > 0) std::memcpy(static_cast<void*>(a.data()), in_.data(), n * sizeof(T));
    in_.remove_prefix(n * sizeof(T));
  }
  template <typename T>
  void bytes(T& v) {
    if (in_.size() < sizeof v) {
      good = false;
      return;
    }
    std::memcpy(static_cast<void*>(&v), in_.data(), sizeof v);
    in_.remove_prefix(sizeof v);
  }

  std::string_view in_;
};

}  // namespace latecomer::profiles
