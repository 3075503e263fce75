// SPDX-License-Identifier: BSD-3-Clause
// Looks for profiles and snapshots on disk.
#include "profiles/cli/output.hpp"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <vector>

#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/files.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

bool holds_something(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && !fs::is_empty(folder, error) && !error;
}

std::string fill(const std::string& form, const std::string& job, const std::string& host, const std::string& process,
                 const std::string& percent) {
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char next = form[i] == '%' && i + 1 < form.size() ? form[i + 1] : '\0';
    if (next == 'j') out += job, ++i;
    else if (next == 'h') out += host, ++i;
    else if (next == 'p') out += process, ++i;
    else if (next == '%') out += percent, ++i;
    else out += form[i];
  }
  return out;
}

std::vector<std::string> matches(const std::string& pattern) {
  if (pattern.find('*') == std::string::npos)
    return fs::exists(pattern) ? std::vector<std::string>{pattern} : std::vector<std::string>{};
  glob_t found{};
  std::vector<std::string> out;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return out;
}

}  // namespace

Output::Output(std::string form) {
  const bool by_default = form.empty();
  if (by_default) form = "latecomer.%j.json";
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  std::string job = std::to_string(getpid());
  for (const char* name : {"JOB_ID", "LSB_JOBID", "PBS_JOBID", "SLURM_JOB_ID"})
    if (const char* value = std::getenv(name); value && *value) job = value;
  form = fs::absolute(form).string();
  for (int again = 1;; ++again) {
    const std::string id = again == 1 ? job : job + "-" + std::to_string(again);
    for_ranks_ = fill(form, id, "%h", "%p", "%%"), anywhere_ = fill(form, id, "*", "*", "%"),
    here_ = fill(form, id, host, "*", "%");
    // Several jobs of one batch job, or a process number that has come again.
    if (!by_default || !taken()) break;
  }
  has_process_ = fill(form, "", "", "*", "").find('*') != std::string::npos;
  for (const std::string& path : matches(anywhere_)) before_[path] = state(path);
}

void Output::prepare(bool overwrite, bool force) const {
  const fs::path folder = fs::path(here_).parent_path();
  if (!force && folder.string().find('*') == std::string::npos &&
      (access(folder.c_str(), W_OK | X_OK) != 0 || !fs::is_directory(folder)))
    throw BadUsage("run: cannot write the profile in '" + folder.string() + "': " +
                   std::strerror(errno ? errno : ENOTDIR) + "; --output names another place, --force runs anyway");
  if (fs::is_directory(here_))
    throw BadUsage("run: the profile '" + here_ + "' is a folder; --output takes the name of a file");
  if (has_process_) return;
  if (!overwrite && fs::exists(fs::symlink_status(here_)))
    throw BadUsage("run: the profile '" + here_ +
                   "' is there already; --overwrite replaces it, --output names another");
  if (!holds_something(parts())) return;
  if (!overwrite)
    throw BadUsage("run: '" + parts() + "' holds snapshots of an earlier job; latecomer recover " + shell_word(here_) +
                   " makes its profile, --overwrite discards them, --output names another place");
  if (const auto removed = profiles::remove_snapshots(parts()); !removed)
    std::cerr << "latecomer: " << removed.error() << "\n";
}

std::string Output::written() const {
  for (const std::string& path : matches(anywhere_))
    if (const auto known = before_.find(path); known == before_.end() || known->second != state(path)) return path;
  return "";
}

std::string Output::left() const {
  for (const std::string& path : matches(anywhere_ + ".parts"))
    if (holds_something(path)) return path.substr(0, path.size() - 6);
  return "";
}

Output::State Output::state(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_ino, {info.st_mtim.tv_sec, info.st_mtim.tv_nsec}};
}

bool Output::taken() const { return fs::exists(fs::symlink_status(here_)) || fs::exists(fs::symlink_status(parts())); }

}  // namespace latecomer::cli
