// SPDX-License-Identifier: BSD-3-Clause
// A file mapped into memory to be read.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "profiles/base/descriptor.hpp"

namespace latecomer::profiles {

class Mapped {
 public:
  /// `problem()` says why the file cannot be read. Opening a pipe does not wait for its writer.
  explicit Mapped(const std::string& path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat about;
    if (file.get() < 0 || fstat(file.get(), &about) != 0) {
      problem_ = std::strerror(errno);
    } else if (!S_ISREG(about.st_mode)) {
      problem_ = S_ISDIR(about.st_mode) ? "it is a folder" : "it is not a regular file";
    } else if (size_ = static_cast<std::size_t>(about.st_size); size_ > 0) {
      at_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
      if (at_ == MAP_FAILED) problem_ = std::strerror(errno);
    }
  }
  ~Mapped() {
    if (at_ != MAP_FAILED) munmap(at_, size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  const std::string& problem() const { return problem_; }
  const char* begin() const { return at_ == MAP_FAILED ? "" : static_cast<const char*>(at_); }
  const char* end() const { return begin() + (at_ == MAP_FAILED ? 0 : size_); }

 private:
  std::string problem_;
  void* at_ = MAP_FAILED;
  std::size_t size_ = 0;
};

}  // namespace latecomer::profiles
