// SPDX-License-Identifier: BSD-3-Clause
// The policy file: the permissions and limits of latecomer. The parser reports every error with its line, key path and
// the nearest valid value. A policy with an error is not used. The same text gives the same policy on every rank.
// The tables of keys in keys.cpp drive the parser and the JSON Schema.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/algorithms/algorithm.hpp"
#include "core/pap/predictor.hpp"

namespace latecomer::core {

enum class Mode { off, observe, apply };
enum class Reproducible { any, run, native };
enum class Objective { run_time, mean_elapsed, after_last };
enum class Waiting { automatic, spin, courteous };
/// The method by which a native call waits courteously.
enum class CourteousBy { automatic, progress, nonblocking };
enum class Exchange { epoch, finalize };

/// A range of numbers; both ends are included.
struct Range {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  bool contains(double v) const { return v >= min && v <= max; }
  bool covers(const Range& o) const { return min <= o.min && max >= o.max; }
  bool operator==(const Range&) const = default;
  bool all() const {
    return min == -std::numeric_limits<double>::infinity() && max == std::numeric_limits<double>::infinity();
  }
};

struct Match {
  std::vector<Collective> ops;      ///< empty: every collective
  std::vector<OpClass> op_classes;  ///< empty: every class
  Range bytes, comm_size, root, imbalance_factor;
  std::string site;  ///< glob; empty: every site
  bool operator==(const Match&) const = default;
  /// Whether all ranks know the values of the keys without a message: U(n) in docs/explanation/agreement.md.
  bool universal() const { return site.empty() && imbalance_factor.all(); }
};

struct Use {
  enum class Kind { native, automatic, algorithm } kind = Kind::native;
  std::string algorithm;
  int segments = 0;
  bool overlap = true;
  bool operator==(const Use&) const = default;
};

struct Rule {
  Match match;
  Use use;
  int line = 0;
  bool operator==(const Rule&) const = default;
};

/// The gain that `latecomer advise` expects, as shares of the run time.
struct Promised {
  bool given = false;
  double least = 0, most = 0;
  bool operator==(const Promised&) const = default;
};

struct Policy {
  Mode mode = Mode::observe;
  Reproducible reproducible = Reproducible::any;
  Objective objective = Objective::run_time;
  Waiting waiting = Waiting::automatic;
  Exchange exchange = Exchange::epoch;
  Network network;             ///< the preset fdr if the policy gives none
  bool network_given = false;  ///< the policy gives parameters; without them the imbalance factor is unknown
  bool network_measure = false;
  bool measure_network = true;             ///< in MPI_Finalize, for the profile of a run without figures
  std::optional<PredictorKind> predictor;  ///< empty: the predictor with the least recent error
  int predictor_window = 8;
  bool background_enabled = false;
  std::int64_t background_max_buffer_mib = 64;
  int sites_depth = 1;
  int sites_callers = -1;  ///< -1: as many as make four frames with the depth
  std::vector<std::string> sites_wrappers = {"libcaf_mpi*", "libboost_mpi*"};
  bool sites_python = false;
  CourteousBy courteous_by = CourteousBy::automatic;
  std::string mpi;             ///< family of the MPI library; empty: it tells by itself
  bool device_buffers = true;  ///< buffers may be in GPU memory, if MPI supports it
  bool spool = true;
  bool live = true;          ///< the present state of each process is in shared memory
  bool causes = true;        ///< the activity of ranks between collectives is sampled
  double sampling_hz = 19;   ///< samples of the running code per second; 0: none
  bool last_message = true;  ///< looks which message comes last in MPI_Waitall
  bool record_arrivals = false;
  bool record_sample = true;  ///< in mode observe, unless all arrivals are recorded
  std::string prometheus;     ///< folder for text files of Prometheus; empty: none
  bool rest = true;
  std::optional<bool> rooted_waits;     ///< empty: ranks wait where a rule names an algorithm that needs a plan
  std::optional<double> budget = 0.01;  ///< share of the run that latecomer may take; empty: all calls are logged
  double roll_call_timeout_s = 5;
  std::string learn;   ///< file from which winners are read, and to which they are written; empty: none
  std::string output;  ///< name of the profile, with %j, %u, %h, %p and %%; empty: none
  Promised promised;
  std::vector<Rule> rules;

  bool operator==(const Policy&) const = default;

  /// Some rule can only come into force through a plan, or its algorithm is built on the arrival pattern; else no
  /// plan is ever announced.
  bool wants_plans() const;

  /// Whether any rule dispatches calls by their universal signature alone, without a plan.
  bool decides_alone() const;
};

struct PolicyProblem {
  int line;
  std::string path, message;
};

struct PolicyReport {
  Policy policy;
  std::vector<PolicyProblem> problems;  ///< errors: the policy must not be used
  std::vector<PolicyProblem> notes;     ///< rules that can never match, and features that this version lacks
  std::vector<PolicyProblem> warnings;  ///< rules that come into force only with a plan
  /// Whether the user wants other algorithms, as far as a policy with mistakes shows: the mode is `apply` or has a
  /// mistake, and a rule names another algorithm than `native`.
  bool asks_to_apply = false;
  bool ok() const { return problems.empty(); }
};

/// The configuration of a site: the policy of jobs that name no other. LATECOMER_CONFIG names another file.
inline constexpr char kConfiguration[] = "/etc/latecomer/config.json";

/// Parses a policy and reports all errors, in the order of their lines.
PolicyReport parse_policy(std::string_view text);

/// The properties of one call that are equal on all ranks.
struct CallProperties {
  Collective op;
  Bytes bytes;
  int comm_size;
  Rank root;  ///< -1 where the collective has none
  OpClass op_class;
};

/// Whether a rule with these keys can match the call. Ignores `site` and `imbalance_factor`.
bool may_match(const Match& match, const CallProperties& facts);

/// The first rule that matches, or nullptr. Skips rules with learned keys (`site`, `imbalance_factor`) unless `learnt`
/// is given and returns true for them.
const Rule* first_match(const Policy& policy, const CallProperties& facts,
                        const std::function<bool(const Match&)>& learnt = nullptr);

/// The JSON Schema (draft 2020-12) of the policy file, indented.
std::string policy_schema();

// The tables of keys, which drive the parser and the schema.
enum class KeyType {
  boolean,
  integer,
  number,
  share,  ///< a number or null
  text,
  file_name,  ///< a text with %j, %u, %h, %p and %%
  choice,
  size,
  range,
  size_range,
  choice_list,
  text_list,
  object,
  object_or_false,
  array,
  network
};
/// The default of a text key that may be empty.
inline constexpr std::string_view kNoText = "\"\"";
struct JsonValue;
struct KeyRow {
  std::string_view path;  ///< "predictor.window"; in the match table "bytes"
  KeyType type;
  std::string_view choices;   ///< space-separated; choice and choice_list
  double min, max;            ///< integer and number
  std::string_view fallback;  ///< the default as JSON; "": none, or the doc says it
  /// Stores a value that the row allows. nullptr: the parser reads the value itself, or only checks it.
  void (*set)(Policy&, const KeyRow&, const JsonValue&);
  std::string_view doc;
};
std::span<const KeyRow> policy_keys();
std::span<const KeyRow> match_keys();
std::span<const KeyRow> network_keys();
std::span<const KeyRow> use_keys();

}  // namespace latecomer::core
