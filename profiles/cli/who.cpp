// SPDX-License-Identifier: BSD-3-Clause
// `latecomer who`: which ranks of a running job wait in which collective, and for whom. Reads the processes' state from
// shared memory of this host, twice, so that it can tell what moves.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "core/collective/collective.hpp"
#include "profiles/cli/commands.hpp"
#include "profiles/cli/common.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/decisions.hpp"
#include "profiles/live.hpp"

namespace latecomer::cli {
namespace {

struct Options {
  std::string job;
  double seconds = 1;
  bool json = false;
};

/// One process as its file shows it.
struct Seen {
  std::string host, output;
  int pid = 0, rank = 0, ranks = 0;
  std::uint64_t communicator = 0, n = 0, site = 0;
  std::int64_t bytes = -1, since = 0, message = 0;
  int root = -1, comm_size = 0, op = 0, inside = 0;
  char state = '?';  ///< as in /proc; 'X': the process is gone
  bool moves = false;
  std::vector<std::pair<std::uint64_t, Json>> frames;

  bool waits() const { return inside == 1; }
  bool same_place(const Seen& o) const {
    return communicator == o.communicator && n == o.n && inside == o.inside && message == o.message;
  }
};

std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// The state in one file; rank -1 if it is no file of latecomer.
Seen read_file(const std::string& path) {
  Seen out;
  out.rank = -1;
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return out;
  struct stat about;
  void* at = MAP_FAILED;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
      about.st_size >= static_cast<off_t>(sizeof(profiles::LiveFile)))
    at = mmap(nullptr, sizeof(profiles::LiveFile), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return out;
  const auto& file = *static_cast<const profiles::LiveFile*>(at);
  if (std::memcmp(file.magic, profiles::kLiveMagic, sizeof file.magic) == 0 &&
      file.version == profiles::LiveFile::kVersion && file.rank >= 0) {
    const profiles::LiveLine& line = file.line;
    const auto text = [](const char* from, std::size_t size) { return std::string(from, strnlen(from, size)); };
    out.host = text(file.host, sizeof file.host), out.output = text(file.output, sizeof file.output);
    out.pid = file.pid, out.rank = file.rank, out.ranks = file.ranks;
    out.inside = line.inside.load(std::memory_order_acquire);
    out.communicator = line.communicator, out.n = line.n, out.site = line.site, out.bytes = line.bytes;
    out.since = line.since, out.message = line.message, out.root = line.root, out.comm_size = line.comm_size;
    out.op = line.op;
    const auto process = profiles::process_state(file.pid);
    out.state = process.exists && process.started == file.started && process.state != 'Z' ? process.state : 'X';
    const int frames = std::min(file.frames.load(std::memory_order_acquire), profiles::LiveFile::kFrames);
    for (int i = 0; i < frames; ++i) {
      char offset[24];
      std::snprintf(offset, sizeof offset, "0x%llx", static_cast<unsigned long long>(file.frame[i].offset));
      out.frames.emplace_back(file.frame[i].site,
                              Json{{"module", text(file.frame[i].module, sizeof file.frame[i].module)},
                                   {"build_id", ""},
                                   {"offset", offset},
                                   {"function", nullptr},
                                   {"file", nullptr},
                                   {"line", nullptr}});
    }
  }
  munmap(at, sizeof(profiles::LiveFile));
  return out;
}

std::vector<Seen> look() {
  std::vector<Seen> out;
  DIR* folder = opendir(profiles::kLiveFolder);
  if (!folder) return out;
  while (const dirent* entry = readdir(folder))
    if (std::strncmp(entry->d_name, profiles::kLivePrefix, sizeof profiles::kLivePrefix - 1) == 0)
      if (Seen seen = read_file(std::string(profiles::kLiveFolder) + "/" + entry->d_name); seen.rank >= 0)
        out.push_back(std::move(seen));
  closedir(folder);
  std::sort(out.begin(), out.end(), [](const Seen& a, const Seen& b) { return a.rank < b.rank; });
  return out;
}

/// "0-2, 5".
std::string ranks_text(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) out += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last;
  }
  return out;
}
std::string named(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks);
}

/// Missing ranks that a sentence describes. Derived: eight take about ten lines of a terminal.
constexpr std::size_t kNamed = 8;

class Job {
 public:
  Job(std::vector<Seen> seen, const std::vector<Seen>& before, std::int64_t at, std::int64_t waited)
      : seen_(std::move(seen)), at_(at), waited_(waited) {
    for (Seen& s : seen_) {
      const auto old = std::find_if(before.begin(), before.end(), [&](const Seen& b) { return b.pid == s.pid; });
      s.moves = old == before.end() || !old->same_place(s);
      for (const auto& [site, frame] : s.frames) places_.try_emplace(site, frame);
    }
    Json names = {{"sites", Json::array()}};
    for (const auto& [site, frame] : places_) names["sites"].push_back({{"frames", Json::array({frame})}});
    resolve_names(names, Progress::Patience{});
    std::size_t i = 0;
    for (auto& [site, frame] : places_) frame = names["sites"][i++]["frames"][0];
  }

  /// What is wrong, one sentence each; empty: every rank moves, or nobody waits.
  std::vector<std::string> findings() const {
    std::vector<std::string> out;
    // The files of a job that was killed show its last state.
    const auto gone = std::count_if(seen_.begin(), seen_.end(), [](const Seen& s) { return s.state == 'X'; });
    if (gone == static_cast<long>(seen_.size()))
      out.push_back("The job is over: all " + std::to_string(gone) +
                    " visible processes have ended. Their last state follows.");
    for (const Seen& s : seen_)
      if (s.state == 'X' && gone < static_cast<long>(seen_.size()))
        out.push_back("Rank " + std::to_string(s.rank) + " is gone: process " + std::to_string(s.pid) +
                      " has ended. It was " + where(s) + ".");
    // Calls of one communicator with equal numbers must be alike.
    // Communicators without an identity yet are told apart by their size and the place of the call.
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int>, std::vector<const Seen*>> calls;
    for (const Seen& s : seen_)
      if (s.waits() && !s.moves)
        calls[{s.communicator, s.n, s.communicator == 0 ? s.site : 0, s.communicator == 0 ? s.comm_size : 0}].push_back(
            &s);
    for (const auto& [key, members] : calls) {
      const auto communicator = std::get<0>(key), n = std::get<1>(key);
      std::map<std::string, std::vector<int>> kinds;
      for (const Seen* s : members) kinds[call_text(*s)].push_back(s->rank);
      const std::string number = "call " + std::to_string(n) + " on " + name_of(*members.front());
      if (communicator != 0 && kinds.size() > 1) {
        std::string text = "The program makes different calls as " + number + ": ";
        bool first = true;
        for (const auto& [kind, ranks] : kinds) text += (first ? "" : ", ") + named(ranks) + " " + kind, first = false;
        out.push_back(text + ".");
      }
      std::vector<int> ranks;
      std::int64_t longest = 0;
      for (const Seen* s : members) ranks.push_back(s->rank), longest = std::max(longest, age(*s));
      if (static_cast<int>(members.size()) >= members.front()->comm_size && kinds.size() == 1) {
        out.push_back("All " + std::to_string(members.size()) + " ranks of " + name_of(*members.front()) + " are in " +
                      kinds.begin()->first + " (" + number + ") for " + duration(longest) +
                      ", so no rank is missing there.");
        continue;
      }
      std::string text = (ranks.size() == 1 ? "Rank " : "Ranks ") + ranks_text(ranks) +
                         (ranks.size() == 1 ? " waits in " : " wait in ") + kinds.begin()->first + " (" + number +
                         ") for " + duration(longest);
      const auto missing = absent(*members.front(), members);
      if (missing.empty())
        text += ", for " + std::to_string(members.front()->comm_size - static_cast<int>(members.size())) +
                " members that have not entered it and are not visible here";
      std::vector<std::string> details;
      for (const Seen* s : missing)
        if (details.size() < kNamed) details.push_back("rank " + std::to_string(s->rank) + ", which " + doing(*s));
      if (missing.size() > kNamed) details.push_back(std::to_string(missing.size() - kNamed) + " more");
      for (std::size_t i = 0; i < details.size(); ++i) text += (i == 0 ? ", for " : "; and for ") + details[i];
      out.push_back(text + ".");
    }
    if (out.empty()) {
      std::vector<int> stuck;
      std::int64_t longest = 0;
      for (const Seen& s : seen_)
        if (s.message != 0 && !s.moves && s.inside != 1)
          stuck.push_back(s.rank), longest = std::max(longest, at_ - s.message);
      if (!stuck.empty())
        out.push_back((stuck.size() == 1 ? "Rank " : "Ranks ") + ranks_text(stuck) +
                      (stuck.size() == 1 ? " waits" : " wait") +
                      " inside a message, a completion or a one-sided call for " + duration(longest) + ".");
    }
    return out;
  }

  void print(const std::vector<std::string>& findings) const {
    for (const std::string& f : findings) std::printf("%s\n", f.c_str());
    if (findings.empty())
      std::printf("No rank stood still in a collective for the last %s.\n", duration(waited_).c_str());
    const int ranks = seen_.front().ranks;
    if (static_cast<int>(seen_.size()) < ranks)
      std::printf("%d of %d ranks are visible on this host.\n", static_cast<int>(seen_.size()), ranks);
    std::printf("\n%6s %8s %-8s %s\n", "rank", "process", "state", "where");
    for (const Seen& s : seen_)
      std::printf("%6d %8d %-8s %s%s\n", s.rank, s.pid, state_text(s).c_str(), where(s).c_str(),
                  s.moves ? " (moves)" : "");
  }

  void print_json(const std::vector<std::string>& findings) const {
    Json ranks = Json::array();
    for (const Seen& s : seen_)
      ranks.push_back({{"rank", s.rank},
                       {"host", s.host},
                       {"pid", s.pid},
                       {"state", state_text(s)},
                       {"moves", s.moves},
                       {"inside", s.inside == 1},
                       {"op", s.comm_size > 0 ? Json(op(s)) : Json(nullptr)},
                       {"call", s.n},
                       {"communicator", name_of(s)},
                       {"root", s.root < 0 ? Json(nullptr) : Json(s.root)},
                       {"bytes", s.bytes < 0 ? Json(nullptr) : Json(s.bytes)},
                       {"site", place_of(s)},
                       {"since_ns", age(s)},
                       {"where", where(s)}});
    std::printf("%s\n", Json{{"findings", findings}, {"ranks", ranks}}.dump(2).c_str());
  }

 private:
  static std::string op(const Seen& s) {
    return s.op < core::kCollectives ? std::string(core::kCollectiveNames[s.op]) : "a collective";
  }
  static std::string duration(std::int64_t ns) { return human_time(static_cast<double>(ns)); }
  /// How long a process has been where it is. Calls of idle epochs have no time: at least as long as we looked.
  std::int64_t age(const Seen& s) const { return s.since > 0 ? std::max<std::int64_t>(0, at_ - s.since) : waited_; }
  std::string place_of(const Seen& s) const {
    const auto found = places_.find(s.site);
    return found == places_.end() ? "an unknown place" : place(found->second);
  }
  std::string call_text(const Seen& s) const {
    std::string out = op(s);
    if (s.root >= 0) out += " to or from root " + std::to_string(s.root);
    if (s.bytes > 0) out += " of " + human_bytes(static_cast<double>(s.bytes));
    return out + " at " + place_of(s);
  }
  static std::string name_of(const Seen& s) {
    if (s.communicator == profiles::kWorldIdentity) return "MPI_COMM_WORLD";
    char text[64];
    if (s.communicator == 0) std::snprintf(text, sizeof text, "a communicator of %d ranks", s.comm_size);
    else
      std::snprintf(text, sizeof text, "communicator %08llx of %d ranks",
                    static_cast<unsigned long long>(s.communicator & 0xffffffff), s.comm_size);
    return text;
  }
  static std::string state_text(const Seen& s) {
    switch (s.state) {
      case 'R':
        return "running";
      case 'S':
      case 'D':
      case 'I':
        return "asleep";
      case 'T':
      case 't':
        return "stopped";
      case 'X':
        return "gone";
      default:
        return "?";
    }
  }
  std::string where(const Seen& s) const {
    if (s.comm_size == 0)
      return s.inside == profiles::LiveLine::kFinalizing ? "in MPI_Finalize" : "before its first collective";
    const std::string call = call_text(s) + ", call " + std::to_string(s.n) + " on " + name_of(s);
    if (s.inside == profiles::LiveLine::kFinalizing)
      return "in MPI_Finalize for " + duration(age(s)) + ", after " + call;
    if (s.inside == 1) return "in " + call + ", for " + duration(age(s));
    const std::string message =
        s.message != 0 ? "in a message, completion or one-sided call for " + duration(at_ - s.message) + ", " : "";
    return message + "outside collectives for " + duration(age(s)) + ", after " + call;
  }
  /// A verb phrase about a rank that is missing in a call.
  std::string doing(const Seen& s) const {
    if (s.state == 'X') return "is gone, " + where(s);
    std::string out = s.state == 'T' || s.state == 't' ? "is stopped, " : s.state == 'R' ? "runs, " : "is asleep, ";
    return (out == "runs, " && s.message == 0 && s.inside == 0 ? "computes, " : out) + where(s);
  }
  /// The ranks that a call waits for: members of its communicator that are visible and elsewhere.
  std::vector<const Seen*> absent(const Seen& call, const std::vector<const Seen*>& members) const {
    std::vector<const Seen*> out;
    for (const Seen& s : seen_) {
      const bool there = std::find(members.begin(), members.end(), &s) != members.end();
      // Of other communicators than MPI_COMM_WORLD only those are known that were there last.
      const bool member = call.communicator == profiles::kWorldIdentity || call.comm_size == call_ranks() ||
                          (s.communicator == call.communicator && call.communicator != 0);
      if (!there && member) out.push_back(&s);
    }
    return out;
  }
  int call_ranks() const { return seen_.front().ranks; }

  std::vector<Seen> seen_;
  std::int64_t at_, waited_;
  std::map<std::uint64_t, Json> places_;
};

int who(const Options& o) {
  const auto of_job = [&](std::vector<Seen> all, const std::string& output) {
    std::erase_if(all, [&](const Seen& s) { return s.output != output; });
    return all;
  };
  std::vector<Seen> before = look();
  std::string output = o.job.empty() ? "" : std::filesystem::absolute(o.job).lexically_normal().string();
  std::vector<std::string> jobs;
  for (const Seen& s : before)
    if (std::find(jobs.begin(), jobs.end(), s.output) == jobs.end()) jobs.push_back(s.output);
  std::string list;
  for (const std::string& job : jobs) list += "\n  " + job;
  if (output.empty() && jobs.size() == 1) output = jobs.front();
  if (output.empty())
    throw BadUsage(jobs.empty() ? "no job under latecomer is visible on this host"
                                : "several jobs are visible; name one:" + list);
  before = of_job(std::move(before), output);
  if (before.empty())
    throw BadUsage("no process of '" + output + "' is visible on this host" +
                   (list.empty() ? "" : "; visible jobs:" + list));
  const std::int64_t begin = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::duration<double>(o.seconds));
  std::vector<Seen> seen = of_job(look(), output);
  if (seen.empty()) throw BadUsage("the job has ended meanwhile");
  const std::int64_t end = monotonic_ns();
  const Job job(std::move(seen), before, end, end - begin);
  const auto findings = job.findings();
  if (o.json) job.print_json(findings);
  else job.print(findings);
  return findings.empty() ? 0 : 1;
}

}  // namespace

void add_who(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("who", "Show which ranks of a running job wait in which collective, and for whom");
  auto o = std::make_shared<Options>();
  command->add_option("PROFILE", o->job,
                      "The job, by the path of the profile that it will write. Default: the only job on this host.");
  command
      ->add_option("--seconds", o->seconds, "Time between two looks. A rank that does not move meanwhile stands still.")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  command->add_flag("--json", o->json, "Print the answer as JSON.");
  command->footer(
      R"(The command reads shared memory of this host, so run it on a host of the job, as the same user. It exits with 1 if a rank
stands still. The policy key `live` turns the shared memory off.

Example: a job that seems to hang
  $ latecomer who job.json)");
  command->callback([o, &action] { action = [o] { return who(*o); }; });
}

}  // namespace latecomer::cli
