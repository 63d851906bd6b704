"""Work timed side by side, and what the ratios of the times come to."""

import gc
import math
import time


def seconds(work):
    gc.collect()
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))


def summary(rows):
    """`rows`: who was beside us first, the ratio last."""
    for who in dict.fromkeys(row[0] for row in rows):
        ratios = [row[-1] for row in rows if row[0] == who]
        print(f"beside {who}: {len(ratios)} workloads, geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
