// SPDX-License-Identifier: BSD-3-Clause
// The tables of policy keys: types, limits, defaults, documentation, and the member of Policy that holds the value.
// This file must not check a value.
#include "core/policy/keys.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/algorithms/segments.hpp"
#include "core/policy/json_lines.hpp"

namespace latecomer::core {
namespace {

/// Stores a value in a member of Policy. The type of the member decides which part of the value it takes; the choices
/// of an enumeration are in the order of its enumerators.
template <auto kMember>
void store_value(Policy& policy, const KeyRow& row, const JsonValue& value) {
  auto& member = policy.*kMember;
  using Member = std::remove_reference_t<decltype(member)>;
  if constexpr (std::is_same_v<Member, bool> || std::is_same_v<Member, std::optional<bool>>) {
    member = value.boolean;
  } else if constexpr (std::is_enum_v<Member>) {
    member = static_cast<Member>(index_of_choice(row, value.text));
  } else if constexpr (std::is_integral_v<Member>) {
    member = static_cast<Member>(value.integer);
  } else if constexpr (std::is_same_v<Member, double>) {
    member = value.number;
  } else if constexpr (std::is_same_v<Member, std::string>) {
    member = value.text;
  } else {
    member.clear();
    for (const JsonValue& item : value.items) member.push_back(item.text);
  }
}

void set_predictor(Policy& policy, const KeyRow& row, const JsonValue& value) {
  const int index = index_of_choice(row, value.text);  // "best" comes before the kinds
  if (index > 0) policy.predictor = static_cast<PredictorKind>(index - 1);
}

void set_device_buffers(Policy& policy, const KeyRow&, const JsonValue& value) {
  policy.device_buffers = value.text != "none";
}

void set_record(Policy& policy, const KeyRow&, const JsonValue& value) {
  policy.record_arrivals = value.text == "arrivals";
  policy.record_sample = value.text == "sample";
}

/// The older name of `learn`, which counts if both are given.
void set_history(Policy& policy, const KeyRow&, const JsonValue& value) {
  if (policy.learn.empty()) policy.learn = value.text;
}

void set_budget(Policy& policy, const KeyRow&, const JsonValue& value) {
  policy.budget = value.type == JsonValue::Type::null ? std::nullopt : std::optional(value.number);
}

void end_sampling(Policy& policy, const KeyRow&, const JsonValue&) { policy.sampling_hz = 0; }

template <double Promised::*kMember>
void set_promised(Policy& policy, const KeyRow&, const JsonValue& value) {
  policy.promised.*kMember = value.number;
  policy.promised.given = true;
}

// To add a key, add a row here, and a member to Policy.
constexpr KeyRow kPolicyKeys[] = {
    {"version", KeyType::integer, "", 1, 1, "", nullptr, "Version of the file format."},
    {"comment", KeyType::text, "", 0, 0, kNoText, nullptr, "A text for people."},
    {"mode", KeyType::choice, "off observe apply", 0, 0, "\"observe\"", store_value<&Policy::mode>,
     "`off`: the library stays inert. `observe`: it only watches. `apply`: rules may replace collectives."},
    {"reproducible", KeyType::choice, "any run native", 0, 0, "\"any\"", store_value<&Policy::reproducible>,
     "How far rounding may change, for operators where the order of operands matters. `any`: any order. `run`: every "
     "run gives the same bits, because only algorithms whose order does not depend on the arrival pattern may run. "
     "`native`: these operators stay native."},
    {"objective", KeyType::choice, "run_time mean_elapsed after_last", 0, 0, "\"run_time\"",
     store_value<&Policy::objective>,
     "The time that `auto` minimises. `run_time`: first arrival to last exit. `mean_elapsed`: arrival to exit, mean "
     "over ranks. `after_last`: last arrival to last exit."},
    {"network", KeyType::network, "", 0, 0, "", nullptr,
     "Figures of the network for the model: the name of a preset, `\"measure\"` or an object of figures. `measure` "
     "takes about 0.1 s in `MPI_Init` on a fast network, more on a slow one. Without this key the model uses `fdr`, "
     "and the imbalance factor is unknown."},
    {"measure_network", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::measure_network>,
     "In mode `observe`, without `network`: ranks measure the network in `MPI_Finalize`, for the profile only. They "
     "begin when the profile is on disk, and plan at most 1% of the time of the run and 1 s. On most networks that is "
     "0.1 s, after a run of 10 s."},
    {"predictor", KeyType::object, "", 0, 0, "", nullptr, "How arrivals are forecast."},
    {"predictor.kind", KeyType::choice, "best sma ewma median last", 0, 0, "\"best\"", set_predictor,
     "`sma`: simple moving average. `ewma`: exponentially weighted moving average. `median`: median. `last`: the last "
     "value. `best`: the one of these with the least recent error."},
    {"predictor.window", KeyType::integer, "", 1, 1024, "8", store_value<&Policy::predictor_window>,
     "The number of past calls that a forecast uses."},
    {"background", KeyType::object, "", 0, 0, "", nullptr, "The background engine."},
    {"background.enabled", KeyType::boolean, "", 0, 0, "false", store_value<&Policy::background_enabled>,
     "Allows one thread per process, which runs the background part of algorithms that have one. MPI then starts with "
     "`MPI_THREAD_MULTIPLE`."},
    {"background.max_buffer_mib", KeyType::integer, "", 1, 1 << 20, "64",
     store_value<&Policy::background_max_buffer_mib>,
     "The memory in MiB that a process may fill with messages before it arrives."},
    {"sites", KeyType::object, "", 0, 0, "", nullptr, "How call sites are told apart."},
    {"sites.depth", KeyType::integer, "", 1, 16, "1", store_value<&Policy::sites_depth>,
     "The number of stack frames outside MPI that make a call site."},
    {"sites.callers", KeyType::integer, "", 0, 15, "", store_value<&Policy::sites_callers>,
     "The number of further stack frames outside MPI by which the profile tells the callers of a site apart. Default: "
     "as many as make four frames with `sites.depth`. They change neither the site nor its plan. 0 saves about 20 ns "
     "per call."},
    {"sites.wrappers", KeyType::text_list, "", 0, 0, "[\"libcaf_mpi*\", \"libboost_mpi*\"]",
     store_value<&Policy::sites_wrappers>,
     "Libraries that only pass calls on to MPI, by globs of their file names. Their frames are no sites; their callers "
     "are."},
    {"sites.python", KeyType::boolean, "", 0, 0, "false", store_value<&Policy::sites_python>,
     "Uses Python's file and line as the call site where an interpreter runs. Each call then takes the interpreter's "
     "lock once."},
    {"waiting", KeyType::choice, "auto spin courteous", 0, 0, "\"auto\"", store_value<&Policy::waiting>,
     "What a waiting rank does with its core. `spin`: keeps it, as MPICH does. `courteous`: gives it away. `auto`: "
     "`courteous` if any host has more ranks than cores, else `spin`."},
    {"courteous_by", KeyType::choice, "auto progress nonblocking", 0, 0, "\"auto\"", store_value<&Policy::courteous_by>,
     "How native collectives wait courteously. `progress`: MPICH's progress function yields. `nonblocking`: blocking "
     "collectives run in their non-blocking form. `auto`: `progress` where all ranks have it, else `nonblocking`."},
    {"device_buffers", KeyType::choice, "auto none", 0, 0, "\"auto\"", set_device_buffers,
     "Whether the program's buffers may be in GPU memory, which latecomer's algorithms cannot use. `auto`: they may if "
     "MPI reports support for GPU memory on any rank; all calls are then native in mode `apply` too, and a warning "
     "says so. `none`: no buffer is in GPU memory."},
    {"mpi", KeyType::choice, "mpich openmpi abi", 0, 0, "", store_value<&Policy::mpi>,
     "Family of the program's MPI library, where latecomer does not recognise it by itself: `mpich`, `openmpi`, or "
     "`abi` for the standard ABI of MPI. `latecomer run` hands it to the ranks; without it, set `LATECOMER_MPI`."},
    {"spool", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::spool>,
     "Keeps snapshots on disk beside the profile while the job runs, for `latecomer recover`."},
    {"live", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::live>,
     "Keeps the present state of each process in shared memory of its host, for `latecomer who`."},
    {"record", KeyType::choice, "none sample arrivals", 0, 0, "\"sample\"", set_record,
     "Whether the profile also holds arrival and exit of every rank in single calls, for `latecomer whatif`. `sample`: "
     "in mode `observe`, stretches of 32 calls on `MPI_COMM_WORLD` that cover the run. They take 56 KiB per process, "
     "and 1.5 MB in the profile. `arrivals`: all calls. That takes 16 bytes per call and rank, and at most 32 MiB per "
     "process. A full record keeps every second, fourth, ... second of the run. Idle epochs are then off (`rest`)."},
    {"causes", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::causes>,
     "Measures what ranks do between collectives, for the causes in the report. `false`: no kernel counter is read, "
     "and MPI's other blocking calls are not timed, so `latecomer who` does not show that a rank is inside one."},
    {"sampling", KeyType::object_or_false, "", 0, 0, "", end_sampling,
     "Samples of the code that runs between MPI calls, by which the report names the functions that make a rank late. "
     "With `causes` only. `false`: none."},
    {"sampling.hz", KeyType::number, "", 0.01, 10000, "19", store_value<&Policy::sampling_hz>,
     "Samples per second of processor time of the thread that starts MPI, and at most as many of each of eight other "
     "threads. The kernel takes them, 20 to 70 us for each one. In mode `observe` a quarter of the `budget` is the "
     "limit for all of them."},
    {"last_message", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::last_message>,
     "Looks for whom `MPI_Waitall` waits: asks for one message after the other with `MPI_Request_get_status` until all "
     "are complete, for 100 ms at most, then calls MPI. Only where all requests are messages, not with "
     "`MPI_THREAD_MULTIPLE`, and within the `budget`. `false`: such a wait counts for all of its messages."},
    {"prometheus", KeyType::text, "", 0, 0, "\"\"", store_value<&Policy::prometheus>,
     "Path of a folder for text files of Prometheus, as `node_exporter --collector.textfile.directory` reads them. "
     "Each process writes the file `latecomer-JOBID-RANK.prom` whenever it writes a snapshot, and removes it at the "
     "end of the job. `\"\"`: none."},
    {"exchange", KeyType::choice, "epoch finalize", 0, 0, "\"epoch\"", store_value<&Policy::exchange>,
     "When ranks exchange their observations. `epoch`: while the job runs. `finalize`: in `MPI_Finalize` only; each "
     "process then keeps the arrivals of 65,536 calls."},
    {"roll_call_timeout_s", KeyType::number, "", 0.01, 3600, "5", store_value<&Policy::roll_call_timeout_s>,
     "The time in seconds that ranks wait at the start of the job for each other to report."},
    {"budget", KeyType::share, "", 0.0001, 1, "0.01", set_budget,
     "In mode `observe`: the share of the run that latecomer may take from each rank, beyond the bare count of calls. "
     "Where logging every call would exceed it, some epochs of each communicator are logged and stand for the others. "
     "Some of the calls that wait for messages are timed and stand for the others. "
     "Numbers of calls and bytes stay exact. Times and waits are estimates, with their sampling errors, and the verdict "
     "says for which time no call was logged. `null`: every call is logged."},
    {"rest", KeyType::boolean, "", 0, 0, "true", store_value<&Policy::rest>,
     "With `auto`, or with rules that need a plan: observes few calls (32 of 4,096) while arrivals are balanced and "
     "no collective is replaced. The other calls are counted with their bytes, without times and patterns."},
    {"rooted_waits", KeyType::boolean, "", 0, 0, "", store_value<&Policy::rooted_waits>,
     "Whether ranks may wait for a plan, at rare boundaries, on communicators that have only rooted collectives. They "
     "wait for less than 1% of the time. Without this key they wait where a rule names an algorithm that needs a "
     "plan. A program that relies on a gather not to synchronise, which MPI forbids, needs `false`."},
    {"learn", KeyType::text, "", 0, 0, "", store_value<&Policy::learn>,
     "Path of a file that passes what `auto` learns from run to run. If ranks, placement, MPI library and version of "
     "latecomer are those of an earlier run, its winners on `MPI_COMM_WORLD` serve it from the first call on. At the "
     "end the job writes its own winners there. The file keeps the latest 16 combinations of program, ranks and "
     "placement. Several jobs may use it at once. A profile serves as well, and is not written."},
    {"history", KeyType::text, "", 0, 0, "", set_history, "Older name of `learn`, which counts if both are given."},
    {"output", KeyType::file_name, "", 0, 0, "", store_value<&Policy::output>,
     "Profile file, where neither `--output` nor `LATECOMER_OUTPUT` names one. `%j` stands for the job id, `%u` for "
     "the user, `%h` for the host of rank 0, `%p` for its process id, `%%` for a percent sign. Folders whose names "
     "hold one of these, and all folders below them, are made. This key counts even if another key has a mistake."},
    {"promised", KeyType::object, "", 0, 0, "", nullptr, "The gain that `latecomer advise` expects of the rules."},
    {"promised.least", KeyType::number, "", -1, 1, "", set_promised<&Promised::least>,
     "The least share of the run time that `latecomer advise` expects the rules to save; negative: a loss. It changes "
     "nothing. The profile copies it, and `latecomer diff` prints it beside the measured gain."},
    {"promised.most", KeyType::number, "", -1, 1, "", set_promised<&Promised::most>, "The greatest share, likewise."},
    {"rules", KeyType::array, "", 0, 0, "[]", nullptr,
     "The first rule whose `match` fits a call decides. A call that no rule fits stays native. Rules count in mode "
     "`apply` only."},
};
/// Names as the choices of a key: separated by spaces.
template <const auto& kNames>
constexpr auto joined() {
  constexpr std::size_t kSize = [] {
    std::size_t size = 0;
    for (const std::string_view name : kNames) size += name.size() + 1;
    return size;
  }();
  std::array<char, kSize> out{};
  std::size_t at = 0;
  for (const std::string_view name : kNames) {
    for (const char c : name) out[at++] = c;
    out[at++] = ' ';
  }
  return out;
}
constexpr auto kCollectiveChoices = joined<kCollectiveNames>();

constexpr KeyRow kMatchKeys[] = {
    {"op",
     KeyType::choice_list,
     {kCollectiveChoices.data(), kCollectiveChoices.size() - 1},
     0,
     0,
     "",
     nullptr,
     "The collective, or a list of them."},
    {"bytes", KeyType::size_range, "", 0, kNoLimit, "", nullptr,
     "Payload of the call. For allreduce, reduce, bcast, scan and exscan: the vector of a rank. For reduce_scatter: "
     "the whole vector. For scatter and gather: the root's total. For allgather and allgatherv: the receive total. For "
     "alltoall: the send total of a rank. A rule with `bytes` never matches gatherv, scatterv, alltoallv, alltoallw or "
     "a neighbour collective, because not every rank knows its size."},
    {"comm_size", KeyType::range, "", 0, kNoLimit, "", nullptr, "Number of ranks of the communicator."},
    {"root", KeyType::range, "", 0, kNoLimit, "", nullptr, "Rank of the root."},
    {"op_class", KeyType::choice_list, "sum prod max min logical bitwise loc user user_noncommutative", 0, 0, "",
     nullptr, "Class of the reduction operator, or a list of them."},
    {"site", KeyType::text, "", 0, 0, "", nullptr,
     "Pattern with `*` and `?` for the site's id, its module+offset, its function or its `file:line`. Such a rule "
     "applies from the first plan on."},
    {"imbalance_factor", KeyType::range, "", 0, kNoLimit, "", nullptr,
     "First to last arrival, divided by the time of one message of the call's bytes. Such a rule applies from the "
     "first plan on, and only where `network` is given."},
};
constexpr KeyRow kOtherNetworkKeys[] = {
    {"eager", KeyType::size, "", 0, kNoLimit, "0", nullptr,
     "Largest message that does not wait for its receiver. 0: every message waits."},
    {"ports", KeyType::integer, "", 1, 1024, "1", nullptr,
     "Messages that a rank can send, and receive, at the same time. `\"link\"`: one to and from each other rank."},
    {"duplex", KeyType::choice, "full half", 0, 0, "\"full\"", nullptr,
     "`half`: large messages of two ranks to each other take turns, as rendezvous over TCP does."},
    {"ranks_per_host", KeyType::integer, "", 1, 1 << 20, "1", nullptr,
     "Consecutive ranks on each host, which share its ports."},
};
constexpr auto kNetworkKeys = [] {
  std::array<KeyRow, std::size(kNetworkTimes) + std::size(kOtherNetworkKeys)> out;
  auto* row = out.begin();
  for (const NetworkTime& t : kNetworkTimes)
    *row++ = {t.key, KeyType::number, "", 0, kNoLimit, t.fallback, nullptr, t.meaning};
  for (const KeyRow& other : kOtherNetworkKeys) *row++ = other;
  return out;
}();
constexpr KeyRow kUseKeys[] = {
    {"algorithm", KeyType::text, "", 0, 0, "", nullptr,
     "Name of an algorithm (`latecomer algorithms` lists them), `auto` or `native`."},
    {"segments", KeyType::integer, "", 1, kMostSegments, "", nullptr,
     "Number of segments, for algorithms that take one. Default: the algorithm's choice."},
    {"overlap", KeyType::boolean, "", 0, 0, "true", nullptr,
     "`false`: a rank begins a step only after the previous step, as in the publications (lockstep)."},
};

}  // namespace

std::vector<std::string_view> split_choices(const KeyRow& row) {
  std::vector<std::string_view> choices;
  for (std::size_t start = 0; start < row.choices.size();) {
    const std::size_t space = std::min(row.choices.find(' ', start), row.choices.size());
    choices.push_back(row.choices.substr(start, space - start));
    start = space + 1;
  }
  return choices;
}

int index_of_choice(const KeyRow& row, std::string_view word) {
  const auto choices = split_choices(row);
  return static_cast<int>(std::find(choices.begin(), choices.end(), word) - choices.begin());
}

std::span<const KeyRow> policy_keys() { return kPolicyKeys; }
std::span<const KeyRow> match_keys() { return kMatchKeys; }
std::span<const KeyRow> network_keys() { return kNetworkKeys; }
std::span<const KeyRow> use_keys() { return kUseKeys; }

}  // namespace latecomer::core
