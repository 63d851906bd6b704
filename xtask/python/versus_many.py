"""How cost grows with very many fragments: processor time of this process alone, so that neighbours count little.

usage: versus_many.py FOLDER [--most N]    FOLDER: best in memory (/dev/shm), so that the device does not count

Fragments: 10 cells each of one sparse dimension, a fifth of them written, the others links to these under later times.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

import azulejo_db as az
import numpy as np

CELLS, WRITTEN = 10, 20_000


def used(work):
    """Seconds of processor time, of the clock, and what came of it."""
    before, clock = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    result = work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - clock, result


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def make(folder, count):
    """An array of `count` fragments at `folder`."""
    schema = az.Schema([az.Dim("x", (0, 10**9), 1_000)], [az.Attr("v", "int32")], sparse=True, duplicates=True)
    uri = str(folder)
    az.create(uri, schema, at=1)
    array = az.open(uri, "w")
    written = min(count, WRITTEN)
    for i in range(written):
        array.write({"x": np.arange(i * 100, i * 100 + CELLS), "v": np.full(CELLS, i, "int32")}, at=10 + i)
    fragments, commits = folder / "__fragments", folder / "__commits"
    names = sorted(p.name for p in fragments.iterdir())
    for i in range(count - written):
        old, time_of = names[i % written], 10 + written + i
        new = f"__{time_of}_{time_of}_{i:032x}_{old.rsplit('_', 1)[1]}"
        (fragments / new).mkdir()
        for file in (fragments / old).iterdir():
            os.link(file, fragments / new / file.name)
        (commits / f"{new}.wrt").touch()
    return uri


def grown(uri, count, what):
    """One row: an array of `count` fragments, opened and sliced."""
    base = resident()
    opened, _, array = used(lambda: az.open(uri))
    first, _, _ = used(lambda: array.query().box(x=(500, 520)).to_numpy())
    memory = resident() - base
    slices = [used(lambda i=i: array.query().box(x=(i * 100, i * 100 + 20)).to_numpy())[0] for i in range(200)]
    print(
        f"| {count} | {what} | {opened * 1e3:.1f} | {first * 1e3:.1f} | {memory / count:.0f} | {statistics.mean(slices) * 1e3:.3f} |",
        flush=True,
    )


def growth(folder, most):
    print("| fragments | metadata | open, ms | first slice, ms | bytes a fragment | further slices, ms each |\n|---|---|---|---|---|---|")
    count = 1_000
    while count <= most:
        place = folder / f"many-{count}"
        uri = make(place, count)
        child("--grown", uri, str(count), "as written")
        array = az.open(uri, "w")
        meta, _, _ = used(lambda: array.consolidate(mode="fragment_meta"))
        commits, _, _ = used(lambda: array.consolidate(mode="commits"))
        child("--grown", uri, str(count), "consolidated")
        print(f"  consolidating the metadata of {count}: {meta:.2f} s, the commits: {commits:.2f} s of processor time", flush=True)
        shutil.rmtree(place)
        count *= 10


def child(*words):
    subprocess.run([sys.executable, __file__, *words], check=True)


def main():
    if sys.argv[1] == "--grown":
        return grown(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--most", type=int, default=100_000)
    given = words.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    try:
        growth(given.folder, given.most)
    finally:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
