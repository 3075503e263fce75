// SPDX-License-Identifier: BSD-3-Clause
// Reads a group of two counters of the kernel.
#include "shim/causes/hardware.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiles/base/descriptor.hpp"

namespace latecomer::shim {

bool HardwareCounts::open() {
  const auto open_counter = [](std::uint64_t which, int group) {
    perf_event_attr about{};
    about.size = sizeof about;
    about.type = PERF_TYPE_HARDWARE;
    about.config = which;
    about.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    about.exclude_kernel = 1;
    about.exclude_hv = 1;
    return profiles::Descriptor(
        static_cast<int>(syscall(SYS_perf_event_open, &about, 0, -1, group, PERF_FLAG_FD_CLOEXEC)));
  };
  profiles::Descriptor cycles = open_counter(PERF_COUNT_HW_CPU_CYCLES, -1);
  if (cycles.get() < 0 || ioctl(cycles.get(), PERF_EVENT_IOC_ID, &id_) != 0) return false;
  profiles::Descriptor instructions = open_counter(PERF_COUNT_HW_INSTRUCTIONS, cycles.get());
  if (instructions.get() < 0) return false;
  struct stat file {};
  if (fstat(cycles.get(), &file) != 0) return false;
  device_ = file.st_dev;
  file_ = file.st_ino;
  instructions.release();  // the group counts as long as it is open
  counters_ = cycles.release();
  return true;
}

void HardwareCounts::read(ThreadTimes& out) const {
  out.instructions = out.cycles = 0;
  if (counters_ < 0) return;
  struct {
    std::uint64_t counters, enabled, running, cycles, instructions;
  } group;
  std::uint64_t id = 0;
  struct stat file {};
  if (fstat(counters_, &file) != 0 || file.st_dev != device_ || file.st_ino != file_ ||
      ioctl(counters_, PERF_EVENT_IOC_ID, &id) != 0 || id != id_ ||
      ::read(counters_, &group, sizeof group) != sizeof group || group.counters != 2)
    return;
  // Others may use the counters in turn. Then the counts are of a part of the time.
  constexpr std::uint64_t kWhole = 100;
  if (group.running + group.enabled / kWhole < group.enabled) return;
  out.cycles = group.cycles;
  out.instructions = group.instructions;
}

}  // namespace latecomer::shim
