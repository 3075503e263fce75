// SPDX-License-Identifier: BSD-3-Clause
// Creates files with O_EXCL and O_NOFOLLOW relative to a folder descriptor, and reads them with O_NONBLOCK.
#include "profiles/files/shared_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/file_size.hpp"
#include "profiles/files/claim.hpp"

namespace latecomer::profiles {
namespace {

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

/// A new file that the destructor removes unless rename_to() gave it its final name.
class Temporary {
 public:
  Temporary(int folder, const std::string& wanted) : folder_(folder) {
    // Derived: two names are equal only if process number and nanosecond of a second are equal, on another host or of a
    // killed process. Each try reads the clock again, so a second try almost always succeeds. After the last try, the
    // file is not written, and the caller reports it.
    constexpr int kTries = 16;
    timespec now{};
    for (int i = 0; i < kTries && !file_; ++i) {
      clock_gettime(CLOCK_REALTIME, &now);
      char suffix[48];
      std::snprintf(suffix, sizeof suffix, ".tmp-%d-%lx", static_cast<int>(getpid()),
                    static_cast<unsigned long>(now.tv_nsec + i));
      name_ = wanted + suffix;
      const int fd = openat(folder, name_.c_str(), kNewFile, 0666);
      if (fd >= 0 && !(file_ = fdopen(fd, "w"))) {
        close(fd);
        unlinkat(folder, name_.c_str(), 0);
      }
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
  /// Flushes the data to disk. Returns false if that failed.
  bool sync() { return std::fflush(file_) == 0 && (fsync(fileno(file_)) == 0 || errno == EINVAL || errno == ENOSYS); }
  bool rename_to(const std::string& name) {
    if (renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) return false;
    made_ = false;
    return true;
  }
  /// As rename_to(), but fails with EEXIST if anything has this name.
  bool rename_to_new(const std::string& name) {
    // Not every file system knows this flag, or hard links.
    bool renamed = renameat2(folder_, name_.c_str(), folder_, name.c_str(), RENAME_NOREPLACE) == 0;
    if (!renamed && (errno == EINVAL || errno == ENOSYS)) {
      renamed = linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0;
      if (renamed) unlinkat(folder_, name_.c_str(), 0);
      struct stat info {};
      if (!renamed && errno != EEXIST) {
        if (fstatat(folder_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return rename_to(name);
        errno = EEXIST;
      }
    }
    if (renamed) made_ = false;
    return renamed;
  }

 private:
  int folder_;
  std::string name_;
  std::FILE* file_ = nullptr;
  bool made_ = false;
};

/// Writes a temporary file beside `path`. Then `place` renames it.
template <typename Place>
core::Result<bool> write_and(const std::string& path, const std::function<void(const Sink&)>& produce, Place place) {
  const auto failed = [&] { return core::Error{"cannot write '" + path + "': " + std::strerror(errno)}; };
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1),
                    name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  const Descriptor folder(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return failed();
  const NoFileSizeSignal no_signal;
  Temporary temporary(folder.get(), name);
  if (!temporary.file()) return failed();
  int error = 0;
  produce([&](std::string_view text) {
    if (error == 0 && std::fwrite(text.data(), 1, text.size(), temporary.file()) != text.size()) error = errno;
  });
  if (error != 0) {
    errno = error;
    return failed();
  }
  if (!place(temporary, name)) return failed();
  return true;
}

}  // namespace

core::Result<bool> write_file(const std::string& path, const std::function<void(const Sink&)>& produce) {
  return write_and(path, produce, [](Temporary& temporary, const std::string& name) {
    return temporary.finish() && temporary.rename_to(name);
  });
}

core::Result<std::string> write_profile_file(const std::string& path, bool replace,
                                             const std::function<void(const Sink&)>& produce) {
  std::string out = path;
  const auto place = [&](Temporary& temporary, const std::string& name) {
    if (!temporary.sync() || !temporary.finish()) return false;
    if (replace && temporary.rename_to(name)) return true;
    // A folder has this name, or another program has made a file.
    constexpr int kMost = 1'000'000;
    for (int number = 1; number <= kMost; ++number) {
      out = numbered(path, number);
      struct stat info {};
      if (number > 1 && lstat((out + ".parts").c_str(), &info) == 0) continue;  // the name of another job
      if (temporary.rename_to_new(numbered(name, number))) return true;
      if (errno != EEXIST) return false;
    }
    return false;
  };
  if (const auto written = write_and(path, produce, place); !written) return core::Error{written.error()};
  return out;
}

core::Result<bool> replace_file(const std::string& path, const std::function<bool(const Sink&)>& produce) {
  bool good = false;
  return write_and(
      path, [&](const Sink& sink) { good = produce(sink); },
      [&](Temporary& temporary, const std::string& name) {
        return good && temporary.sync() && temporary.finish() && temporary.rename_to(name);
      });
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
    const ssize_t n = ::read(file.get(), out.data() + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(std::strerror(errno));
    if (n == 0) break;  // the file has become shorter
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

namespace {

std::string name_for_host(const char* before, const std::string& host) {
  std::string out = before;
  for (const char c : host)
    out += (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ? c : '_';
  return out + ".json";
}

}  // namespace

std::string live_copy_name(const std::string& host) { return name_for_host("live-", host); }
bool is_live_copy_name(std::string_view name) { return name.starts_with("live-") && name.ends_with(".json"); }
std::string last_state_name(const std::string& host) { return name_for_host("last-", host); }
bool is_last_state_name(std::string_view name) { return name.starts_with("last-") && name.ends_with(".json"); }

int create_snapshot(int folder, const char* name) noexcept { return openat(folder, name, kNewFile, 0600); }

}  // namespace latecomer::profiles
