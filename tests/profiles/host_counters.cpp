// SPDX-License-Identifier: BSD-3-Clause
// Reads the counters of a host from folders with recorded files: both versions of control groups, both at once, files
// that are missing or hold something else.
#include "profiles/base/host_counters.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "profiles/record/bytes.hpp"
#include "profiles/record/host_load.hpp"

using namespace latecomer::profiles;

namespace {

constexpr std::int64_t kTick = 10'000'000, kUs = 1000;
using Known = std::optional<std::int64_t>;

/// A folder that stands for the root of a host.
class Host {
 public:
  Host() {
    char path[] = "/tmp/latecomer-host-XXXXXX";
    REQUIRE(mkdtemp(path));
    root_ = path;
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() { std::filesystem::remove_all(root_); }
  const std::string& root() const { return root_; }
  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void remove(const std::string& file) const { std::filesystem::remove(root_ + file); }
  /// Of the whole host: user, nice, system, idle, iowait, irq, softirq, steal.
  void put_times(const std::string& fields) const {
    put("/proc/stat", "cpu  " + fields + " 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 1 2 3\nctxt 5\nbtime 1700000000\n");
  }
  void put_pressure(const std::string& total_us) const {
    put("/proc/pressure/cpu", "some avg10=1.00 avg60=2.00 avg300=3.00 total=" + total_us +
                                  "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  }

 private:
  std::string root_;
};

std::string second_stat(const std::string& throttled_us) {
  return "usage_usec 900\nuser_usec 600\nsystem_usec 300\nnr_periods 40\nnr_throttled 30\nthrottled_usec " +
         throttled_us + "\nnr_bursts 0\nburst_usec 0\n";
}

std::string first_stat(const std::string& throttled_ns) {
  return "nr_periods 40\nnr_throttled 30\nthrottled_time " + throttled_ns + "\nnr_bursts 0\nburst_time 0\n";
}

}  // namespace

TEST_CASE("host_counters: the processor time of processes is without interrupts") {
  const Host host;
  host.put_times("100 20 30 1000 50 6 7 8");
  host.put_pressure("5000");
  const HostCounters counters(host.root());
  host.put_times("150 21 32 1100 55 16 27 11");
  host.put_pressure("12000");
  const HostTimes times = counters.since_start();
  CHECK(times.busy == Known(53 * kTick));
  CHECK(times.steal == Known(3 * kTick));
  CHECK(times.pressure == Known(7000 * kUs));
  CHECK(times.throttled == Known());
}

TEST_CASE("host_counters: what is missing or malformed is not known") {
  const Host host;
  const HostCounters none(host.root());
  host.put_times("100 20 30 1000 50 6 7 8");
  host.put_pressure("5000");
  CHECK(none.since_start().busy == Known());  // no value of the start
  CHECK(none.since_start().pressure == Known());
  const HostCounters counters(host.root());
  const auto busy_of = [&](const std::string& text) {
    host.put("/proc/stat", text);
    return counters.since_start().busy;
  };
  CHECK(busy_of("cpu  100 20 30 1001 50 6 7 8 0 0\n") == Known(0));
  CHECK(busy_of("cpu  100 20 30 1000 50 6 7 8 0 0\n") == Known());  // no time has passed
  CHECK(busy_of("cpu  90 20 30 1200 50 6 7 8 0 0\n") == Known());   // it runs backwards
  CHECK(busy_of("cpu  110 20 30 990 50 6 7 8 0 0\n") == Known());
  CHECK(busy_of("cpu  120 20 30 990 50 6 7 8 0 0\n") == Known(20 * kTick));
  CHECK(busy_of("cpu  200 20 30\n") == Known());
  CHECK(busy_of("cpu  200 20 x 2000 50 6 7 8\n") == Known());
  CHECK(busy_of("cpu  200 -20 30 2000 50 6 7 8\n") == Known());
  CHECK(busy_of("cpu0 200 20 30 2000 50 6 7 8\n") == Known());
  CHECK(busy_of("cpu  99999999999999999999 20 30 2000 50 6 7 8\n") == Known());
  CHECK(busy_of("") == Known());
  for (const char* text :
       {"", "some avg10=0.00\n", "some total=\n", "some total=x\n", "full total=9000\n", "some total=4999"}) {
    host.put("/proc/pressure/cpu", text);
    CHECK(counters.since_start().pressure == Known());
  }
  host.remove("/proc/pressure/cpu");
  CHECK(counters.since_start().pressure == Known());
}

TEST_CASE("host_counters: groups of version 2, with the quota of a group above") {
  const Host host;
  host.put("/proc/self/cgroup", "0::/job.slice/step_1/task_0\n");
  const std::string mount = "/sys/fs/cgroup";
  host.put(mount + "/cpu.stat", "usage_usec 9000\nuser_usec 6000\nsystem_usec 3000\n");
  host.put(mount + "/job.slice/cpu.stat", second_stat("500"));
  host.put(mount + "/job.slice/step_1/cpu.stat", second_stat("0"));
  host.put(mount + "/job.slice/step_1/task_0/cpu.stat", "usage_usec 9\nuser_usec 6\nsystem_usec 3\n");
  const HostCounters counters(host.root());
  CHECK(counters.since_start().throttled == Known(0));
  host.put(mount + "/job.slice/cpu.stat", second_stat("2500"));
  host.put(mount + "/job.slice/step_1/cpu.stat", second_stat("700"));
  CHECK(counters.since_start().throttled == Known(2000 * kUs));
  host.put(mount + "/job.slice/cpu.stat", second_stat("400"));
  CHECK(counters.since_start().throttled == Known());
  host.remove(mount + "/job.slice/cpu.stat");
  CHECK(counters.since_start().throttled == Known());
}

TEST_CASE("host_counters: groups of version 1") {
  const Host host;
  host.put("/proc/self/cgroup", "12:cpuset:/sets\n5:cpu,cpuacct:/jobs/j1\n1:name=systemd:/user.slice\n");
  for (const char* mount : {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"}) {
    CAPTURE(mount);
    const std::string files(mount);
    host.put(files + "/cpu.stat", first_stat("0"));
    host.put(files + "/jobs/cpu.stat", first_stat("0"));
    host.put(files + "/jobs/j1/cpu.stat", first_stat("1000"));
    const HostCounters counters(host.root());
    host.put(files + "/jobs/j1/cpu.stat", first_stat("31000"));
    CHECK(counters.since_start().throttled == Known(30'000));
    std::filesystem::remove_all(host.root() + files);
  }
  // In a container, the mount is the group, and its path is that of the host.
  host.put("/sys/fs/cgroup/cpu/cpu.stat", first_stat("1000"));
  const HostCounters counters(host.root());
  host.put("/sys/fs/cgroup/cpu/cpu.stat", first_stat("4000"));
  CHECK(counters.since_start().throttled == Known(3000));
}

TEST_CASE("host_counters: with both versions, that with the controller counts") {
  const Host host;
  host.put("/sys/fs/cgroup/unified/s/cpu.stat", second_stat("100"));
  host.put("/sys/fs/cgroup/cpu/j/cpu.stat", first_stat("1000"));
  const auto throttled = [&](const std::string& groups) {
    host.put("/proc/self/cgroup", groups);
    host.put("/sys/fs/cgroup/unified/s/cpu.stat", second_stat("100"));
    host.put("/sys/fs/cgroup/cpu/j/cpu.stat", first_stat("1000"));
    const HostCounters counters(host.root());
    host.put("/sys/fs/cgroup/unified/s/cpu.stat", second_stat("101"));
    host.put("/sys/fs/cgroup/cpu/j/cpu.stat", first_stat("3000"));
    return counters.since_start().throttled;
  };
  CHECK(throttled("4:memory:/m\n3:cpu:/j\n1:name=systemd:/s\n0::/s\n") == Known(2000));
  CHECK(throttled("0::/s\n4:memory:/m\n3:cpu:/j\n") == Known(2000));
  CHECK(throttled("4:memory:/m\n3:cpuacct:/j\n0::/s\n") == Known(1 * kUs));
  CHECK(throttled("4:memory:/m\n0::/../s\n") == Known());  // outside its namespace
  CHECK(throttled("4:memory:/m\n0::s\n") == Known());
  CHECK(throttled("no groups\n:\n::\n\n") == Known());
  CHECK(throttled("") == Known());
  CHECK(throttled("3:cpu:/elsewhere\n") == Known());
  host.put("/sys/fs/cgroup/unified/cpu.stat", second_stat("x"));
  CHECK(throttled("0::/\n") == Known());
}

TEST_CASE("host_load: others have what the ranks have not") {
  HostLoad load;
  load.cores = 2;
  load.span = 10'000 * kTick;
  CHECK(load.others() == Known());
  load.busy = 1000 * kTick;
  CHECK(load.others() == Known());
  load.job = 600 * kTick;
  CHECK(load.others() == Known(400 * kTick));
  load.job = 1004 * kTick;  // ticks and exact times differ
  CHECK(load.others() == Known(0));
  load.job = 1100 * kTick;  // /proc/stat is of something else
  CHECK(load.others() == Known());
  load.job = -1;
  CHECK(load.others() == Known());
  // 20,000 ticks, each of a process with probability 1/2: 71 of them.
  CHECK(load.error() == Approx(70.7 * kTick).epsilon(0.01));
}

TEST_CASE("host_load: what is not known stays so between processes") {
  HostLoad load;
  load.host = "n1";
  load.ranks = 3;
  load.busy = 5;
  load.throttled = 0;
  std::string bytes;
  ByteWriter(bytes).write(load);
  HostLoad read;
  read.pressure = 9;
  ByteReader reader(bytes);
  reader.read(read);
  REQUIRE(reader.good);
  CHECK(read.host == "n1");
  CHECK(read.ranks == 3);
  CHECK(read.busy == Known(5));
  CHECK(read.throttled == Known(0));
  CHECK(read.pressure == Known());
  CHECK(read.job == Known());
}
