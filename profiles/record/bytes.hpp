// SPDX-License-Identifier: BSD-3-Clause
// Turns plain values, texts and containers into bytes and back, for processes of one build: between ranks, and in
// snapshots. Refuses bytes that are too short, and values that no writer makes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "profiles/record/call_record.hpp"
#include "profiles/record/site_key.hpp"

namespace latecomer::profiles {

/// Writes plain values in their memory layout (all processes run the same build), and texts and containers with a
/// leading count.
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
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void put(const std::string& s) {
    put<std::uint64_t>(s.size());
    out_.append(s);
  }
  template <typename T>
  void put(const std::vector<T>& a) {
    static_assert(std::is_trivially_copyable_v<T>);
    put<std::uint64_t>(a.size());
    out_.append(reinterpret_cast<const char*>(a.data()), a.size() * sizeof(T));
  }

  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}
  bool good = true;
  /// Reads one value after the other. An argument must not depend on a value that the same call reads.
  template <typename... T>
  void read(T&... values) {
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
  template <typename T>
  void get(T& v) {
    bytes(v);
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
