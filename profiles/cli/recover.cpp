// SPDX-License-Identifier: BSD-3-Clause
// `latecomer recover`: makes a profile from the snapshots of a job.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/name_profile.hpp"
#include "profiles/format/profile.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/format/redact.hpp"
#include "profiles/record/spool.hpp"
#include "profiles/symbols/names.hpp"

namespace latecomer::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> places;
  std::string output;
  bool redact = false, force = false;
};

int recover(const Options& o) {
  std::vector<profiles::Contribution> parts;
  std::string output = o.output;
  for (const std::string& place : o.places) {
    std::string directory = snapshots_of(place);
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
    auto read = profiles::read_spool(directory);
    if (!read) throw BadUsage("recover: " + read.error());
    for (const std::string& problem : read->problems) std::cerr << "latecomer: " << problem << "\n";
    for (auto& part : read->parts) parts.push_back(std::move(part));
    if (output.empty())
      output = directory.ends_with(".parts") ? directory.substr(0, directory.size() - 6) : directory + ".json";
  }
  const std::size_t found = parts.size();
  const int ranks = parts.front().job.ranks;
  // A profile of the same job may be there: of an earlier recovery, or of snapshots from other hosts.
  const auto& first = *std::min_element(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
  const AnswerFile file("recover", output, kProfileFile, o.force, "\"" + first.job.start + "\"");
  file.write([&](const profiles::Sink& sink) {
    if (!o.redact) return profiles::write_profile(parts, sink);
    const std::string text = profiles::write_profile(std::move(parts));
    WholeProfile whole(output, text);
    resolve_names(whole.profile, Progress::Patience{});
    profiles::redact(whole.profile);
    whole.write(sink);
  });
  if (!file.to_stdout() && !o.redact) name_profile(output);
  (file.to_stdout() ? std::cerr : std::cout) << output << ": " << found << " of " << ranks << " ranks\n";
  return 0;
}

}  // namespace

std::string snapshots_of(const std::string& place) {
  if (fs::is_directory(place)) return place;
  if (fs::is_directory(place + ".parts")) return place + ".parts";
  throw BadUsage("'" + place + "' is not a directory of snapshots; give PROFILE or PROFILE.parts");
}

void add_recover(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("recover", "Make a profile from the snapshots that a killed job left on disk");
  auto o = std::make_shared<Options>();
  command
      ->add_option("PARTS", o->places, "The folder PROFILE.parts, or PROFILE. Name several if each host has its own.")
      ->required();
  command->add_option("-o,--output", o->output, "Profile to write. - is stdout. Default: PARTS without .parts.");
  AnswerFile::add_force(*command, o->force);
  command->add_flag("--redact", o->redact,
                    "Leave out command lines, names of hosts and directories. Names of functions are resolved first.");
  command->footer(R"(Example: after a job was killed
  $ latecomer recover job.json
  $ latecomer report job.json)");
  command->callback([o, &action] { action = [o] { return recover(*o); }; });
}

}  // namespace latecomer::cli
