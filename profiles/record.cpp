// SPDX-License-Identifier: BSD-3-Clause
// Accumulating records per site, and the byte form in which a process's share travels.
#include "profiles/record.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "core/base/text.hpp"

namespace latecomer::profiles {

std::uint64_t site_hash(std::string_view build_id, std::string_view module, std::uint64_t offset) {
  std::string_view name = module;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const std::uint64_t h = core::mix64(core::fnv1a(build_id.empty() ? name : build_id) ^ core::mix64(offset));
  return h == 0 ? 1 : h;
}

std::string SiteKey::id() const {
  const std::uint64_t h = core::mix64(site ^ core::mix64(static_cast<std::uint64_t>(op) << 32 | static_cast<std::uint32_t>(comm_size)));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

void LocalSite::add(const CallRecord& call) {
  ++calls;
  if (call.exit != 0) elapsed.add(call.exit - call.arrival);
  if (call.bytes < 0) return;
  bytes_min = sized == 0 ? call.bytes : std::min(bytes_min, call.bytes);
  bytes_max = sized == 0 ? call.bytes : std::max(bytes_max, call.bytes);
  bytes_sum += static_cast<double>(call.bytes);
  ++sized;
}

void LocalSite::merge(const LocalSite& o) {
  calls += o.calls;
  if (o.sized > 0) {
    bytes_min = sized == 0 ? o.bytes_min : std::min(bytes_min, o.bytes_min);
    bytes_max = sized == 0 ? o.bytes_max : std::max(bytes_max, o.bytes_max);
  }
  bytes_sum += o.bytes_sum;
  sized += o.sized;
  elapsed.merge(o.elapsed);
}

void PatternSite::merge(const PatternSite& o) {
  calls += o.calls;
  divergent_calls += o.divergent_calls;
  imbalance.merge(o.imbalance);
  after_last.merge(o.after_last);
  factor_milli.merge(o.factor_milli);
  for (const auto& [rank, offsets] : o.ranks) {
    ranks[rank].offset.merge(offsets.offset);
    ranks[rank].last_count += offsets.last_count;
  }
  for (const auto& [algorithm, d] : o.dispatch) {
    dispatch[algorithm].calls += d.calls;
    dispatch[algorithm].elapsed_sum += d.elapsed_sum;
    dispatch[algorithm].after_last_sum += d.after_last_sum;
  }
}

void SiteBook::add(std::span<const CallRecord* const> records, std::span<const Rank> world, Nanoseconds tie_ns,
                   const core::Network* network) {
  const CallRecord& owner = *records[core::is_rooted(records[0]->op) && records[0]->root >= 0 &&
                                             records[0]->root < static_cast<Rank>(records.size())
                                         ? static_cast<std::size_t>(records[0]->root) : 0];
  PatternSite& site = sites_[{owner.site, owner.op, static_cast<std::int32_t>(records.size())}];
  Nanoseconds first = records[0]->arrival, last = first, end = 0;
  double elapsed = 0;
  std::size_t latest = 0;
  bool divergent = false, complete = true;
  for (std::size_t i = 0; i < records.size(); ++i) {
    first = std::min(first, records[i]->arrival);
    if (records[i]->arrival > last + tie_ns) latest = i;
    last = std::max(last, records[i]->arrival);
    end = std::max(end, records[i]->exit);
    complete = complete && records[i]->exit != 0;
    elapsed += static_cast<double>(records[i]->exit - records[i]->arrival);
    divergent = divergent || records[i]->site != owner.site;
  }
  ++site.calls;
  site.divergent_calls += divergent;
  site.imbalance.add(last - first);
  for (std::size_t i = 0; i < records.size(); ++i) {
    RankOffsets& r = site.ranks[world[i]];
    r.offset.add(records[i]->arrival - first);
    r.last_count += i == latest && last - first > tie_ns;
  }
  if (network && owner.bytes >= 0) {
    const double message = static_cast<double>(network->step_ns(owner.bytes));
    if (message > 0) site.factor_milli.add(static_cast<std::int64_t>(1000.0 * static_cast<double>(last - first) / message));
  }
  if (!complete) return;
  site.after_last.add(end - last);
  DispatchStats& d = site.dispatch[owner.algorithm];
  ++d.calls;
  d.elapsed_sum += elapsed / static_cast<double>(records.size());
  d.after_last_sum += static_cast<double>(std::max<Nanoseconds>(end - last, 0));
}

namespace {

/// Plain values as they lie in memory (all processes run the same build), containers with a count.
class Writer {
 public:
  std::string out;
  template <typename T> void plain(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void text(const std::string& s) { plain<std::uint64_t>(s.size()), out.append(s); }
  template <typename C, typename F> void each(const C& c, F f) {
    plain<std::uint64_t>(c.size());
    for (const auto& x : c) f(x);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  bool good = true;
  template <typename T> void plain(T& v) {
    if (in_.size() < sizeof v) { good = false; return; }
    std::memcpy(static_cast<void*>(&v), in_.data(), sizeof v);
    in_.remove_prefix(sizeof v);
  }
  void text(std::string& s) {
    std::uint64_t n = 0;
    plain(n);
    if (!good || in_.size() < n) { good = false; return; }
    s.assign(in_.substr(0, n));
    in_.remove_prefix(n);
  }
  template <typename F> void each(F f) {
    std::uint64_t n = 0;
    plain(n);
    for (std::uint64_t i = 0; i < n && good; ++i) f();
  }

 private:
  std::string_view in_;
};

}  // namespace

std::string Contribution::serialize() const {
  Writer w;
  w.plain(rank), w.text(host), w.plain(clock_offset), w.plain(clock_uncertainty);
  w.each(frames, [&](const Frame& f) { w.plain(f.site), w.text(f.module), w.text(f.build_id), w.plain(f.offset); });
  w.each(local, [&](const auto& kv) { w.plain(kv.first), w.plain(kv.second); });
  w.each(patterns, [&](const auto& kv) {
    const PatternSite& p = kv.second;
    w.plain(kv.first), w.plain(p.calls), w.plain(p.divergent_calls), w.plain(p.imbalance), w.plain(p.after_last), w.plain(p.factor_milli);
    w.each(p.ranks, [&](const auto& r) { w.plain(r.first), w.plain(r.second); });
    w.each(p.dispatch, [&](const auto& d) { w.plain(d.first), w.plain(d.second); });
  });
  w.each(warnings, [&](const std::string& s) { w.text(s); });
  w.each(logs, [&](const Log& l) {
    w.plain(l.communicator), w.plain(l.comm_size), w.plain(l.comm_rank), w.plain(l.world_rank), w.plain(l.first);
    w.each(l.records, [&](const CallRecord& r) { w.plain(r); });
  });
  w.each(plans, [&](const std::string& s) { w.text(s); });
  return std::move(w.out);
}

bool Contribution::deserialize(std::string_view bytes, Contribution& c) {
  Reader r(bytes);
  r.plain(c.rank), r.text(c.host), r.plain(c.clock_offset), r.plain(c.clock_uncertainty);
  r.each([&] {
    Frame f;
    r.plain(f.site), r.text(f.module), r.text(f.build_id), r.plain(f.offset);
    c.frames.push_back(std::move(f));
  });
  r.each([&] {
    SiteKey key;
    r.plain(key), r.plain(c.local[key]);
  });
  r.each([&] {
    SiteKey key;
    r.plain(key);
    PatternSite& p = c.patterns[key];
    r.plain(p.calls), r.plain(p.divergent_calls), r.plain(p.imbalance), r.plain(p.after_last), r.plain(p.factor_milli);
    r.each([&] {
      Rank rank = 0;
      r.plain(rank), r.plain(p.ranks[rank]);
    });
    r.each([&] {
      std::uint8_t algorithm = 0;
      r.plain(algorithm), r.plain(p.dispatch[algorithm]);
    });
  });
  r.each([&] { r.text(c.warnings.emplace_back()); });
  r.each([&] {
    Log& l = c.logs.emplace_back();
    r.plain(l.communicator), r.plain(l.comm_size), r.plain(l.comm_rank), r.plain(l.world_rank), r.plain(l.first);
    r.each([&] { r.plain(l.records.emplace_back()); });
  });
  r.each([&] { r.text(c.plans.emplace_back()); });
  return r.good;
}

}  // namespace latecomer::profiles
