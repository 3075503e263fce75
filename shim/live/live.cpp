// SPDX-License-Identifier: BSD-3-Clause
// Owns the file in shared memory.
#include "shim/live/live.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <vector>

#include "profiles/base/descriptor.hpp"

namespace latecomer::shim {
namespace {

constinit profiles::LiveLine nowhere;
constinit profiles::LiveMessage no_message;
profiles::LiveFile* file = nullptr;
char path[128];

void copy_text(char* to, std::size_t size, const std::string& from) {
  std::snprintf(to, size, "%.*s", static_cast<int>(size - 1), from.c_str());
}

/// How long the file of an ended process stays. The first process that finds it marks it: takes away the right to write
/// and sets the time of change. The file stays for a day from then on, because a user may look at a killed job by
/// `latecomer recover`. Chosen: the morning after a night.
constexpr time_t kKept_s = 24 * 3600;
/// The most files that stay. Derived: they take 68 MB of memory, and a host has a few hundred ranks.
constexpr std::size_t kMostKept = 2048;

/// A file that stays, and the time at which a process first found that its process had ended.
struct Kept {
  time_t since;
  char name[64];
};

/// Whether the file is of an earlier job with the name of this one: the user has given up its snapshots.
bool is_replaced(int folder, const char* name, std::uint64_t job, const std::string& output) {
  const profiles::Descriptor its_file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  char text[sizeof profiles::LiveFile::output] = {};
  std::uint64_t its = job;
  return pread(its_file.get(), &its, sizeof its, offsetof(profiles::LiveFile, job)) == sizeof its && its != job &&
         pread(its_file.get(), text, sizeof text - 1, offsetof(profiles::LiveFile, output)) > 0 && output == text;
}

/// Removes the files of this user that killed processes have left and that no command needs any more. Containers may
/// share the folder, so the process of a file may live in another pid namespace.
void sweep(profiles::ProcessId process, std::uint64_t job, const std::string& output) noexcept try {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(profiles::kLiveFolder), closedir);
  if (!folder) return;
  const int in = dirfd(folder.get());
  constexpr std::size_t kPrefix = sizeof profiles::kLivePrefix - 1;
  std::vector<Kept> kept;
  const time_t now = time(nullptr);
  while (const dirent* entry = readdir(folder.get())) {
    const char* name = entry->d_name;
    struct stat about;
    if (std::strncmp(name, profiles::kLivePrefix, kPrefix) != 0 || std::strlen(name) >= sizeof Kept::name ||
        fstatat(in, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid())
      continue;
    const bool marked = (about.st_mode & S_IWUSR) == 0, old = marked && now - about.st_mtime > kKept_s,
               replaced = is_replaced(in, name, job, output);
    if (!marked || old || replaced) {
      unsigned long long space = 0, started = 0;
      if (std::sscanf(name + kPrefix, "%llx-%d-%llx", &space, &process.pid, &started) != 3) continue;
      process.pid_namespace = space;
      process.started = started;
      if (profiles::life_of(process) != profiles::Life::ended) continue;
      if (old || replaced) {
        unlinkat(in, name, 0);
        continue;
      }
      utimensat(in, name, nullptr, AT_SYMLINK_NOFOLLOW);
      if (fchmodat(in, name, S_IRUSR, 0) == 0) about.st_mtime = now;
    }
    copy_text(kept.emplace_back(Kept{about.st_mtime, ""}).name, sizeof Kept::name, name);
  }
  if (kept.size() <= kMostKept) return;
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.since < b.since; });
  for (std::size_t i = 0; i < kept.size() - kMostKept; ++i) unlinkat(in, kept[i].name, 0);
} catch (...) {  // without memory, a later process sweeps
}

}  // namespace

constinit profiles::LiveLine* live = &nowhere;
constinit profiles::LiveMessage* live_message = &no_message;

void live_start(int rank, int ranks, std::uint64_t job, const std::string& host, const std::string& output,
                bool sweeps) {
  const profiles::ProcessId process = profiles::this_process();
  if (sweeps) sweep(process, job, output);
  std::snprintf(path, sizeof path, "%s/%s%llx-%d-%llx", profiles::kLiveFolder, profiles::kLivePrefix,
                static_cast<unsigned long long>(process.pid_namespace), process.pid,
                static_cast<unsigned long long>(process.started));
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return;
  // Reserves the memory of the head now. A store into a full file system would end the process.
  void* at = posix_fallocate(fd, 0, sizeof(profiles::LiveFile)) == 0
                 ? mmap(nullptr, sizeof(profiles::LiveFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                 : MAP_FAILED;
  close(fd);
  if (at == MAP_FAILED) {
    unlink(path);
    return;
  }
  file = new (at) profiles::LiveFile;
  file->process = process;
  file->rank = rank;
  file->ranks = ranks;
  file->job = job;
  copy_text(file->host, sizeof file->host, host);
  copy_text(file->output, sizeof file->output, output);
  std::memcpy(file->magic, profiles::kLiveMagic, sizeof file->magic);
  live = &file->line;
  live_message = &file->message;
}

void live_frames(const profiles::Frame& frame) {
  if (!file) return;
  const int count = file->frames.load(std::memory_order_relaxed);
  if (count >= profiles::LiveFile::kFrames) return;
  profiles::LiveFrame& to = file->frame[count];
  to.site = frame.site;
  to.offset = frame.offset;
  copy_text(to.module, sizeof to.module, frame.module);
  file->frames.store(count + 1, std::memory_order_release);
}

void live_stop() {
  if (!file || file->process.pid != getpid()) return;  // a forked child
  live = &nowhere;
  live_message = &no_message;
  unlink(path);
}

}  // namespace latecomer::shim
