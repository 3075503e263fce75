// SPDX-License-Identifier: BSD-3-Clause
// Reads the profile in a child process, because the job's status counts and its user waits for the prompt.
#include "profiles/launch/ending.hpp"

#include <cstring>
#include <iostream>
#include <sstream>

#include "profiles/base/text.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/launch/helper.hpp"
#include "profiles/launch/name_profile.hpp"
#include "profiles/render/finding_text.hpp"
#include "profiles/render/text_table.hpp"

namespace latecomer::profiles {
namespace {

/// Chosen: a user waits for the prompt. Measured: 1.2 GB, of 10,000 ranks and 1,000 sites, take 2.7 s on a busy
/// machine.
constexpr std::chrono::seconds kLongest{10};

constexpr const char* kMark = "latecomer: ";

/// The text as lines of at most kLineWidth characters, each with the mark.
void print_sentence(const std::string& text) {
  std::istringstream lines(paragraph(text, kLineWidth - std::strlen(kMark)));
  for (std::string line; std::getline(lines, line);) std::cerr << kMark << line << "\n";
}

/// The command of latecomer that helps most.
std::string next_command(const Profile& profile) {
  // Where more time follows the last arrival than passes before it, an algorithm saves more than equal work.
  const bool algorithm =
      profile.network && profile.job.mode != "apply" &&
      analysis::shortened_share(profile).value() > std::max(analysis::kLittle, analysis::wait_share(profile).value());
  return algorithm ? "advise" : "report";
}

/// The work of the child: the next command, then the sentences, one per line.
void write_end(const std::string& path, const Sink& sink) {
  try {
    const Profile profile = load_profile(path, {.sample = true, .worst_only = true});
    std::string text = next_command(profile) + "\n";
    for (const std::string& line : titles(judge(profile))) text += line + "\n";
    sink(text);
  } catch (const std::exception& error) {
    sink(std::string("report\nNo verdict: ") + error.what() + "\n");
  }
}

/// Prints the sentences. Returns the next command.
std::string say_verdict(const std::string& profile) {
  std::string text;
  try {
    Helper child([&](const Sink& sink) { write_end(profile, sink); }, kLongest);
    for (std::string_view piece = child.next(); !piece.empty(); piece = child.next()) text += piece;
  } catch (const Helper::Abandoned& abandoned) {
    text = "report\nNo verdict: " + std::string(*abandoned.why ? abandoned.why : "the profile cannot be read") + "\n";
  }
  std::istringstream lines(text);
  std::string next, sentence;
  std::getline(lines, next);
  while (std::getline(lines, sentence)) print_sentence(sentence);
  return next;
}

}  // namespace

void say_end(const Output& output, const Ended& ended, const std::string& program, bool quiet) {
  const std::string profile = output.written();
  if (!profile.empty()) name_profile(profile, quiet);
  if (quiet) return;
  const std::string self = shell_word(program_invocation_name);
  const std::string how = ended.passed_on ? "stopped by " + std::string(strsignal(ended.passed_on))
                                          : "ended with status " + std::to_string(ended.status);
  if (!profile.empty()) {
    const std::string shown = shown_path(profile), next = self + " " + say_verdict(profile) + " " + shown;
    const std::string line = kMark + ("profile " + shown) + "; next: " + next;
    // A path and a command are of no use in pieces.
    if (line.size() <= kLineWidth) std::cerr << line << "\n";
    else std::cerr << kMark << "profile " << shown << "\n" << kMark << "next: " << next << "\n";
  } else if (const std::string left = output.left(); !left.empty()) {
    std::cerr << kMark << "the job " << how << " without a whole profile; its ranks left snapshots; next: " << self
              << " recover " << shown_path(left) << "\n";
  } else if (output.lost()) {
    std::cerr << kMark << "no profile\n";
  } else if (ended.status == 0 && !ended.passed_on) {
    std::cerr
        << kMark
        << "no profile on this host: no rank called MPI_Init of an MPI that latecomer works with, or rank 0 wrote "
           "elsewhere or not at all; is "
        << shell_word(program) << " an MPI program?\n";
  } else if (output.began()) {
    std::cerr << kMark << "no profile: the job " << how
              << " before a first snapshot: a rank writes one after its first collectives, or in an MPI call after a "
                 "second\n";
  } else {
    std::cerr << kMark << "no profile: the job " << how << " before a first snapshot, or no rank called MPI_Init\n";
  }
}

}  // namespace latecomer::profiles
