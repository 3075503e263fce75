// SPDX-License-Identifier: BSD-3-Clause
// The keys of the objects of a profile, one row each. Keys that are not here are in docs/schema/profile.schema.json, in
// the writer (profile.cpp) and in the reader (reader.cpp).
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

}  // namespace latecomer::profiles
