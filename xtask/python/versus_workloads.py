"""Random workloads through TileDB-Py, untuned, on two builds of libtiledb: shapes, types, filters, orders, numbers of
fragments and what is asked come from a seed. Both do the same work in turn, each in a process of its own, and must give
the same cells; ratios are theirs / ours: above 1, ours is faster.

usage: versus_workloads.py FOLDER OURS.so [--seed N] [--count N] [--rounds N] [--only NUMBER]
       versus_workloads.py --worker FOLDER       (what each process runs: a line in, a line out)
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
from ratios import geometric_mean

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMBERS = [*INTEGERS, "float32", "float64"]


class Workload:
    """What workload `number` of a seed is: a schema, its cells by fragment, and what is asked of it."""

    def __init__(self, seed, number):
        self.rng = rng = np.random.default_rng([seed, number])
        self.sparse = bool(rng.random() < 0.6)
        self.cells = int(rng.choice([20_000, 100_000, 300_000, 1_000_000]))
        self.fragments = int(rng.choice([1, 1, 1, 2, 5, 20, 40]))
        self.attributes = int(rng.integers(1, 5)) if rng.random() < 0.85 else int(rng.integers(8, 24))
        self.cells = min(self.cells, 3_000_000 // self.attributes)
        self.encrypted = bool(rng.random() < 0.06)
        self.duplicates = self.sparse and bool(rng.random() < 0.4)
        self.dims = self.sparse_dims() if self.sparse else self.dense_dims()
        self.attrs = [self.attribute(i) for i in range(self.attributes)]
        self.cell_order = str(rng.choice(["row-major", "row-major", "col-major", "hilbert"] if self.sparse else ["row-major", "row-major", "col-major"]))
        self.tile_order = str(rng.choice(["row-major", "row-major", "col-major"]))
        self.capacity = int(rng.choice([100, 2_000, 10_000, 10_000, 100_000]))

    def dense_dims(self):
        rng = self.rng
        n = int(rng.choice([1, 2, 2, 2, 3, 4]))
        side = self.cells ** (1 / n)
        shape = [max(4, int(side * f)) for f in np.exp(rng.normal(0, 0.3, n))]
        kind = str(rng.choice(["int32", "int64", "uint32", "uint64", "datetime64[D]"], p=[0.25, 0.3, 0.15, 0.15, 0.15]))
        tiles = [max(2, min(s, int(s / rng.choice([1, 2, 3.3, 8, 17])))) for s in shape]
        start = [int(rng.choice([0, 0, 1, 17])) for _ in shape]
        return [{"type": kind, "start": a, "size": s, "tile": t, "filters": []} for a, s, t in zip(start, shape, tiles)]

    def sparse_dims(self):
        rng = self.rng
        n = int(rng.choice([1, 2, 2, 3]))
        dims = []
        for _ in range(n):
            kind = str(rng.choice(["int32", "int64", "uint64", "float32", "float64", "datetime64[ns]", "ascii", "int16"], p=[0.15, 0.25, 0.1, 0.1, 0.15, 0.1, 0.1, 0.05]))
            size = int(rng.choice([3_000, 100_000, 10_000_000]))
            if kind == "int16":
                size = 3_000
            dims.append({"type": kind, "start": 0, "size": size, "tile": max(1, size // int(rng.choice([1, 10, 100, 1_000]))), "filters": self.filters(kind)})
        # Where there are no duplicates, there must be room for as many cells.
        room = math.prod(d["size"] for d in dims)
        self.cells = min(self.cells, room // 4)
        return dims

    def filters(self, kind):
        rng = self.rng
        codec = {
            "zstd": int(rng.integers(-1, 6)), "gzip": int(rng.integers(1, 7)), "lz4": -1, "bzip2": int(rng.integers(1, 5)), "none": 0,
        }
        name = str(rng.choice(["zstd", "zstd", "zstd", "gzip", "lz4", "bzip2", "none", "none"], p=[0.2, 0.2, 0.15, 0.12, 0.13, 0.04, 0.1, 0.06]))
        chain = [[name, codec[name]]] if name != "none" else []
        if kind in ("ascii", "text", "bytes"):
            first = str(rng.choice(["", "", "rle", "dictionary"])) if kind != "bytes" else ""
            return [[first, 0]] if first else chain
        first = [""] * 3 + ["byteshuffle", "byteshuffle", "bitshuffle"]
        if kind in INTEGERS:
            first += ["double-delta", "delta", "bit-width", "positive-delta"] if kind != "uint64" else ["byteshuffle"]
        if kind == "bool":
            first = ["", "rle"]
        name = str(rng.choice(first))
        chain = ([[name, 0]] if name and name != "positive-delta" else []) + chain
        if rng.random() < 0.08:
            chain.append([str(rng.choice(["sha256", "md5"])), 0])
        return chain

    def attribute(self, i):
        rng = self.rng
        kind = str(rng.choice([*NUMBERS, "float32", "float64", "int32", "int64", "bool", "datetime64[ns]", "ascii", "text", "bytes"]))
        spread = str(rng.choice(["small", "random", "sorted", "few", "rounded"]))
        nullable = kind in NUMBERS and bool(rng.random() < 0.12)
        return {"name": f"a{i}", "type": kind, "spread": spread, "nullable": nullable, "filters": self.filters(kind)}

    def values(self, attr, n):
        """`n` values of an attribute."""
        rng, kind, spread = self.rng, attr["type"], attr["spread"]
        if kind == "bool":
            return rng.random(n) < (0.5 if spread == "random" else 0.02)
        if kind in ("ascii", "text", "bytes"):
            few = {"few": 5, "small": 100, "rounded": 1_000}.get(spread, max(1, n // 2))
            lengths = rng.integers(1, int(rng.choice([6, 20, 80])), few)
            letters = rng.integers(97, 123, int(lengths.sum())).astype(np.uint8).tobytes()
            ends = np.cumsum(lengths)
            words = [letters[e - l:e] for l, e in zip(lengths.tolist(), ends.tolist())]
            words = np.array(words if kind == "bytes" else [w.decode() for w in words], dtype=object)
            found = words[rng.integers(0, few, n)]
            return np.sort(found) if spread == "sorted" else found
        if kind.startswith("float"):
            value = rng.normal(size=n) * {"small": 1, "few": 0, "rounded": 100}.get(spread, 1e6)
            value = np.round(value, 2) if spread == "rounded" else np.sort(value) if spread == "sorted" else value
            return (value + rng.integers(0, 5, n) if spread == "few" else value).astype(kind)
        if kind.startswith("datetime"):
            base = 1_700_000_000_000_000_000
            steps = {"few": rng.integers(0, 5, n) * 86_400_000_000_000, "sorted": np.sort(rng.integers(0, 10**16, n))}
            return (base + steps.get(spread, rng.integers(0, 10**16, n))).astype("datetime64[ns]")
        # Sums of 64 bits stay within these.
        most = min(np.iinfo(kind).max, 2**40)
        top = {"small": min(100, most), "few": 4, "rounded": min(10_000, most)}.get(spread, most)
        value = rng.integers(0, top, n, dtype=kind)
        return np.sort(value) if spread == "sorted" else value

    def coordinates(self):
        """The cells of all fragments of a sparse array: a list of columns, in the order of writing."""
        rng, n, columns = self.rng, self.cells, []
        if self.duplicates:
            places = [rng.integers(0, d["size"], n) for d in self.dims]
        else:
            room = math.prod(d["size"] for d in self.dims)
            code = np.unique(rng.integers(0, room, n) if room < 2**62 else rng.integers(0, 2**62, n))
            rng.shuffle(code)
            places = []
            for d in reversed(self.dims):
                places.insert(0, code % d["size"])
                code = code // d["size"]
        if rng.random() < 0.4:
            order = np.lexsort(places[::-1])
            places = [p[order] for p in places]
        for d, place in zip(self.dims, places):
            kind = d["type"]
            if kind == "ascii":
                place = np.char.add("k", np.char.zfill(place.astype(str), 8)).astype("S")
            elif kind.startswith("datetime"):
                place = (1_600_000_000_000_000_000 + place * 1_000).astype("datetime64[ns]")
            else:
                place = place.astype(kind)
            columns.append(place)
        return columns

    def describe(self):
        dims = " x ".join(f"{d['type']}[{d['size']}/{d['tile']}]" for d in self.dims)
        attrs = ", ".join(
            f"{a['type']}{'?' if a['nullable'] else ''} {a['spread']} {'+'.join(f for f, _ in a['filters']) or '-'}" for a in self.attrs[:4]
        )
        more = f" and {len(self.attrs) - 4} more" if len(self.attrs) > 4 else ""
        kind = f"sparse{' duplicates' if self.duplicates else ''} {self.capacity}" if self.sparse else "dense"
        return f"{kind} {self.cells:,} cells, {self.fragments} fragments{', AES' if self.encrypted else ''}; {dims}; {self.cell_order}/{self.tile_order}; {attrs}{more}"


class Worker:
    """Carries a workload out on the library that TileDB-Py finds."""

    def __init__(self, folder):
        import tiledb

        self.tiledb, self.folder, self.array = tiledb, folder, None

    def filter_list(self, chain):
        t = self.tiledb
        made = {
            "zstd": lambda v: t.ZstdFilter(level=v), "gzip": lambda v: t.GzipFilter(level=v), "lz4": lambda v: t.LZ4Filter(),
            "bzip2": lambda v: t.Bzip2Filter(level=v), "rle": lambda v: t.RleFilter(), "dictionary": lambda v: t.DictionaryFilter(),
            "byteshuffle": lambda v: t.ByteShuffleFilter(), "bitshuffle": lambda v: t.BitShuffleFilter(),
            "double-delta": lambda v: t.DoubleDeltaFilter(), "delta": lambda v: t.DeltaFilter(), "bit-width": lambda v: t.BitWidthReductionFilter(),
            "sha256": lambda v: t.ChecksumSHA256Filter(), "md5": lambda v: t.ChecksumMD5Filter(),
        }
        return t.FilterList([made[name](value) for name, value in chain])

    def begin(self, seed, number):
        t, w = self.tiledb, Workload(seed, number)
        self.work, self.uri = w, str(self.folder / f"w{number}")
        shutil.rmtree(self.uri, ignore_errors=True)
        key = {"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": "0123456789abcdef0123456789abcdef"} if w.encrypted else {}
        self.ctx = t.Ctx(key)
        dims = []
        for i, d in enumerate(w.dims):
            kind, name, first, last = d["type"], f"d{i}", d["start"], d["start"] + d["size"] - 1
            tile = d["tile"]
            if kind == "ascii":
                dims.append(t.Dim(name, domain=(None, None), tile=None, dtype="ascii", filters=self.filter_list(d["filters"]), ctx=self.ctx))
                continue
            if kind == "datetime64[D]":
                domain, tile = (np.datetime64(first, "D"), np.datetime64(last, "D")), np.timedelta64(tile, "D")
            elif kind == "datetime64[ns]":
                begin = 1_600_000_000_000_000_000
                domain = (np.datetime64(begin, "ns"), np.datetime64(begin + (last + 1) * 1_000, "ns"))
                tile = np.timedelta64(tile * 1_000, "ns")
            else:
                domain = (np.dtype(kind).type(first), np.dtype(kind).type(last))
                tile = np.dtype(kind).type(tile)
            dims.append(t.Dim(name, domain=domain, tile=tile, dtype=kind, filters=self.filter_list(d["filters"]), ctx=self.ctx))
        kinds = {"ascii": {"dtype": "ascii", "var": True}, "text": {"dtype": "U0", "var": True}, "bytes": {"dtype": "S0", "var": True}}
        attrs = [
            t.Attr(a["name"], nullable=a["nullable"], filters=self.filter_list(a["filters"]), ctx=self.ctx, **kinds.get(a["type"], {"dtype": a["type"]}))
            for a in w.attrs
        ]
        if w.sparse:
            columns = w.coordinates()
            count = len(columns[0])
            size = max(1, -(-count // w.fragments))
            self.parts = []
            for start in range(0, count, size):
                part = tuple(c[start:start + size] for c in columns)
                self.parts.append((part, {a["name"]: self.made(a, len(part[0])) for a in w.attrs}))
        else:
            shape = [d["size"] for d in w.dims]
            self.parts = []
            for i in range(w.fragments):
                box = [(0, s) for s in shape]
                if w.fragments > 1:
                    # Slabs of tiles along the first dimension, and what lies over them.
                    a = int(w.rng.integers(0, shape[0]))
                    box[0] = (a, min(shape[0], a + max(1, 2 * shape[0] // w.fragments)))
                sizes = [b - a for a, b in box]
                key = tuple(self.sliced(d, a, b) for d, (a, b) in zip(w.dims, box))
                values = {a["name"]: self.made(a, math.prod(sizes)) for a in w.attrs}
                values = {k: v.reshape(sizes) for k, v in values.items()}
                self.parts.append((key, values))
        schema = {
            "domain": t.Domain(*dims, ctx=self.ctx), "attrs": attrs, "sparse": w.sparse, "cell_order": w.cell_order, "tile_order": w.tile_order,
        }
        if w.sparse:
            schema |= {"capacity": w.capacity, "allows_duplicates": w.duplicates}
            schema["tile_order"] = None if w.cell_order == "hilbert" else w.tile_order
            schema = {k: v for k, v in schema.items() if v is not None}
        self.schema = t.ArraySchema(ctx=self.ctx, **schema)
        self.array = None
        #: What the process holds before anything was done: its libraries and the cells.
        self.held = memory("VmRSS")
        return w.describe()

    def made(self, attr, n):
        values = self.work.values(attr, n)
        if attr["nullable"]:
            mask = self.work.rng.random(n) < 0.1
            return np.ma.array(values, mask=mask)
        return values

    def sliced(self, d, a, b):
        if d["type"].startswith("datetime64[D"):
            return slice(np.datetime64(d["start"] + a, "D"), np.datetime64(d["start"] + b - 1, "D"))
        return slice(d["start"] + a, d["start"] + b)

    def opened(self):
        if self.array is None:
            self.array = self.tiledb.open(self.uri, ctx=self.ctx)
        return self.array

    # What is asked.

    def create(self):
        shutil.rmtree(self.uri, ignore_errors=True)
        self.tiledb.Array.create(self.uri, self.schema, ctx=self.ctx)

    def write(self):
        from tiledb.sparse_array import _setitem_impl_sparse

        for number, (key, values) in enumerate(self.parts):
            nulls = {k: (~v.mask).astype(np.uint8) for k, v in values.items() if isinstance(v, np.ma.MaskedArray)}
            values = {k: np.asarray(v) for k, v in values.items()}
            with self.tiledb.open(self.uri, "w", ctx=self.ctx, timestamp=number + 1) as array:
                if not nulls:
                    array[key] = values
                elif self.work.sparse:
                    _setitem_impl_sparse(array, key, values, nulls)
                else:
                    array._setitem_impl(key, values, nulls)

    def read(self):
        with self.tiledb.open(self.uri, ctx=self.ctx) as array:
            return array[:]

    def order(self):
        """All cells in another order than the default."""
        with self.tiledb.open(self.uri, ctx=self.ctx) as array:
            return array.query(order="F")[:]

    def table(self):
        with self.tiledb.open(self.uri, ctx=self.ctx) as array:
            return array.query(return_arrow=True).df[:]

    def boxes(self):
        array, w, rng = self.opened(), self.work, np.random.default_rng(5)
        found = []
        for _ in range(20):
            box = []
            for d in w.dims:
                share = float(rng.choice([0.02, 0.1, 0.3]))
                a = int(rng.integers(0, max(1, int(d["size"] * (1 - share)))))
                b = min(d["size"] - 1, a + int(d["size"] * share))
                box.append(slice(*self.bounds(d, a, b)))
            found.append(array.multi_index[tuple(box)])
        return found

    def bounds(self, d, a, b):
        kind = d["type"]
        if kind == "ascii":
            return f"k{a:08}", f"k{b:08}"
        if kind == "datetime64[D]":
            return np.datetime64(d["start"] + a, "D"), np.datetime64(d["start"] + b, "D")
        if kind == "datetime64[ns]":
            return tuple(np.datetime64(1_600_000_000_000_000_000 + v * 1_000, "ns") for v in (a, b))
        kind = np.dtype(kind).type
        return kind(d["start"] + a), kind(d["start"] + b)

    def points(self):
        """30 cells, one by one."""
        array, w, rng = self.opened(), self.work, np.random.default_rng(6)
        found = []
        for i in rng.integers(0, 10**9, 30).tolist():
            if w.sparse:
                key = tuple(c[i % len(c)] for c in self.parts[i % len(self.parts)][0])
                key = tuple(k.decode() if isinstance(k, bytes) else k for k in key)
            else:
                key = tuple(self.bounds(d, (i * 31 + j) % d["size"], 0)[0] for j, d in enumerate(w.dims))
            found.append(array.multi_index[key])
        return found

    def condition(self):
        array = self.opened()
        for a in self.work.attrs:
            if a["type"] in NUMBERS:
                value = np.sort(np.asarray(self.parts[0][1][a["name"]]).ravel())
                edge = value[int(len(value) * 0.98)].item()
                return array.query(cond=f"{a['name']} > {edge!r}")[:]
        return None

    def aggregate(self):
        array = self.opened()
        asked = {a["name"]: ["min", "max", "sum"] for a in self.work.attrs if a["type"] in NUMBERS}
        if not asked:
            return None
        found = array.query(attrs=list(asked)).agg(asked)[:]
        return json.dumps(rounded(found), sort_keys=True)

    def past(self):
        """All cells as they were in the middle of the writes."""
        with self.tiledb.open(self.uri, ctx=self.ctx, timestamp=max(1, len(self.parts) // 2)) as array:
            return array[:]

    def metadata(self):
        for i in range(5):
            with self.tiledb.open(self.uri, "w", ctx=self.ctx) as array:
                array.meta[f"key {i}"] = i * "value "
                array.meta[f"number {i}"] = i
        with self.tiledb.open(self.uri, ctx=self.ctx) as array:
            return sorted(array.meta.keys())

    def consolidate(self):
        self.forget()
        self.tiledb.consolidate(self.uri, ctx=self.ctx)
        self.tiledb.vacuum(self.uri, ctx=self.ctx)

    def forget(self):
        if self.array is not None:
            self.array.close()
        self.array = None

    def answer(self, asked):
        if "begin" in asked:
            self.forget()
            return {"is": self.begin(*asked["begin"])}
        if asked["do"] == "end":
            self.forget()
            shutil.rmtree(self.uri, ignore_errors=True)
            return {}
        work = getattr(self, asked["do"])
        if asked["do"] in ("boxes", "points", "condition", "aggregate"):
            self.opened()
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        begun, cpu = time.perf_counter(), time.process_time()
        result = work()
        took, used = time.perf_counter() - begun, time.process_time() - cpu
        return {"seconds": took, "cpu": used, "memory": memory("VmHWM") - self.held, "digest": digest(result)}


def rounded(found):
    """Reals are added up in another order: five digits are the same."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    return float(f"{float(found):.5g}") if isinstance(found, (float, np.floating)) else int(found)


def memory(what):
    line = next(x for x in open("/proc/self/status") if x.startswith(what))
    return int(line.split()[1]) / 1024


def digest(result):
    """The same for the same cells, in whatever order they come."""
    import pandas as pd

    if result is None or isinstance(result, str):
        return result
    if isinstance(result, list):
        return [digest(x) for x in result]
    if hasattr(result, "to_pandas"):
        result = {k: result.column(k).to_pandas().to_numpy() for k in result.column_names}
    if isinstance(result, np.ndarray):
        result = {"": result}
    total, rows = np.uint64(0), 0
    with np.errstate(over="ignore"):
        hashes = None
        for name in sorted(result):
            column = np.ma.filled(result[name]) if isinstance(result[name], np.ma.MaskedArray) else np.asarray(result[name])
            if column.dtype.names:
                column = column[column.dtype.names[0]]
            column = pd.Series(column.ravel())
            if column.dtype == object:
                column = column.map(lambda v: v.decode("latin-1") if isinstance(v, bytes) else v)
            one = pd.util.hash_pandas_object(column, index=False).to_numpy()
            hashes = one if hashes is None else hashes * np.uint64(31) + one
        if hashes is not None and len(hashes):
            total, rows = (hashes * (hashes >> np.uint64(7) | np.uint64(1))).sum(), len(hashes)
    return f"{rows} {int(total):016x}"


def work(folder):
    worker = Worker(folder)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), flush=True)


class Side:
    """A process on one of the libraries."""

    def __init__(self, folder, packages):
        env = dict(os.environ)
        if packages:
            env["PYTHONPATH"] = str(packages)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a process ended at {what}")
        return json.loads(line)


def swapped(folder, library):
    """TileDB-Py with `library` in the place of the one that it bundles."""
    shutil.rmtree(folder, ignore_errors=True)
    script = pathlib.Path(__file__).with_name("swapped_package.py")
    subprocess.run([sys.executable, script, library, folder], check=True)
    return folder


#: What is asked, in turn; what changes the array is asked once.
ONCE = {"write", "consolidate", "metadata"}
ASKED = ["write", "read", "order", "table", "boxes", "points", "condition", "aggregate", "past", "metadata", "consolidate", "read"]


def main():
    if sys.argv[1:2] == ["--worker"]:
        return work(pathlib.Path(sys.argv[2]))
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("library", type=pathlib.Path)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--count", type=int, default=50)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--only", type=int)
    words.add_argument("--cpu", action="store_true", help="processor time in the place of time, for machines that others use")
    given = words.parse_args()
    ours = Side(given.folder / "ours", swapped(given.folder / "packages", given.library))
    theirs = Side(given.folder / "theirs", None)
    rows, wrong = [], 0
    clock = "cpu" if given.cpu else "seconds"
    for number in range(given.count):
        if given.only is not None and number != given.only:
            continue
        told = [side.ask(begin=[given.seed, number]) for side in (ours, theirs)]
        errors = [x["error"] for x in told if "error" in x]
        print(f"\n{number}: {told[0].get('is', errors)}")
        if errors:
            wrong += len(errors) == 1
            continue
        line = []
        for place, do in enumerate(ASKED):
            again = do == "read" and place > 1
            if do == "consolidate" and told[0]["is"].count(" 1 fragments"):
                break
            best = {}
            answers = {}
            for turn in range(1 if do in ("consolidate", "metadata") else given.rounds):
                pair = [("ours", ours), ("theirs", theirs)]
                for name, side in pair if turn % 2 == 0 else reversed(pair):
                    if do == "write":
                        side.ask(do="create")
                    answers[name] = answer = side.ask(do=do)
                    if "error" not in answer:
                        best[name] = min(best.get(name, (math.inf, math.inf)), (answer[clock], answer["memory"]))
            failed = {name: a["error"] for name, a in answers.items() if "error" in a}
            if failed:
                if len(failed) == 1:
                    wrong += 1
                    print(f"  {do}: ONLY ONE FAILS: {failed}")
                elif turn == 0 or do == "write":
                    print(f"  {do}: both: {failed['ours'][:120]}")
                if do == "write":
                    break
                continue
            if answers["ours"]["digest"] != answers["theirs"]["digest"]:
                wrong += 1
                print(f"  {do}: THE CELLS DIFFER: {answers['ours']['digest']} {answers['theirs']['digest']}")
                continue
            if answers["ours"]["digest"] is None and do not in ("write", "consolidate"):
                continue
            what = "read again" if again else do
            ratio = best["theirs"][0] / max(best["ours"][0], 1e-9)
            rows.append((what, number, ratio, *best["ours"], *best["theirs"]))
            line.append(f"{what} {ratio:.2f}")
        print("  " + ", ".join(line), flush=True)
        for side in (ours, theirs):
            side.ask(do="end")
    print(f"\nseed {given.seed}, the best of {given.rounds}, {clock}\n\n| | of | geometric mean | least | below 1.5 | more memory than theirs |\n|---|---|---|---|---|---|")
    for what in dict.fromkeys(row[0] for row in rows):
        some = [row for row in rows if row[0] == what]
        ratios = [row[2] for row in some]
        more = sum(row[4] > row[6] * 1.05 + 2 for row in some)
        print(f"| {what} | {len(some)} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {sum(r < 1.5 for r in ratios)} | {more} |")
    ratios = [row[2] for row in rows]
    print(f"| all | {len(rows)} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} | {sum(r < 1.5 for r in ratios)} | |")
    print("\nleast:")
    for what, number, ratio, mine, held, other, theirs_held in sorted(rows, key=lambda row: row[2])[:25]:
        print(f"  {ratio:5.2f} {what} of {number}: {mine * 1e3:.1f} and {other * 1e3:.1f} ms, {held:.0f} and {theirs_held:.0f} MB")
    print("\nmost memory beside theirs:")
    for what, number, ratio, mine, held, other, theirs_held in sorted(rows, key=lambda row: row[6] - row[4])[:12]:
        print(f"  {held:.0f} and {theirs_held:.0f} MB: {what} of {number}")
    if wrong:
        raise SystemExit(f"{wrong} did not come out the same")


if __name__ == "__main__":
    sys.exit(main())
