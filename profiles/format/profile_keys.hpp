// SPDX-License-Identifier: BSD-3-Clause
// The keys of the objects of a profile, one row each. The file of the schema describes the other objects: histograms,
// frames, the record of arrivals, the costs by cause, the last state, and the names in a decision.
#pragma once

#include "core/base/text.hpp"
#include "core/learning/explain.hpp"
#include "core/policy/policy.hpp"
#include "profiles/analysis/profile.hpp"
#include "profiles/format/keys.hpp"
#include "profiles/record/merged.hpp"

namespace latecomer::profiles {

// The times between two collectives, or of a whole process.

inline const Usage& usage_of(const Intervals& of) { return of.sum; }
inline const Usage& usage_of(const Process& of) { return of.usage; }
inline double divisor_of(const Intervals& of) { return static_cast<double>(of.stand_for); }
inline double divisor_of(const Process&) { return 1; }
constexpr auto mean_of(auto part) {
  return [part](const auto& from) { return static_cast<double>(std::invoke(part, usage_of(from))) / divisor_of(from); };
}

using analysis::IntervalFigures, analysis::ProcessFigures, analysis::ProcessTimes;
inline constexpr auto kUsageKeys = table(
    key("collectives_ns", "Inside blocking collectives.", &IntervalFigures::collectives, &ProcessTimes::collectives,
        mean_of(&Usage::collectives)),
    key("messages_ns",
        "Inside MPI calls that wait for messages: blocking messages, completions, probes and polls, and inside "
        "one-sided communication.",
        &IntervalFigures::messages, &ProcessTimes::messages, mean_of(&Usage::messages)),
    key("io_ns", "Inside MPI's calls for files.", &IntervalFigures::io, &ProcessTimes::io, mean_of(&Usage::io)),
    key("other_mpi_ns",
        "Inside other MPI calls that may wait, such as those that make communicators and windows, start processes or "
        "ask the name service. Absent in profiles of earlier versions, where it is part of `messages_ns`.",
        &IntervalFigures::other_mpi, &ProcessTimes::other_mpi, mean_of(&Usage::other_mpi))
        .if_newer(),
    key("computing_ns", "On a processor, in the program.", &IntervalFigures::computing, &ProcessTimes::computing,
        mean_of(&Usage::computing)),
    key("kernel_ns", "On a processor, in the kernel: system calls and page faults.", &IntervalFigures::kernel,
        &ProcessTimes::kernel, mean_of(&Usage::kernel)),
    key("runnable_ns", "Ready to run, but without a core.", &IntervalFigures::runnable, &ProcessTimes::runnable,
        mean_of(&Usage::runnable)),
    key("blocked_ns", "Asleep or stopped.", &IntervalFigures::blocked, &ProcessTimes::blocked,
        mean_of(&Usage::blocked)),
    key("faults", "Page faults.", &IntervalFigures::faults, mean_of(&Usage::faults)),
    key("preempted", "Times that another process or thread took the processor.", &IntervalFigures::preempted,
        mean_of(&Usage::preempted)),
    key("page_faults_ns",
        "The share of `kernel_ns` that page faults explain: their number times twice the cost of a fault, which each "
        "rank measures at its start, and at most all of it.",
        &IntervalFigures::page_faults, mean_of(&Usage::page_faults))
        .if_newer(),
    key("threads_ns", "Processor time of the other threads of the process. It is no part of `wall_ns`.",
        &IntervalFigures::threads, &ProcessTimes::threads, mean_of(&Usage::threads))
        .if_newer(),
    key("threads_in_mpi_ns",
        "Time for which at least one of these threads was inside a timed MPI call, a lower bound. Absent in profiles "
        "of earlier versions.",
        &IntervalFigures::threads_in_mpi, &ProcessTimes::threads_in_mpi, mean_of(&Usage::threads_in_mpi))
        .if_newer(),
    key("counted_ns",
        "Processor time outside MPI for which the machine counted instructions and cycles. Absent: it does not.",
        &IntervalFigures::counted, mean_of(&Usage::counted))
        .if_any(),
    key("instructions", "Instructions of the program in that time, in user mode.", &IntervalFigures::instructions,
        mean_of(&Usage::instructions))
        .if_any(),
    key("cycles", "Cycles of the processor in that time, in user mode.", &IntervalFigures::cycles,
        mean_of(&Usage::cycles))
        .if_any());

inline constexpr auto kIntervalKeys =
    table(key("wall_ns", "The whole span.", &IntervalFigures::wall, mean_of(&Usage::wall))) + kUsageKeys +
    table(key("samples", "Sampled intervals.", &IntervalFigures::samples, &Intervals::samples),
          key("stand_for",
              "Intervals that the samples stand for, over which the figures are means. Long intervals are sampled more "
              "often than others. Absent in profiles of earlier versions: each sample stands for one.",
              &IntervalFigures::stand_for, &Intervals::stand_for)
              .if_newer());

inline constexpr auto kProcessKeys =
    table(key("wall_ns",
              "The time between `MPI_Init` and `MPI_Finalize`, or to the last snapshot. The eight parts below add up "
              "to it.",
              &ProcessFigures::wall, mean_of(&Usage::wall))) +
    kUsageKeys;

using analysis::HostLoadFigures;
inline constexpr auto kHostLoadKeys = table(
    key("ranks", "Ranks of the job on the host's kernel.", &HostLoadFigures::ranks, &HostLoad::ranks),
    key("cores", "Cores that are online.", &HostLoadFigures::cores, &HostLoad::cores),
    key("usable_cores", "Cores that some of the ranks may use.", &HostLoadFigures::usable, &HostLoad::usable),
    key("span_ns", "Length of the measurement.", &HostLoadFigures::span, &HostLoad::span),
    key("ranks_ns", "Processor time of the ranks, with all their threads.", &HostLoad::job),
    key("others_ns",
        "Processor time of all other processes, without interrupts: that of `/proc/stat`, less `ranks_ns`. null: not "
        "known, as where a rank is in another container.",
        &HostLoadFigures::others, &HostLoad::others),
    key("others_error_ns", "Standard error of `others_ns`: the kernel looks at each tick who runs.",
        &HostLoadFigures::others_error,
        [](const HostLoad& h) { return h.others() ? std::optional(std::round(h.error())) : std::nullopt; }),
    key("others_share", "`others_ns` as a share of the time of the `cores`.",
        [](const HostLoad& h) -> std::optional<double> {
          if (!h.others()) return {};
          const Share share = Share::of(static_cast<double>(*h.others()), static_cast<double>(h.span) * h.cores);
          return share.known() ? std::optional(share.value()) : std::nullopt;
        }),
    key("steal_ns", "Time in which a hypervisor gave the cores to others, sum over the cores.", &HostLoad::steal),
    key("pressure_ns",
        "Time in which some process of the host, of the job or not, waited for a core (`/proc/pressure/cpu`).",
        &HostLoadFigures::pressure, &HostLoad::pressure),
    key("throttled_ns",
        "Time in which the quota of the control group of the measuring rank, or of a group that contains it, held "
        "processes back, sum over the cores.",
        &HostLoadFigures::throttled, &HostLoad::throttled));

// Arrivals.

struct SumsOfRank : RankSums {
  Rank rank;
};
using analysis::RankTotals;
inline constexpr auto kRankSumKeys =
    table(key("rank", "Rank in MPI_COMM_WORLD.", &RankTotals::rank, &SumsOfRank::rank),
          key("calls", "Calls with records of all ranks, without those of this rank alone.", &RankTotals::calls,
              &RankSums::calls),
          key("last_count", "Times the rank came last.", &RankTotals::last, &RankSums::last_count),
          key("mean_lateness_ns",
              "Mean time from the mean arrival of the others to the rank's own. Negative: the rank came earlier.",
              &RankTotals::late, [](const RankSums& of) { return of.late_ns / static_cast<double>(of.calls); })
              .with_sign(),
          key("waited_ns", "Time that the rank waited for others.", &RankTotals::waited, &RankSums::waited_ns),
          key("awaited_ns", "Time that others waited for the rank, sum of those that waited.", &RankTotals::awaited,
              &RankSums::awaited_ns));

/// Ranks of a row at a site, or at one of its callers.
struct ArrivalsOfRow {
  std::int32_t first, ranks;  ///< `ranks` 0: rows hold one rank
  const RankOffsets& of;
  std::uint64_t last_count;
};
using analysis::RankRow;
constexpr auto with_spread(auto... spread) {
  return table(key("rank", "Rank in MPI_COMM_WORLD; the first one, if several share the row.", &RankRow::rank,
                   &ArrivalsOfRow::first),
               key("ranks", "Number of ranks that share this row. Absent: one.", &RankRow::ranks, &ArrivalsOfRow::ranks)
                   .if_any(),
               key("mean_offset_ns", "Mean time from the first arrival of a call to the arrival of this rank.",
                   &RankRow::offset, [](const ArrivalsOfRow& row) { return row.of.offset.mean(); })
                   .with_sign(),
               spread...,
               key("last_count", "Calls in which this rank arrived last.", &RankRow::last, &ArrivalsOfRow::last_count),
               key("waited_ns", "Time that this rank waited for others, in the sense of `waited_ns` of the site.",
                   &RankRow::waited, [](const ArrivalsOfRow& row) { return row.of.waited_ns; })
                   .if_newer(),
               key("awaited_ns", "Time that other ranks waited for this one, summed over them.", &RankRow::awaited,
                   [](const ArrivalsOfRow& row) { return row.of.awaited_ns; })
                   .if_newer());
}
inline constexpr auto kCallerRowKeys = with_spread();
inline constexpr auto kRankRowKeys = with_spread(key("stddev_ns", "Standard deviation of this time.", &RankRow::stddev,
                                                     [](const ArrivalsOfRow& row) { return row.of.offset.stddev(); }));

using analysis::Communicator;
inline constexpr auto kCommunicatorKeys = table(
    key("comm_size", "Number of members. 0: the row of all groups beyond 1,048,576 members in sum.",
        &Communicator::ranks, [](const Group& g) { return g.ranks.size(); }),
    key("members",
        "Ranks in MPI_COMM_WORLD, ascending, such as `0-3` or `0-12:4` with a step of 4. Ends with `...` after 16 "
        "runs.",
        &Communicator::members, [](const Group& g) { return ranks_text(g.ranks); }),
    key("calls", "Calls with records of all ranks.", &Communicator::calls, &Group::calls),
    key("waited_ns", "Time that ranks waited for others in these calls, sum of all ranks.", &Communicator::waited,
        &Group::waited_ns),
    key("imbalance_ns", "First to last arrival, mean of these calls.", &Communicator::imbalance,
        [](const Group& g) { return g.imbalance_ns / static_cast<double>(g.calls); }),
    key("after_last_ns", "Last arrival to last exit, mean of these calls.", &Communicator::after_last,
        [](const Group& g) { return g.after_last_ns / static_cast<double>(g.calls); }));

// Messages.

struct WaitFor {
  Rank rank;
  double wait_ns;
};
inline constexpr auto kWaitForKeys = table(
    key("rank", "Rank in MPI_COMM_WORLD.", &IntervalFigures::Peer::rank, &WaitFor::rank),
    key("wait_ns",
        "Time in calls that waited for a message from it, or until it received one. A call that completes several "
        "messages counts for each of their ranks.",
        &IntervalFigures::Peer::waited, &WaitFor::wait_ns));

struct PairOfRanks : PairSums {
  std::int32_t rank, peer;
};
using analysis::PairFigures;
inline constexpr auto kPairKeys = table(
    key("rank", "Rank in MPI_COMM_WORLD, the first one of its row.", &PairFigures::rank, &PairOfRanks::rank),
    key("peer", "The other rank, the first one of its row.", &PairFigures::peer, &PairOfRanks::peer),
    key("messages", "Messages that the rank sent to the peer.", &PairFigures::messages, &PairSums::messages),
    key("bytes", "The data in these messages.", &PairFigures::bytes, &PairSums::bytes),
    key("wait_ns",
        "Time that the rank waited for messages of the peer, or until the peer received one. A wait for several ranks "
        "at once counts for each of them.",
        &PairFigures::waited, &PairSums::waited));

using analysis::TimedCalls;
inline constexpr auto kTimedKeys = table(
    key("calls",
        "Calls. Of a function that polls: stretches of polls that were waits, an estimate where some were not timed.",
        &TimedCalls::calls, &TimedSums::calls),
    key("timed", "Calls that were timed. They stand for the others.", &TimedCalls::timed, &TimedSums::timed),
    key("time_ns", "Time in the calls.", &TimedCalls::time, &TimedCalls::Row::time, &TimedSums::time),
    key("time_error_ns", "Standard error of `time_ns`. Absent: every call was timed.", &TimedCalls::error,
        [](const TimedSums& s) { return s.timed < s.calls ? std::optional(s.error()) : std::nullopt; })
        .if_any(),
    key("together_ns",
        "The part of `time_ns` in calls that completed several messages at once, where the last one is not known. "
        "`waits_for` has such a wait for each rank. Absent: none.",
        &TimedCalls::together, [](const TimedSums& s) { return std::max<Nanoseconds>(0, s.together); })
        .if_any());

using analysis::KindFigures;
inline constexpr auto kMessageKindKeys =
    table(key("messages", "Messages of the sample for which a call at this site waited.", &KindFigures::messages,
              &MessageKinds::messages),
          key("matched", "Those of them whose other end is known. The times are of these.", &KindFigures::matched,
              &MessageKinds::matched),
          key("late_sender_ns", "Time until the send began.", &KindFigures::late_sender, &MessageKinds::late_sender),
          key("late_receiver_ns",
              "Time until the receive was posted, or until its rank called MPI, in sends that ended after that.",
              &KindFigures::late_receiver, &MessageKinds::late_receiver),
          key("transfer_ns", "The rest of the time.", &KindFigures::transfer, &MessageKinds::transfer),
          key("not_known_ns",
              "Time within the uncertainty of the clocks, or that may be for another message of the same call.",
              &KindFigures::not_known, &MessageKinds::not_known));

// Decisions. A time below 0 is not known.

constexpr auto known_time(double core::SlotReport::*time) {
  return [time](const core::SlotReport& r) { return r.*time < 0 ? std::nullopt : std::optional(r.*time); };
}
using analysis::DecisionFigures;
inline constexpr auto kDecisionKeys =
    table(key("bytes", "Payload of the call; -1: any.", &DecisionFigures::bytes,
              [](const core::SlotReport& r) { return r.signature.bytes; })
              .with_sign(),
          key("calls", "Calls that the decision rests on.", &DecisionFigures::calls, &core::SlotReport::calls),
          key("rule_line", "Line of the policy rule that applies. null: no rule.",
              [](const core::SlotReport& r) { return r.rule_line > 0 ? std::optional(r.rule_line) : std::nullopt; }),
          key("reason", "Why this algorithm runs.", &DecisionFigures::reason, &core::SlotReport::reason),
          key("predictor", "The predictor of the forecast.", &DecisionFigures::predictor,
              [](const core::SlotReport& r) { return std::string(core::name_of(r.forecast.kind)); }),
          key("spread_ns", "Forecast time from first to last arrival.", &DecisionFigures::spread,
              [](const core::SlotReport& r) { return r.forecast.spread; }),
          key("error_ns", "Recent mean absolute error of the forecast, of the rank with the largest error.",
              &DecisionFigures::error, [](const core::SlotReport& r) { return r.forecast.error; }),
          key("last_rank", "The rank that is forecast to arrive last. null: no forecast.", &DecisionFigures::last_rank,
              [](const core::SlotReport& r) {
                return r.forecast.offsets.empty() ? std::nullopt : std::optional(r.forecast.last());
              }),
          key("predicted_ns", "Modelled time of the algorithm.", &DecisionFigures::predicted,
              known_time(&core::SlotReport::predicted_ns)),
          key("native_predicted_ns", "Modelled time of native.", &DecisionFigures::native_predicted,
              known_time(&core::SlotReport::native_predicted_ns)),
          key("measured_ns", "Measured time of the algorithm.", &DecisionFigures::measured,
              known_time(&core::SlotReport::measured_ns)),
          key("native_measured_ns", "Measured time of native.", &DecisionFigures::native_measured,
              known_time(&core::SlotReport::native_measured_ns)));

// The processes.

inline constexpr auto kClockKeys = table(
    key("rank", "Rank in MPI_COMM_WORLD.", &Member::rank), key("host", "Host of the rank.", &Member::host),
    key("offset_ns", "Add this to a time of the rank's clock to get the time of rank 0's clock.", &Member::clock_offset)
        .with_sign(),
    key("uncertainty_ns", "Half the interval that holds the offset. null: never compared.",
        [](const Member& m) { return m.clock_uncertainty < 0 ? std::nullopt : std::optional(m.clock_uncertainty); }),
    key("looks", "Number of comparisons.", &Member::clock_looks));

/// A process, and what only the other ones tell of it.
struct ProcessOfRank {
  const Member& member;
  std::optional<double> covered;
  std::optional<Nanoseconds> end;
};
constexpr auto of_process(auto part) {
  return [part](const ProcessOfRank& of) { return std::invoke(part, of.member.process); };
}
/// Where some calls were timed and stand for the others.
constexpr auto of_timed(auto part) {
  return [part](const ProcessOfRank& of) {
    const Process& p = of.member.process;
    return p.message_calls > p.message_calls_timed ? std::optional(p.*part) : std::nullopt;
  };
}
inline constexpr auto kRunKeys = table(
    key("rank", "Rank in MPI_COMM_WORLD.", &ProcessFigures::rank,
        [](const ProcessOfRank& of) { return of.member.rank; }),
    key("host", "Host of the rank.", &ProcessFigures::host, [](const ProcessOfRank& of) { return of.member.host; }),
    key("covered_ns",
        "The time in which the rank's waits in collectives are known: until the end of the last snapshot, of any "
        "rank, that holds some. Absent: the whole run.",
        &ProcessFigures::covered, &ProcessOfRank::covered)
        .if_any(),
    key("cores", "Cores that the process may use.", &ProcessFigures::cores, of_process(&Process::cores)),
    key("host_cores", "Cores of the host.", &ProcessFigures::host_cores, of_process(&Process::host_cores)),
    key("core_list", "Numbers of the cores that the process may use, such as `0-3,8`.", &ProcessFigures::core_list,
        of_process(&Process::core_list))
        .if_any(),
    key("waiting", "Whether waiting gives the core away.", &ProcessFigures::waiting,
        [](const ProcessOfRank& of) { return std::string(of.member.process.courteous ? "courteous" : "spin"); }),
    key("cost_ns", "Time that latecomer took from the main thread, in nanoseconds.",
        [](const ProcessOfRank& of) { return of.member.process.cost.sum(); })
        .if_newer(),
    key("init_ns", "Time in `MPI_Init`, with latecomer's own start. It is not in `wall_ns`. Absent: unknown.",
        &ProcessTimes::init, of_process(&Process::init))
        .if_any(),
    key("end_ns",
        "Time from the rank's `MPI_Finalize` to that of the last rank. It is not in `wall_ns`. Absent: a rank had no "
        "`MPI_Finalize`, or the clocks of the hosts were never compared.",
        &ProcessTimes::end, &ProcessOfRank::end)
        .if_any(),
    key("unlogged_ns",
        "Time of epochs that were not logged within the `budget`, and for which no logged epoch of about their length "
        "stands. Their waits are in no figure. Absent: 0.",
        of_process(&Process::unlogged))
        .if_any(),
    key("message_calls", "Calls of the main thread that `messages_ns` adds up. Absent: all of them were timed.",
        of_timed(&Process::message_calls))
        .if_any(),
    key("message_calls_timed", "Those of them that were timed, and stand for the others.",
        of_timed(&Process::message_calls_timed))
        .if_any(),
    key("messages_error_ns", "Standard error of `messages_ns`. That of a time in `waits_for` is at most as large.",
        &ProcessFigures::messages_error, of_timed(&Process::messages_error))
        .if_any(),
    key("all_threads_in_mpi_ns",
        "Time for which all threads of the process that call MPI were inside timed calls at once, a lower bound. Only "
        "then the whole process waits. Absent: only the thread that started MPI calls it.",
        &ProcessFigures::all_threads_inside,
        [](const ProcessOfRank& of) {
          const Process& p = of.member.process;
          return p.threads.empty() ? std::nullopt : std::optional(p.all_inside);
        })
        .if_any());

using ThreadFigures = ProcessFigures::Threads;
constexpr auto thread_time(ThreadPart part) {
  return [part](const ThreadSums& row) { return row.time[static_cast<std::size_t>(part)]; };
}
inline constexpr auto kThreadKeys = table(
    key("threads",
        "Number of threads that have had this row. A thread has a row while it lives, and a later thread continues "
        "that of one that has ended.",
        &ThreadFigures::threads, &ThreadSums::threads),
    key("calls", "Calls that may wait, blocking collectives among them.", &ThreadFigures::calls, &ThreadSums::calls),
    key("collectives_ns", "Time in blocking collectives.", &ProcessTimes::collectives,
        thread_time(ThreadPart::collectives)),
    key("messages_ns", "Time in calls that wait for messages, and in one-sided calls, without polls.",
        &ProcessTimes::messages, thread_time(ThreadPart::messages)),
    key("io_ns", "Time in MPI's calls for files.", &ProcessTimes::io, thread_time(ThreadPart::files)),
    key("other_mpi_ns", "Time in other MPI calls that may wait.", &ProcessTimes::other_mpi,
        thread_time(ThreadPart::other)),
    key("shared",
        "true: the sums of threads that found no row, of which several may have run at a time. Absent: false.",
        &ThreadFigures::shared, [](const ThreadSums& row) { return row.shared != 0; })
        .if_any());

/// How samples were taken.
struct SamplesTaken {
  double hz;
  std::uint64_t taken, lost;
  std::string why_not;
  std::uint32_t threads = 0;
};
using analysis::SamplingFigures;
inline constexpr auto kSamplingKeys = table(
    key("hz", "Samples per second of processor time in the program, of each thread; 0: no samples were taken.",
        &SamplingFigures::hz, &SamplesTaken::hz),
    key("taken", "Samples while the thread that started MPI was outside calls that may wait.", &SamplingFigures::taken,
        &SamplesTaken::taken)
        .if_newer(),
    key("lost", "Samples that found no place in memory, because the rank computed for too long between two calls.",
        &SamplingFigures::lost, &SamplesTaken::lost)
        .if_newer(),
    key("why_not", "Why no samples were taken, or not of all threads.", &SamplingFigures::why_not,
        &SamplesTaken::why_not)
        .if_any());
inline constexpr auto kOtherSamplingKeys =
    table(key("threads", "Threads that had samples at the same time, eight at most.", &SamplingFigures::threads,
              &SamplesTaken::threads)) +
    kSamplingKeys;

// Calls at a site, or from a caller.

inline constexpr auto kBytesKeys =
    table(key("min", "Smallest payload.", &Site::least_bytes, &LocalSite::bytes_min),
          key("mean", "Mean payload.", &analysis::CallFigures::bytes,
              [](const LocalSite& own) { return own.bytes_sum / static_cast<double>(own.sized); }),
          key("max", "Largest payload.", &Site::most_bytes, &LocalSite::bytes_max));

/// What stands before the histograms of a site.
struct SiteHead {
  std::string id;
  nlohmann::ordered_json frames;
  std::string op;
  std::int32_t comm_size;
  std::uint64_t calls, rank_calls, patterns, rested;
  std::optional<std::uint64_t> logged;
  std::optional<double> waited_error;
  nlohmann::ordered_json bytes;
};
using analysis::CallFigures;
inline constexpr auto kSiteKeys = table(
    key("id", "Identity of the site. It is the same on all ranks and in all runs of one build.", &Site::id,
        &SiteHead::id),
    key("frames", "The stack frames that make the site, innermost first.", &SiteHead::frames),
    key("op", "The collective.", &CallFigures::op, &SiteHead::op),
    key("comm_size", "Ranks of the communicator.", &CallFigures::comm_size, &SiteHead::comm_size),
    key("calls", "Collective operations. A call by all ranks counts once.", &CallFigures::calls, &SiteHead::calls),
    key("rank_calls", "Calls, summed over ranks.", &Site::rank_calls, &SiteHead::rank_calls),
    key("patterns",
        "Operations whose arrivals were seen on all ranks. It is less than `calls` where logs were lost or calls "
        "rested.",
        &CallFigures::patterns, &SiteHead::patterns),
    key("rested",
        "Operations that were only counted, because arrivals were balanced and native ran (policy key `rest`). Most "
        "of them are not in `elapsed_ns` either.",
        &Site::rested, &SiteHead::rested)
        .if_newer(),
    key("logged",
        "Operations whose arrivals were logged, where these stand for others within the `budget`: all times and waits "
        "of the site are then estimates. Absent where all were logged.",
        &Site::logged, &SiteHead::logged)
        .if_any(),
    key("waited_error_ns",
        "Standard error of `waited_ns` from the choice of the logged operations, in nanoseconds. Absent where all "
        "were logged.",
        &Site::waited_error, &SiteHead::waited_error)
        .if_any(),
    key("bytes",
        "Payload of a call: min, mean and max. null: not known to all ranks. The policy key `bytes` says what is "
        "counted.",
        &SiteHead::bytes));
struct SiteSums {
  double waited;
  std::uint64_t divergent;
};
inline constexpr auto kSiteSumKeys = table(
    key("waited_ns",
        "Time of all ranks from their arrival to that of the rank that they wait for. In a collective without a root "
        "every rank waits for the last one. In gather and reduce the root waits for the last of the others. In bcast "
        "and scatter the others wait for the root. In scan a rank waits for the ranks below it.",
        &CallFigures::waited, &SiteSums::waited)
        .if_newer(),
    key("divergent_calls", "Calls that ranks reached from different call sites.", &Site::divergent,
        &SiteSums::divergent));

struct CallerRow {
  nlohmann::ordered_json frames;
  std::uint64_t calls, patterns;
  nlohmann::ordered_json bytes;
  double waited;
  std::optional<double> imbalance, after_last;
  nlohmann::ordered_json before, awaited;
};
inline constexpr auto kCallerKeys = table(
    key("frames",
        "The frames above the site, innermost first. Empty: callers that are not told apart, and calls in idle epochs.",
        &CallerRow::frames),
    key("calls", "Calls from this caller; each operation of all ranks counts once.", &CallFigures::calls,
        &CallerRow::calls),
    key("patterns", "Calls with records of all ranks.", &CallFigures::patterns, &CallerRow::patterns),
    key("bytes",
        "Payload of a call: min, mean and max. null: not known to all ranks. The policy key `bytes` says what is "
        "counted.",
        &CallerRow::bytes),
    key("waited_ns", "Time that ranks waited in these calls. The callers of a site add up to its `waited_ns`.",
        &CallFigures::waited, &CallerRow::waited),
    key("mean_imbalance_ns", "First to last arrival, mean of the calls.", &CallFigures::imbalance,
        &CallerRow::imbalance)
        .if_any(),
    key("mean_after_last_ns", "Last arrival to last exit, mean of the calls.", &CallFigures::after_last,
        &CallerRow::after_last)
        .if_any(),
    key("before", "Intervals that ended with an arrival from this caller. Absent: none was sampled.",
        &CallerRow::before)
        .if_any(),
    key("awaited", "The ranks that others waited for longest in these calls, at most 8.", &CallerRow::awaited));

struct DispatchRow {
  std::uint64_t calls;
  double elapsed, after_last;
  std::optional<double> predicted;
  std::string reason;
};
inline constexpr auto kDispatchKeys =
    table(key("calls", "Calls that the algorithm served.", &analysis::Dispatch::calls, &DispatchRow::calls),
          key("mean_elapsed_ns", "Arrival to exit, mean over ranks and calls.", &analysis::Dispatch::elapsed,
              &DispatchRow::elapsed),
          key("mean_after_last_ns", "Last arrival to last exit, mean over calls.", &analysis::Dispatch::after_last,
              &DispatchRow::after_last),
          key("predicted_ns", "Modelled time of a call, in terms of the policy's objective. null: not modelled.",
              &DispatchRow::predicted),
          key("reason", "Why the algorithm runs.", &DispatchRow::reason));

struct SourceRow {
  std::uint64_t calls;
  std::optional<double> error;
};
inline constexpr auto kSourceKeys =
    table(key("calls", "Number of calls.", &analysis::SourceFigures::calls, &SourceRow::calls),
          key("mean_error_ns", "Mean distance between the pattern and the real arrivals, per rank.",
              &analysis::SourceFigures::error, &SourceRow::error)
              .if_any());

struct TimedHead {
  std::string id;
  nlohmann::ordered_json frames;
  std::string call, part;
};
inline constexpr auto kTimedHeadKeys = table(
    key("id", "16 hexadecimal digits, the same in every run of the same binaries.", &TimedCalls::id, &TimedHead::id),
    key("frames", "The call site, innermost frame first.", &TimedHead::frames),
    key("call", "Name of MPI's function. `several`: the row has the sums of all sites beyond 64 per process.",
        &TimedCalls::call, &TimedHead::call),
    key("part",
        "The part of the time that has the calls: messages, completions and one-sided calls; files; calls that make "
        "or free communicators and windows, and the like.",
        &TimedCalls::part, &TimedHead::part));
struct RowOfRanks {
  std::int32_t rank, ranks;  ///< `ranks` 0: one
};
inline constexpr auto kTimedRowKeys =
    table(key("rank", "Rank in MPI_COMM_WORLD; the first one, if several share the row.", &TimedCalls::Row::rank,
              &RowOfRanks::rank),
          key("ranks", "Number of ranks that share this row. Absent: one.", &RowOfRanks::ranks).if_any());
inline constexpr auto kLengthsKeys = table(
    key("messages",
        "Messages that the calls sent, or received before they returned. A call that completes a request has none: "
        "see the site of the sender. A persistent send counts at the site that starts it. Absent: none.",
        &TimedCalls::messages, &Lengths::count)
        .if_any(),
    key("bytes", "The data in these messages. Absent: none.", &TimedCalls::bytes, &Lengths::bytes).if_any());
struct LengthRow {
  std::uint64_t least, messages;
};
inline constexpr auto kLengthKeys = table(
    key("least",
        "The messages have at least so many bytes, and less than twice as many. 0: they have no data. Those of 2^30 "
        "bytes and more share one entry.",
        &LengthRow::least),
    key("messages", "Number of messages.", &LengthRow::messages));

// The code.

using analysis::CodeFigures;
struct PlaceRow {
  nlohmann::ordered_json frame;
  std::string function_offset;
  std::uint64_t samples;
};
inline constexpr auto kPlaceKeys = table(
    key("frame",
        "16 bytes of a function's code, or the whole function, which lies at its begin. Offset 0x0: all code of the "
        "module, which is MPI's library, an interpreter, or has no symbols there.",
        &PlaceRow::frame),
    key("function_offset", "Where the function begins in the module; 0x0: not known.",
        &CodeFigures::Place::function_offset, &PlaceRow::function_offset),
    key("samples", "Samples of all ranks.", &CodeFigures::Place::samples, &PlaceRow::samples));
struct SamplesRow {
  std::optional<std::size_t> place;
  std::optional<std::string> next, collective;
  nlohmann::ordered_json by_rank;
  bool others;
};
inline constexpr auto kSamplesKeys = table(
    key("place", "Index in `places`; null: samples beyond the limit of a rank.", &CodeFigures::Samples::place,
        &SamplesRow::place),
    key("next", "The next call that may wait.", &CodeFigures::Samples::next, &SamplesRow::next),
    key("collective", "The next blocking collective.", &CodeFigures::Samples::collective, &SamplesRow::collective),
    key("by_rank", "The ranks that have some.", &SamplesRow::by_rank),
    key("other_threads", "Samples of other threads than the one that started MPI. Absent: of that thread.",
        &CodeFigures::Samples::others, &SamplesRow::others)
        .if_any());
struct SamplesOfRank {
  std::int32_t rank;
  std::uint64_t samples;
};
inline constexpr auto kRankSamplesKeys =
    table(key("rank", "Rank in MPI_COMM_WORLD, the first one of its row.", &CodeFigures::Samples::Row::rank,
              &SamplesOfRank::rank),
          key("samples", "Samples.", &CodeFigures::Samples::Row::samples, &SamplesOfRank::samples));
struct StretchesRow {
  std::optional<std::string> from, to, collective;
  nlohmann::ordered_json by_rank;
};
inline constexpr auto kStretchesKeys = table(
    key("from", "The call before. null: also `MPI_Init`.", &CodeFigures::Stretch::from, &StretchesRow::from),
    key("to", "The call after.", &CodeFigures::Stretch::to, &StretchesRow::to),
    key("collective", "The next blocking collective.", &CodeFigures::Stretch::collective, &StretchesRow::collective),
    key("by_rank", "The ranks that have some.", &StretchesRow::by_rank));
struct StretchesOfRank {
  std::int32_t rank;
  std::uint64_t stretches;
  Nanoseconds time;
};
inline constexpr auto kRankStretchesKeys =
    table(key("rank", "Rank in MPI_COMM_WORLD, the first one of its row.", &CodeFigures::Stretch::Row::rank,
              &StretchesOfRank::rank),
          key("stretches", "Stretches.", &CodeFigures::Stretch::Row::stretches, &StretchesOfRank::stretches),
          key("time_ns", "Their time.", &CodeFigures::Stretch::Row::time, &StretchesOfRank::time));

// Plans.

struct PlanRow {
  std::string communicator;
  int comm_size;
  std::uint64_t announced_at;
  const core::Plan& plan;
  nlohmann::ordered_json slots;
};
constexpr auto of_plan(auto part) {
  return [part](const PlanRow& row) { return row.plan.*part; };
}
inline constexpr auto kPlanKeys = table(
    key("communicator", "Identity of the communicator.", &PlanRow::communicator),
    key("comm_size", "Ranks of the communicator.", &PlanRow::comm_size),
    key("announced_at",
        "Number of the call at which the plan was announced. Of a plan with verdicts at the end of the job: of the "
        "last announcement.",
        &PlanRow::announced_at),
    key("period",
        "Calls after which the program repeats itself: call n >= first belongs to slot (n - first) mod period. 0: a "
        "call belongs to the slot with its signature.",
        of_plan(&core::Plan::period)),
    key("first", "Number of the first call that belongs to slot 0.", of_plan(&core::Plan::first)),
    key("slots", "One entry per slot.", &PlanRow::slots),
    key("patterns_ns", "Forecast offsets from the first arrival, [pattern][ranks].",
        [](const PlanRow& row) { return nlohmann::ordered_json(row.plan.patterns); }),
    key("sizes_bytes", "Expected sizes of the blocks of a gatherv or scatterv, [sizes][ranks].",
        [](const PlanRow& row) { return nlohmann::ordered_json(row.plan.sizes); })
        .if_newer());

std::string algorithm_named(std::int32_t index);  // decisions.cpp
constexpr auto index_of(std::int32_t core::PlanEntry::*part) {
  return [part](const core::PlanEntry& e) { return e.*part < 0 ? std::nullopt : std::optional(e.*part); };
}
inline constexpr auto kTurnKeys = table(
    key("algorithm", "Its name, or native.", [](const core::PlanEntry& e) { return algorithm_named(e.algorithm); }),
    key("segments", "0: the algorithm's own choice.", &core::PlanEntry::segments));
inline constexpr auto kSlotKeys = table(
    key("signature", "Hash of the properties of the call that all ranks know.",
        [](const core::PlanEntry& e) { return core::hex16(e.signature); }),
    key("algorithm", "Algorithm of the slot.", [](const core::PlanEntry& e) { return algorithm_named(e.algorithm); }),
    key("segments", "Number of segments. 0: the algorithm's choice.", &core::PlanEntry::segments),
    key("overlap", "false: lockstep.", [](const core::PlanEntry& e) { return e.overlap != 0; }),
    key("pattern", "Index in patterns_ns. null: none.", index_of(&core::PlanEntry::pattern)),
    key("sizes", "Index in sizes_bytes. null: none.", index_of(&core::PlanEntry::sizes)).if_newer(),
    key("trial_calls",
        "Calls of the slot that the algorithms of `rota` serve; later calls run `algorithm`. Absent: there is no rota.",
        [](const core::PlanEntry& e) { return e.turns != 0 ? std::optional(e.trial) : std::nullopt; })
        .if_any());

// The job.

inline constexpr auto kPromisedKeys =
    table(key("least", "The least share.", &core::Promised::least, &core::Promised::least).with_sign(),
          key("most", "The greatest share.", &core::Promised::most, &core::Promised::most).with_sign());

using EarlierRun = analysis::ProfileJob::EarlierRun;
inline constexpr auto kHistoryKeys =
    table(key("file", "The file of `learn` or `history` that was read, or that the job writes at its end.",
              &EarlierRun::file, [](const HistoryUse& use) { return core::utf8(use.file); }),
          key("calls", "Calls on MPI_COMM_WORLD that the winners of the earlier run served.", &EarlierRun::calls,
              &HistoryUse::calls),
          key("why_not", "Why no plan was used. null: one was.", &EarlierRun::why_not,
              [](const HistoryUse& use) { return use.why_not.empty() ? std::nullopt : std::optional(use.why_not); }));

using FirstWait = analysis::ProfileJob::FirstWait;
inline constexpr auto kFirstCallKeys =
    table(key("waited_ns", "Time that ranks waited for others in this call, sum of all ranks.", &FirstWait::waited,
              &FirstCall::waited_ns),
          key("rank", "The rank that the others waited for most. null: nobody waited.", &FirstWait::rank,
              [](const FirstCall& first) { return first.awaited < 0 ? std::nullopt : std::optional(first.awaited); }),
          key("awaited_ns", "Time that they waited for this rank.", &FirstWait::awaited, &FirstCall::awaited_ns),
          key("site", "The `id` of the call's site.", &FirstWait::site, [](const FirstCall& first) {
            return core::hex16(first.site);
          }).if_newer());

struct EdgeSums {
  std::uint64_t calls;
  double fractions;
};
inline constexpr auto kEdgeKeys =
    table(key("calls", "Number of announcements, all ranks together.", &EdgeSums::calls),
          key("mean_fraction", "Mean of the announced fractions.",
              [](const EdgeSums& sums) { return sums.fractions / static_cast<double>(sums.calls); }));
using analysis::ProfileJob;
/// Seconds in the file.
inline constexpr auto kReachKeys =
    table(key("first_end_s", "The end of the snapshot that ends first.", &ProfileJob::first_end, &Reach::first_end),
          key("last_end_s", "The end of the snapshot that ends last.", &ProfileJob::last_end, &Reach::last_end),
          key("rank_time_s", "The sum over the ranks of `covered_ns`: shares of the ranks' time are shares of it.",
              &ProfileJob::covered, [](const Reach& reach) {
                double sum = 0;
                for (const auto& [rank, end] : reach.covered) sum += end;
                return sum;
              }));

struct JobRow {
  const JobInfo& info;
  nlohmann::ordered_json network;
  std::optional<std::string> network_from;
  std::vector<std::string> hosts;
  int unfinished;
  nlohmann::ordered_json snapshots, promised, history, edges, first_call;
};
constexpr auto of_job(auto part) {
  return [part](const JobRow& row) { return row.info.*part; };
}
inline constexpr auto kJobKeys = table(
    key("network", "Figures of the network, as in the policy. null: unknown.", &JobRow::network),
    key("network_from",
        "Where these figures come from: given by the policy, or measured in MPI_Init (`start`) or in MPI_Finalize "
        "(`end`). In a job on one host, the measured ones are those of its shared memory. null: unknown.",
        &ProfileJob::network_from, &JobRow::network_from)
        .if_newer(),
    key("program", "The program, as it was started.", &ProfileJob::program, of_job(&JobInfo::program)),
    key("command_line", "The program with its arguments.", &ProfileJob::command_line, of_job(&JobInfo::command_line)),
    key("ranks", "Processes in MPI_COMM_WORLD.", &ProfileJob::ranks, of_job(&JobInfo::ranks)),
    key("hosts", "Names of the hosts.", [](const JobRow& row) { return nlohmann::ordered_json(row.hosts); }),
    key("start", "Date and time of MPI_Init, UTC.", &ProfileJob::start, of_job(&JobInfo::start)),
    key("wall_time_s", "Seconds from MPI_Init to MPI_Finalize.", &ProfileJob::wall, of_job(&JobInfo::wall_time_s)),
    key("unfinished",
        "Ranks that did not reach their end, because the job ran still or was cut short. The profile holds what they "
        "observed until their last snapshot, so counts and sums are at least those shown. Absent: none.",
        &ProfileJob::unfinished, &JobRow::unfinished)
        .if_newer(),
    key("snapshots",
        "How far the ranks' snapshots reach, in seconds since the start of MPI, if the job ran still or was cut "
        "short. null or absent: the whole run.",
        &JobRow::snapshots)
        .if_newer(),
    key("mpi_library", "Version text of the MPI library.", &ProfileJob::mpi_library, of_job(&JobInfo::mpi_library)),
    key("mode", "`observe` or `apply`.", &ProfileJob::mode, of_job(&JobInfo::mode)),
    key("promised",
        "The share of the run time that the policy's rules should save, as the policy has it. null: the policy does "
        "not say.",
        &JobRow::promised)
        .if_newer(),
    key("history",
        "How the job used what an earlier run had learned. null: the policy names no history, or no rule needs plans.",
        &JobRow::history)
        .if_newer(),
    key("edges", "Announcements of the program with latecomer_edge. null: none.", &JobRow::edges),
    key("first_call",
        "The first collective of several ranks that is known on all of them: what they wait for there is the set-up "
        "of the program. null: none is known.",
        &JobRow::first_call)
        .if_newer());

struct UncountedRow {
  std::string what;
  std::uint64_t calls, ranks;
};
inline constexpr auto kUncountedKeys = table(
    key("what",
        "`outside`: collectives on inter-communicators, or with processes of other jobs, have no arrivals. "
        "`neighbours`: the waits in persistent collectives of neighbours, and for neighbours that are not known, are "
        "in `messages_ns`, of no rank. `nonblocking`: the arrivals of non-blocking collectives are known, and the "
        "wait for them is in `messages_ns`, of no rank. `persistent`: operations of persistent collectives have no "
        "arrivals. `other_threads`: calls that ask whether a message is there, of threads that share a row of "
        "`threads`; their other calls are there. `requests`: collectives of which a table of requests was full (1,024 "
        "are pending, or one call completes more than 256); they have no end, or are not counted at their sites. "
        "`logs`: calls without arrivals, because a log was full. `sites`: calls from sites beyond the limit of a "
        "rank, which share one row.",
        &analysis::UncountedFigures::what, &UncountedRow::what),
    key("calls", "Calls, sum over the ranks.", &analysis::UncountedFigures::calls, &UncountedRow::calls),
    key("ranks", "Ranks that made such calls.", &analysis::UncountedFigures::ranks, &UncountedRow::ranks));

}  // namespace latecomer::profiles
