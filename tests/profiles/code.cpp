// SPDX-License-Identifier: BSD-3-Clause
// Which code makes a rank late, from samples drawn of known shares. And the limits of what a job keeps of its code.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "profiles/analysis/profile.hpp"
#include "profiles/base/sampling_refused.hpp"
#include "profiles/format/profile.hpp"

using namespace latecomer::profiles;
using namespace latecomer::profiles::analysis;
namespace core = latecomer::core;

namespace {

/// A job of four ranks, whose functions take `shares` of the samples of ranks on time, and `late` of those of rank 1.
Profile job_of(const std::vector<double>& shares, const std::vector<double>& late, int samples, std::uint64_t seed,
               double longer = 1.5) {
  Profile out;
  out.job.ranks = 4;
  core::SplitMix64 random(seed);
  for (std::size_t f = 0; f < shares.size(); ++f) {
    CodeFigures::Place& place = out.code.places.emplace_back();
    place.frame = {.module = "program", .build_id = "", .offset = "0x10", .name = {}, .inlined_into = {}};
    place.frame.name.function = "f" + std::to_string(f);
    place.function_offset = place.frame.name.function;
    out.code.samples.push_back({.place = f, .next = "", .collective = "here", .rows = {}, .others = false});
  }
  for (long rank = 0; rank < 4; ++rank) {
    ProcessFigures& process = out.processes.emplace_back();
    process.rank = rank;
    process.sampling.hz = 19;
    const std::vector<double>& of = rank == 1 ? late : shares;
    std::vector<double> counts(of.size());
    for (int i = 0; i < (rank == 1 ? static_cast<int>(longer * samples) : samples); ++i) {
      double at = random.uniform();
      std::size_t f = 0;
      while (f + 1 < of.size() && at >= of[f]) at -= of[f++];
      ++counts[f];
    }
    for (std::size_t f = 0; f < of.size(); ++f)
      if (counts[f] > 0) out.code.samples[f].rows.emplace_back(rank, counts[f]);
  }
  return out;
}

LateCode judged(const Profile& profile, double mine = 15e6, double reference = 10e6) {
  Site site;
  site.id = "here";
  return late_functions(profile, &site, 1, mine, reference);
}

using Kind = LateCode::Kind;
const std::vector<double> kEqual = {0.4, 0.3, 0.2, 0.1};
/// The rank has 1.5 times the time, all of the difference in the second function.
const std::vector<double> kSecond = {0.4 / 1.5, 0.8 / 1.5, 0.2 / 1.5, 0.1 / 1.5};

}  // namespace

TEST_CASE("code: the function with the difference is named, with its times", "[code]") {
  const LateCode code = judged(job_of(kEqual, kSecond, 2000, 1));
  REQUIRE(code.kind == Kind::functions);
  REQUIRE(code.parts.size() == 1);
  CHECK(code.parts[0].name.starts_with("f1"));
  CHECK(code.parts[0].mine == Approx(8e6).epsilon(0.1));
  CHECK(code.parts[0].reference == Approx(3e6).epsilon(0.1));
}

TEST_CASE("code: longer functions in proportion are alike", "[code]") {
  const LateCode code = judged(job_of(kEqual, kEqual, 3000, 2));
  CHECK(code.kind == Kind::alike);
  CHECK(code.ratio == Approx(1.5));
}

TEST_CASE("code: many small differences are spread", "[code]") {
  std::vector<double> shares(20, 0.0), late(20, 0.5 / 1.5 / 19);
  shares[0] = 1;
  late[0] = 1 / 1.5;
  CHECK(judged(job_of(shares, late, 3000, 3)).kind == Kind::spread);
}

TEST_CASE("code: few samples name nothing, and chance names a wrong function rarely", "[code]") {
  CHECK(judged(job_of(kEqual, kSecond, 15, 4)).kind == Kind::none);
  int wrong = 0, right = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const LateCode alike = judged(job_of(kEqual, kEqual, 300, 1000 + seed));
    wrong += alike.kind == Kind::functions;
    const LateCode second = judged(job_of(kEqual, kSecond, 300, 5000 + seed));
    for (const LateCode::Part& part : second.parts) wrong += !part.name.starts_with("f1");
    wrong += second.kind == Kind::alike || second.kind == Kind::spread;
    right += second.kind == Kind::functions;
  }
  CHECK(wrong <= 6);  // of 600
  CHECK(right > 270);
}

TEST_CASE("code: an inlined function with the difference is named in the function around it", "[code]") {
  Profile profile = job_of(kEqual, kSecond, 2000, 5);
  for (CodeFigures::Place& place : profile.code.places) {
    NamedFrame::Name outer;
    outer.function = "main";
    place.frame.inlined_into.push_back(outer);
    place.function_offset = "main";
  }
  const LateCode code = judged(profile);
  REQUIRE(code.kind == Kind::functions);
  CHECK(code.parts[0].name.starts_with("f1"));
  CHECK(code.parts[0].name.ends_with("in main"));
}

namespace {

/// A job whose rank 1 waits longer in f1, the library of OpenMP, while its other threads take four times as long in f2.
Profile threaded_job() {
  Profile out = job_of(kEqual, kSecond, 2000, 7);
  out.code.places[1].frame.module = "/usr/lib/libgomp.so.1.0.0";
  out.code.places[1].frame.name = {};
  out.code.places[1].frame.offset = out.code.places[1].function_offset = "0x0";
  for (ProcessFigures& process : out.processes) {
    process.sampling.hz = 20;
    process.other_sampling = {.hz = 5, .taken = 500, .lost = 0, .why_not = "", .threads = 1};
    for (const std::size_t f : {std::size_t{1}, std::size_t{2}})
      out.code.samples.push_back({.place = f,
                                  .next = "",
                                  .collective = "here",
                                  .rows = {{process.rank, f == 1 || process.rank == 1 ? 400.0 : 100.0}},
                                  .others = true});
  }
  return out;
}

}  // namespace

TEST_CASE("code: a rank that waits for its threads names what they compute longer", "[code]") {
  const LateCode code = judged(threaded_job());
  REQUIRE(code.kind == Kind::functions);
  REQUIRE(code.parts.size() == 2);
  CHECK(code.parts[0].waits);
  CHECK(code.parts[0].name.find("libgomp") != std::string::npos);
  CHECK(code.parts[1].threads);
  CHECK(code.parts[1].name.starts_with("f2"));
  // Each rank has 3,000 or 2,000 samples of its first thread, and those of the others count four times.
  CHECK(code.parts[1].mine == Approx(15e6 * 4 * 400 / 3000));
  CHECK(code.parts[1].reference == Approx(10e6 * 4 * 100 / 2000));
  CHECK(code.missing.empty());
}

TEST_CASE("code: a rank that sleeps for its threads names what they compute longer", "[code]") {
  Site site;
  site.id = "here";
  const LateCode code = late_threads(threaded_job(), &site, 1, 10e6, 10e6, 8e6);
  REQUIRE(code.kind == Kind::functions);
  REQUIRE(code.parts.size() == 1);
  CHECK(code.parts[0].name.starts_with("f2"));
}

TEST_CASE("code: threads without samples, and some threads only, accuse no function of theirs", "[code]") {
  Profile profile = threaded_job();
  profile.processes[1].other_sampling = {.hz = 5, .taken = 0, .lost = 0, .why_not = "no memory", .threads = 0};
  LateCode code = judged(profile);
  REQUIRE(code.parts.size() == 1);
  CHECK(code.parts[0].waits);
  CHECK(code.missing == "no memory");
  // The others have none, so nothing compares.
  profile = threaded_job();
  for (ProcessFigures& process : profile.processes)
    if (process.rank != 1) process.other_sampling = {.hz = 0, .taken = 0, .lost = 0, .why_not = "x", .threads = 0};
  code = judged(profile);
  CHECK(code.parts.size() == 1);
}

TEST_CASE("code: without samples, the reason is told", "[code]") {
  Profile profile = job_of(kEqual, kSecond, 2000, 6);
  profile.processes[1].sampling = {.hz = 0, .taken = 0, .lost = 0, .why_not = "forbidden", .threads = 0};
  CHECK(judged(profile).missing == "forbidden");
  CHECK(judged(Profile()).kind == Kind::none);
}

TEST_CASE("code: a refusal names what would allow samples", "[code]") {
  CHECK(sampling_refused(EACCES, 4).find("kernel.perf_event_paranoid is 4") != std::string::npos);
  CHECK(sampling_refused(EPERM, 2).find("filter of system calls") != std::string::npos);
  CHECK(sampling_refused(ENOSYS, -2).find("kernel has no") != std::string::npos);
}

TEST_CASE("code: what a job keeps is bounded, and no sample is lost", "[code]") {
  CodeOfRanks all;
  std::uint64_t sum = 0;
  for (std::uint64_t place = 1; place <= 200; ++place) all.whole[place] = 1000 + place % 3;
  for (std::int32_t row = 0; row < 1500; ++row) {
    CodeOfRanks one;
    std::vector<CodeSamples> code;
    for (std::uint64_t place = 1; place <= 200; ++place) {
      code.push_back({{place, 7, 9, 0}, 1 + place % 5});
      sum += 1 + place % 5;
    }
    one.add(code, {}, row);
    all.merge(one);
  }
  std::uint64_t kept = 0;
  std::size_t rows = 0;
  for (const auto& [key, of] : all.samples) {
    rows += of.size();
    for (const auto& [row, samples] : of) kept += samples;
  }
  CHECK(kept == sum);
  CHECK(rows <= CodeOfRanks::kMostRows);
  CHECK(std::ranges::any_of(all.samples, [](const auto& one) { return one.first.place > 1000; }));
}

TEST_CASE("code: a profile has places, samples and stretches by rank", "[code]") {
  std::vector<Contribution> parts(2);
  for (int rank = 0; rank < 2; ++rank) {
    Contribution& c = parts[static_cast<std::size_t>(rank)];
    c.job.ranks = 2;
    c.rank = rank;
    c.finished = true;
    c.process.sampling.hz = 19;
    c.process.sampling.taken = 5;
    c.process.sampling.lost = 1;
    if (rank == 1) c.process.sampling.others_why_not = "too many";
    CodePlace& place = c.places.emplace_back();
    place.frame.site = place.whole = 77;
    place.frame.module = "/bin/program";
    place.frame.offset = 0x41;
    place.start = 0x30;
    const SiteKey collective{5, core::Collective::allreduce, 2};
    c.code.push_back({{77, call_id(collective), call_id(collective), 0}, static_cast<std::uint64_t>(3 + rank)});
    c.code.push_back({{77, call_id(collective), call_id(collective), 1}, 5});
    c.stretches.push_back({{0, call_id(collective), call_id(collective)}, {2, 5000}});
  }
  std::string bytes;
  parts[0].serialize(bytes);
  Contribution back;
  REQUIRE(Contribution::deserialize(bytes, back));
  CHECK(back.places.size() == 1);
  CHECK(back.code[0].samples == 3);
  CHECK(back.process.sampling.lost == 1);
  const auto profile = nlohmann::json::parse(write_profile(parts));
  CHECK(profile["processes"][1]["sampling"]["taken"] == 5);
  const auto& code = profile["code"];
  CHECK(code["places"][0]["function_offset"] == "0x30");
  CHECK(code["places"][0]["samples"] == 17);
  CHECK(code["samples"][1]["other_threads"] == true);
  CHECK(profile["processes"][1]["sampling"]["other_threads"]["why_not"] == "too many");
  CHECK(!profile["processes"][0]["sampling"].contains("other_threads"));
  CHECK(code["samples"][0]["by_rank"][1]["samples"] == 4);
  CHECK(code["samples"][0]["collective"] == SiteKey{5, core::Collective::allreduce, 2}.id());
  CHECK(code["stretches"][0]["from"].is_null());
  CHECK(code["stretches"][0]["by_rank"][0]["time_ns"] == 5000);
}
