// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads the snapshots of a process.
#include "profiles/record/spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/file_size.hpp"
#include "profiles/record/files.hpp"
#include "profiles/record/job_size.hpp"

namespace latecomer::profiles {
namespace {

/// Identifies the layout of records. A reader with another layout must refuse the snapshot.
constexpr std::uint64_t kLayout = sizeof(CallRecord) + sizeof(SampledCall) + sizeof(SiteKey) +
                                  (sizeof(LocalSite) << 10) + (sizeof(RankOffsets) << 24) +
                                  (sizeof(core::Network) << 40) +
                                  ((std::uint64_t{sizeof(RankSums)} + sizeof(FirstCall)) << 52);

std::uint64_t checksum(std::string_view body) {
  std::uint64_t h = body.size();
  std::size_t i = 0;
  for (; i + 8 <= body.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, body.data() + i, 8);
    h = core::mix64(h ^ word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, body.data() + i, body.size() - i);
  return core::mix64(h ^ rest);
}

bool write_all(int fd, const void* data, std::size_t size, off_t at) {
  const NoFileSizeSignal no_signal;
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd, from, size, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n, at += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Reads one snapshot file of `owner`. Returns whether it is complete; `problem` stays "" if the file is still empty.
bool read_one(const std::string& path, uid_t owner, std::uint64_t& serial, Contribution& out, std::string& problem) {
  const auto bytes = read_placed_file(path, owner, kMostSnapshot);
  if (!bytes) return problem = bytes.error(), false;
  if (bytes->empty()) return false;  // not yet written
  SnapshotHeader header;
  const auto failed = [&](const char* why) { return problem = path + ": " + why, false; };
  if (bytes->size() < sizeof header) return failed("incomplete");
  std::memcpy(&header, bytes->data(), sizeof header);
  const std::string_view body = std::string_view(*bytes).substr(sizeof header, header.size);
  if (std::memcmp(header.magic, kSnapshotMagic, sizeof header.magic) != 0) return failed("not a snapshot of latecomer");
  if (header.layout != kLayout) return failed("written by another version of latecomer");
  if (header.serial == 0) return false;
  if (body.size() != header.size) return failed("incomplete");
  if (checksum(body) != header.checksum) return failed("incomplete: its checksum is wrong");
  if (!Contribution::deserialize(body, out) || !is_rank_of(out.rank, out.job.ranks)) return failed("damaged");
  serial = header.serial;
  return true;
}

}  // namespace

void Spool::begin(std::string directory, Rank rank, JobId job) {
  directory_ = std::move(directory), rank_ = rank, job_ = std::move(job);
}

core::Result<bool> Spool::write(const Contribution& mine, std::span<const LiveLog> live) {
  if (failed_ || directory_.empty()) return false;
  const auto failed = [&](const std::string& why) {
    failed_ = true;
    return core::Error{why + "; a profile cannot be recovered if the job is killed"};
  };
  SnapshotHeader header{{}, kLayout, 0, 0, 0, writer_};
  std::memcpy(header.magic, kSnapshotMagic, sizeof header.magic);
  if (files_[0] < 0) {
    header.writer = writer_ = this_process();
    const auto folder = open_snapshot_folder(directory_, job_);
    if (!folder) return failed(folder.error());
    const Descriptor keep(*folder);
    std::string why;
    for (int i = 0; i < 2 && why.empty(); ++i) {
      const auto file = create_snapshot(*folder, snapshot_name(rank_, i));
      if (file) files_[i] = *file;
      else why = file.error();
      if (file && !write_all(*file, &header, sizeof header, 0)) why = std::strerror(errno);
    }
    if (!why.empty()) {
      const std::string error = "cannot write in '" + directory_ + "': " + why;
      close_files(*folder);
      return failed(error);
    }
    body_.reserve(1 << 18);
  }
  const auto which = static_cast<int>(serial_ % 2);
  mine.serialize(body_, live);
  header.serial = serial_ + 1, header.size = body_.size(), header.checksum = checksum(body_);
  // After a failure, the other file stays as it is, and the next write tries this one again: a disk may be full for a
  // while only.
  if (!write_all(files_[which], body_.data(), body_.size(), sizeof header) ||
      !write_all(files_[which], &header, sizeof header, 0))
    return core::Error{"cannot write in '" + directory_ + "': " + std::strerror(errno) +
                       "; a job that is killed now loses the calls since the last snapshot"};
  ++serial_;
  return true;
}

void Spool::close_files(int folder) {
  for (int which = 0; which < 2; ++which)
    if (files_[which] >= 0) {
      close(std::exchange(files_[which], -1));
      unlinkat(folder, snapshot_name(rank_, which).c_str(), 0);
    }
}

void Spool::remove() {
  if (files_[0] >= 0)
    if (const auto folder = open_snapshot_folder(directory_, job_)) {
      const Descriptor keep(*folder);
      close_files(*folder);
    }
  if (!directory_.empty()) leave_snapshot_folder(directory_, job_.key, true);  // nothing while another rank has files
  directory_.clear();
}

core::Result<Recovered> read_spool(const std::string& directory) {
  std::error_code error;
  Recovered out;
  // Only the folder's owner puts snapshots there. Root may read those of a user.
  struct stat folder {};
  if (stat(directory.c_str(), &folder) != 0)
    return core::Error{"cannot read '" + directory + "': " + std::strerror(errno)};
  const uid_t owner = folder.st_uid;
  struct Newest {
    std::uint64_t serial = 0;
    Contribution part;
  };
  std::map<std::pair<std::uint64_t, Rank>, Newest> ranks;  // by job and rank
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = file.path().filename().string();
    if (!is_snapshot_name(name)) continue;
    Newest read;
    std::string problem;
    if (!read_one(file.path().string(), owner, read.serial, read.part, problem)) {
      if (!problem.empty()) out.problems.push_back(problem);
      continue;
    }
    Newest& best = ranks[{read.part.job_key, read.part.rank}];
    if (read.serial > best.serial) best = std::move(read);
  }
  if (error) return core::Error{"cannot read '" + directory + "': " + error.message()};
  std::uint64_t chosen = 0;
  std::string latest;
  for (const auto& [key, newest] : ranks)
    if (newest.part.job.start > latest) latest = newest.part.job.start, chosen = key.first;
  std::size_t others = 0;
  for (auto& [key, newest] : ranks)
    if (key.first == chosen) out.parts.push_back(std::move(newest.part));
    else ++others;
  if (others > 0) out.problems.push_back(std::to_string(others) + " snapshots are of earlier jobs and were left out");
  if (out.parts.empty()) {
    std::string why = out.problems.empty() ? "" : " (" + out.problems.front() + ")";
    return core::Error{"no snapshot of latecomer in '" + directory + "'" + why};
  }
  return out;
}

}  // namespace latecomer::profiles
