"""Work timed side by side, and what the ratios of the times come to."""

import gc
import math
import time


def seconds(work):
    gc.collect()
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def summary(rows):
    """`rows`: who was beside us first, the ratio last."""
    for who in dict.fromkeys(row[0] for row in rows):
        ratios = [row[-1] for row in rows if row[0] == who]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"beside {who}: {len(ratios)} workloads, geometric mean {mean:.2f}, least {min(ratios):.2f}")
