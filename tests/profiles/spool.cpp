// SPDX-License-Identifier: BSD-3-Clause
// Snapshots on disk: the pauses between them, what is written again, and what an abort leaves. Shares of profiles.
#include "profiles/files/spool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "profiles/base/share.hpp"
#include "profiles/files/shared_folder.hpp"

using namespace latecomer::profiles;
namespace fs = std::filesystem;
using latecomer::core::Nanoseconds;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/latecomer-spool-XXXXXX";
    path = std::string(mkdtemp(name)) + "/job.json.parts";
  }
  ~Folder() { fs::remove_all(fs::path(path).parent_path()); }
  std::string path;
};

/// About a megabyte of sites.
Contribution contribution() {
  Contribution out;
  out.job.ranks = 1;
  out.job.start = "2025-01-01T00:00:00Z";
  out.job_key = 5;
  for (std::uint64_t site = 1; site <= 400; ++site)
    out.local[{site, latecomer::core::Collective::allreduce, 4}].add(1000, 8);
  return out;
}

void overwrite(const std::string& file, off_t at) {
  const int fd = open(file.c_str(), O_WRONLY);
  CHECK(pwrite(fd, "x", 1, at) == 1);
  close(fd);
}

std::uint64_t calls_in(const Recovered& read) {
  std::uint64_t calls = 0;
  for (const Contribution& part : read.parts)
    for (const auto& entry : part.local.entries()) calls += entry.site.calls;
  return calls;
}

}  // namespace

TEST_CASE("spool: a snapshot at most each second, and at least each minute", "[spool]") {
  constexpr Nanoseconds kSecond = 1'000'000'000;
  CHECK(pause_after_snapshot(0) == kSecond);
  CHECK(pause_after_snapshot(100'000) == kSecond);
  CHECK(pause_after_snapshot(5'000'000) == 10 * kSecond);
  CHECK(pause_after_snapshot(50'000'000) == 60 * kSecond);
  CHECK(pause_after_snapshot(std::numeric_limits<Nanoseconds>::max()) == 60 * kSecond);
}

TEST_CASE("spool: blocks that have not changed are not written again", "[spool]") {
  const Folder folder;
  Contribution mine = contribution();
  Spool spool;
  spool.begin(folder.path, 0, {5, "", "", ""});
  for (int i = 0; i < 2; ++i) REQUIRE(spool.write(mine, {}));
  const std::string first = folder.path + "/" + snapshot_name(0, 0);
  const auto middle = static_cast<off_t>(fs::file_size(first) / 2);
  overwrite(first, middle);
  mine.learned = "at the end";
  REQUIRE(spool.write(mine, {}));
  const auto newer = read_spool(folder.path);
  REQUIRE(newer);
  CHECK(newer->problems.size() == 1);  // the damage is still there
  CHECK(calls_in(*newer) == 400);      // of the older snapshot
}

TEST_CASE("spool: changed blocks are written, whether the snapshot grows or shrinks", "[spool]") {
  const Folder folder;
  Contribution mine = contribution();
  Spool spool;
  spool.begin(folder.path, 0, {5, "", "", ""});
  for (int i = 0; i < 12; ++i) {
    mine.local[{static_cast<std::uint64_t>(1 + 37 * i), latecomer::core::Collective::allreduce, 4}].add(1000, 8);
    mine.learned.assign(static_cast<std::size_t>(i % 3 == 1 ? 20'000 : 100 * i), 'x');
    REQUIRE(spool.write(mine, {}));
    const auto read = read_spool(folder.path);
    REQUIRE(read);
    CHECK(read->problems.empty());
    CHECK(calls_in(*read) == static_cast<std::uint64_t>(401 + i));
    CHECK(read->parts[0].learned == mine.learned);
  }
}

TEST_CASE("spool: an abort is noted in the last snapshot", "[spool]") {
  const Folder folder;
  Spool spool;
  spool.begin(folder.path, 0, {5, "", "", ""});
  spool.prepare(contribution());
  for (int i = 0; i < 3; ++i) REQUIRE(spool.write(contribution(), {}));
  spool.note_abort(77);
  const auto read = read_spool(folder.path);
  REQUIRE(read);
  CHECK(read->parts[0].aborted == 77);
  CHECK(calls_in(*read) == 400);
}

TEST_CASE("spool: an abort before the first snapshot leaves the prepared record", "[spool]") {
  const Folder folder;
  Spool spool;
  spool.begin(folder.path, 0, {5, "", "", ""});
  Contribution none = contribution();
  none.local = {};
  spool.prepare(none);
  CHECK_FALSE(fs::exists(folder.path + "/" + snapshot_name(0, 1)));
  spool.note_abort(77);
  const auto read = read_spool(folder.path);
  REQUIRE(read);
  CHECK(read->parts[0].aborted == 77);
}

TEST_CASE("share: between 0 and 1, or not known", "[share]") {
  CHECK(Share::of(1, 4).value() == 0.25);
  CHECK(Share::of(0, 4).known());
  CHECK(Share::of(4.01, 4).value() == 1);  // shown as 100% in any case
  for (const auto& [part, whole] : {std::pair{4.1, 4.0},
                                    {-0.1, 4.0},
                                    {1.0, 0.0},
                                    {0.0, 0.0},
                                    {1.0, -4.0},
                                    {std::numeric_limits<double>::quiet_NaN(), 4.0},
                                    {1.0, std::numeric_limits<double>::quiet_NaN()},
                                    {std::numeric_limits<double>::infinity(), 4.0}})
    CHECK_FALSE(Share::of(part, whole).known());
}

TEST_CASE("share: no text shows more than 100%", "[share]") {
  CHECK(Share::of(0.05, 1).percent(1, "-") == "5.0%");
  CHECK(Share::of(1.004, 1).percent(0, "-") == "100%");
  CHECK(Share::of(684, 1).percent(0, "-") == "-");
}
