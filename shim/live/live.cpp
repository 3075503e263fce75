// SPDX-License-Identifier: BSD-3-Clause
// Owns the file in shared memory.
#include "shim/live/live.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace latecomer::shim {
namespace {

constinit profiles::LiveLine nowhere;
profiles::LiveFile* file = nullptr;
char path[64];

void copy_text(char* to, std::size_t size, const std::string& from) {
  std::snprintf(to, size, "%.*s", static_cast<int>(size - 1), from.c_str());
}

/// A killed process leaves its file. Removes the files of this user whose process id no process has.
void sweep() {
  DIR* folder = opendir(profiles::kLiveFolder);
  if (!folder) return;
  constexpr std::size_t kPrefix = sizeof profiles::kLivePrefix - 1;
  while (const dirent* entry = readdir(folder)) {
    if (std::strncmp(entry->d_name, profiles::kLivePrefix, kPrefix) != 0) continue;
    struct stat about;
    const int pid = std::atoi(entry->d_name + kPrefix);
    const auto process = profiles::process_state(pid);
    if (pid > 0 && (!process.exists || process.state == 'Z') &&
        fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && about.st_uid == geteuid())
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

}  // namespace

constinit profiles::LiveLine* live = &nowhere;

void live_start(int rank, int ranks, std::uint64_t job, const std::string& host, const std::string& output) {
  sweep();
  std::snprintf(path, sizeof path, "%s/%s%d", profiles::kLiveFolder, profiles::kLivePrefix, getpid());
  unlink(path);  // of an earlier process with this id
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
  file->pid = getpid(), file->rank = rank, file->ranks = ranks, file->job = job;
  file->started = profiles::process_state(getpid()).started;
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
  if (!file || file->pid != getpid()) return;  // a forked child
  live = &nowhere;
  unlink(path);
}

}  // namespace latecomer::shim
