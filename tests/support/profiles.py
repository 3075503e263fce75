# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a profile for benchmarks."""


def planned_epochs(site, algorithm):
    """The measured epochs in which the algorithm ran under a plan."""
    return [d for d in site["decisions"] if d["algorithm"] == algorithm and d["last_rank"] is not None and d["measured_ns"]]


def after_last_ms(site, algorithm):
    """Mean milliseconds from the last arrival to the last exit, and the number of calls. For an algorithm that follows
    the arrival pattern these are the calls under a plan. Before its first plan it does not know the pattern."""
    row = site["dispatch"][algorithm]
    planned = planned_epochs(site, algorithm)
    if planned:
        best = max(planned, key=lambda d: d["calls"])
        return best["measured_ns"] / 1e6, best["calls"]
    return row["mean_after_last_ns"] / 1e6, row["calls"]


def calls_by_algorithm(profile, op):
    """Calls of a collective at all sites, by the algorithm that ran."""
    ran = {}
    for site in profile["sites"]:
        if site["op"] == op:
            for algorithm, d in site["dispatch"].items():
                ran[algorithm] = ran.get(algorithm, 0) + d["calls"]
    return ran
