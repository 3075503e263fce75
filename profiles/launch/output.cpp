// SPDX-License-Identifier: BSD-3-Clause
// Claims and finds profiles and snapshots on disk.
#include "profiles/launch/output.hpp"

#include <glob.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "core/base/text.hpp"
#include "profiles/base/batch_job.hpp"
#include "profiles/base/errors.hpp"
#include "profiles/base/text.hpp"
#include "profiles/files/claim.hpp"
#include "profiles/format/sections.hpp"

namespace latecomer::profiles {
namespace {

namespace fs = std::filesystem;

constexpr char kGlob[] = "*?[]\\";  // the special characters of a pattern of glob()

/// With a backslash before each character of `special`.
std::string escaped(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) (special.find(c) != std::string::npos ? out += '\\' : out) += c;
  return out;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> out;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return out;
}

/// Whether the profile is of this job.
bool is_profile_of(const std::string& path, std::uint64_t key) {
  if (!fs::is_regular_file(path)) return false;
  const std::string wanted = first_line(core::hex16(key));
  std::string line(wanted.size(), '\0');
  std::ifstream(path).read(line.data(), static_cast<std::streamsize>(line.size()));
  return line == wanted;
}

std::string now_text() {
  const std::time_t wall = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&wall));
  return text;
}

}  // namespace

Output::Output(std::string form) {
  if (form.empty()) form = "latecomer.%j.json";
  job_ = batch_job();
  if (job_.empty()) job_ = std::to_string(getpid());
  form = fs::absolute(form).lexically_normal().string();
  while (form.size() > 1 && form.ends_with('/')) form.pop_back();
  const std::string user = user_name();
  for_ranks_ = fill_name(form, {job_, user, "%h", "%p", "%%"});
  pattern_ = fill_name(escaped(form, kGlob), {escaped(job_, kGlob), escaped(user, kGlob), "*", "*"});
  here_ = fill_name(form, {job_, user, "", ""});
  if (here_ != fill_name(form, {job_, user, "h", "p"})) here_.clear();
  form_ = form;
  // Not std::random_device: that of g++ 12 on Debian 12 needs glibc 2.36.
  if (getrandom(&key_, sizeof key_, 0) != sizeof key_) throw std::runtime_error("run: the kernel has no random number");
  key_ |= 1;
}

Output::~Output() {
  const bool left_something = !aside_.empty() && (!written().empty() || !left().empty());
  if (claimed_) leave_snapshot_folder(here_ + ".parts", key_);
  if (aside_.empty()) return;
  if (left_something) discard_ended(aside_, true);
  else if (!fs::exists(fs::symlink_status(here_ + ".parts"))) std::rename(aside_.c_str(), (here_ + ".parts").c_str());
}

void Output::claim(bool overwrite, bool strict, bool quiet) {
  std::string problem;
  make_folders(form_, here_.empty() ? for_ranks_.substr(0, for_ranks_.find('%')) : here_);
  if (here_.empty()) {
    const fs::path folder = fs::path(for_ranks_).parent_path();
    if (folder.string().find('%') == std::string::npos && access(folder.c_str(), W_OK | X_OK) != 0)
      problem = "cannot write in '" + folder.string() + "': " + std::strerror(errno);
  } else {
    const std::string wanted = here_;
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    if (overwrite) aside_ = set_aside(wanted + ".parts");
    const auto claimed = claim_output(wanted, {key_, job_, now_text(), host}, kRunClaim, overwrite, false);
    claimed_ = static_cast<bool>(claimed);
    if (!claimed) problem = claimed.error();
    else if (!claimed->passed_over.empty() && !quiet)
      std::cerr << "latecomer: " << claimed->passed_over << "; the profile is " << shown_path(claimed->output) << "\n";
    if (claimed) here_ = claimed->output;
    pattern_ = escaped(here_, kGlob);
    for_ranks_.clear();
    for (const char c : here_) for_ranks_ += c == '%' ? "%%" : std::string(1, c);
  }
  if (!problem.empty() && strict)
    throw BadUsage("run: " + problem + "; --output names another place, and without --strict the program runs anyway");
  lost_ = !problem.empty();
  if (lost_)
    std::cerr << "latecomer: " << problem << "; the program runs, and its profile is lost unless this changes\n";
  setenv("LATECOMER_OUTPUT", for_ranks_.c_str(), 1);
  setenv("LATECOMER_CLAIM", (core::hex16(key_) + (overwrite ? ":replace" : "") + (lost_ ? ":said" : "")).c_str(), 1);
}

std::vector<std::string> Output::found(const std::string& ending) const {
  // Rank 0 may have taken another number, or may be on a host with another folder of this name.
  std::vector<std::string> out = matches(pattern_ + ending);
  const std::size_t end = pattern_.size() - (pattern_.ends_with(".json") ? 5 : 0);
  const auto more = matches(pattern_.substr(0, end) + "-*" + pattern_.substr(end) + ending);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::string Output::written() const {
  for (const std::string& path : found(""))
    if (is_profile_of(path, key_)) return path;
  return "";
}

std::string Output::left() const {
  for (const std::string& path : found(".parts"))
    if (const auto state = folder_state(path); state.observed() && state.of(key_))
      return path.substr(0, path.size() - 6);
  return "";
}

bool Output::began() const {
  return std::ranges::any_of(found(".parts"), [&](const std::string& path) {
    return fs::exists(path + "/" + kJobClaim) && folder_state(path).of(key_);
  });
}

}  // namespace latecomer::profiles
