// SPDX-License-Identifier: BSD-3-Clause
// Makes, reads and removes folders of snapshots.
#include "profiles/files/claim.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>

#include "profiles/base/descriptor.hpp"
#include "profiles/base/file_size.hpp"
#include "profiles/files/shared_folder.hpp"

namespace latecomer::profiles {
namespace {

constexpr char kHead[] = "latecomer claim 1";
constexpr std::string_view kEnding = ".parts";

struct Claim {
  JobId job;
  ProcessId process;
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string claim_text(const JobId& job) {
  const ProcessId process = this_process();
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "key %llx\nkernel %llx\nnamespace %llx\nstarted %llx\npid %x\n",
                static_cast<unsigned long long>(job.key), static_cast<unsigned long long>(process.kernel),
                static_cast<unsigned long long>(process.pid_namespace),
                static_cast<unsigned long long>(process.started), static_cast<unsigned>(process.pid));
  return std::string(kHead) + "\n" + numbers + "id " + one_line(job.id) + "\nstart " + one_line(job.start) + "\nhost " +
         one_line(job.host) + "\nend\n";
}

/// Reads a regular file of the folder without waiting for it. Returns the number of bytes, or -1.
ssize_t read_in(int folder, const char* name, void* to, std::size_t size) {
  const Descriptor file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return -1;
  return pread(file.get(), to, size, 0);
}

/// Returns whether the claim could be read whole.
bool read_claim(int folder, const char* name, Claim& out) {
  char bytes[4096];
  const ssize_t size = read_in(folder, name, bytes, sizeof bytes);
  std::string_view rest(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (!rest.starts_with(kHead) || !rest.ends_with("\nend\n")) return false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view key = line.substr(0, space);
    const std::string value(line.substr(std::min(space + 1, line.size())));
    const std::uint64_t number = std::strtoull(value.c_str(), nullptr, 16);
    if (key == "key") out.job.key = number;
    else if (key == "kernel") out.process.kernel = number;
    else if (key == "namespace") out.process.pid_namespace = number;
    else if (key == "started") out.process.started = number;
    else if (key == "pid") out.process.pid = static_cast<std::int32_t>(number);
    else if (key == "id") out.job.id = value;
    else if (key == "start") out.job.start = value;
    else if (key == "host") out.job.host = value;
  }
  return true;
}

/// Visits the names in the folder until `visit` returns false. Returns false if the folder cannot be read.
template <typename Visit>
bool each_name(int folder, Visit visit) {
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (!entries) {
    if (copy >= 0) close(copy);
    return false;
  }
  while (const dirent* entry = readdir(entries.get()))
    if (const std::string name = entry->d_name; name != "." && name != ".." && !visit(name)) break;
  return true;
}

bool is_claim_name(std::string_view name) { return name == kRunClaim || name == kJobClaim; }
bool is_ours(std::string_view name) {
  const std::string_view whole = name.substr(0, name.find(".tmp-"));
  return is_claim_name(name) || is_snapshot_name(name) || is_live_copy_name(whole) || is_last_state_name(whole) ||
         name.starts_with(".nfs");  // NFS keeps a removed file that is still open
}

void note_life(FolderState& state, Life life) {
  if (life == Life::runs || (life == Life::unknown && state.life == Life::ended)) state.life = life;
}

/// `lives`: looks at the processes; otherwise ends at the first observation, since the files of all ranks may be there.
FolderState read_folder_state(int folder, bool lives = true) {
  FolderState state;
  state.exists = true;
  state.life = Life::ended;
  bool known = false;
  const bool read = each_name(folder, [&](const std::string& name) {
    if (is_claim_name(name)) {
      Claim claim;
      if (!read_claim(folder, name.c_str(), claim)) {
        state.life = Life::unknown;
        return true;
      }
      known = true;
      state.keys.push_back(claim.job.key);
      if (lives) note_life(state, life_of(claim.process));
      if (state.job.empty() || name == kJobClaim)
        state.job = "job " + claim.job.id + ", process " + std::to_string(claim.process.pid) + " on " + claim.job.host +
                    ", since " + claim.job.start;
    } else if (is_snapshot_name(name)) {
      SnapshotHeader header;
      const bool whole = read_in(folder, name.c_str(), &header, sizeof header) == sizeof header &&
                         std::memcmp(header.magic, kSnapshotMagic, sizeof header.magic) == 0;
      known = true;
      state.snapshots = state.snapshots || !whole || header.serial > 0;
      if (!lives) return !state.snapshots;
      note_life(state, whole ? life_of(header.writer) : Life::unknown);
    } else if (is_last_state_name(name)) {
      state.last_state = true;
    } else if (!is_ours(name)) {
      note_life(state, Life::unknown);
    }
    return true;
  });
  if (!read || !known) note_life(state, Life::unknown);
  return state;
}

core::Error unusable(const std::string& folder, const std::string& why) {
  return core::Error{"cannot use '" + folder + "' for snapshots: " + why};
}

/// Opens an existing folder that is safe to write to.
core::Result<int> open_checked(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (folder.get() < 0) {
    const int error = errno;
    const bool link = lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    return unusable(path, link ? "it is a symbolic link" : std::strerror(error));
  }
  if (fstat(folder.get(), &info) != 0) return unusable(path, std::strerror(errno));
  if (info.st_uid != geteuid()) return unusable(path, "it belongs to another user");
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return unusable(path, "other users may write to it");
  return folder.release();
}

/// Writes a new file. Removes it if it cannot be written whole.
bool write_new(int folder, const char* name, const std::string& text) {
  const Descriptor file(openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return false;
  const NoFileSizeSignal no_signal;
  if (write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return true;
  const int error = errno;
  unlinkat(folder, name, 0);
  errno = error;
  return false;
}

enum class Made { yes, taken, failed };

/// Makes the folder with the claim in it, unless anything has this name. Sets errno where it fails.
Made make_folder(const std::string& path, const JobId& job, const char* claim) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return Made::taken;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".tmp-%d-%lx", static_cast<int>(getpid()),
                static_cast<unsigned long>(now.tv_nsec));
  const std::string temporary = path + suffix;
  if (mkdir(temporary.c_str(), 0700) != 0) return Made::failed;
  const Descriptor folder(open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // A rename does not replace a folder that holds a file, and every folder holds its claim from the beginning.
  const bool written = folder.get() >= 0 && write_new(folder.get(), claim, claim_text(job));
  if (written && rename(temporary.c_str(), path.c_str()) == 0) return Made::yes;
  const int error = errno;
  unlinkat(folder.get(), claim, 0);
  rmdir(temporary.c_str());
  errno = error;
  return written && (error == ENOTEMPTY || error == EEXIST || error == ENOTDIR) ? Made::taken : Made::failed;
}

/// Removes claims, snapshots and last states from the open folder, and the folder at `path` if nothing is left in it.
/// `copies`: also the copies of the live state, which `latecomer relay` removes itself while it runs.
void empty(int folder, const std::string& path, bool copies) {
  std::vector<std::string> names;
  each_name(folder, [&](const std::string& name) {
    if (is_claim_name(name) || is_snapshot_name(name) || is_last_state_name(name) || (copies && is_ours(name)))
      names.push_back(name);
    return true;
  });
  for (const std::string& name : names) unlinkat(folder, name.c_str(), 0);
  rmdir(path.c_str());
}

/// The number of `name` among the numbered forms of `output`, 0 if it is none. Both are names without a folder.
int number_of(const std::string& name, const std::string& output) {
  if (name == output) return 1;
  std::size_t same = 0;
  while (same < name.size() && same < output.size() && name[same] == output[same]) ++same;
  const std::size_t dash = name.rfind('-', same);
  const int number = dash == std::string::npos ? 0 : std::atoi(name.c_str() + dash + 1);
  return number > 1 && numbered(output, number) == name ? number : 0;
}

/// The name whose folder has a claim with this key, or "".
std::string find_joined(const std::string& output, std::uint64_t key) {
  const std::size_t slash = output.rfind('/');
  const std::string parent = slash == std::string::npos ? "./" : output.substr(0, slash + 1);
  const std::string wanted = output.substr(slash == std::string::npos ? 0 : slash + 1);
  const Descriptor folder(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string found;
  if (folder.get() < 0) return found;
  each_name(folder.get(), [&](const std::string& name) {
    if (!name.ends_with(kEnding)) return true;
    const std::string one = name.substr(0, name.size() - kEnding.size());
    if (number_of(one, wanted) > 0 && folder_state(parent + name).of(key)) found = parent + one;
    return found.empty();
  });
  return found;
}

}  // namespace

std::string numbered(const std::string& output, int number) {
  if (number <= 1) return output;
  const std::size_t end = output.size() - (output.ends_with(".json") ? 5 : 0);
  return output.substr(0, end) + "-" + std::to_string(number) + output.substr(end);
}

std::string fill_name(const std::string& form, const NameParts& parts) {
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char next = form[i] == '%' && i + 1 < form.size() ? form[i + 1] : '\0';
    const std::string* part = next == 'j'   ? &parts.job
                              : next == 'u' ? &parts.user
                              : next == 'h' ? &parts.host
                              : next == 'p' ? &parts.process
                              : next == '%' ? &parts.percent
                                            : nullptr;
    if (part) {
      out += *part;
      ++i;
    } else out += form[i];
  }
  return out;
}

std::string user_name() {
  for (const char* name : {"USER", "LOGNAME"})
    if (const char* value = std::getenv(name); value && *value && !std::strchr(value, '/')) return value;
  return std::to_string(geteuid());
}

void make_folders(const std::string& form, const std::string& path) {
  // Before its first pattern a form is equal to the path.
  std::size_t slash = form.find('%');
  if (slash == std::string::npos || (slash = form.rfind('/', slash)) == std::string::npos) return;
  while ((slash = path.find('/', slash + 1)) != std::string::npos) mkdir(path.substr(0, slash).c_str(), 0777);
}

bool FolderState::of(std::uint64_t key) const { return std::ranges::find(keys, key) != keys.end(); }

FolderState folder_state(const std::string& folder) {
  struct stat info {};
  FolderState state;
  const auto opened = open_checked(folder);
  if (opened) {
    const Descriptor keep(*opened);
    return read_folder_state(*opened);
  }
  state.exists = lstat(folder.c_str(), &info) == 0;
  return state;
}

core::Result<Claimed> claim_output(const std::string& output, const JobId& job, const char* claim, bool replace,
                                   bool join) {
  Claimed out;
  if (join)
    if (out.output = find_joined(output, job.key); !out.output.empty()) return out;
  const auto pass_over = [&](const std::string& why) {
    if (out.passed_over.empty()) out.passed_over = why;
  };
  constexpr int kMost = 1'000'000;  // names to try; if all are taken, the cause is another problem
  for (int number = 1; number <= kMost; ++number) {
    out.output = numbered(output, number);
    const std::string folder = out.output + std::string(kEnding);
    const auto profile_exists = [&] {
      struct stat info {};
      return lstat(out.output.c_str(), &info) == 0 && !(replace && number == 1 && !S_ISDIR(info.st_mode));
    };
    if (profile_exists()) {
      pass_over("'" + out.output + "' exists");
      continue;
    }
    discard_ended(folder, false);
    const Made made = make_folder(folder, job, claim);
    if (made == Made::failed) return core::Error{"cannot create '" + folder + "': " + std::strerror(errno)};
    if (made == Made::taken) {
      const FolderState state = folder_state(folder);
      if (join && state.of(job.key)) return out;
      pass_over(state.life == Life::ended ? "'" + folder + "' holds the snapshots of a job that was cut short"
                : state.job.empty()       ? "'" + folder + "' is not known to be free"
                : state.life == Life::runs
                    ? "a running job uses '" + folder + "' (" + state.job + ")"
                    : "'" + folder + "' belongs to a job that may be running (" + state.job + ")");
      continue;
    }
    // A job may have ended and left its profile since the look above.
    if (!profile_exists()) return out;
    leave_snapshot_folder(folder, job.key);
    pass_over("'" + out.output + "' exists");
  }
  return core::Error{"cannot find a free name for '" + output + "'"};
}

bool take_over(const std::string& output, const JobId& job) {
  const auto folder = open_checked(output + std::string(kEnding));
  if (!folder) return false;
  const Descriptor keep(*folder);
  Claim before;
  return read_claim(*folder, kRunClaim, before) && before.job.key == job.key &&
         write_new(*folder, kJobClaim, claim_text(job));
}

core::Result<int> open_snapshot_folder(const std::string& folder, const JobId& job) {
  // Rank 0 has made the folder. Another host may have its own.
  if (make_folder(folder, job, kJobClaim) == Made::failed)
    return core::Error{"cannot create '" + folder + "': " + std::strerror(errno)};
  const auto opened = open_checked(folder);
  if (!opened) return core::Error{opened.error()};
  Descriptor keep(*opened);
  Claim claim;
  for (const char* name : {kJobClaim, kRunClaim})
    if (read_claim(*opened, name, claim) && claim.job.key == job.key) return keep.release();
  return unusable(folder, "it belongs to another job");
}

void leave_snapshot_folder(const std::string& folder, std::uint64_t key, bool whole) {
  const auto opened = open_checked(folder);
  if (!opened) return;
  const Descriptor keep(*opened);
  const FolderState state = read_folder_state(*opened, false);
  if (!(whole ? state.snapshots : state.observed()) && state.of(key)) empty(*opened, folder, false);
}

bool discard_ended(const std::string& folder, bool snapshots) {
  const auto opened = open_checked(folder);
  if (!opened) return false;
  const Descriptor keep(*opened);
  const FolderState state = read_folder_state(*opened);
  if (state.life != Life::ended || (state.observed() && !snapshots)) return false;
  // Through the descriptor: another job may have claimed the name meanwhile.
  empty(*opened, folder, true);
  return true;
}

std::string set_aside(const std::string& folder) {
  const auto opened = open_checked(folder);
  if (!opened) return "";
  const Descriptor keep(*opened);
  if (const FolderState state = read_folder_state(*opened); state.life != Life::ended || !state.observed()) return "";
  std::string aside = folder.substr(0, folder.size() - kEnding.size()) + ".replaced" + std::string(kEnding);
  discard_ended(aside, true);
  struct stat mine {
  }, moved{};
  if (lstat(aside.c_str(), &moved) == 0 || fstat(*opened, &mine) != 0 || rename(folder.c_str(), aside.c_str()) != 0)
    return "";
  if (lstat(aside.c_str(), &moved) == 0 && moved.st_ino == mine.st_ino) return aside;
  rename(aside.c_str(), folder.c_str());  // another job has claimed the name meanwhile
  return "";
}

}  // namespace latecomer::profiles
