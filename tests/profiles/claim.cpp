// SPDX-License-Identifier: BSD-3-Clause
// Names of profiles: who gets one, who joins, and what is never touched.
#include "profiles/files/claim.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "profiles/files/shared_folder.hpp"

using namespace latecomer::profiles;
namespace fs = std::filesystem;

namespace {

/// A folder for the test, removed at its end.
struct Folder {
  Folder() {
    char name[] = "/tmp/latecomer-claim-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

JobId job(std::uint64_t key) { return {key, "77", "2025-01-01T00:00:00Z", "host0"}; }

std::string claimed(const std::string& output, std::uint64_t key, bool replace = false, bool join = false) {
  const auto done = claim_output(output, job(key), kJobClaim, replace, join);
  return done ? fs::path(done->output).filename().string() : done.error();
}

/// Runs `act` in a process that has ended when this returns.
template <typename Act>
int in_ended_process(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

void snapshot(const std::string& folder, const JobId& id, std::uint64_t serial) {
  const auto opened = open_snapshot_folder(folder, id);
  REQUIRE(opened);
  const int file = create_snapshot(*opened, "rank0.a");
  REQUIRE(file >= 0);
  SnapshotHeader header{{}, 0, serial, 0, 0, this_process()};
  std::copy(std::begin(kSnapshotMagic), std::end(kSnapshotMagic), header.magic);
  CHECK(write(file, &header, sizeof header) == sizeof header);
  close(file);
  close(*opened);
}

}  // namespace

TEST_CASE("claim: numbers", "[claim]") {
  CHECK(numbered("a/out.json", 1) == "a/out.json");
  CHECK(numbered("a/out.json", 2) == "a/out-2.json");
  CHECK(numbered("out.5", 12) == "out.5-12");
}

TEST_CASE("claim: jobs get names of their own, and what exists stays", "[claim]") {
  const Folder folder;
  const std::string out = folder / "out.json";
  CHECK(claimed(out, 1) == "out.json");
  CHECK(claimed(out, 2) == "out-2.json");
  std::ofstream(folder / "out-3.json") << "profile";
  CHECK(claimed(out, 3) == "out-4.json");
  CHECK(claimed(out, 4, true) == "out-5.json");  // the first job runs
  fs::create_directory(folder / "new.json");
  CHECK(claimed(folder / "new.json", 5, true) == "new-2.json");
  std::ofstream(folder / "old.json") << "profile";
  CHECK(claimed(folder / "old.json", 6, true) == "old.json");
  fs::create_directory(folder / "empty.json.parts");
  CHECK(claimed(folder / "empty.json", 7) == "empty-2.json");  // nothing is known of it
  CHECK(fs::exists(folder / "empty.json.parts"));
  CHECK_FALSE(claim_output(folder / "none/out.json", job(8), kJobClaim, false, false));
  leave_snapshot_folder(out + ".parts", 2);
  CHECK(fs::exists(out + ".parts"));
  leave_snapshot_folder(out + ".parts", 1);
  CHECK_FALSE(fs::exists(out + ".parts"));
}

TEST_CASE("claim: many processes at once get one name each", "[claim]") {
  const Folder folder;
  constexpr int kJobs = 12;
  int begin[2];
  REQUIRE(pipe(begin) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kJobs; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      close(begin[1]);
      (void)!read(begin[0], &byte, 1);  // until all are there
      const std::string name = claimed(folder / "out.json", static_cast<std::uint64_t>(i) + 1);
      std::ofstream(folder / ("got." + std::to_string(i))) << name;
      pause();
      _exit(0);
    }
    children.push_back(child);
  }
  close(begin[0]);
  close(begin[1]);
  std::set<std::string> names;
  for (int i = 0; i < kJobs; ++i) {
    std::string name;
    while (name.empty()) {
      std::ifstream in(folder / ("got." + std::to_string(i)));
      std::getline(in, name);
      usleep(1000);
    }
    CHECK(folder_state(folder / (name + ".parts")).of(static_cast<std::uint64_t>(i) + 1));
    names.insert(name);
  }
  CHECK(names.size() == kJobs);
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST_CASE("claim: ranks without communication find the folder of their job", "[claim]") {
  const Folder folder;
  const std::string out = folder / "out.json";
  CHECK(claimed(out, 1) == "out.json");
  CHECK(claimed(out, 2, false, true) == "out-2.json");
  CHECK(claimed(out, 2, false, true) == "out-2.json");
  fs::remove_all(out + ".parts");
  CHECK(claimed(out, 2, false, true) == "out-2.json");  // a lower number is free now
  CHECK(claimed(out, 3, false, true) == "out.json");
}

TEST_CASE("claim: a job takes over what latecomer run has claimed, once", "[claim]") {
  const Folder folder;
  const std::string out = folder / "out.json";
  REQUIRE(claim_output(out, job(1), kRunClaim, false, false));
  CHECK_FALSE(take_over(out, job(2)));
  CHECK(take_over(out, job(1)));
  CHECK_FALSE(take_over(out, job(1)));
  CHECK(open_snapshot_folder(out + ".parts", job(1)));
  CHECK_FALSE(open_snapshot_folder(out + ".parts", job(2)));
}

TEST_CASE("claim: files of ended jobs", "[claim]") {
  const Folder folder;
  const std::string out = folder / "out.json", parts = out + ".parts";
  REQUIRE(in_ended_process([&] { return claimed(out, 1) == "out.json" ? 0 : 1; }) == 0);
  CHECK(folder_state(parts).life == Life::ended);
  CHECK(claimed(out, 2) == "out.json");  // the job has left nothing
  leave_snapshot_folder(parts, 2);

  in_ended_process([&] {
    claimed(out, 3);
    snapshot(parts, job(3), 0);
    return 0;
  });
  CHECK_FALSE(folder_state(parts).snapshots);
  CHECK(claimed(out, 4) == "out.json");  // the file is empty
  leave_snapshot_folder(parts, 4);

  in_ended_process([&] {
    claimed(out, 5);
    snapshot(parts, job(5), 1);
    return 0;
  });
  CHECK((folder_state(parts).life == Life::ended && folder_state(parts).snapshots));
  CHECK(claimed(out, 6, true) == "out-2.json");
  CHECK_FALSE(discard_ended(parts, false));
  CHECK(set_aside(parts) == folder / "out.json.replaced.parts");
  CHECK(claimed(out, 7) == "out.json");
  CHECK(discard_ended(folder / "out.json.replaced.parts", true));

  // The process that made the claim has ended, and a rank runs.
  in_ended_process([&] {
    claimed(folder / "rank.json", 8);
    return 0;
  });
  snapshot(folder / "rank.json.parts", job(8), 1);
  CHECK(folder_state(folder / "rank.json.parts").life == Life::runs);
  CHECK(set_aside(folder / "rank.json.parts").empty());
  CHECK_FALSE(discard_ended(folder / "rank.json.parts", true));
}

TEST_CASE("claim: a process of another boot, container or host may run", "[claim]") {
  ProcessId process = this_process();
  CHECK(life_of(process) == Life::runs);
  ++process.started;
  CHECK(life_of(process) == Life::ended);
  ++process.pid_namespace;
  CHECK(life_of(process) == Life::unknown);
  process = this_process();
  ++process.kernel;
  CHECK(life_of(process) == Life::unknown);
  CHECK(life_of({}) == Life::unknown);
}

TEST_CASE("profile file: nothing that has its name is lost", "[claim]") {
  const Folder folder;
  const auto write = [&](const std::string& name, bool replace) {
    const auto done = write_profile_file(folder / name, replace, [](const Sink& sink) { sink("new"); });
    return done ? fs::path(*done).filename().string() : done.error();
  };
  CHECK(write("out.json", false) == "out.json");
  CHECK(write("out.json", false) == "out-2.json");
  CHECK(write("out.json", true) == "out.json");
  fs::create_directory(folder / "out-3.json.parts");
  CHECK(write("out.json", false) == "out-4.json");
  fs::create_directory(folder / "folder.json");
  CHECK(write("folder.json", true) == "folder-2.json");
  CHECK(write("none/out.json", true).starts_with("cannot write"));
}
