// SPDX-License-Identifier: BSD-3-Clause
// Rooms: all processes of a room get one outcome, also if one is missing, late, dead, there twice, or of another build.
#include "profiles/files/room.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

using namespace latecomer::profiles;
namespace fs = std::filesystem;

namespace {

constexpr latecomer::core::Nanoseconds kShort = 300'000'000, kLong = 60'000'000'000;

std::uint64_t new_key() {
  static std::mt19937_64 random(std::random_device{}());
  return random();
}

std::string path_of(std::uint64_t key) {
  char path[80];
  std::snprintf(path, sizeof path, "%s/%s%016llx", kRoomFolder, kRoomPrefix, static_cast<unsigned long long>(key));
  return path;
}

/// Runs `act(i)` in `count` processes at once. Returns their exit statuses.
std::vector<int> processes(int count, const std::function<int(int)>& act) {
  std::vector<pid_t> pids;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(act(i));
    pids.push_back(child);
  }
  std::vector<int> out;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    out.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 100);
  }
  return out;
}

constexpr int kRefused = 50;
int outcome(Room::State state) { return static_cast<int>(state); }
const int kBroken = outcome(Room::State::broken), kWhole = outcome(Room::State::whole),
          kYes = outcome(Room::State::yes);

/// Enters, meets, and says or hears the answer.
int attend(std::uint64_t key, int expected, int rank, bool answer = true, std::string_view build = "build",
           latecomer::core::Nanoseconds longest = kLong) {
  auto room = Room::enter(key, expected, rank, build);
  if (!room) return kRefused;
  if (room->meet(longest) == Room::State::broken) return kBroken;
  if (room->speaks()) room->say(answer);
  return outcome(room->hear());
}

std::vector<int> all(int count, int value) { return std::vector<int>(static_cast<std::size_t>(count), value); }

}  // namespace

TEST_CASE("room: all come, and all hear the lowest rank", "[room]") {
  for (const bool answer : {true, false}) {
    const std::uint64_t key = new_key();
    CHECK(processes(8, [&](int i) { return attend(key, 8, 3 * i + 2, answer); }) == all(8, answer ? kYes : kBroken));
    CHECK(!fs::exists(path_of(key)));
  }
}

TEST_CASE("room: it knows its ranks and who speaks", "[room]") {
  const std::uint64_t key = new_key();
  const auto statuses = processes(3, [&](int i) {
    constexpr int kRanks[] = {7, 2, 5};
    auto room = Room::enter(key, 3, kRanks[i], "build");
    if (!room || room->meet(kLong) != Room::State::whole) return 1;
    return room->ranks() == std::vector<latecomer::core::Rank>{2, 5, 7} && room->speaks() == (kRanks[i] == 2) ? 0 : 2;
  });
  CHECK(statuses == all(3, 0));
}

TEST_CASE("room: one is missing: all give up, and a later one too", "[room]") {
  const std::uint64_t key = new_key();
  CHECK(processes(3, [&](int i) { return attend(key, 4, i, true, "build", kShort); }) == all(3, kBroken));
  CHECK(!fs::exists(path_of(key)));
  CHECK(processes(1, [&](int) { return attend(key, 4, 3, true, "build", kShort); }) == all(1, kBroken));
  CHECK(!fs::exists(path_of(key)));
}

TEST_CASE("room: one gives up early: the others do so at once", "[room]") {
  const std::uint64_t key = new_key();
  CHECK(processes(3, [&](int i) { return attend(key, 4, i, true, "build", i == 1 ? kShort : kLong); }) ==
        all(3, kBroken));
}

TEST_CASE("room: a rank comes twice, or another build, or another number", "[room]") {
  std::uint64_t key = new_key();
  CHECK(processes(4, [&](int i) { return attend(key, 4, i % 3); }) == all(4, kBroken));
  const auto without_refused = [](std::vector<int> statuses) {
    CHECK(std::erase(statuses, kRefused) >= 1);
    return statuses;
  };
  key = new_key();
  auto left = without_refused(processes(4, [&](int i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i == 2 ? 200 : 0));
    return attend(key, 4, i, true, i == 2 ? "other" : "build");
  }));
  CHECK(left == all(3, kBroken));
  key = new_key();
  left = without_refused(processes(4, [&](int i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i == 2 ? 200 : 0));
    return attend(key, i == 2 ? 5 : 4, i);
  }));
  CHECK(left == all(3, kBroken));
}

TEST_CASE("room: one too many breaks nothing that is whole", "[room]") {
  const std::uint64_t key = new_key();
  CHECK(processes(5, [&](int i) {
          if (i == 4) std::this_thread::sleep_for(std::chrono::milliseconds(500));
          return attend(key, 4, i, true, "build", i == 4 ? kShort : kLong);
        }) == std::vector<int>{kYes, kYes, kYes, kYes, kBroken});
  CHECK(!fs::exists(path_of(key)));
}

TEST_CASE("room: the process that speaks dies", "[room]") {
  const std::uint64_t key = new_key();
  CHECK(processes(4, [&](int i) {
          if (i > 0) return attend(key, 4, i);
          auto room = Room::enter(key, 4, 0, "build");
          room->meet(kLong);
          return 7;
        }) == std::vector<int>{7, kWhole, kWhole, kWhole});
}

TEST_CASE("room: a file that is not the job's", "[room]") {
  const std::uint64_t key = new_key();
  const std::string path = path_of(key);
  // Of a dead process: it is replaced.
  CHECK(processes(1, [&](int) { return Room::enter(key, 2, 0, "build") ? 0 : 1; }) == all(1, 0));
  REQUIRE(fs::exists(path));
  CHECK(processes(2, [&](int i) { return attend(key, 2, i); }) == all(2, kYes));
  // A link, and a file with other contents: nobody enters.
  const std::string target = path + "-target";
  std::ofstream(target) << std::string(4096, 'x');
  fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(target, path);
  CHECK(processes(2, [&](int i) { return attend(key, 2, i); }) == all(2, kRefused));
  fs::remove(path);
  fs::rename(target, path);
  CHECK(processes(2, [&](int i) { return attend(key, 2, i); }) == all(2, kRefused));
  // Too short for a head, or writable for others.
  fs::resize_file(path, 16);
  CHECK(attend(key, 2, 0) == kRefused);
  fs::remove(path);
  const std::uint64_t open_to_all = new_key();
  auto held = Room::enter(open_to_all, 2, 0, "build");
  REQUIRE(held);
  fs::permissions(path_of(open_to_all), fs::perms::all);
  CHECK(processes(1, [&](int) { return attend(open_to_all, 2, 1); }) == all(1, kRefused));
  fs::permissions(path_of(open_to_all), fs::perms::owner_read | fs::perms::owner_write);
  if (geteuid() == 0) {
    CHECK(chown(path_of(open_to_all).c_str(), 1, 1) == 0);
    CHECK(processes(1, [&](int) { return attend(open_to_all, 2, 1); }) == all(1, kRefused));
  }
  fs::remove(path_of(open_to_all));
}

TEST_CASE("room: rooms of dead processes are removed, and only those", "[room]") {
  const std::uint64_t dead = new_key(), living = new_key(), fresh = new_key();
  CHECK(processes(1, [&](int) { return Room::enter(dead, 2, 0, "build") ? 0 : 1; }) == all(1, 0));
  auto held = Room::enter(living, 2, 0, "build");
  REQUIRE(held);
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::uint64_t key : {dead, living}) fs::last_write_time(path_of(key), old);
  CHECK(attend(fresh, 1, 0) == kYes);
  CHECK(!fs::exists(path_of(dead)));
  CHECK(fs::exists(path_of(living)));
  fs::remove(path_of(living));
}

TEST_CASE("room: races at the door", "[room]") {
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t key = new_key();
    // In every second round the file of a dead process is there already.
    if (round % 2) processes(1, [&](int) { return Room::enter(key, 16, 0, "build") ? 0 : 1; });
    const bool lacks = round % 3 == 0;
    auto statuses = processes(lacks ? 15 : 16, [&](int i) { return attend(key, 16, i, true, "build", kShort); });
    // One outcome for those that met. With a dead process's file, two processes may make a file each.
    if (round % 2 == 0) CHECK(statuses == all(lacks ? 15 : 16, lacks ? kBroken : kYes));
    else CHECK((statuses == all(16, kYes) || std::ranges::count(statuses, kYes) == 0));
    fs::remove(path_of(key));
  }
}
