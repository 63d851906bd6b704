"""How cost grows with cells, tiles, fragments and threads, ours beside the reference: two plots.

usage: versus_growth.py OURS REFERENCE WORK OUT    WORK: a folder for arrays; OUT: a folder for growth-1.svg and growth-2.svg

The reference writes the arrays; each library reads them in a process of its own, in turn, through the same calls.
"""
import ctypes as C
import json
import math
import os
import shutil
import subprocess
import sys
import time

import capi
import numpy as np

ROUNDS, REPEATS, COLUMNS = 2, 3, ("x", "y", "a")
# Zstandard at level 3.
ZSTD = [(2, [(0, C.c_int32(3))])]
# Datatypes' ids.
I64, F32, F64 = 1, 2, 3
DENSE_SIDES, TILE_SIDES = (250, 500, 1000, 2000, 4000), (2000, 1000, 500, 250, 100, 50, 25)
SPARSE_CELLS, FRAGMENTS, THREADS = (1_000, 10_000, 100_000, 1_000_000), (1, 4, 16, 64, 256, 1000), (1, 2, 4)
MANY, DOMAIN = 500_000, 10_000_000


def bounds(low, high):
    return np.array([low, high], "i8").tobytes()


def set_buffers(c, q, buffers):
    sizes = []
    for name, memory in buffers.items():
        sizes.append(C.c_uint64(memory.nbytes))
        c("tiledb_query_set_data_buffer", q, name.encode(), memory.ctypes.data_as(C.c_void_p), C.byref(sizes[-1]))
    return sizes


def write(c, uri, layout, buffers):
    a = capi.open_array(c, uri, capi.WRITE)
    q = c.new("tiledb_query_alloc", a, C.c_int(capi.WRITE))
    c("tiledb_query_set_layout", q, C.c_int(layout))
    keep = set_buffers(c, q, buffers)
    c("tiledb_query_submit", q)
    c("tiledb_query_finalize", q)
    capi.LIB.tiledb_query_free(C.byref(q))
    capi.close(c, a)
    del keep


def read(c, uri, layout, box, buffers):
    """Bytes that were read into the first buffer."""
    a = capi.open_array(c, uri, capi.READ)
    q = c.new("tiledb_query_alloc", a, C.c_int(capi.READ))
    c("tiledb_query_set_layout", q, C.c_int(layout))
    if box:
        s, n = c.new("tiledb_subarray_alloc", a), np.array(box * 2, "i8")
        c("tiledb_subarray_set_subarray", s, n.ctypes.data_as(C.c_void_p))
        c("tiledb_query_set_subarray_t", q, s)
    total = 0
    while True:
        sizes = set_buffers(c, q, buffers)
        c("tiledb_query_submit", q)
        total += sizes[0].value
        if c.get(C.c_int, "tiledb_query_get_status", q) == 1:
            break
    capi.LIB.tiledb_query_free(C.byref(q))
    capi.close(c, a)
    return total


def create_dense(c, uri, side, tile):
    dims = [capi.Field(d, I64, domain=bounds(0, side - 1), extent=np.array([tile], "i8").tobytes()) for d in "yx"]
    capi.create(c, uri, capi.DENSE, dims, [capi.Field("v", F32, filters=ZSTD)], 0, 0, 0, 0, None, None, None, {})


def create_sparse(c, uri, dups):
    dims = [capi.Field(d, I64, domain=bounds(0, DOMAIN - 1), extent=np.array([100_000], "i8").tobytes()) for d in "xy"]
    capi.create(c, uri, capi.SPARSE, dims, [capi.Field("a", F64, filters=ZSTD)], 0, 0, 10_000, dups, ZSTD, None, None, {})


def sparse_cells(n, seed=7):
    r = np.random.default_rng(seed)
    places = r.permutation(np.unique(r.integers(0, DOMAIN * DOMAIN, n)))
    return {"x": places // DOMAIN, "y": places % DOMAIN, "a": r.integers(0, 100_000, len(places)) * 0.01}


def dense_cells(side):
    r = np.random.default_rng(3)
    smooth = np.add.outer(280 + 20 * np.sin(np.arange(side) * 0.001), 10 * np.cos(np.arange(side) * 0.002))
    return (np.round((smooth + r.integers(0, 8, smooth.shape) / 64) * 64) / 64).astype("f4")


def make(work):
    c = capi.Ctx({"sm.compute_concurrency_level": os.cpu_count(), "sm.io_concurrency_level": os.cpu_count()})
    for side in DENSE_SIDES:
        create_dense(c, f"{work}/cells_{side}", side, 250)
        write(c, f"{work}/cells_{side}", capi.ROW, {"v": dense_cells(side)})
    for tile in TILE_SIDES:
        create_dense(c, f"{work}/tiles_{tile}", 2000, tile)
        write(c, f"{work}/tiles_{tile}", capi.ROW, {"v": dense_cells(2000)})
    for n in SPARSE_CELLS:
        create_sparse(c, f"{work}/sparse_{n}", 0)
        write(c, f"{work}/sparse_{n}", capi.UNORDERED, sparse_cells(n))
    cells = sparse_cells(MANY)
    for n in FRAGMENTS:
        create_sparse(c, f"{work}/fragments_{n}", 0)
        for part in range(n):
            write(c, f"{work}/fragments_{n}", capi.UNORDERED, {k: np.ascontiguousarray(v[part::n]) for k, v in cells.items()})


def measure(library, work):
    """Prints {series: {x: [seconds, bytes]}}."""
    capi.LIB = C.CDLL(library)
    capi.LIB.tiledb_datatype_size.restype = C.c_uint64
    out = {}
    dense, sparse = np.ones(DENSE_SIDES[-1] ** 2, "f4"), {k: np.ones(SPARSE_CELLS[-1], "i8") for k in COLUMNS}

    def ctx(threads=os.cpu_count()):
        return capi.Ctx({"sm.compute_concurrency_level": threads, "sm.io_concurrency_level": threads})

    def best(series, x, work):
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            got = work()
            times.append(time.perf_counter() - start)
        out.setdefault(series, {})[x] = [min(times), got]

    def window(side, memory=dense):
        return {"v": memory[: side * side]}

    c = ctx()
    for side in DENSE_SIDES:
        best("dense read", side * side, lambda: read(c, f"{work}/cells_{side}", capi.ROW, [0, side - 1], window(side)))
    for tile in TILE_SIDES:
        best("dense read by tiles", (2000 // tile) ** 2, lambda: read(c, f"{work}/tiles_{tile}", capi.ROW, [0, 1999], window(2000)))
    for n in SPARSE_CELLS:
        best("sparse read, row-major", n, lambda: read(c, f"{work}/sparse_{n}", capi.ROW, None, sparse))

        def write_cells(cells=sparse_cells(n)):
            shutil.rmtree(f"{work}/written", ignore_errors=True)
            create_sparse(c, f"{work}/written", 0)
            write(c, f"{work}/written", capi.UNORDERED, cells)

        best("sparse write", n, write_cells)
    for n in FRAGMENTS:
        best("open", n, lambda: capi.close(c, capi.open_array(c, f"{work}/fragments_{n}", capi.READ)))
        best("sparse read by fragments", n, lambda: read(c, f"{work}/fragments_{n}", capi.ROW, None, sparse))
    for threads in THREADS:
        t = ctx(threads)
        best("dense read by threads", threads, lambda: read(t, f"{work}/cells_4000", capi.ROW, [0, 3999], window(4000)))
        best("sparse read by threads", threads, lambda: read(t, f"{work}/sparse_1000000", capi.ROW, None, sparse))
    print(json.dumps(out))


def panel(left, title, unit, lines):
    """A log-log plot as SVG. lines: [(name, colour, dashed, [(x, y)])]; y in ms."""
    width, height, top = 300, 215, 85
    xs, ys = [[p[i] for line in lines for p in line[3]] for i in (0, 1)]
    x0, x1 = math.log10(min(xs)), math.log10(max(xs))
    y0, y1 = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    px = lambda x: left + (math.log10(x) - x0) / (x1 - x0) * width
    py = lambda y: top + height - (math.log10(y) - y0) / (y1 - y0) * height
    svg = [f'<text x="{left}" y="20" font-weight="bold">{title}</text>']
    for e in range(y0, y1 + 1):
        svg.append(f'<path d="M{left} {py(10**e):.0f}h{width}" stroke="#ccc"/><text x="{left - 6}" y="{py(10**e) + 4:.0f}" text-anchor="end">{10.0**e:g}</text>')
    decades = [10.0**e for e in range(math.ceil(x0), math.floor(x1) + 1)]
    for x in decades if len(decades) > 3 else sorted(set(xs)):
        label = f"{x / 1e6:g}M" if x >= 1e6 else f"{x / 1e3:g}k" if x >= 1e3 else f"{x:g}"
        svg.append(f'<text x="{px(x):.0f}" y="{top + height + 16}" text-anchor="middle">{label}</text>')
    svg.append(f'<text x="{left + width / 2}" y="{top + height + 34}" text-anchor="middle">{unit}</text>')
    svg.append(f'<text x="{left - 6}" y="{top - 8}" text-anchor="end">ms</text>')
    for name, colour, dashed, points in lines:
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    for i, (name, colour, dashed, _) in enumerate(line for line in lines if not line[2]):
        svg.append(f'<text x="{left}" y="{36 + 14 * i}" fill="{colour}">{name}</text>')
    return "\n".join(svg)


def plot(path, ours, theirs, panels):
    body, colours = [], ("#1b5e9b", "#b5541c", "#3f7d20")
    for i, (title, unit, series) in enumerate(panels):
        lines = []
        for colour, (key, name) in zip(colours, series):
            for who, dashed in ((ours, False), (theirs, True)):
                lines.append((name, colour, dashed, [(float(x), s * 1e3) for x, (s, _) in who[key].items()]))
        body.append(panel(50 + 370 * i, title, unit, lines))
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 360" font-family="sans-serif" font-size="11" fill="#222">'
    foot = '<text x="50" y="352">solid: Azulejo, dashed: the reference; both axes are logarithmic</text>'
    with open(path, "w") as f:
        f.write("\n".join([head, '<rect width="740" height="360" fill="white"/>', *body, foot, "</svg>"]) + "\n")


def main():
    ours, theirs, work, out = sys.argv[1:5]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    make(work)
    found = {}
    for _ in range(ROUNDS):
        for library in (ours, theirs):
            text = subprocess.run([sys.executable, __file__, "one", library, work], check=True, capture_output=True, text=True).stdout
            for series, points in json.loads(text).items():
                for x, (seconds, got) in points.items():
                    known = found.setdefault(library, {}).setdefault(series, {}).setdefault(x, [seconds, got])
                    known[0] = min(known[0], seconds)
    shutil.rmtree(work)
    for series, points in found[theirs].items():
        for x, (seconds, got) in points.items():
            mine = found[ours][series][x]
            print(f"{series:26} {x:>9} {seconds / mine[0]:7.2f}x  ours {mine[0] * 1e3:9.2f} ms  reference {seconds * 1e3:9.2f} ms")
            if mine[1] != got:
                sys.exit(f"{series} at {x}: {mine[1]} bytes, the reference reads {got}")
    a, b = found[ours], found[theirs]
    plot(f"{out}/growth-1.svg", a, b, [
        ("More cells", "cells", [("dense read", "dense read, zstd"), ("sparse read, row-major", "sparse read, row-major"), ("sparse write", "sparse write, unordered")]),
        ("More tiles, 4 million cells", "tiles", [("dense read by tiles", "dense read, zstd")]),
    ])
    plot(f"{out}/growth-2.svg", a, b, [
        ("More fragments, half a million cells", "fragments", [("open", "open"), ("sparse read by fragments", "sparse read, row-major")]),
        ("More threads, two cores", "threads", [("dense read by threads", "dense read, 16 million cells"), ("sparse read by threads", "sparse read, 1 million cells")]),
    ])


if sys.argv[1] == "one":
    measure(*sys.argv[2:4])
else:
    main()
