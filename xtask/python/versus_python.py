"""azulejo-db beside TileDB-Py on the reference, and beside xarray on Zarr: the same work in turn, in one
process; results are compared, ratios printed (theirs / ours: above 1, ours is faster).

usage: versus_python.py FOLDER [--seed N] [--rounds N] [--only TEXT]
"""

import argparse
import pathlib
import shutil

import azulejo_db as az
import numpy as np
import pandas as pd
import pyarrow as pa
import tiledb
from ratios import seconds, summary


def same(a, b):
    """Whether two results are the same cells."""
    if isinstance(a, dict) or isinstance(b, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, pa.Table):
        names = sorted(a.column_names)
        plain = lambda t: [t[n].combine_chunks().to_pandas() for n in names]  # noqa: E731
        return names == sorted(b.column_names) and all(x.equals(y.astype(x.dtype)) for x, y in zip(plain(a), plain(b)))
    if isinstance(a, pd.DataFrame):
        columns = sorted(a.columns)
        order = lambda f: f[columns].reset_index(drop=True)  # noqa: E731
        return columns == sorted(b.columns) and all(
            (order(a)[c].to_numpy() == order(b)[c].to_numpy()).all() for c in columns
        )
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f"))


class Bench:
    def __init__(self, folder, seed, rounds, only):
        self.folder, self.rng, self.rounds, self.only = folder, np.random.default_rng(seed), rounds, only
        self.rows = []

    def run(self, name, ours, theirs, who="TileDB-Py"):
        if self.only and self.only not in name:
            return
        mine, others = [], []
        for number in range(self.rounds):
            pair = [(ours, mine), (theirs, others)]
            results = {}
            for work, times in pair if number % 2 == 0 else reversed(pair):
                took, results[work] = seconds(work)
                times.append(took)
            if not same(results[ours], results[theirs]):
                raise SystemExit(f"{name}: the results differ")
        ratio = min(others) / min(mine)
        self.rows.append((who, name, min(mine), min(others), ratio))
        print(f"{name:<44} {min(mine) * 1e3:9.2f} {min(others) * 1e3:9.2f}  {ratio:6.2f}  {who}", flush=True)

    def path(self, name):
        return str(self.folder / name)


def dense(bench):
    rng, n, tile = bench.rng, 3000, 250
    cells = np.round(rng.normal(280, 10, (n, n)), 2)
    zstd = tiledb.FilterList([tiledb.ZstdFilter(level=3)])
    dims = [tiledb.Dim(d, (0, n - 1), tile, dtype=np.int64) for d in "yx"]
    schema = tiledb.ArraySchema(tiledb.Domain(*dims), [tiledb.Attr("v", np.float64, filters=zstd)])
    uri, counter = bench.path("dense"), iter(range(10**6))
    tiledb.Array.create(uri, schema)

    def written(write):
        target = f"{uri}{next(counter)}"
        tiledb.Array.create(target, schema)
        write(target)
        shutil.rmtree(target)

    def their_write(target, values=cells, key=np.s_[:, :]):
        with tiledb.open(target, "w") as array:
            array[key] = values

    def our_write(target, values=cells, key=np.s_[:, :]):
        az.open(target, "w")[key] = values

    bench.run("dense: create and write 72 MB", lambda: written(our_write), lambda: written(their_write))
    their_write(uri)
    bench.run("dense: open and read 72 MB", lambda: az.open(uri)[...], lambda: tiledb.open(uri)[:]["v"])
    a, t = az.open(uri), tiledb.open(uri)
    bench.run("dense: read 72 MB", lambda: a[...], lambda: t[:]["v"])
    boxes = [(int(y), int(x), int(h), int(w)) for y, x, h, w in zip(
        *rng.integers(0, n - 700, (2, 20)), *rng.integers(1, 700, (2, 20)))]
    windows = [np.s_[y:y + h, x:x + w] for y, x, h, w in boxes]
    bench.run("dense: 20 random windows", lambda: [a[k] for k in windows], lambda: [t[k]["v"] for k in windows])
    points = [np.s_[int(y):int(y) + 1, int(x):int(x) + 1] for y, x in rng.integers(0, n - 1, (50, 2))]
    bench.run("dense: 50 single cells", lambda: [a[k] for k in points], lambda: [t[k]["v"] for k in points])
    bench.run(
        "dense: open and read a cell, 20 times",
        lambda: [az.open(uri)[k] for k in points[:20]], lambda: [tiledb.open(uri)[k]["v"] for k in points[:20]],
    )
    bench.run("dense: column of a table", lambda: a[:, 17:18], lambda: t[:, 17:18]["v"])
    rows = sorted(rng.choice(n, 40, replace=False).tolist())
    bench.run(
        "dense: 40 random rows", lambda: a.oindex[rows, :],
        lambda: t.multi_index[rows, :]["v"].reshape(len(rows), n),
    )
    # Added up in another order.
    mean = lambda found: round(float(found), 6)  # noqa: E731
    bench.run("dense: mean", lambda: mean(a.agg(mean="v")), lambda: mean(t.query(attrs=["v"]).agg({"v": "mean"})[:]))
    small = cells[:100, :100]

    def many(write):
        def work(target):
            for i in range(20):
                write(target, small, np.s_[i * 100:i * 100 + 100, :100])
        return lambda: written(work)

    bench.run("dense: 20 small writes", many(our_write), many(their_write))


def table(bench):
    rng, cells = bench.rng, 1_000_000
    ids = np.sort(rng.choice(10**9, cells, replace=False))
    frame = pd.DataFrame({
        "id": ids, "x": rng.normal(size=cells), "n": rng.integers(0, 1000, cells).astype(np.int32),
        "s": rng.choice(np.array([f"station {i}" for i in range(500)]), cells),
    })
    schema = tiledb.ArraySchema(
        tiledb.Domain(tiledb.Dim("id", (0, 10**9), 10**6, dtype=np.int64)),
        [tiledb.Attr("x", np.float64), tiledb.Attr("n", np.int32), tiledb.Attr("s", "U0", var=True)], sparse=True,
    )
    uri, counter = bench.path("table"), iter(range(10**6))
    columns = {"x": frame["x"].to_numpy(), "n": frame["n"].to_numpy(), "s": frame["s"].to_numpy().astype(str)}
    arrow = pa.Table.from_pandas(frame, preserve_index=False)

    def written(write):
        target = f"{uri}{next(counter)}"
        tiledb.Array.create(target, schema)
        write(target)
        shutil.rmtree(target)

    def their_write(target):
        with tiledb.open(target, "w") as array:
            array[ids] = columns

    bench.run("table: write a million rows", lambda: written(lambda t: az.open(t, "w").write(arrow)), lambda: written(their_write))
    tiledb.Array.create(uri, schema)
    their_write(uri)
    a, t = az.open(uri), tiledb.open(uri)
    every = ["id", "x", "n", "s"]
    bench.run(
        "table: all as Arrow", lambda: pa.table(a.query(order="row")),
        lambda: t.query(return_arrow=True, order="C").df[:],
    )
    numbers = ["x", "n"]
    bench.run(
        "table: two columns as numpy", lambda: a.query(fields=numbers, order="row").to_numpy(),
        lambda: {k: v for k, v in t.query(attrs=numbers, dims=False, order="C")[:].items() if k in numbers},
    )
    bench.run(
        "table: two columns as pandas", lambda: a.query(fields=numbers, order="row").to_pandas(),
        lambda: t.query(attrs=numbers, dims=False, order="C", index_col=False).df[:],
    )
    ranges = [(int(v), int(v) + 3_000_000) for v in rng.integers(0, 10**9 - 3_000_000, 20)]
    bench.run(
        "table: 20 random ranges as Arrow",
        lambda: [pa.table(a.query(fields=["id", "x"], order="row").box(id=r)) for r in ranges],
        lambda: [t.query(attrs=["x"], return_arrow=True, order="C").df[r[0]:r[1]] for r in ranges],
    )
    bench.run(
        "table: a condition", lambda: pa.table(a.query("n = 7 and x > 0", every, order="row")),
        lambda: t.query(cond="n == 7 and x > 0", return_arrow=True, order="C").df[:],
    )
    points = rng.choice(ids, 200)
    bench.run(
        "table: 200 points", lambda: np.sort(a.query(fields=["x"]).points(points).to_numpy()["x"]),
        lambda: np.sort(t.query(attrs=["x"], dims=False).multi_index[sorted(points.tolist())]["x"]),
    )
    bench.run("table: count", lambda: a.agg("count"), lambda: t.query(attrs=["x"]).agg({"x": "count"})[:])


def datasets(bench):
    """Opening 50 variables and 100 random windows, through xarray."""
    import azulejo_db.xarray  # noqa: F401
    import xarray as xr
    import zarr

    rng = bench.rng
    shape, chunk = (40, 200, 300), (10, 100, 100)
    base = np.round(rng.normal(280, 10, shape), 1).astype(np.float32)
    names = [f"v{i:02}" for i in range(50)]
    small = {f"v{i:02}": (("time", "y", "x"), base[:4] + i) for i in range(48)}
    ds = xr.Dataset(small | {"v48": (("t", "y", "x"), base), "v49": (("t", "y", "x"), base * 2)})
    ours, theirs = bench.path("many"), bench.path("many.zarr")
    ds.azulejo.to(ours, encoding={n: {"tiles": tuple(min(c, s) for c, s in zip(chunk, ds[n].shape)),
                                      "filters": [{"filter": "zstd", "level": 3}]} for n in names})
    codec = zarr.codecs.ZstdCodec(level=3)
    ds.to_zarr(theirs, zarr_format=3, consolidated=True, encoding={
        n: {"chunks": tuple(min(c, s) for c, s in zip(chunk, ds[n].shape)), "compressors": (codec,)} for n in names})
    keys = [{"t": slice(t, t + 3), "y": slice(y, y + 60), "x": slice(x, x + 60)} for t, y, x in zip(
        rng.integers(0, 37, 100).tolist(), rng.integers(0, 140, 100).tolist(), rng.integers(0, 240, 100).tolist())]

    def opened(**how):
        with xr.open_dataset(**how, cache=False) as found:
            return len(found.variables)

    def windows(**how):
        with xr.open_dataset(**how, cache=False) as found:
            return [found["v48" if i % 2 else "v49"].isel(k).values for i, k in enumerate(keys)]

    mine = {"filename_or_obj": ours, "engine": "azulejo"}
    other = {"filename_or_obj": theirs, "engine": "zarr", "consolidated": True}

    def both(who):
        bench.run("xarray: open 50 variables", lambda: opened(**mine), lambda: opened(**other), who)
        bench.run("xarray: open, 100 random windows", lambda: windows(**mine), lambda: windows(**other), who)

    both("zarr-python")
    try:
        import zarrs  # noqa: F401
    except ImportError:
        return
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        both("zarrs-python")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--only")
    given = words.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    bench = Bench(given.folder, given.seed, given.rounds, given.only)
    print(f"azulejo-db {az.__version__}, tiledb {tiledb.__version__}, seed {given.seed}, the best of {given.rounds}, milliseconds")
    print(f"{'':<44} {'ours':>9} {'theirs':>9}  {'ratio':>6}")
    for part in (dense, table, datasets):
        part(bench)
    summary(bench.rows)
    shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
