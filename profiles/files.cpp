// SPDX-License-Identifier: BSD-3-Clause
// Creates files with O_EXCL and O_NOFOLLOW relative to a folder descriptor, and reads them with O_NONBLOCK.
#include "profiles/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace latecomer::profiles {
namespace {

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// A new file that the destructor removes unless rename_to() gave it its final name.
class Temporary {
 public:
  Temporary(int folder, const std::string& wanted) : folder_(folder) {
    // Derived: a name clashes only with a file of an equal process number, from another host or a killed process, and
    // of the same nanosecond of a second. Each try reads the clock again, so a second one almost always succeeds. After
    // the last, the file is not written and the caller says so.
    constexpr int kTries = 16;
    timespec now{};
    for (int i = 0; i < kTries && !file_; ++i) {
      clock_gettime(CLOCK_REALTIME, &now);
      char suffix[48];
      std::snprintf(suffix, sizeof suffix, ".tmp-%d-%lx", static_cast<int>(getpid()),
                    static_cast<unsigned long>(now.tv_nsec + i));
      name_ = wanted + suffix;
      const int fd = openat(folder, name_.c_str(), kNewFile, 0666);
      if (fd >= 0 && !(file_ = fdopen(fd, "w"))) close(fd), unlinkat(folder, name_.c_str(), 0);
      if (fd < 0 && errno != EEXIST) break;
    }
    made_ = file_ != nullptr;
  }
  ~Temporary() {
    finish();
    if (made_) unlinkat(folder_, name_.c_str(), 0);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  std::FILE* file() const { return file_; }
  bool finish() { return !file_ || std::fclose(std::exchange(file_, nullptr)) == 0; }
  bool rename_to(const std::string& name) {
    if (renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) return false;
    made_ = false;
    return true;
  }

 private:
  int folder_;
  std::string name_;
  std::FILE* file_ = nullptr;
  bool made_ = false;
};

/// The reason why latecomer must not use the open folder, or "" if it may.
std::string foreign(int folder) {
  struct stat info {};
  if (fstat(folder, &info) != 0) return std::strerror(errno);
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "other users may write to it";
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (!entries) {
    if (copy >= 0) close(copy);
    return std::strerror(errno);
  }
  // A large job's folder holds two files per rank, and every rank reads the folder: limit the number of names per rank.
  // Derived: 10,000 ranks then ask a file server 640,000 times at most, and not 200 million times. Names beyond the
  // limit are not checked. They do no harm: snapshots replace nothing but files of their own names.
  constexpr int kNamesChecked = 64;
  for (int i = 0; i < kNamesChecked; ++i) {
    const dirent* entry = readdir(entries.get());
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(".nfs"))
      continue;  // NFS keeps a removed file that is still open
    // A copy has a longer name until it is complete.
    if (!is_snapshot_name(name) && !is_live_copy_name(name.substr(0, name.find(".tmp-"))))
      return "it holds '" + name + "', which is not a snapshot of latecomer";
    // The file's rank may remove it in the meantime; then it does not matter.
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode))
      return "its '" + name + "' is not a regular file";
  }
  return "";
}

core::Result<int> open_checked(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) {
    const int error = errno;
    struct stat info {};
    const bool link = lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    return core::Error{"cannot use '" + path +
                       "' for snapshots: " + (link ? "it is a symbolic link" : std::strerror(error))};
  }
  if (const std::string why = foreign(folder.get()); !why.empty())
    return core::Error{"cannot use '" + path + "' for snapshots: " + why};
  return folder.release();
}

}  // namespace

core::Result<bool> write_file(const std::string& path, const std::function<void(const Sink&)>& produce) {
  const auto failed = [&](const char* what) {
    return core::Error{"cannot " + std::string(what) + " '" + path + "': " + std::strerror(errno)};
  };
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1),
                    name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  const Descriptor folder(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return failed("create");
  Temporary temporary(folder.get(), name);
  if (!temporary.file()) return failed("create");
  bool written = true;
  produce([&](std::string_view text) {
    written = written && std::fwrite(text.data(), 1, text.size(), temporary.file()) == text.size();
  });
  if (!temporary.finish() || !written) return failed("write");
  if (!temporary.rename_to(name)) return failed("replace");
  return true;
}

core::Result<bool> write_file(const std::string& path, const std::string& text) {
  return write_file(path, [&](const Sink& sink) { sink(text); });
}

core::Result<std::string> read_placed_file(const std::string& path, uid_t owner, std::size_t most) {
  const auto refused = [&](const std::string& why) { return core::Error{"cannot read '" + path + "': " + why}; };
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0)
    return refused(errno == ELOOP ? "it is a symbolic link, not a regular file" : std::strerror(errno));
  struct stat about {};
  if (fstat(file.get(), &about) != 0) return refused(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return refused("it is not a regular file");
  if (about.st_uid != owner) return refused("it belongs to another user");
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size > most) return refused("it has " + std::to_string(size) + " bytes, more than latecomer writes");
  std::string out(size, '\0');
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = read(file.get(), out.data() + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(std::strerror(errno));
    if (n == 0) break;  // it became shorter meanwhile
    got += static_cast<std::size_t>(n);
  }
  out.resize(got);
  return out;
}

std::string snapshot_name(Rank rank, int which) { return "rank" + std::to_string(rank) + (which ? ".b" : ".a"); }

bool is_snapshot_name(std::string_view name) {
  if (!name.starts_with("rank") || name.size() < 7 || !(name.ends_with(".a") || name.ends_with(".b"))) return false;
  return name.substr(4, name.size() - 6).find_first_not_of("0123456789") == std::string_view::npos;
}

std::string live_copy_name(const std::string& host) {
  std::string out = "live-";
  for (const char c : host)
    out += (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ? c : '_';
  return out + ".json";
}

bool is_live_copy_name(std::string_view name) { return name.starts_with("live-") && name.ends_with(".json"); }

core::Result<int> open_snapshot_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return core::Error{"cannot create '" + path + "': " + std::strerror(errno)};
  return open_checked(path);
}

core::Result<int> create_snapshot(int folder, const std::string& name) {
  // A file of this name comes from an earlier job.
  unlinkat(folder, name.c_str(), 0);
  const int fd = openat(folder, name.c_str(), kNewFile, 0600);
  if (fd < 0) return core::Error{"cannot create '" + name + "': " + std::strerror(errno)};
  return fd;
}

core::Result<bool> remove_snapshots(const std::string& path) {
  const auto opened = open_checked(path);
  if (!opened) return core::Error{opened.error()};
  const Descriptor folder(*opened);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(path.c_str()), closedir);
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr)
    if (is_snapshot_name(entry->d_name) || is_live_copy_name(entry->d_name)) unlinkat(folder.get(), entry->d_name, 0);
  rmdir(path.c_str());
  return true;
}

}  // namespace latecomer::profiles
