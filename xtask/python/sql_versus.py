"""SQL on arrays beside DataFusion on Parquet: the same program, the same rows, the same questions, in turn.

Each question runs in a process of its own, whose processor time (user and system) and bytes read are counted; those of
`SELECT 1` are taken off. Wall time is shown and judged by nothing: it wants a quiet machine. Answers are compared.
Ratios are ours through Parquet's: below 1, arrays cost less. Bytes are counted on Linux alone.

The questions are those of db-benchmark (group by, join), boxes, aggregates of boxes, first rows and a time series.
Parquet is written by pyarrow with Zstandard 3 and row groups of 122,880 rows, as rows come and, for boxes, sorted by
the array's tiles too. Arrays have the filters that the program chooses, or with `--optimize` those that suit their rows.
Last, three workers beside one process on the same arrays: the processor time of all processes of each.

usage: sql_versus.py PROGRAM FOLDER [--rows N] [--rounds N] [--only TEXT] [--optimize GOAL] [--keep]
"""

import argparse
import math
import os
import pathlib
import resource
import shutil
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

SIDE, TILES = 1 << 20, 32
ROW_GROUP = 122_880
KINDS = 100

GROUPS = {
    "1": "SELECT id1, sum(v1) AS v1 FROM g GROUP BY id1",
    "2": "SELECT id1, id2, sum(v1) AS v1 FROM g GROUP BY id1, id2",
    "3": "SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM g GROUP BY id3",
    "4": "SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM g GROUP BY id4",
    "5": "SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM g GROUP BY id6",
    "6": "SELECT id4, id5, median(v3) AS m, stddev(v3) AS s FROM g GROUP BY id4, id5",
    "7": "SELECT id3, max(v1) - min(v2) AS r FROM g GROUP BY id3",
    "8": "SELECT id6, v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS o FROM g) AS t WHERE o <= 2",
    "9": "SELECT id2, id4, power(corr(v1, v2), 2) AS r2 FROM g GROUP BY id2, id4",
    "10": "SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM g GROUP BY id1, id2, id3, id4, id5, id6",
}
# What is joined is summed up, so that joins are what is counted and not the writing of rows.
JOINED = "SELECT count(*) AS n, sum(x.v1) AS v1, sum(y.v2) AS v2 FROM x {kind} JOIN {other} AS y ON x.{key} = y.{key}"
JOINS = {
    "1: small, inner": JOINED.format(kind="", other="small", key="id1"),
    "2: medium, inner": JOINED.format(kind="", other="medium", key="id2"),
    "3: medium, left": JOINED.format(kind="LEFT", other="medium", key="id2"),
    "4: medium, by text": JOINED.format(kind="", other="medium", key="id5"),
    "5: big, inner": JOINED.format(kind="", other="big", key="id3"),
}
SCANS = {
    "all of three columns": "SELECT sum(v) AS v, max(n) AS n, min(k) AS k, count(DISTINCT k) AS c FROM p",
    "filter, sum, count": "SELECT sum(v) AS v, count(*) AS n FROM p WHERE n > 5000 AND k < 50",
    "first rows": "SELECT count(*) AS n FROM (SELECT v FROM p LIMIT 10) AS t",
    "top 10 by a value": "SELECT v FROM p ORDER BY v DESC LIMIT 10",
    "top 10 by a dimension": "SELECT d0 FROM p ORDER BY d0 LIMIT 10",
    "last 10 by a dimension": "SELECT d0 FROM p ORDER BY d0 DESC LIMIT 10",
    "count": "SELECT count(*) AS n FROM p",
    "sum, min, max": "SELECT sum(n) AS s, min(n) AS least, max(k) AS most FROM p",
}
SERIES = {
    "a day of a station": "SELECT count(*) AS n, avg(value) AS mean FROM s WHERE station = 'station07'"
    " AND at BETWEEN TIMESTAMP '2024-03-01T00:00:00' AND TIMESTAMP '2024-03-01T23:59:59'",
    "hours of a week": "SELECT date_trunc('hour', at) AS hour, max(value) AS most FROM s"
    " WHERE at BETWEEN TIMESTAMP '2024-02-05T00:00:00' AND TIMESTAMP '2024-02-11T23:59:59' GROUP BY 1",
    "all, by station": "SELECT station, avg(value) AS mean, count(*) AS n FROM s GROUP BY station",
}


def word(prefix, numbers, width):
    return pa.array([f"{prefix}{number:0{width}}" for number in numbers])


def words(rng, rows, different, width):
    """Words, made once each."""
    found = word("id", range(1, different + 1), width)
    return found.take(pa.array(rng.integers(0, different, rows)))


def groups(rng, rows):
    few, many = KINDS, max(1, rows // KINDS)
    whole = lambda most: rng.integers(1, most + 1, rows).astype(np.int32)  # noqa: E731
    return pa.table({
        "row": np.arange(rows), "id1": words(rng, rows, few, 3), "id2": words(rng, rows, few, 3),
        "id3": words(rng, rows, many, 10), "id4": whole(few), "id5": whole(few), "id6": whole(many),
        "v1": whole(5), "v2": whole(15), "v3": np.round(rng.random(rows) * 100, 6),
    })


def joins(rng, rows):
    """The left side, and the others with nine of ten of its keys each."""
    small, medium = max(10, rows // 1_000_000), max(10, rows // 1_000)
    sizes = {"id1": small, "id2": medium, "id3": rows}
    left = {"row": np.arange(rows)}
    for key, size in sizes.items():
        left[key] = rng.integers(1, size + 1, rows).astype(np.int32)
    left["id5"] = word("id", range(medium + 1), 10).take(pa.array(left["id2"]))
    left["v1"] = np.round(rng.random(rows) * 100, 6)
    tables = {"x": pa.table(left)}
    for name, (key, size) in zip(("small", "medium", "big"), sizes.items()):
        keys = rng.permutation(np.arange(1, size + size // 10 + 1))[:size].astype(np.int32)
        right = {"row": np.arange(size), key: keys}
        if name == "medium":
            right["id5"] = word("id", keys, 10)
        right["v2"] = np.round(rng.random(size) * 100, 6)
        tables[name] = pa.table(right)
    return tables


def points(rng, rows):
    codes = np.unique(rng.integers(0, SIDE * SIDE, rows + rows // 50))
    codes = rng.permutation(codes)[:rows]
    return pa.table({
        "d0": codes // SIDE, "d1": codes % SIDE, "v": np.round(rng.normal(100, 15, len(codes)), 3),
        "n": rng.integers(0, 10_000, len(codes)).astype(np.int32), "k": rng.integers(0, 100, len(codes)).astype(np.int32),
    })


def series(rng, rows):
    """Every second of some stations, as it arrives."""
    stations, first = 20, np.datetime64("2024-02-01T00:00:00")
    moments = max(1, rows // stations)
    # Over three months, however many there are.
    at = first + np.repeat(np.arange(moments), stations) * max(1, 7_776_000 // moments)
    names = word("station", range(stations), 2)
    return pa.table({
        "station": names.take(pa.array(np.tile(np.arange(stations), moments))), "at": pa.array(at),
        "value": np.round(rng.normal(12, 6, moments * stations), 2),
    })


# All rows are read: what few rows need, no worker is asked for.
SPREAD = {
    "group by 1": GROUPS["1"], "group by 3": GROUPS["3"], "group by 5": GROUPS["5"], "group by 6": GROUPS["6"], "group by 10": GROUPS["10"],
    "join 2": JOINS["2: medium, inner"], "join 5": JOINS["5: big, inner"],
    "all of three columns": SCANS["all of three columns"], "filter, sum, count": SCANS["filter, sum, count"],
    "all, by station": SERIES["all, by station"],
}


def boxes(rng, share):
    """Conditions that select about a share of the points each."""
    width = int(SIDE * math.sqrt(share))
    for _ in range(3):
        low = rng.integers(0, SIDE - width, 2).tolist()
        yield f"d0 BETWEEN {low[0]} AND {low[0] + width - 1} AND d1 BETWEEN {low[1]} AND {low[1] + width - 1}"


class Side:
    """The program over tables of one kind."""

    def __init__(self, name, program, folder, setup=""):
        self.name, self.program, self.folder, self.setup = name, program, folder, setup
        self.measure_nothing()

    def measure_nothing(self):
        """What is taken off: a question that needs no table."""
        self.nothing = (0.0, 0)
        self.nothing = min(self.run("SELECT 1 AS one")[:2] for _ in range(5))

    def arguments(self):
        """More words for the program."""
        return []

    def spent_elsewhere(self):
        """Processor seconds of processes that are not waited for."""
        return 0.0

    def run(self, question):
        """Processor seconds, bytes read, seconds and rows of a question."""
        tables = [f"--table={path.name}={path}" for path in sorted((self.folder / "arrays").iterdir())] if not self.setup else []
        command = [self.program, "sql", *self.arguments(), *tables, "--format", "ndjson", f"{self.setup}{question}"]
        answer = self.folder / "answer.ndjson"
        with open(answer, "w") as file:
            elsewhere = self.spent_elsewhere()
            before, read, began = resource.getrusage(resource.RUSAGE_CHILDREN), bytes_read(), time.perf_counter()
            subprocess.run(command, check=True, stdout=file)
            took, read = time.perf_counter() - began, bytes_read() - read
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + self.spent_elsewhere() - elsewhere
        return max(0.0, spent - self.nothing[0]), max(0, read - self.nothing[1]), took, answered(answer)


class Workers(Side):
    """The program with three workers, whose processor time counts too."""

    def __init__(self, program, folder):
        self.workers = []
        for _ in range(3):
            worker = subprocess.Popen([program, "worker", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
            self.workers.append((worker, worker.stdout.readline().strip().removeprefix("listening on ")))
        super().__init__("workers", program, folder)

    def arguments(self):
        return ["--workers", ",".join(address for _, address in self.workers), "--partitions", "2"]

    def spent_elsewhere(self):
        ticks = 0
        for worker, _ in self.workers:
            words = pathlib.Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self):
        for worker, _ in self.workers:
            worker.kill()
            worker.wait()


def bytes_read():
    """Bytes that this process and those that it has waited for have read."""
    file = pathlib.Path("/proc/self/io")
    return int(file.read_text().split()[1]) if file.exists() else 0


def answered(file):
    """The rows of an answer, in one order whichever they came in: reals, whose sums depend on the order of their parts, tell rows apart last."""
    if not file.stat().st_size:
        return pa.table({})
    rows = pa.json.read_json(file)
    names = sorted(rows.column_names, key=lambda name: (pa.types.is_floating(rows[name].type), name))
    return rows.select(names).sort_by([(name, "ascending") for name in names])


def same(some, others):
    """Whether rows in one order are the same, reals nearly so."""

    def are(mine, other):
        if not pa.types.is_floating(mine.type) or mine.null_count != other.null_count:
            return mine.equals(other)
        return np.allclose(mine.drop_null().to_numpy(), other.drop_null().to_numpy(), rtol=1e-9, atol=1e-12, equal_nan=True)

    return some.schema == others.schema and some.num_rows == others.num_rows and all(map(are, some.columns, others.columns))


def ask(question, sql, ours, theirs, rounds):
    """Runs a question on all sides in turn, and prints what it costs."""
    best = {}
    for _ in range(rounds):
        for side in (ours, *theirs):
            found = side.run(sql)
            known = best.setdefault(side.name, found)
            if not same(found[3], known[3]):
                raise SystemExit(f"{question}: {side.name} answers differently by turns")
            best[side.name] = tuple(map(min, found[:3], known[:3])) + (found[3],)
    mine = best[ours.name]
    for side in theirs:
        other = best[side.name]
        if not same(mine[3], other[3]):
            raise SystemExit(f"{question}: {sql}\n  {mine[3][:3].to_pylist()}\n  {other[3][:3].to_pylist()}")
        ratio = lambda i: f"{mine[i] / other[i]:6.2f}" if other[i] else "     -"  # noqa: E731, B023
        print(
            f"{question:<34} {side.name:<9} {mine[3].num_rows:>8} rows  cpu {mine[0]:7.3f} / {other[0]:7.3f} s = {ratio(0)}"
            f"   read {mine[1] / 1e6:8.2f} / {other[1] / 1e6:8.2f} MB = {ratio(1)}   wall {mine[2]:6.3f} / {other[2]:6.3f} s",
            flush=True,
        )
    return mine[0], best[theirs[0].name][0]


def make(program, folder, rng, rows, optimize):
    """The tables: Parquet as rows come, and the same rows as arrays."""
    files, arrays = folder / "parquet", folder / "arrays"
    files.mkdir(parents=True)
    arrays.mkdir()
    extent = SIDE // TILES
    filters = f", optimize = '{optimize}'" if optimize else ""
    rows_of = lambda table: (  # noqa: E731
        f"dimensions = 'row', dense = 'true', \"domain.row\" = '0..{table.num_rows - 1}', \"tile.row\" = '{min(65_536, table.num_rows)}'"
    )
    grid = "".join(f", \"domain.{d}\" = '0..{SIDE - 1}', \"tile.{d}\" = '{extent}'" for d in ("d0", "d1"))
    whole = {"g": groups(rng, rows), **joins(rng, rows)}
    made = {
        **{name: (table, rows_of(table)) for name, table in whole.items()},
        "p": (points(rng, rows), f"dimensions = 'd0, d1'{grid}"),
        "s": (series(rng, rows), "dimensions = 'station, at'"),
    }
    for name, (table, options) in made.items():
        write = lambda table, file: pq.write_table(  # noqa: E731
            table, file, compression="zstd", compression_level=3, row_group_size=ROW_GROUP
        )
        write(table, files / f"{name}.parquet")
        if name == "p":
            tiles = table.append_column("t0", pc.divide(table["d0"], extent)).append_column("t1", pc.divide(table["d1"], extent))
            order = [(key, "ascending") for key in ("t0", "t1", "d0", "d1")]
            write(tiles.sort_by(order).drop(["t0", "t1"]), files / "sorted.parquet")
        text = (
            f"CREATE EXTERNAL TABLE rows STORED AS PARQUET LOCATION '{files / name}.parquet';"
            f"CREATE TABLE made WITH (location = '{arrays / name}', {options}{filters}) AS SELECT * FROM rows;"
        )
        quiet = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([program, "sql", text], **quiet)
        # What does not fit into memory at once is several fragments.
        subprocess.run([program, "consolidate", arrays / name], **quiet)
        subprocess.run([program, "vacuum", arrays / name], **quiet)


def spread(args, ours):
    """Three workers beside one process."""
    wanted = {question: sql for question, sql in SPREAD.items() if args.only in f"workers {question}"}
    if not wanted or not pathlib.Path("/proc/self/stat").exists():
        return
    workers = Workers(args.program, args.folder)
    try:
        ratios = []
        for question, sql in wanted.items():
            mine, other = ask(f"workers {question}", sql, workers, [ours], args.rounds)
            ratios += [math.log(mine / other)] if mine > 0 and other > 0 else []
        print(f"workers: {math.exp(sum(ratios) / len(ratios)):.2f} of one process's processor time, in the geometric mean")
    finally:
        workers.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--optimize", help="filters by the rows: size, balanced or speed")
    parser.add_argument("--keep", action="store_true", help="use the files and arrays of the run before")
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    if not args.keep:
        shutil.rmtree(args.folder, ignore_errors=True)
        make(args.program, args.folder, rng, args.rows, args.optimize)
    for kind in ("arrays", "parquet"):
        of = sum(file.stat().st_size for file in (args.folder / kind).rglob("*") if file.is_file())
        print(f"{kind}: {of / 1e6:.1f} MB on disk")

    def parquet(name, instead):
        files = sorted((args.folder / "parquet").iterdir())
        tables = {instead.get(file.stem, file.stem): file for file in files if file.stem not in instead.values()}
        setup = "".join(f"CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{file}';" for table, file in tables.items())
        return Side(name, args.program, args.folder, setup)

    ours = Side("azulejo", args.program, args.folder)
    plain, by_tile = parquet("parquet", {}), parquet("by tile", {"sorted": "p"})
    rng = np.random.default_rng(11)
    share = {
        f"{what}, box of {percent} % ({number})": f"SELECT {wanted} FROM p WHERE {box}"
        for percent in (1, 0.01)
        for number, box in enumerate(boxes(rng, percent / 100))
        for what, wanted in (("rows", "v, n"), ("aggregates", "count(*) AS c, sum(n) AS s, min(n) AS least, max(n) AS most"))
    }
    sets = {
        "group by": (GROUPS, [plain]), "join": (JOINS, [plain]), "points": (SCANS, [plain, by_tile]),
        "boxes": (share, [plain, by_tile]), "series": (SERIES, [plain]),
    }
    for name, (questions, theirs) in sets.items():
        spent = []
        for question, sql in questions.items():
            if args.only in f"{name} {question}":
                spent.append(ask(f"{name} {question}", sql, ours, theirs, args.rounds))
        ratios = [math.log(mine / other) for mine, other in spent if mine > 0 and other > 0]
        if ratios:
            print(f"{name}: {math.exp(sum(ratios) / len(ratios)):.2f} of Parquet's processor time, in the geometric mean\n")
    spread(args, ours)
    os.unlink(args.folder / "answer.ndjson")


main()
