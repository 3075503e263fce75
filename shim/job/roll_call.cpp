// SPDX-License-Identifier: BSD-3-Clause
// The roll call: is every rank of MPI_COMM_WORLD preloaded with the same build? MPI communication cannot answer: a rank
// without the preload would receive the messages in the program's calls. The ranks of a host meet in shared memory, and
// one rank of each host asks the others' (rooms.cpp). If that fails, or cannot be tried, each rank asks here: ranks
// publish names in the process manager's name service, along a binomial tree. No rank watches more than log2 P others.
//
// Each rank publishes three names, in this order:
// - here: on entry. A rank waits for its parent's and its children's `here`, with a time-out.
// - up: after the parent and the children are here, and the children's `up` say yes. Otherwise it says no. A rank that
//   publishes yes waits for its parent's verdict without a time-out. The verdict must come, because the parent is here.
// - verdict: the root's is its `up`; the other ranks repeat their parent's.
// A rank that gives up has said no before, so all ranks get the same verdict. A rank that publishes no `here` says no,
// because its neighbours wait for it in vain.
//
// A name service may fail or lie. A rank that does not find its own `here` says `deaf` in place of no, and waits for
// nobody. A rank that does not hear yes asks `latecomer run` (run_channel.cpp), which says yes only if all ranks ask.
// So no rank hears yes anywhere unless all do: of rooms, names and `run`, a rank asks the next only after no.
#include "shim/job/roll_call.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "shim/job/names.hpp"
#include "shim/job/output.hpp"
#include "shim/log.hpp"
#include "shim/mpi/entry.hpp"

namespace latecomer::shim {
namespace {

/// Whether the process manager takes the text as a value.
bool plain(const std::string& text) {
  return text.size() < 100 &&
         text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") ==
             std::string::npos;
}

/// Takes the identity of the job from the value that rank 0 has published.
void adopt(const std::string& value) {
  const std::size_t key = value.find('#'), id = value.find('#', key + 1);
  if (key == std::string::npos || id == std::string::npos) return;
  job().id.key = std::strtoull(value.c_str() + key + 1, nullptr, 16);
  if (id + 1 < value.size()) job().id.id = value.substr(id + 1);
}

/// The answer of a subtree or of the whole tree. The lowest counts.
enum class Said { no, deaf, yes };
const char* word_of(Said said) { return said == Said::yes ? "yes" : said == Said::deaf ? "deaf" : "no"; }
Said said_by(const char* word) {
  return std::strcmp(word, "yes") == 0 ? Said::yes : std::strcmp(word, "deaf") == 0 ? Said::deaf : Said::no;
}

/// Asks the name service. Each thing that is wrong is in `wrong` of one rank.
bool ask_names(Names& names, int rank, int size, double timeout_s, Nanoseconds deadline,
               std::vector<std::string>& wrong) {
  PortName value, here;
  // Ranks that observe alone need rank 0's answer to the question which job this is.
  std::snprintf(here, sizeof here, "%s#%llx#%s", own_build_ids(), static_cast<unsigned long long>(job().id.key),
                plain(job().id.id) ? job().id.id.c_str() : "");
  const std::string otherwise =
      run_offers_roll_call() ? ", and latecomer run does not answer" : " (latecomer run would help)";
  const std::string deaf = "the name service of " + launcher() + " does not show a rank its own name" + otherwise;
  std::string broken;
  if (!names.sound(rank))
    broken = "the name service of " + launcher() + " answers names that nobody published" + otherwise;
  else if (!names.publish("here", rank, here)) broken = launcher() + " has no name service" + otherwise;
  else if (!names.look_up("here", rank, value) || std::strcmp(value, here) != 0) broken = deaf;
  if (!broken.empty()) {
    // Other ranks may see the name all the same, and then wait for these two.
    names.publish("up", rank, word_of(Said::deaf));
    names.publish("verdict", rank, word_of(Said::deaf));
    if (rank == 0) wrong.push_back(broken);
    return false;
  }

  const int parent = rank & (rank - 1);
  const auto is_here = [&](int other) {
    return names.wait_for("here", other, deadline, value) &&
           std::string_view(value).substr(0, std::string_view(value).find('#')) == own_build_ids();
  };
  const bool parent_here = rank == 0 || is_here(parent);
  Said said = parent_here ? Said::yes : Said::no;
  // One line per missing rank, from its parent, or from rank 1 if rank 0 is missing.
  const auto missing = [&](int other) {
    char why[400];
    std::snprintf(why, sizeof why,
                  names.shared()
                      ? "rank %d did not answer through mpiexec -nameserver: it is on another host, or its parent is "
                        "not the launcher, or it is not preloaded with this build of latecomer, or it answers more "
                        "than %g s late (policy key roll_call_timeout_s)"
                      : "rank %d is not preloaded with this build of latecomer, or it answers more than %g s late "
                        "(policy key roll_call_timeout_s), or the name service of %s does not show it",
                  other, timeout_s, launcher().c_str());
    wrong.emplace_back(why);
  };
  if (!parent_here && rank == 1) missing(0);
  for (int bit = 1; rank + bit < size && (rank & bit) == 0; bit <<= 1) {
    const int child = rank + bit;
    // A child that is here publishes `up` in any case, so the wait for it ends.
    const bool came = is_here(child);
    if (!came) missing(child);
    said = std::min(said, came && names.wait_for("up", child, 0, value) ? said_by(value) : Said::no);
  }
  names.publish("up", rank, word_of(said));
  if (rank != 0 && parent_here) {
    names.wait_for("verdict", parent, 0, value);
    said = said_by(value);
  } else if (said == Said::deaf) {
    wrong.push_back(deaf);  // of another rank
  }
  names.publish("verdict", rank, word_of(said));
  if (said != Said::yes) return false;
  // Unpublish names that no rank reads any more. All ranks read `here` and `up` before the verdict exists. The
  // children read `verdict`, and this rank cannot wait for them here: `verdict` stays until the job ends.
  names.unpublish("here", rank, here);
  names.unpublish("up", rank, "yes");
  return true;
}

}  // namespace

bool roll_call(int rank, int size, double timeout_s) {
  if (size == 1) return true;
  constexpr Nanoseconds kGrace = 2'000'000'000;  // chosen: time-outs of ranks that began together differ by less
  const Nanoseconds deadline = now() + static_cast<Nanoseconds>(timeout_s * 1e9);
  if (meet_in_rooms(rank, size, timeout_s)) return true;
  Names names;
  std::vector<std::string> wrong;
  if (ask_names(names, rank, size, timeout_s, deadline, wrong)) return true;
  const RunAnswer run = ask_run(rank, size, std::max(deadline, now()) + kGrace);
  if (run.verdict == RunAnswer::yes) {
    if (rank == 0) say(1, "the ranks found each other through latecomer run");
    return true;
  }
  if (run.verdict == RunAnswer::no) {
    wrong.clear();
    if (!run.why.empty()) wrong.push_back(run.why);
  }
  PortName value;
  if (names.look_up("here", 0, value)) adopt(value);
  choose_output_alone(job(), "");
  for (const std::string& why : wrong)
    warn("%s: every rank observes alone and all calls stay native; after the job, run latecomer recover %s",
         why.c_str(), (job().output + ".parts").c_str());
  return false;
}

}  // namespace latecomer::shim
