// SPDX-License-Identifier: BSD-3-Clause
// Reads /proc/stat, /proc/pressure/cpu and the cpu.stat of control groups, of both versions.
#include "profiles/base/host_counters.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "core/base/file.hpp"
#include "profiles/base/descriptor.hpp"

namespace latecomer::profiles {
namespace {

/// The begin of a file. Derived: the lines that are read end within 400 bytes.
class FileBegin {
 public:
  explicit FileBegin(const std::string& path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return;
    if (const ssize_t got = read(file.get(), text_, sizeof text_); got > 0) size_ = static_cast<std::size_t>(got);
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[1024];
  std::size_t size_ = 0;
};

/// Takes the number at the begin of `text`, behind blanks.
std::optional<std::int64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The number that follows `key` in the line that begins with `line`.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view line, std::string_view key) {
  while (!text.starts_with(line)) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return take_number(text);
}

std::optional<std::int64_t> in_ns(std::optional<std::int64_t> count, std::int64_t unit) {
  return count ? std::optional(*count * unit) : std::nullopt;
}

constexpr std::int64_t kMicrosecond = 1000;

std::optional<std::int64_t> pressure_in(const std::string& file) {
  return in_ns(number_after(FileBegin(file).text(), "some ", "total="), kMicrosecond);
}

/// Empty: the file does not exist, or the group has no counters of a quota.
std::optional<std::int64_t> throttled_in(const std::string& file) {
  const FileBegin begin(file);
  if (const auto us = number_after(begin.text(), "throttled_usec ", "throttled_usec ")) return in_ns(us, kMicrosecond);
  return number_after(begin.text(), "throttled_time ", "throttled_time ");
}

std::optional<std::int64_t> added_since(std::optional<std::int64_t> now, std::optional<std::int64_t> before) {
  return now && before && *now >= *before ? std::optional(*now - *before) : std::nullopt;
}

/// The path of the process's group in the hierarchy with the controller of processor time, and the places where that
/// hierarchy may be mounted below `root`.
struct GroupPath {
  std::string path;
  std::vector<std::string> mounts;
};

GroupPath find_group(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  GroupPath second;  // of version 2, where no hierarchy of version 1 has the controller
  const auto file = core::read_file(root + "/proc/self/cgroup");
  std::string_view text = file ? std::string_view(*file) : std::string_view();
  while (!text.empty()) {  // "number:controller,controller:path"
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':'), next = line.find(':', first + 1);
    if (next == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, next - first - 1)), path(line.substr(next + 1));
    if (line.starts_with("0::")) second = {path, {mounts, mounts + "/unified"}};
    else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      return {path, {mounts + "/" + controllers, mounts + "/cpu"}};
  }
  return second;
}

}  // namespace

HostCounters::HostCounters(const std::string& root)
    : stat_(root + "/proc/stat"), pressure_(root + "/proc/pressure/cpu") {
  find_groups(root);
  times_at_start_ = read_times();
  pressure_at_start_ = pressure_in(pressure_);
}

void HostCounters::find_groups(const std::string& root) {
  const GroupPath group = find_group(root);
  // Outside its namespace, a group has no path.
  if (!group.path.starts_with('/') || group.path.find("/..") != std::string::npos) return;
  for (const std::string& mount : group.mounts) {
    // In a container, the path may be that of the host, and the mount the container's group. Then only the last file
    // of this loop exists.
    for (std::string path = group.path == "/" ? "" : group.path;; path.resize(path.rfind('/'))) {
      const std::string file = mount + path + "/cpu.stat";
      if (const auto throttled = throttled_in(file)) groups_.push_back({file, *throttled});
      if (path.empty()) break;
    }
    if (!groups_.empty()) return;
  }
}

std::optional<HostCounters::CpuTimes> HostCounters::read_times() const {
  const FileBegin begin(stat_);
  std::string_view text = begin.text();
  constexpr std::string_view kAll = "cpu ";  // "cpu0 " and the like follow
  if (!text.starts_with(kAll)) return {};
  text.remove_prefix(kAll.size());
  const long ticks = sysconf(_SC_CLK_TCK);
  CpuTimes out{};
  for (std::int64_t& one : out) {
    const auto count = take_number(text);
    if (!count || ticks <= 0) return {};
    one = *count * (1'000'000'000 / ticks);
  }
  return out;
}

HostTimes HostCounters::since_start() const {
  HostTimes out;
  if (auto now = read_times(); now && times_at_start_) {
    bool grows = true;
    for (std::size_t i = 0; i < kFields; ++i) {
      (*now)[i] -= (*times_at_start_)[i];
      // The kernel may correct a time in which a core does nothing.
      grows = grows && ((*now)[i] >= 0 || i == idle || i == iowait);
    }
    // Where no time passes, the file does not describe the host.
    if (grows && std::accumulate(now->begin(), now->end(), std::int64_t{0}) > 0) {
      out.busy = (*now)[user] + (*now)[nice] + (*now)[system];
      out.steal = (*now)[steal];
    }
  }
  out.pressure = added_since(pressure_in(pressure_), pressure_at_start_);
  // The quotas of several groups may hold the same processes back at the same time: take the largest.
  for (const Group& group : groups_) {
    const auto throttled = added_since(throttled_in(group.file), group.at_start);
    if (!throttled) {
      out.throttled.reset();
      break;
    }
    out.throttled = std::max(out.throttled.value_or(0), *throttled);
  }
  return out;
}

}  // namespace latecomer::profiles
