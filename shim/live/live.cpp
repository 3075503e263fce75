// SPDX-License-Identifier: BSD-3-Clause
// Owns the file in shared memory.
#include "shim/live/live.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

namespace latecomer::shim {
namespace {

constinit profiles::LiveLine nowhere;
profiles::LiveFile* file = nullptr;
char path[128];

void copy_text(char* to, std::size_t size, const std::string& from) {
  std::snprintf(to, size, "%.*s", static_cast<int>(size - 1), from.c_str());
}

/// A killed process leaves its file. Removes the files of this user's processes that have certainly ended. Containers
/// may share the folder, so a process of another pid namespace may live.
void sweep(profiles::ProcessId process) {
  DIR* folder = opendir(profiles::kLiveFolder);
  if (!folder) return;
  constexpr std::size_t kPrefix = sizeof profiles::kLivePrefix - 1;
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, profiles::kLivePrefix, kPrefix) != 0) continue;
    unsigned long long space = 0, started = 0;
    if (std::sscanf(entry->d_name + kPrefix, "%llx-%d-%llx", &space, &process.pid, &started) != 3) continue;
    process.pid_namespace = space, process.started = started;
    struct stat about;
    if (profiles::life_of(process) == profiles::Life::ended &&
        fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_uid == geteuid())
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

}  // namespace

constinit profiles::LiveLine* live = &nowhere;

void live_start(int rank, int ranks, std::uint64_t job, const std::string& host, const std::string& output) {
  const profiles::ProcessId process = profiles::this_process();
  sweep(process);
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
  file->process = process, file->rank = rank, file->ranks = ranks, file->job = job;
  copy_text(file->host, sizeof file->host, host);
  copy_text(file->output, sizeof file->output, output);
  std::memcpy(file->magic, profiles::kLiveMagic, sizeof file->magic);
  live = &file->line;
}

void live_frames(const profiles::Frame& frame) {
  if (!file) return;
  const int count = file->frames.load(std::memory_order_relaxed);
  if (count >= profiles::LiveFile::kFrames) return;
  profiles::LiveFrame& to = file->frame[count];
  to.site = frame.site, to.offset = frame.offset;
  copy_text(to.module, sizeof to.module, frame.module);
  file->frames.store(count + 1, std::memory_order_release);
}

void live_stop() {
  if (!file || file->process.pid != getpid()) return;  // a forked child
  live = &nowhere;
  unlink(path);
}

}  // namespace latecomer::shim
