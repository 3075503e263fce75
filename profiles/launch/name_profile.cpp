// SPDX-License-Identifier: BSD-3-Clause
// A child process resolves the names, because debug information may be damaged or take minutes to read. This process
// writes the child's text beside the profile, and renames it at the end. It must not fail: the job's status counts.
#include "profiles/launch/name_profile.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "profiles/format/reader.hpp"
#include "profiles/launch/helper.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::profiles {
namespace {

/// A user waits for the prompt. Longer work is left to the report, whose user waits for the names.
constexpr std::chrono::seconds kLongest{10};
/// Measured: 100 MB take 0.7 s on a busy machine, almost all of it for rows of ranks, which stay as they are.
constexpr std::uintmax_t kLargest = 500'000'000;

/// The work of the child. Writes nothing if no frame has changed.
void write_named(const std::string& path, const Sink& sink) {
  unsetenv("DEBUGINFOD_URLS");  // a server may take minutes: the report may ask it
  WholeProfile whole(path);
  if (resolve_names(whole.profile, Progress::Patience{})) whole.write(sink);
}

}  // namespace

void name_profile(const std::string& path, bool quiet) {
  const auto say = [&](const std::string& why) {
    if (quiet) return;
    std::cerr << "latecomer: names of functions and lines are not in the profile: " << why
              << "; latecomer report resolves them until the program is moved or rebuilt\n";
  };
  try {
    if (std::filesystem::file_size(path) > kLargest) return say("it is larger than 500 MB");
    Helper child([&](const Sink& sink) { write_named(path, sink); }, kLongest);
    std::string_view text = child.next();
    if (text.empty()) return;
    const auto written = write_profile_file(path, true, [&](const Sink& sink) {
      for (; !text.empty(); text = child.next()) sink(text);
    });
    if (!written) say(written.error());
  } catch (const Helper::Abandoned& abandoned) {
    if (*abandoned.why) say(abandoned.why);
  } catch (const std::exception& error) {
    say(error.what());
  }
}

}  // namespace latecomer::profiles
