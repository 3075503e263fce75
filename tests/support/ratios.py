# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks say about figures that they measure in rounds. Both figures of a round share the state of the machine, so
ratios and differences are taken within a round."""
import random
import statistics


def bootstrap(figures, rng=None):
    """The median, and its 95% bootstrap interval."""
    rng = rng or random.Random(1)
    medians = sorted(statistics.median(rng.choices(figures, k=len(figures))) for _ in range(4000))
    return statistics.median(figures), medians[len(medians) // 40], medians[-len(medians) // 40]
