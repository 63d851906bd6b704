"""Incomplete reads and estimated sizes as the reference gives them: `cargo xtask interop steps`.

usage: interop_steps.py REFERENCE_LIBRARY OUR_LIBRARY FOLDER SEED COUNT

Random dense arrays of one to three dimensions, numbers and text, written in parts by the reference, are read by both libraries into
buffers that are too small, in every layout, over one or several ranges, with conditions and without. The cells of all steps together
must be those of a brute-force model, and each step must have as many as in the reference, where that is right: it gives other cells
where several ranges are read in steps, and crashes where text does not fit. The sizes that it estimates must be the same, those of
random sparse arrays too. The reference runs in a process of its own, which is started again where it crashes."""
import ctypes as C
import json
import os
import random
import select
import shutil
import subprocess
import sys

import numpy as np
import tiledb
from interop_messages import Judge, Library, P, U

KINDS = {"data": 0, "offsets": 8, "validity": 1}


def ask(lib, case):
    """One read in steps: for each, the cells of `v` and the bytes of every part; or the estimated sizes of all fields."""
    array = lib.open(case["uri"])
    query = lib.new("query_alloc", array, 0)
    lib.query_set_layout(query, case["layout"])
    made = lib.new("subarray_alloc", array)
    for d, (ranges, dtype) in enumerate(zip(case["ranges"], case["types"])):
        for pair in ranges:
            if dtype == "ascii":
                low, high = (text.encode() for text in pair)
                lib.subarray_add_range_var(made, d, low, U(len(low)), high, U(len(high)))
            else:
                low, high = (np.array([v], dtype) for v in pair)
                lib.subarray_add_range(made, d, low.ctypes.data_as(P), high.ctypes.data_as(P), None)
    lib.query_set_subarray_t(query, made)
    if case.get("estimate"):
        found = {}
        for name, kind in case["estimate"].items():
            sizes = [U(), U()] if kind else [U()]
            suffix = {None: "", "var": "_var", "null": "_nullable"}[kind]
            getattr(lib, f"query_get_est_result_size{suffix}")(query, name, *[C.byref(size) for size in sizes])
            found[name] = [size.value for size in sizes]
        return found
    if case["condition"]:
        op, bound = case["condition"]
        condition, value = lib.new("query_condition_alloc"), np.array([bound], "int64")
        lib.query_condition_init(condition, "v", value.ctypes.data_as(P), U(8), op)
        lib.query_set_condition(query, condition)
    parts = {}
    for name, kind, room in case["rooms"]:
        # Behind the memory lies some that nobody may touch.
        memory, size = C.create_string_buffer(b"\xee" * (room + 64), room + 64), U(room)
        parts[name, kind] = (memory, size, room)
        getattr(lib, f"query_set_{kind}_buffer")(query, name, memory, C.byref(size))
    steps = []
    while len(steps) < 1000:
        for _, size, room in parts.values():
            size.value = room
        lib.query_submit(query)
        status = C.c_int()
        lib.query_get_status(query, C.byref(status))
        sizes = {f"{name}/{kind}": size.value for (name, kind), (_, size, _) in parts.items()}
        cells = parts["v", "data"][0].raw[:sizes["v/data"]]
        text = b""
        if ("s", "data") in parts:
            text = parts["s", "data"][0].raw[:sizes["s/data"]]
            starts = np.frombuffer(parts["s", "offsets"][0].raw[:sizes["s/offsets"]], "uint64")
            assert all(a <= b for a, b in zip(starts, [*starts[1:], len(text)])), "offsets that do not ascend"
        assert all(memory.raw[room:] == b"\xee" * 64 for memory, _, room in parts.values()), "memory behind a buffer"
        steps.append([np.frombuffer(cells, "int64").tolist(), text.decode(), sizes])
        if status.value != 3 or not any(sizes.values()):
            return steps
    raise RuntimeError("a read without an end")


class Apart:
    """The reference, in a process that may crash."""

    def __init__(self, path):
        self.path, self.process, self.crashes = path, None, 0

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def ask(self, case):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__, "--serve", self.path], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.process.stdin.write(json.dumps(case) + "\n")
            self.process.stdin.flush()
            # It may hang too, once it has written where it must not.
            line = select.select([self.process.stdout], [], [], 120)[0] and self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.end()
            self.crashes += 1
            return None
        return json.loads(line)


def serve(path):
    lib = Library(path)
    for line in sys.stdin:
        try:
            answer = ask(lib, json.loads(line))
        except Exception as error:
            answer = str(error)
        print(json.dumps(answer), flush=True)


def dense(judge, r, theirs, ours, folder, number, said):
    uri, count = os.path.join(folder, f"d{number}"), r.choice([1, 1, 2, 2, 3])
    shape = [r.randint(2, 40 if count == 1 else 12) for _ in range(count)]
    low = r.randint(0, 9)
    dims = [tiledb.Dim(f"d{i}", domain=(low, low + n - 1), tile=r.randint(1, n), dtype="int32") for i, n in enumerate(shape)]
    text, null = r.random() < 0.4, r.random() < 0.3
    attrs = [tiledb.Attr("v", dtype="int64")] + ([tiledb.Attr("s", dtype="ascii", var=True)] if text else [])
    attrs += [tiledb.Attr("n", dtype="int16", nullable=True)] if null else []
    orders = ["row-major", "col-major"]
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, cell_order=r.choice(orders),
                                                tile_order=r.choice(orders)))
    values = np.full(shape, np.iinfo("int64").min)
    words = np.empty(shape, object)
    words.fill("\0")
    for _ in range(r.randint(1, 3)):
        # Mostly all of it; sometimes a part, so that cells are filled up.
        whole = r.random() < 0.6
        box = [(0, n - 1) if whole else tuple(sorted((r.randrange(n), r.randrange(n)))) for n in shape]
        at = tuple(slice(a, b + 1) for a, b in box)
        values[at] = np.array([r.randint(-99, 99) for _ in range(values[at].size)]).reshape(values[at].shape)
        words[at] = np.array(["x" * r.randint(1, 5) for _ in range(values[at].size)], object).reshape(values[at].shape)
        with tiledb.open(uri, "w") as array:
            where = tuple(slice(low + a, low + b + 1) for a, b in box)
            parts = {"v": values[at]} | ({"s": words[at].astype("S")} if text else {})
            array[where] = parts | ({"n": values[at].astype("int16")} if null else {})
    fields = {"v": None} | ({"s": "var"} if text else {}) | ({"n": "null"} if null else {}) | {f"d{i}": None for i in range(count)}
    for query in range(4):
        several = r.random() < 0.3
        ranges = []
        for n in shape:
            pairs = [sorted((r.randrange(n), r.randrange(n))) for _ in range(r.randint(1, 3) if several else 1)]
            ranges.append([(0, n - 1)] if not several and r.random() < 0.3 else pairs)
        index = np.ix_(*[np.concatenate([np.arange(a, b + 1) for a, b in along]) for along in ranges])
        layout = r.choice([0, 1] if several else [0, 1, 2])
        room = r.randint(1, values[index].size + 2)
        rooms = [("v", "data", 8 * room)]
        if text:
            rooms += [("s", "offsets", 8 * room), ("s", "data", room * r.choice([3, 4, 6]))]
        if r.random() < 0.3:
            rooms.append(("d0", "data", 4 * r.randint(1, values[index].size + 2)))
        condition = None
        if r.random() < 0.2 and not text:
            condition = (r.randrange(6), r.randint(-99, 99))
        case = {"uri": uri, "layout": layout, "rooms": rooms, "condition": condition, "types": ["int32"] * count,
                "ranges": [[(low + a, low + b) for a, b in along] for along in ranges]}
        lengths = lambda steps: [len(step[0]) for step in steps]
        what = f"dense {number}.{query} {layout} {shape} {[d.tile for d in dims]} {case['ranges']} {rooms}"
        mine, other = ask(ours, case), theirs.ask(case)
        stuck = not any(mine[-1][2].values())
        got = [v for step in mine for v in step[0]]
        if layout < 2 and not condition and not stuck:
            order = "CF"[layout]
            judge.same(f"{what}, cells", values[index].ravel(order).tolist(), got)
            if text:
                judge.same(f"{what}, text", "".join(words[index].ravel(order)), "".join(step[1] for step in mine))
        told = theirs.ask(case | {"estimate": fields})
        if isinstance(told, dict):
            said["estimates"] += 1
            judge.same(f"{what}, estimates", told, ask(ours, case | {"estimate": fields}))
        if isinstance(other, list) and lengths(other) != lengths(mine):
            # Asked again, for what it has overwritten before may make it answer anything.
            theirs.end()
            other = theirs.ask(case)
        if isinstance(other, list) and [v for step in other for v in step[0]] == got:
            said["steps"] += 1
            judge.same(f"{what}, steps", lengths(other), lengths(mine))
        else:
            said["other"] += 1


def sparse(judge, r, theirs, ours, folder, number):
    uri, count = os.path.join(folder, f"s{number}"), r.randint(1, 3)
    types = [r.choice(["int32", "uint8", "int64", "uint64", "float64", "ascii"]) for _ in range(count)]
    dims = [tiledb.Dim(f"d{i}", domain=(None, None), tile=None, dtype="ascii") if t == "ascii" else
            tiledb.Dim(f"d{i}", domain=(0, 100), tile=10, dtype=t) for i, t in enumerate(types)]
    attrs = [tiledb.Attr("v", dtype="int64"), tiledb.Attr("s", dtype="ascii", var=True), tiledb.Attr("n", dtype="int16", nullable=True)]
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, sparse=True, capacity=r.choice([3, 7, 100]),
                                                allows_duplicates=r.random() < 0.5))
    letters = [a + b for a in "abc" for b in "def"]
    for _ in range(r.randint(1, 3)):
        n = r.randint(1, 60)
        at = {}
        while len(at) < n:
            at[tuple(r.choice(letters) * r.randint(1, 2) if t == "ascii" else r.randint(0, 100) for t in types)] = 1
            n -= 0.2
        at = sorted(at)
        coordinates = [np.array([c[d] for c in at], object if t == "ascii" else t) for d, t in enumerate(types)]
        coordinates = [c.astype("S") if t == "ascii" else c for c, t in zip(coordinates, types)]
        with tiledb.open(uri, "w") as array:
            array[tuple(coordinates)] = {"v": np.arange(len(at)), "s": np.array(["t" * r.randint(1, 9) for _ in at], "S"),
                                         "n": np.arange(len(at), dtype="int16")}
    fields = {"v": None, "s": "var", "n": "null"} | {f"d{i}": "var" if t == "ascii" else None for i, t in enumerate(types)}
    for query in range(4):
        ranges = []
        for t in types:
            some = letters if t == "ascii" else range(101)
            ranges.append([sorted((r.choice(some), r.choice(some))) for _ in range(r.choice([0, 1, 1, 2]))])
        # Of several ranges in global order the reference counts the first ones several times.
        layout = r.choice([0, 3] if any(len(along) > 1 for along in ranges) else [0, 2, 3])
        case = {"uri": uri, "layout": layout, "types": types, "ranges": ranges, "estimate": fields}
        other = theirs.ask(case)
        if isinstance(other, dict):
            judge.same(f"sparse {number}.{query} {types} {ranges}", other, ask(ours, case))


def main():
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2])
    reference, library, folder, seed, count = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    theirs, ours, judge, said = Apart(reference), Library(library), Judge(), {"steps": 0, "other": 0, "estimates": 0}
    for number in range(int(seed), int(seed) + int(count)):
        judge.run(f"dense {number}", lambda: dense(judge, random.Random(number), theirs, ours, folder, number, said))
        judge.run(f"sparse {number}", lambda: sparse(judge, random.Random(number), theirs, ours, folder, number))
    print("\n".join(judge.wrong[:40]))
    print(f"{judge.checks} comparisons of steps and estimates, {len(judge.wrong)} differ; {said['other']} reads that the reference "
          f"answers otherwise, {theirs.crashes} crashes of it")
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if judge.wrong or not said["steps"] or not said["estimates"] else 0)


if __name__ == "__main__":
    main()
