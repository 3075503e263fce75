// SPDX-License-Identifier: BSD-3-Clause
// Matches names of sites. Uses liblatecomer_symbols.so if ids and offsets do not decide.
#include "shim/sites/names.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/text.hpp"
#include "shim/log.hpp"
#include "shim/sites/table.hpp"

namespace latecomer::shim {
namespace {

using Resolve = int (*)(const char*, const char*, unsigned long long, int, char*, char*, unsigned long, int*);

/// The function of the library beside this one; nullptr if the library is missing.
Resolve resolver() {
  static const Resolve found = []() -> Resolve {
    Dl_info self;
    if (!dladdr(reinterpret_cast<const void*>(&site_is), &self) || !self.dli_fname) return nullptr;
    std::string path = self.dli_fname;
    path = path.substr(0, path.rfind('/') + 1) + "liblatecomer_symbols.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      warn("site rules match only ids and module+offset, not names: %s", dlerror());
      return nullptr;
    }
    return reinterpret_cast<Resolve>(dlsym(library, "latecomer_symbols_resolve"));
  }();
  return found;
}

bool frame_is(const profiles::Frame& frame, const std::string& glob) {
  if (core::glob_match(glob, core::base_name(frame.module) + "+" + core::hexadecimal(frame.offset))) return true;
  const auto matches = [&](const std::string& function, const std::string& file, int line) {
    const std::string at = ":" + std::to_string(line);
    return (!function.empty() && core::glob_match(glob, function)) ||
           (!file.empty() && (core::glob_match(glob, core::base_name(file) + at) || core::glob_match(glob, file + at)));
  };
  if (!frame.function.empty()) return matches(frame.function, frame.file, frame.line);
  // Any of the functions that were inlined into each other.
  char names[2][1024];
  int line = 0;
  for (int level = 0; resolver() && resolver()(frame.module.c_str(), frame.build_id.c_str(), frame.offset, level,
                                               names[0], names[1], sizeof names[0], &line) == 0;
       ++level)
    if (matches(names[0], names[1], line)) return true;
  return false;
}

}  // namespace

bool site_is(const profiles::SiteKey& key, const std::string& glob) {
  // Never destroyed, because callbacks may run after exit handlers.
  static auto& mutex = *new std::mutex;
  static auto& answers = *new std::map<std::pair<profiles::SiteKey, std::string>, bool>;
  const std::lock_guard lock(mutex);
  const auto [known, first] = answers.try_emplace({key, glob}, false);
  if (!first) return known->second;
  bool& answer = known->second;
  answer = core::glob_match(glob, key.id());
  // The innermost of several frames is the place of a site.
  for (const profiles::Frame& frame : site_frames()) {
    const bool generated = frame.module.empty();  // the frame behind it is the place
    if (answer || frame.site != key.site || frame.callers != 0 || generated) continue;
    answer = frame_is(frame, glob);
    break;
  }
  // A site above a library that wraps MPI also answers to the name and id of the library's frame.
  if (const profiles::Frame* wrapper = answer ? nullptr : wrapper_of(key.site))
    answer = core::glob_match(glob, profiles::SiteKey{wrapper->site, key.op, key.comm_size}.id()) ||
             frame_is(*wrapper, glob);
  return answer;
}

}  // namespace latecomer::shim
