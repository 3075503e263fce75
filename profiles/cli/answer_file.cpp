// SPDX-License-Identifier: BSD-3-Clause
// Looks at the file that is there, then writes.
#include "profiles/cli/answer_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "profiles/cli/commands.hpp"

namespace latecomer::profiles::cli {
namespace {

/// The begin of a file, or "". Derived: the mark of each kind is within the first lines. The start of a job follows its
/// command line and the names of its hosts, which take 0.5 MB for 10,000 hosts.
std::string begin_of(const std::string& path) {
  std::string out(std::size_t{1} << 20, '\0');
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : pread(fd, out.data(), out.size(), 0);
  if (fd >= 0) close(fd);
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return out;
}

}  // namespace

AnswerFile::AnswerFile(std::string_view option, std::string path, const AnswerKind& kind, bool force,
                       const std::string& also)
    : path_(std::move(path)) {
  const auto refuse = [&](const std::string& why) { throw BadUsage(std::string(option) + ": '" + path_ + "' " + why); };
  struct stat there {};
  if (path_ == "-" || path_ == "/dev/stdout") {
    way_ = Way::standard;
  } else if (const bool link = lstat(path_.c_str(), &there) == 0 && S_ISLNK(there.st_mode);
             stat(path_.c_str(), &there) != 0) {
    return;  // a new file, or a link to nothing
  } else if (S_ISDIR(there.st_mode)) {
    refuse("is a folder; name a file");
  } else if (!S_ISREG(there.st_mode)) {
    way_ = Way::into;
  } else if (!link && !force && there.st_size > 0) {
    const std::string begin = begin_of(path_);
    if (begin.find(kind.mark) == std::string::npos)
      refuse("is there already, and latecomer did not write it as " + std::string(kind.name) +
             "; name another file, or give --force to replace it");
    if (begin.find(also) == std::string::npos)
      refuse("is there already, and is " + std::string(kind.name) +
             " of another job; name another file, or give --force to replace it");
  }
}

void AnswerFile::write(const std::function<void(const Sink&)>& produce) const {
  if (way_ == Way::replace) {
    if (const auto written = write_file(path_, produce); !written) throw std::runtime_error(written.error());
    return;
  }
  std::FILE* const file = way_ == Way::standard ? stdout : std::fopen(path_.c_str(), "we");
  bool good = file != nullptr;
  if (good)
    produce(
        [&](std::string_view text) { good = good && std::fwrite(text.data(), 1, text.size(), file) == text.size(); });
  good = good && std::fflush(file) == 0;
  const int error = errno;
  if (file && file != stdout) std::fclose(file);
  if (!good) throw std::runtime_error("cannot write '" + path_ + "': " + std::strerror(error));
}

void AnswerFile::add_force(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "Replace the file to write, even if latecomer did not write it.");
}

}  // namespace latecomer::profiles::cli
