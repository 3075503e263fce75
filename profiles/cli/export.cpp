// SPDX-License-Identifier: BSD-3-Clause
// `latecomer export`: writes the recorded arrivals of a profile for trace viewers, its samples for flame graphs, and
// the profile in either format.
#include <iostream>
#include <memory>
#include <optional>

#include "profiles/cli/answer_file.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/format/reader.hpp"
#include "profiles/format/recorded_calls.hpp"
#include "profiles/render/folded.hpp"
#include "profiles/render/otf2.hpp"
#include "profiles/render/perfetto.hpp"

namespace latecomer::profiles::cli {
namespace {

struct ExportOptions {
  std::string file, perfetto, otf2, folded, profile, format_1;
  Progress::Patience patience;
  bool redact = false, force = false;
};

/// The profile itself, in either format.
int convert(const ExportOptions& o) {
  const bool older = !o.format_1.empty();
  const AnswerFile file(older ? "--format-1" : "--profile", older ? o.format_1 : o.profile, kProfileFile, o.force);
  WholeProfile whole(o.file, o.patience);
  read_profile(whole, {.patience = o.patience, .names = o.redact, .redacted = o.redact});  // refuses unsound rows
  file.write([&](const Sink& sink) { older ? whole.write_version_1(sink) : whole.write(sink); });
  return 0;
}

int export_(const ExportOptions& o) {
  if (!o.profile.empty() || !o.format_1.empty()) return convert(o);
  const bool traces = !o.perfetto.empty() || !o.otf2.empty();
  if (!traces && o.folded.empty())
    throw BadUsage(
        "export: name what to write: --perfetto OUT, --otf2 OUT, --folded OUT, --profile OUT or --format-1 OUT");
  std::optional<AnswerFile> trace, stacks;
  if (!o.perfetto.empty()) trace.emplace("--perfetto", o.perfetto, kTraceFile, o.force);
  if (!o.folded.empty()) stacks.emplace("--folded", o.folded, kStacksFile, o.force);
  const Profile profile =
      load_profile(o.file, {.patience = o.patience, .names = true, .redacted = o.redact, .record = traces});
  if (stacks) {
    if (profile.code.samples.empty())
      throw BadUsage("'" + o.file + "' holds no samples: the policy key `sampling` is off, the kernel forbids them, " +
                     "or the job has not ended");
    stacks->write([&](const Sink& sink) { write_folded(profile, sink); });
  }
  if (!traces) return 0;
  const RecordedArrivals& record = record_of(profile, o.file);
  if (record.left_out > 0)
    std::cerr << "latecomer: " << record.left_out << " of " << record.left_out + record.calls.size()
              << " calls are left out: the profile folds their site, or does not name their ranks\n";
  if (trace) trace->write([&](const Sink& sink) { write_perfetto(profile, record, sink); });
  if (!o.otf2.empty())
    if (const std::size_t left = write_otf2(profile, record, o.otf2); left > 0)
      std::cerr << "latecomer: " << left << " visits have no known end or overlap others, and are not in '" << o.otf2
                << "'\n";
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("export", "Write a profile for a trace viewer, for a flame graph, or in another format");
  auto o = std::make_shared<ExportOptions>();
  command->add_option("FILE", o->file, "Profile to read.")->required();
  command->add_option("--perfetto", o->perfetto,
                      "Write a trace for ui.perfetto.dev or chrome://tracing to this file (- for stdout).");
  command->add_option("--otf2", o->otf2,
                      "Write an archive in the Open Trace Format 2 to this new folder, for Vampir or Score-P's tools.");
  command->add_option("--folded", o->folded,
                      "Write the samples of the running code to this file (- for stdout), as folded stacks for "
                      "flamegraph.pl, speedscope or inferno: rank, next call, function.");
  auto* present =
      command->add_option("--profile", o->profile,
                          "Write the profile itself to this file (- for stdout), in format 2 whatever it has now.");
  auto* older = command->add_option("--format-1", o->format_1,
                                    "Write the profile as earlier versions did to this file (- for stdout), for "
                                    "scripts that read sites[].ranks.");
  for (auto* one : {present, older})
    for (const char* other : {"--perfetto", "--otf2", "--folded"}) one->excludes(command->get_option(other));
  present->excludes(older);
  AnswerFile::add_force(*command, o->force);
  command->add_flag("--redact", o->redact, "Leave out command lines, names of hosts and directories.");
  Progress::add_option(*command, o->patience);
  command->footer(
      R"(The trace shows the calls that the profile records: a sample of the blocking calls on MPI_COMM_WORLD in an observed run,
all calls after latecomer run --record.

Each rank has a track, and the ranks of a host stand together. A collective is a slice from arrival to exit. Inside it,
`waiting` ends with the arrival of the awaited rank, and `after the last arrival` begins with that of the last rank. The
definition of waiting is that of the report. Details of a slice: call site, bytes, algorithm, root and awaited rank.

Example:
  $ latecomer export job.json --perfetto job.trace.json
  $ latecomer export job.json --otf2 job.traces
  $ latecomer export job.json --folded - | flamegraph.pl > job.svg
  $ latecomer export job.json --format-1 - | jq '.sites[0].ranks')");
  command->callback([o, &action] { action = [o] { return export_(*o); }; });
}

}  // namespace latecomer::profiles::cli
