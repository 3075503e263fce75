// SPDX-License-Identifier: BSD-3-Clause
// Compares the code of ranks.
#include "profiles/analysis/code.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/text.hpp"
#include "profiles/analysis/profile.hpp"
#include "profiles/base/text.hpp"

namespace latecomer::profiles::analysis {
namespace {

/// The share of the difference from which a function is named. The issue of every name is whether it is right, so the
/// difference must also be several standard errors.
constexpr double kPart = 0.2, kMost = 0.6;
/// Standard errors of a difference that is named, and of one that must be there or may be there. Chosen: a dozen
/// functions are compared, so two standard errors come by chance.
constexpr double kSure = 3, kThere = 2, kMayBe = 2.5;
/// The share of a function that counts alone when all are compared.
constexpr double kCounts = 0.1;

/// The share of a function's difference that the part of it has which is named instead.
constexpr double kInside = 0.8;
/// The share of the time from which a function is divided into those that were inlined there.
constexpr double kDivided = 0.6;

/// Samples of the rank, and of the ranks on time.
struct Counts {
  double mine = 0, others = 0;
  void add(const Counts& o) {
    mine += o.mine;
    others += o.others;
  }
};

/// A share of samples and its variance, which is not zero where all samples or none are in the function.
struct ShareOfSamples {
  double share, variance;
  ShareOfSamples(double part, double all)
      : share(part / all), variance((part + 1) / (all + 2) * (1 - (part + 1) / (all + 2)) / all) {}
};

/// Whether the code is that of OpenMP itself. `name`: the function or the module.
bool is_openmp(const std::string& name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"libgomp.so", "libomp.so", "libiomp5.so", "gomp_", "GOMP_", "__kmp"},
      [&](std::string_view begin) { return name.starts_with(begin); });
}

std::string module_name(const std::string& module) {
  const std::string base = core::base_name(module);
  if (is_openmp(base)) return "the library of OpenMP (" + base + ")";
  if (base.starts_with("python") || base.starts_with("libpython")) return "the Python interpreter";
  if (base.starts_with("libmpi") || base.starts_with("libopen-pal") || base.starts_with("libpmpi"))
    return "MPI's library (" + base + ")";
  return base + ", which names no function there";
}

/// The name of the function that the compiler made of a place.
std::string function_named(const CodeFigures::Place& place) {
  const NamedFrame& frame = place.frame;
  const NamedFrame::Name& outer = frame.inlined_into.empty() ? frame.name : frame.inlined_into.back();
  if (!outer.function.empty()) return outer.function;
  if (frame.offset == "0x0") return module_name(frame.module);
  return core::base_name(frame.module) + "+" + place.function_offset;
}

/// A function, with what was inlined into it.
struct Function {
  std::string name{};
  const NamedFrame* hottest = nullptr;
  double most = 0;
  std::size_t depth = 0;  ///< 0: not inlined
  Counts own{}, all{};    ///< without and with the functions that were inlined
  std::vector<std::size_t> inlined{};
};

/// The functions of the samples.
class Functions {
 public:
  void add(const CodeFigures::Place& place, const Counts& counts) {
    const NamedFrame& frame = place.frame;
    std::string path = frame.module + frame.build_id + place.function_offset;
    std::size_t at = visit(path, {}, function_named(place), frame, counts);
    // From the function that the compiler made, inwards.
    for (std::size_t level = frame.inlined_into.size(); level-- > 0;) {
      const NamedFrame::Name& name = level > 0 ? frame.inlined_into[level - 1] : frame.name;
      if (name.function.empty()) break;
      path += "\n" + name.function;
      at = visit(path, at, name.function, frame, counts);
    }
    all_[at].own.add(counts);
  }
  const std::vector<Function>& all() const { return all_; }
  bool are_openmp(std::size_t i) const {
    const Function& f = all_[i];
    return is_openmp(f.name) || (f.hottest && is_openmp(core::base_name(f.hottest->module)));
  }
  /// Those that were not inlined. Where one of them has most of the time, those inside it instead.
  std::vector<std::pair<std::size_t, Counts>> divided(const Counts& sums) const {
    std::vector<std::pair<std::size_t, Counts>> out;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].depth == 0) out.emplace_back(i, all_[i].all);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto [i, counts] = out[k];
      const Function& f = all_[i];
      if (f.inlined.empty() || counts.mine < kDivided * sums.mine || counts.others < kDivided * sums.others) continue;
      out[k].second = f.own;
      for (const std::size_t inner : f.inlined) out.emplace_back(inner, all_[inner].all);
    }
    return out;
  }
  /// The innermost function inside `i` with most of its difference.
  template <typename Difference>
  std::size_t innermost(std::size_t i, Difference difference) const {
    for (;;) {
      const double whole = difference(all_[i].all);
      const auto inside = std::ranges::find_if(
          all_[i].inlined, [&](std::size_t inner) { return difference(all_[inner].all) >= kInside * whole; });
      if (inside == all_[i].inlined.end()) return i;
      i = *inside;
    }
  }
  /// Its name, with the hottest line, and the function that it was inlined into.
  std::string named(std::size_t i) const {
    const Function& f = all_[i];
    if (!f.hottest || f.hottest->offset == "0x0") return f.name;
    NamedFrame frame = *f.hottest;
    const std::size_t levels = frame.inlined_into.size();
    frame.inlined_into.clear();
    if (f.depth < levels) {
      // A line of the function itself: where what was inlined there is called.
      const NamedFrame::Name& call = f.hottest->inlined_into[levels - 1 - f.depth];
      frame.name.file = call.file;
      frame.name.line = call.line;
    }
    frame.name.function = f.name;
    if (f.depth > 0) {
      NamedFrame::Name outer;
      outer.function = f.hottest->inlined_into.back().function;
      frame.inlined_into.push_back(outer);
    }
    return place_of(frame);
  }

 private:
  std::size_t visit(const std::string& path, std::optional<std::size_t> parent, const std::string& name,
                    const NamedFrame& frame, const Counts& counts) {
    const auto [at, added] = index_.try_emplace(path, all_.size());
    const std::size_t i = at->second;
    if (added) {
      all_.push_back({.name = name, .depth = parent ? all_[*parent].depth + 1 : 0});
      if (parent) all_[*parent].inlined.push_back(i);
    }
    Function& f = all_[i];
    f.all.add(counts);
    if (const double samples = counts.mine + counts.others; !f.hottest || samples > f.most) {
      f.hottest = &frame;
      f.most = samples;
    }
    return i;
  }

  std::vector<Function> all_;
  std::map<std::string, std::size_t> index_;
};

bool is(const std::string& collective, const Site* site) { return !site || collective == site->id; }

const ProcessFigures* process_of(const Profile& profile, long rank) {
  const auto found = std::ranges::find(profile.processes, rank, &ProcessFigures::rank);
  return found == profile.processes.end() ? nullptr : &*found;
}

/// The ranks with no more than the mean of all, without `rank`.
std::set<long> ranks_on_time(const std::map<long, double>& by_rank, long rank) {
  double all = 0;
  for (const auto& [of, value] : by_rank) all += value;
  std::set<long> out;
  for (const auto& [of, value] : by_rank)
    if (of != rank && value <= all / static_cast<double>(by_rank.size())) out.insert(of);
  return out;
}

/// The same by the times between two calls, with sleep.
std::set<long> ranks_on_time(const Profile& profile, const Site* site, long rank) {
  std::map<long, double> by_rank;
  for (const ProcessFigures& process : profile.processes) by_rank[process.rank];
  for (const CodeFigures::Stretch& one : profile.code.stretches)
    if (is(one.collective, site))
      for (const CodeFigures::Stretch::Row& row : one.rows) by_rank[row.rank] += row.time;
  return ranks_on_time(by_rank, rank);
}

/// Samples of the thread that started MPI, of the rank and of the ranks on time.
struct MainSamples {
  std::map<std::size_t, Counts> places;
  Counts sums, beyond;

  MainSamples(const Profile& profile, const Site* site, long rank) {
    // Ranks with more samples than the mean are not on time.
    std::map<long, double> by_rank;
    for (const ProcessFigures& process : profile.processes)
      if (process.sampling.hz > 0) by_rank[process.rank];
    const auto each = [&](auto take) {
      for (const CodeFigures::Samples& one : profile.code.samples)
        if (is(one.collective, site) && !one.others)
          for (const auto& [of, samples] : one.rows) take(one, of, samples);
    };
    each([&](const CodeFigures::Samples&, long of, double samples) { by_rank[of] += samples; });
    // A rank that was killed has the functions of a part of its samples.
    std::map<long, double> named;
    for (const CodeFigures::Samples& one : profile.code.samples)
      if (!one.others)
        for (const auto& [of, samples] : one.rows) named[of] += samples;
    for (const ProcessFigures& process : profile.processes)
      if (const double some = named[process.rank]; some > 0 && process.sampling.taken > some)
        by_rank[process.rank] *= process.sampling.taken / some;
    const std::set<long> on_time = ranks_on_time(by_rank, rank);
    each([&](const CodeFigures::Samples& one, long of, double samples) {
      const Counts more{of == rank ? samples : 0, on_time.contains(of) ? samples : 0};
      (one.place ? places[*one.place] : beyond).add(more);
      sums.add(more);
    });
  }
};

/// What other threads of the rank compute longer, where the rank waits for them for `late` more.
void add_threads(const Profile& profile, const Site* site, long rank, double mine, double reference, double late,
                 LateCode& out) {
  const SamplingFigures& own = process_of(profile, rank)->other_sampling;
  if (own.threads <= 0) {
    out.missing = own.why_not.empty() ? "its other threads have no samples, as all that end before the next call of MPI"
                                      : own.why_not;
    return;
  }
  // A sample of another thread in samples of the first one, whose time is known.
  std::map<long, double> weight;
  const std::set<long> on_time = ranks_on_time(profile, site, rank);
  for (const ProcessFigures& process : profile.processes) {
    const SamplingFigures& its = process.other_sampling;
    // Samples of some threads only compare with as many.
    const bool comparable = its.why_not == own.why_not && (own.why_not.empty() || its.threads == own.threads);
    if (process.rank == rank || (on_time.contains(process.rank) && process.sampling.hz > 0 && comparable))
      weight[process.rank] = its.hz > 0 ? process.sampling.hz / its.hz : 0;
  }
  Counts main, heaviest;
  std::map<std::size_t, Counts> places;
  for (const CodeFigures::Samples& one : profile.code.samples) {
    if (!is(one.collective, site)) continue;
    for (const auto& [of, samples] : one.rows) {
      const auto found = weight.find(of);
      if (found == weight.end()) continue;
      const double more = one.others ? found->second * samples : samples;
      double Counts::*const to = of == rank ? &Counts::mine : &Counts::others;
      if (!one.others) main.*to += more;
      else if (one.place) places[*one.place].*to += more;
      if (one.others) heaviest.*to = std::max(heaviest.*to, found->second);
    }
  }
  if (main.mine < 1 || main.others < 1) return;
  const auto compare = [&](const Counts& counts) {
    const auto time = [&](double Counts::*of, double all) { return all * counts.*of / (main.*of); };
    const auto variance = [&](double Counts::*of, double all) {
      const double n = counts.*of, k = main.*of;
      return all * all / (k * k) * (heaviest.*of * std::max(n, heaviest.*of) + n * n / k);
    };
    return LateCode::Part{"",
                          time(&Counts::mine, mine),
                          time(&Counts::others, reference),
                          std::sqrt(variance(&Counts::mine, mine) + variance(&Counts::others, reference)),
                          false,
                          true};
  };
  const auto difference = [&](const Counts& counts) {
    const LateCode::Part part = compare(counts);
    return part.mine - part.reference;
  };
  Functions functions;
  for (const auto& [place, counts] : places) functions.add(profile.code.places[place], counts);
  std::vector<LateCode::Part> parts;
  for (std::size_t i = 0; i < functions.all().size(); ++i) {
    const Function& function = functions.all()[i];
    if (function.depth > 0 || functions.are_openmp(i)) continue;
    const double more = difference(function.all);
    if (more <= kSure * compare(function.all).error || more < kPart * late) continue;
    const std::size_t inner = functions.innermost(i, difference);
    LateCode::Part part = compare(functions.all()[inner].all);
    part.name = functions.named(inner);
    parts.push_back(std::move(part));
  }
  std::ranges::sort(parts, std::greater(), [](const auto& part) { return part.mine - part.reference; });
  std::ranges::move(parts, std::back_inserter(out.parts));
}

}  // namespace

std::string function_of(const Profile& profile, const CodeFigures::Samples& samples) {
  return samples.place ? function_named(profile.code.places[*samples.place]) : "other functions";
}

std::string call_named(const Profile& profile, const std::string& id) {
  if (id.empty()) return "";
  if (const auto site = std::ranges::find(profile.sites, id, &Site::id); site != profile.sites.end())
    return mpi_name(site->op) + " in " + site->place();
  const auto timed = std::ranges::find(profile.timed_sites, id, &TimedCalls::id);
  return timed == profile.timed_sites.end() ? "" : timed->call + " in " + place_of(timed->frames);
}

LateCode late_functions(const Profile& profile, const Site* site, long rank, double mine, double reference) {
  LateCode out;
  out.whole_run = !site;
  const double difference = mine - reference;
  const ProcessFigures* const process = process_of(profile, rank);
  if (difference <= 0 || reference < 0 || !process) return out;
  if (process->sampling.hz <= 0) {
    out.missing = process->sampling.why_not;
    return out;
  }
  const MainSamples samples(profile, site, rank);
  const Counts sums = samples.sums;
  if (sums.mine < 1 || sums.others < 1) return out;
  Functions functions;
  for (const auto& [place, counts] : samples.places) functions.add(profile.code.places[place], counts);
  struct Compared {
    double mine, others, difference, error;  // of the times
    double of_alike, alike_error;            // difference from that in proportion, and its error
  };
  const auto compare = [&](const Counts& counts) {
    const ShareOfSamples p(counts.mine, sums.mine), q(counts.others, sums.others);
    Compared c{};
    c.mine = mine * p.share;
    c.others = reference * q.share;
    c.difference = c.mine - c.others;
    c.error = std::sqrt(mine * mine * p.variance + reference * reference * q.variance);
    c.of_alike = mine * (p.share - q.share);
    c.alike_error = mine * std::sqrt(p.variance + q.variance);
    return c;
  };
  // Functions that take much of the time, and all others together.
  std::vector<Counts> groups;
  Counts rest = samples.beyond;
  bool spread = true;
  for (const auto& [function, counts] : functions.divided(sums)) {
    const Compared c = compare(counts);
    spread = spread && c.difference + kThere * c.error < kPart * difference;
    if (std::max(counts.mine / sums.mine, counts.others / sums.others) >= kCounts) groups.push_back(counts);
    else rest.add(counts);
    const bool more = c.of_alike > kSure * c.alike_error && c.difference >= kPart * difference;
    const bool most = c.others >= kMost * reference && c.difference >= kMost * difference;
    if (c.difference <= kSure * c.error || !(more || most)) continue;
    const std::size_t inner =
        functions.innermost(function, [&](const Counts& inside) { return compare(inside).difference; });
    const Compared part = inner == function ? c : compare(functions.all()[inner].all);
    out.parts.push_back(
        {functions.named(inner), part.mine, part.others, part.error, functions.are_openmp(inner), false});
  }
  if (std::max(rest.mine / sums.mine, rest.others / sums.others) >= kCounts) groups.push_back(rest);
  const bool alike = groups.size() >= 2 && reference > 0 && std::ranges::all_of(groups, [&](const Counts& counts) {
                       const Compared c = compare(counts);
                       return std::abs(c.of_alike) <= kMayBe * c.alike_error && c.difference > kThere * c.error;
                     });
  std::ranges::sort(out.parts, std::greater(), [](const auto& part) { return part.mine - part.reference; });
  if (alike) {
    out.kind = LateCode::Kind::alike;
    out.ratio = mine / reference;
    out.parts.clear();
  } else if (!out.parts.empty()) {
    out.kind = LateCode::Kind::functions;
    const auto waits = std::ranges::find(out.parts, true, &LateCode::Part::waits);
    if (waits != out.parts.end())
      add_threads(profile, site, rank, mine, reference, waits->mine - waits->reference, out);
  } else if (spread && !samples.places.empty() && samples.beyond.mine < kPart * sums.mine) {
    out.kind = LateCode::Kind::spread;
  }
  return out;
}

LateCode late_threads(const Profile& profile, const Site* site, long rank, double mine, double reference, double late) {
  LateCode out;
  out.whole_run = !site;
  if (const ProcessFigures* const process = process_of(profile, rank); process && process->sampling.hz > 0)
    add_threads(profile, site, rank, mine, reference, late, out);
  if (!out.parts.empty()) out.kind = LateCode::Kind::functions;
  return out;
}

LateCode late_stretch(const Profile& profile, const Site* site, long rank) {
  LateCode out;
  out.whole_run = !site;
  const std::set<long> on_time = ranks_on_time(profile, site, rank);
  if (on_time.empty()) return out;
  // One stretch may end with several collectives.
  struct Sums {
    double mine = 0, mine_count = 0, others = 0, others_count = 0;
  };
  std::map<std::pair<std::string, std::string>, Sums> stretches;
  for (const CodeFigures::Stretch& one : profile.code.stretches) {
    if (!is(one.collective, site)) continue;
    Sums& to = stretches[{one.from, one.to}];
    for (const CodeFigures::Stretch::Row& row : one.rows) {
      if (row.rank == rank) {
        to.mine += row.time;
        to.mine_count += row.stretches;
      } else if (on_time.contains(row.rank)) {
        to.others += row.time;
        to.others_count += row.stretches;
      }
    }
  }
  double sum = 0, most = 0;
  const std::pair<const std::pair<std::string, std::string>, Sums>* longest = nullptr;
  for (const auto& one : stretches) {
    const Sums& s = one.second;
    const double more = s.mine - s.others / static_cast<double>(on_time.size());
    if (more <= 0) continue;
    sum += more;
    if (more > most) {
      most = more;
      longest = &one;
    }
  }
  if (!longest || most < kMost * sum) return out;
  const Sums& s = longest->second;
  out.from = call_named(profile, longest->first.first);
  out.to = call_named(profile, longest->first.second);
  // Where the others have no such stretch, or shorter ones that are not kept, only the place is known.
  if (out.from.empty() || out.to.empty()) return out;
  out.kind = LateCode::Kind::stretch;
  if (s.others_count > 0 && s.mine_count > 0 && s.mine / s.mine_count > s.others / s.others_count)
    out.parts.push_back({"", s.mine / s.mine_count, s.others / s.others_count, 0});
  return out;
}

}  // namespace latecomer::profiles::analysis
