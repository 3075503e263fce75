// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads the snapshots of a process.
#include "profiles/files/spool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/base/descriptor.hpp"
#include "profiles/base/file_size.hpp"
#include "profiles/files/shared_folder.hpp"
#include "profiles/record/job_size.hpp"

namespace latecomer::profiles {
namespace {

/// Identifies the layout of records. A reader with another layout must refuse the snapshot.
constexpr std::uint64_t kLayout = sizeof(CallRecord) + sizeof(SampledCall) + sizeof(SiteKey) + sizeof(Process) +
                                  (sizeof(LocalSite) << 10) + (sizeof(RankOffsets) << 24) +
                                  (sizeof(core::Network) << 40) +
                                  ((std::uint64_t{sizeof(RankSums)} + sizeof(FirstCall)) << 52);

std::uint64_t checksum_of_block(std::string_view body) {
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

/// Derived: a page, which the kernel writes back as a whole.
constexpr std::size_t kBlock = 4096;

std::string_view block_of(std::string_view body, std::size_t number) { return body.substr(number * kBlock, kBlock); }

std::uint64_t checksum(std::span<const std::uint64_t> blocks) {
  return checksum_of_block({reinterpret_cast<const char*>(blocks.data()), blocks.size_bytes()});
}

std::uint64_t checksum(std::string_view body) {
  std::vector<std::uint64_t> blocks((body.size() + kBlock - 1) / kBlock);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = checksum_of_block(block_of(body, i));
  return checksum(blocks);
}

bool write_all(int fd, const void* data, std::size_t size, off_t at) {
  const NoFileSizeSignal no_signal;
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd, from, size, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

SnapshotHeader header_of(const ProcessId& writer) {
  SnapshotHeader header{{}, kLayout, 0, 0, 0, writer};
  std::memcpy(header.magic, kSnapshotMagic, sizeof header.magic);
  return header;
}

/// Reads one snapshot file of `owner`. Returns whether it is complete; `problem` stays "" if the file is still empty.
bool read_one(const std::string& path, uid_t owner, std::uint64_t& serial, Contribution& out, std::string& problem) {
  const auto bytes = read_placed_file(path, owner, kMostSnapshot);
  if (!bytes) {
    problem = bytes.error();
    return false;
  }
  if (bytes->empty()) return false;  // not yet written
  SnapshotHeader header;
  const auto failed = [&](const char* why) {
    problem = path + ": " + why;
    return false;
  };
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
  out.aborted = header.aborted_ns;
  return true;
}

}  // namespace

void Spool::begin(std::string directory, Rank rank, JobId job) {
  directory_ = std::move(directory);
  rank_ = rank;
  job_ = std::move(job);
  serial_ = 0;
  for (auto& blocks : blocks_) blocks.clear();
}

void Spool::prepare(const Contribution& mine) {
  if (directory_.empty() || written()) return;
  drop_first();
  const auto folder = open_snapshot_folder(directory_, job_);
  if (!folder) return;  // the first write reports the reason
  SnapshotHeader header = header_of(this_process());
  mine.serialize(body_, {});
  header.serial = 1;
  header.size = body_.size();
  header.checksum = checksum(body_);
  first_name_ = snapshot_name(rank_, 1);
  first_ = std::string(reinterpret_cast<const char*>(&header), sizeof header) + body_;
  folder_ = *folder;
}

void Spool::drop_first() {
  if (folder_ >= 0) close(std::exchange(folder_, -1));
  first_ = {};
}

void Spool::note_abort(Nanoseconds after) noexcept {
  const int saved = errno, newest = newest_.load();
  constexpr std::size_t kPlace = offsetof(SnapshotHeader, aborted_ns);
  if (newest >= 0) {
    write_all(files_[newest], &after, sizeof after, kPlace);
  } else if (folder_ >= 0) {
    std::memcpy(first_.data() + kPlace, &after, sizeof after);
    // Another thread, or this one, may be inside the first write. That write begins with the file .a.
    const int file = files_[1] >= 0 ? files_[1] : create_snapshot(folder_, first_name_.c_str());
    if (file >= 0) write_all(file, first_.data(), first_.size(), 0);
  }
  errno = saved;
}

bool Spool::write_changed(int which) {
  std::vector<std::uint64_t>& blocks = blocks_[which];
  const std::size_t known = blocks.size(), count = (body_.size() + kBlock - 1) / kBlock;
  blocks.resize(count);
  std::size_t from = 0;  // first of the blocks that have changed and are not written
  for (std::size_t i = 0; i <= count; ++i) {
    const std::uint64_t sum = i < count ? checksum_of_block(block_of(body_, i)) : 0;
    if (i < count && (i >= known || blocks[i] != sum)) {
      blocks[i] = sum;
      continue;
    }
    const std::size_t begin = from * kBlock, end = std::min(i * kBlock, body_.size());
    if (begin < end && !write_all(files_[which], body_.data() + begin, end - begin,
                                  static_cast<off_t>(sizeof(SnapshotHeader) + begin)))
      return false;
    from = i + 1;
  }
  return true;
}

core::Result<bool> Spool::write(const Contribution& mine, std::span<const LiveLog> live) {
  if (failed_ || directory_.empty()) return false;
  const auto failed = [&](const std::string& why) {
    failed_ = true;
    return core::Error{why + "; a profile cannot be recovered if the job is killed"};
  };
  if (files_[0] < 0) {
    writer_ = this_process();
    const SnapshotHeader header = header_of(writer_);
    const auto folder = open_snapshot_folder(directory_, job_);
    if (!folder) return failed(folder.error());
    const Descriptor keep(*folder);
    std::string why;
    for (int i = 0; i < 2 && why.empty(); ++i) {
      const std::string name = snapshot_name(rank_, i);
      files_[i] = create_snapshot(*folder, name.c_str());
      if (files_[i] < 0) why = "cannot create '" + name + "': " + std::strerror(errno);
      else if (!write_all(files_[i], &header, sizeof header, 0)) why = std::strerror(errno);
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
  // Allocate for both files, since a steady program must not allocate at a later snapshot.
  for (auto& blocks : blocks_) blocks.reserve(body_.capacity() / kBlock + 1);
  SnapshotHeader header = header_of(writer_);
  header.serial = serial_ + 1;
  header.size = body_.size();
  const bool changed = write_changed(which);
  header.checksum = checksum(blocks_[which]);
  // After a failure, the other file stays as it is, and the next write tries this file again, because a disk may be
  // full for a short time only.
  if (!changed || !write_all(files_[which], &header, sizeof header, 0)) {
    blocks_[which].clear();
    return core::Error{"cannot write in '" + directory_ + "': " + std::strerror(errno) +
                       "; a job that is killed now loses the calls since the last snapshot"};
  }
  ++serial_;
  newest_.store(which);
  drop_first();
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
  newest_.store(-1);
  drop_first();
  if (files_[0] >= 0)
    if (const auto folder = open_snapshot_folder(directory_, job_)) {
      const Descriptor keep(*folder);
      close_files(*folder);
    }
  if (!directory_.empty()) leave_snapshot_folder(directory_, job_.key, true);  // keeps the files of other ranks
  directory_.clear();
}

core::Result<Recovered> read_spool(const std::string& directory) {
  std::error_code error;
  Recovered out;
  // Only the folder's owner may write snapshots into it. Root may read the snapshots of a user.
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
    const Nanoseconds aborted = std::max(read.part.aborted, best.part.aborted);
    if (read.serial > best.serial) best = std::move(read);
    best.part.aborted = aborted;
  }
  if (error) return core::Error{"cannot read '" + directory + "': " + error.message()};
  std::uint64_t chosen = 0;
  std::string latest;
  for (const auto& [key, newest] : ranks)
    if (newest.part.job.start > latest) {
      latest = newest.part.job.start;
      chosen = key.first;
    }
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
