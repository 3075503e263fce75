// SPDX-License-Identifier: BSD-3-Clause
// Which code makes a rank late: compares its samples with those of the ranks on time. It writes no sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiles/analysis/frame.hpp"
#include "profiles/analysis/lateness.hpp"

namespace latecomer::profiles {
struct Profile;
}

namespace latecomer::profiles::analysis {

struct Site;

/// The code of all ranks, as a profile has it. Calls are ids of sites; "": not known.
struct CodeFigures {
  /// A few bytes of a function, or all of it.
  struct Place {
    NamedFrame frame;
    std::string function_offset;  ///< in the module; "0x0": a whole module
    double samples = 0;
  };
  struct Samples {
    std::optional<std::size_t> place{};  ///< empty: samples beyond the limit of a rank
    std::string next{}, collective{};
    struct Row {
      long rank = 0;
      double samples = 0;
    };
    std::vector<Row> rows{};
    bool others = false;  ///< of other threads than the one that started MPI
  };
  struct Stretch {
    std::string from{}, to{}, collective{};
    struct Row {
      long rank = 0;
      double stretches = 0, time = 0;
    };
    std::vector<Row> rows{};
  };
  std::vector<Place> places;  ///< most samples first
  std::vector<Samples> samples;
  std::vector<Stretch> stretches;
};

/// How a process took samples.
struct SamplingFigures {
  double hz = 0, taken = 0, lost = 0;
  std::string why_not{};
  double threads = 0;  ///< other threads that had samples at the same time
};

/// Where the time is in which a rank differs from the ranks on time.
struct LateCode {
  enum class Kind {
    none,       ///< not known, or too few samples
    functions,  ///< in `parts`; those of other threads come last
    alike,      ///< in all functions in the same proportion
    spread,     ///< no function has a fifth of it
    stretch,    ///< in a stretch between two calls
  } kind = Kind::none;
  /// Of the rank and of the ranks on time, with the standard error of the difference: ns per call, or shares of the
  /// run.
  struct Part {
    std::string name;
    double mine = 0, reference = 0, error = 0;
    bool waits = false;    ///< in the library of OpenMP, in which threads wait for each other
    bool threads = false;  ///< the sum of other threads' times
  };
  std::vector<Part> parts{};             ///< greatest difference first
  double ratio = 0;                      ///< of the times of both
  bool whole_run = false;                ///< the figures are shares of the run
  std::string from{}, to{};              ///< of the stretch, as text. The figures in `parts` are means of one stretch
  std::optional<Execution> execution{};  ///< before a call, where the machine counts instructions
  std::string missing{};                 ///< what would tell more; "": nothing
};

/// The functions in which the rank spends `mine`, and the ranks on time `reference`: computing times before calls of
/// that site, or in the whole run (nullptr). Where its thread waits longer for others, also what those compute longer.
LateCode late_functions(const Profile& profile, const Site* site, long rank, double mine, double reference);
/// The functions in which its other threads compute longer, of a rank that waits for them for `late` more than others.
/// The other arguments as above.
LateCode late_threads(const Profile& profile, const Site* site, long rank, double mine, double reference, double late);
/// The stretch before calls of that site, or of the whole run, that has most of the time by which the rank is late.
LateCode late_stretch(const Profile& profile, const Site* site, long rank);

/// The name of the function that the compiler made of the samples' place; "other functions" if it is not known.
std::string function_of(const Profile& profile, const CodeFigures::Samples& samples);
/// The call of an id: "MPI_Allreduce in solve (solve.c:7)"; "": not known.
std::string call_named(const Profile& profile, const std::string& id);

}  // namespace latecomer::profiles::analysis
