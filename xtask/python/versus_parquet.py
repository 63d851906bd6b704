"""azulejo-db beside Parquet: the same rows, through DuckDB and DataFusion, in turn, in one process; results are
compared, ratios printed (theirs / ours: above 1, ours is faster). With --optimize the filters of our array are
chosen by the rows.

Three files of the same rows stand for what people keep: in the order of arrival, sorted by the first dimension,
sorted by the tiles of our array. Zstandard 3 on all sides, row groups of 122,880 rows (DuckDB's own).

usage: versus_parquet.py FOLDER [--seed N] [--rounds N] [--cells N] [--only TEXT] [--optimize GOAL]
"""

import argparse
import os
import pathlib
import shutil

import azulejo_db as az
import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ratios import seconds, summary

SIDE, TILES = {2: 1 << 20, 3: 1 << 14, 4: 1 << 10}, {2: 32, 3: 8, 4: 5}
ROW_GROUP = 122_880


class Bench:
    def __init__(self, folder, seed, rounds, only, optimize):
        self.folder, self.rng, self.rounds, self.only = folder, np.random.default_rng(seed), rounds, only
        self.optimize = optimize
        self.rows = []

    def run(self, name, works):
        """`works`: what each side does, ours first; every one returns the same number or list of numbers."""
        if self.only and self.only not in name:
            return
        times, results = {who: [] for who in works}, {}
        for number in range(self.rounds):
            for who in list(works)[:: 1 if number % 2 == 0 else -1]:
                took, results[who] = seconds(works[who])
                times[who].append(took)
        ours = next(iter(works))
        for who, found in results.items():
            if not np.allclose(found, results[ours], rtol=1e-9, atol=0):
                raise SystemExit(f"{name}: {who} has {found}, {ours} {results[ours]}")
        best = {who: min(took) for who, took in times.items()}
        for who in list(works)[1:]:
            self.rows.append((who, name.split(":")[1].strip(), best[who] / best[ours]))
        line = "  ".join(f"{who} {best[who] / best[ours]:7.2f}" for who in list(works)[1:])
        print(f"{name:<34} {best[ours] * 1e3:9.2f} ms   {line}", flush=True)


def rows(rng, ndim, cells):
    """Cells at places of their own, so that points name one row each."""
    side = SIDE[ndim]
    codes = rng.choice(side**ndim, cells + cells // 50, replace=True)
    codes = rng.permutation(np.unique(codes))[:cells]
    columns = {}
    for d in reversed(range(ndim)):
        columns[f"d{d}"] = (codes % side).astype(np.int64)
        codes = codes // side
    columns = dict(sorted(columns.items()))
    columns["v"] = np.round(rng.normal(100, 15, len(codes)), 3)
    columns["n"] = rng.integers(0, 10_000, len(codes)).astype(np.int32)
    columns["k"] = rng.integers(0, 100, len(codes)).astype(np.int32)
    return pa.table(columns)


def bytes_of(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size


def summed(table):
    """What a result is compared by: how many rows, and two sums."""
    return [table.num_rows, float(pc.sum(table["v"]).as_py() or 0), float(pc.sum(table["n"]).as_py() or 0)]


def collect(batches, schema):
    return pa.Table.from_batches(batches, schema)


def compare(bench, ndim, cells):
    table, side = rows(bench.rng, ndim, cells), SIDE[ndim]
    dims, what = [f"d{d}" for d in range(ndim)], f"{ndim}-D"
    extent = side // TILES[ndim]
    zstd = [{"filter": "zstd", "level": 3}]
    schema = az.Schema(
        [az.Dim(d, (0, side - 1), extent, "int64", filters=zstd) for d in dims],
        [az.Attr("v", "float64", filters=zstd), az.Attr("n", "int32", filters=zstd), az.Attr("k", "int32", filters=zstd)],
        sparse=True, duplicates=True, capacity=10_000,
    )
    if bench.optimize:
        schema = az.optimized(schema, table, bench.optimize)
        for field in (*schema.dims, *schema.attrs):
            print(f"{what}: {field['name']} {[list(step.values()) for step in field['filters']['filters']]}")
    folder = bench.folder / what
    folder.mkdir()
    counter = iter(range(10**6))

    def write_ours():
        uri = str(folder / f"array{next(counter)}")
        az.create(uri, schema)
        az.open(uri, "w").write(table)
        return uri

    def parquet(order, name):
        path = folder / f"{name}.parquet"
        kept = table
        if order:
            keys = {f"t{i}": pc.divide(table[d], extent) for i, d in enumerate(dims)} if order == "tiles" else {}
            keyed = pa.table({**{c: table[c] for c in table.column_names}, **keys})
            by = [*keys, *dims] if order == "tiles" else [dims[0]]
            kept = keyed.sort_by([(c, "ascending") for c in by]).select(table.column_names)
        pq.write_table(kept, path, compression="zstd", compression_level=3, row_group_size=ROW_GROUP)
        return path

    uri = write_ours()
    files = {"unsorted": parquet(None, "unsorted"), "by d0": parquet("d0", "by_d0"), "by tile": parquet("tiles", "by_tile")}
    size = bytes_of(pathlib.Path(uri))
    sizes = ", ".join(f"{who} {bytes_of(p) / size:.2f}" for who, p in files.items())
    print(f"{what}: {table.num_rows} rows, {size / 1e6:.1f} MB on disk; Parquet's through ours: {sizes}")

    con, ctx, array = duckdb.connect(), datafusion.SessionContext(), az.open(uri)
    for number, path in enumerate(files.values()):
        con.execute(f"create view p{number} as select * from read_parquet('{path}')")
        ctx.register_parquet(f"p{number}", str(path))
    arrow = lambda found: found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.arrow()  # noqa: E731
    duck = lambda sql: arrow(con.sql(sql))  # noqa: E731
    fusion = lambda sql: (lambda found: collect(found.collect(), found.schema()))(ctx.sql(sql))  # noqa: E731

    def beside(name, ours, sql, found, of=("unsorted", "by d0", "by tile")):
        works = {"azulejo": ours}
        for number, order in enumerate(files):
            if order in of:
                works[f"DuckDB {order}"] = lambda n=number: found(duck, f"p{n}", sql)
                works[f"DataFusion {order}"] = lambda n=number: found(fusion, f"p{n}", sql)
        bench.run(f"{what}: {name}", works)

    each = lambda run, t, sqls: np.sum([summed(run(s.format(t=t))) for s in sqls], axis=0)  # noqa: E731
    one = lambda run, t, sql: summed(run(sql.format(t=t)))  # noqa: E731

    width = max(2, int(side * (2_000 / cells) ** (1 / ndim)))  # About 2,000 cells in a box.
    lows = bench.rng.integers(0, side - width, (20, ndim)).tolist()
    boxes = [{d: (low, low + width - 1) for d, low in zip(dims, corner)} for corner in lows]
    where = [" and ".join(f"{d} between {lo} and {hi}" for d, (lo, hi) in box.items()) for box in boxes]
    beside(
        "20 boxes", lambda: np.sum([summed(pa.table(array.query(fields=["v", "n"]).box(**b))) for b in boxes], axis=0),
        [f"select v, n from {{t}} where {w}" for w in where], each,
    )
    picked = bench.rng.choice(table.num_rows, 20, replace=False)
    places = [[int(table[d][int(i)].as_py()) for d in dims] for i in picked]
    beside(
        "20 points, one by one",
        lambda: np.sum([summed(pa.table(array.query(fields=["v", "n"]).box(**{d: (c, c) for d, c in zip(dims, p)}))) for p in places], axis=0),
        ["select v, n from {t} where " + " and ".join(f"{d} = {c}" for d, c in zip(dims, p)) for p in places], each,
    )
    beside(
        "a condition, 1 %", lambda: summed(pa.table(array.query("n < 100", ["v", "n"]))), "select v, n from {t} where n < 100", one,
        of=("unsorted", "by tile"),
    )
    beside("all rows as Arrow", lambda: summed(pa.table(array.query())), "select * from {t}", one, of=("unsorted", "by tile"))
    slab = {dims[-1]: (side // 3, side // 3 + side // 100)}
    low, high = slab[dims[-1]]
    beside(
        "a slab of the last dimension", lambda: summed(pa.table(array.query(fields=["v", "n"]).box(**slab))),
        f"select v, n from {{t}} where {dims[-1]} between {low} and {high}", one,
    )

    def grouped_ours():
        found = pa.table(array.query(fields=["k", "v"])).group_by("k").aggregate([("v", "sum"), ("v", "count")]).sort_by("k")
        return np.concatenate([found["v_sum"].to_numpy(), found["v_count"].to_numpy()])

    def grouped(run, t, sql):
        found = run(sql.format(t=t)).sort_by("k")
        return np.concatenate([found["s"].to_numpy(), found["c"].to_numpy()])

    beside("group by k", grouped_ours, "select k, sum(v) as s, count(v) as c from {t} group by k", grouped, of=("by tile",))
    whole = lambda run, t, sql: [float(x) for x in run(sql.format(t=t)).to_pylist()[0].values()]  # noqa: E731
    beside(
        "count, sum, least, most", lambda: [float(x) for x in array.agg("count", sum="v", min="v", max="v").values()],
        "select count(*) c, sum(v) s, min(v) lo, max(v) hi from {t}", whole, of=("by tile",),
    )

    # Ours is on the disk before it returns, and can be sliced; so is a Parquet file that is synced, sorted by tiles.
    def durable(write):
        def work():
            path = write()
            with open(path, "rb") as file:
                os.fsync(file.fileno())
            return 0
        return work

    def forgotten():
        shutil.rmtree(write_ours())
        return 0

    bench.run(f"{what}: write", {
        "azulejo": forgotten, "pyarrow unsorted": durable(lambda: parquet(None, "again")),
        "pyarrow by tile": durable(lambda: parquet("tiles", "again")),
    })
    part, appended = table.slice(0, 20_000), str(folder / "appended")
    az.create(appended, schema)

    def append_ours():
        for _ in range(10):
            az.open(appended, "w").write(part)
        return 0

    def append_files():
        for _ in range(10):
            path = folder / f"part{next(counter)}.parquet"
            durable(lambda p=path: (pq.write_table(part, p, compression="zstd", compression_level=3), p)[1])()
        return 0

    bench.run(f"{what}: 10 appends of 20,000 rows", {"azulejo": append_ours, "pyarrow, a file each": append_files})
    shutil.rmtree(folder)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--cells", type=int, default=2_000_000)
    words.add_argument("--only")
    words.add_argument("--optimize", choices=["size", "balanced", "speed"])
    given = words.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    bench = Bench(given.folder, given.seed, given.rounds, given.only, given.optimize)
    print(
        f"azulejo-db {az.__version__}, DuckDB {duckdb.__version__}, DataFusion {datafusion.__version__}, pyarrow {pa.__version__}, "
        f"seed {given.seed}, the best of {given.rounds}; ours in ms, theirs / ours"
    )
    for ndim in (2, 3, 4):
        compare(bench, ndim, given.cells)
    summary(bench.rows)
    shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
