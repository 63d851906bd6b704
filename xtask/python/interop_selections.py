"""Reads that look at part of an array, against a brute-force model: `cargo xtask interop selections`.

usage: interop_selections.py OUR_LIBRARY FOLDER SEED COUNT

The reference writes arrays; Azulejo, called through its C API, reads them; numpy says what is right. Five classes: dense
aggregates over ranges of every kind (ascending or not, overlapping, several, one cell), conditions on attributes whose filter
changes values, arrays that were written over an older one with a larger domain, names and text with control characters, and tiles
that hold frames of Zstandard from before its format was settled."""
import ctypes as C
import os
import random
import pathlib
import shutil
import struct
import sys

import numpy as np
import tiledb
from interop_messages import Judge, Library, P, U


def subarray(lib, array, ranges, dtype):
    made = lib.new("subarray_alloc", array)
    lib.subarray_set_coalesce_ranges(made, 0)
    for dimension, along in enumerate(ranges):
        for pair in along:
            low, high = (np.array([v], dtype) for v in pair)
            lib.subarray_add_range(made, dimension, low.ctypes.data_as(P), high.ctypes.data_as(P), None)
    return made


def ranges_of(r, size):
    """Ranges of one dimension, of any kind."""
    some = []
    for _ in range(r.choice([1, 1, 2, 3])):
        low = r.randint(0, size - 1)
        some.append((low, min(size - 1, low + r.choice([0, 1, 5, size]))))
    return some


def picked(values, ranges):
    """The cells that a dense read gives: ranges along each dimension, one behind the other."""
    return values[np.ix_(*[np.concatenate([np.arange(a, b + 1) for a, b in along]) for along in ranges])]


def aggregates(judge, r, lib, folder, number):
    uri, shape = os.path.join(folder, f"a{number}"), (r.randint(3, 25), r.randint(3, 25))
    dims = [tiledb.Dim(f"d{i}", domain=(0, n - 1), tile=r.randint(1, n), dtype="int32") for i, n in enumerate(shape)]
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=[tiledb.Attr("v", dtype="int64")],
                                                cell_order=r.choice(["row-major", "col-major"])))
    values = np.array([[r.randint(-99, 99) for _ in range(shape[1])] for _ in range(shape[0])], "int64")
    with tiledb.open(uri, "w") as array:
        array[:] = values
    for layout in (0, 1, 3):
        ranges = [ranges_of(r, n) for n in shape]
        want = picked(values, ranges)
        array = lib.open(uri)
        query = lib.new("query_alloc", array, 0)
        lib.query_set_layout(query, layout)
        lib.query_set_subarray_t(query, subarray(lib, array, ranges, "int32"))
        channel, places = lib.new("query_get_default_channel", query), {}
        for name in ("sum", "min", "max"):
            operation = lib.new("create_unary_aggregate", query, lib.new(f"channel_operator_{name}_get"), "v")
            lib.channel_apply_aggregate(channel, name, operation)
            places[name] = (C.c_int64(), U(8))
            lib.query_set_data_buffer(query, name, C.byref(places[name][0]), C.byref(places[name][1]))
        lib.query_submit(query)
        judge.same(f"aggregates {number} {layout} {ranges}", [int(want.sum()), int(want.min()), int(want.max())],
                   [places[name][0].value for name in ("sum", "min", "max")])


OPERATORS = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal]


def lossy(judge, r, lib, folder, number):
    uri, n, sparse = os.path.join(folder, f"l{number}"), r.randint(5, 120), r.random() < 0.5
    scale = tiledb.FloatScaleFilter(r.choice([0.5, 0.3, 2.0]), r.choice([0.0, 1.0]), 4)
    dim = tiledb.Dim("d", domain=(0, n - 1), tile=r.randint(1, n), dtype="int32")
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(dim), sparse=sparse, capacity=r.choice([3, 50]), attrs=[
        tiledb.Attr("v", dtype="float64", filters=tiledb.FilterList([scale, tiledb.ZstdFilter()]))]))
    values = np.array([r.uniform(-20, 20) for _ in range(n)])
    with tiledb.open(uri, "w") as array:
        array[np.arange(n, dtype="int32") if sparse else slice(None)] = values
    with tiledb.open(uri) as array:
        stored = array[:]["v"]
    for _ in range(4):
        op, bound = r.randrange(6), r.choice([r.choice(list(stored)), r.uniform(-20, 20)])
        array = lib.open(uri)
        query = lib.new("query_alloc", array, 0)
        lib.query_set_layout(query, 0)
        lib.query_set_subarray_t(query, subarray(lib, array, [[(0, n - 1)]], "int32"))
        condition, value = lib.new("query_condition_alloc"), np.array([bound])
        lib.query_condition_init(condition, "v", value.ctypes.data_as(P), U(8), op)
        lib.query_set_condition(query, condition)
        memory, size = np.zeros(n), U(8 * n)
        lib.query_set_data_buffer(query, "v", memory.ctypes.data_as(P), C.byref(size))
        lib.query_submit(query)
        got, keep = memory[:size.value // 8], OPERATORS[op](stored, bound)
        want = stored[keep] if sparse else np.where(keep, stored, np.nan)
        judge.same(f"lossy {number} {op} {bound}", [repr(v) for v in want.tolist()], [repr(v) for v in got.tolist()])


def shrunk(judge, r, lib, folder, number):
    uri, other, n, tile = (os.path.join(folder, f"w{number}"), os.path.join(folder, f"x{number}"), r.randint(20, 60), r.randint(2, 9))
    now = r.randint(5, n - 1)

    def schema(size):
        dim = tiledb.Dim("d", domain=(0, size - 1), tile=min(tile, size), dtype="int32")
        return tiledb.ArraySchema(domain=tiledb.Domain(dim), attrs=[tiledb.Attr("v", dtype="int64")])

    tiledb.Array.create(uri, schema(n))
    values = np.array([r.randint(-99, 99) for _ in range(n)], "int64")
    with tiledb.open(uri, "w") as array:
        array[:] = values
    # Another array's schema in the same folder: as if the array had been made again.
    tiledb.Array.create(other, schema(now))
    name = next(f for f in os.listdir(os.path.join(other, "__schema")) if f != "__enumerations")
    shutil.copy(os.path.join(other, "__schema", name), os.path.join(uri, "__schema", name))
    array = lib.open(uri)
    query = lib.new("query_alloc", array, 0)
    low, high = sorted((r.randint(0, now - 1), r.randint(0, now - 1)))
    lib.query_set_subarray_t(query, subarray(lib, array, [[(low, high)]], "int32"))
    memory, size = np.zeros(n, "int64"), U(8 * n)
    lib.query_set_data_buffer(query, "v", memory.ctypes.data_as(P), C.byref(size))
    lib.query_submit(query)
    judge.same(f"shrunk {number} {n} to {now}", values[low:high + 1].tolist(), memory[:size.value // 8].tolist())


def control(judge, r, lib, folder, number):
    """Every control character, in names, values and key-values."""
    uri = os.path.join(folder, f"c{number}")
    odd = "".join(chr(c) for c in r.sample([*range(1, 32), 127], 8))
    name, words = f"a{odd}", [f"{odd[i]}x{odd[-i]}" for i in range(1, 5)]
    dim = tiledb.Dim("d", domain=(0, 3), tile=2, dtype="int32")
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(dim), sparse=True, attrs=[
        tiledb.Attr(name, dtype="ascii", var=True)]))
    with tiledb.open(uri, "w") as array:
        array[np.arange(4, dtype="int32")] = {name: np.array(words, dtype=object)}
        array.meta[odd] = odd
    array = lib.open(uri)
    query = lib.new("query_alloc", array, 0)
    memory, size, offsets, starts = C.create_string_buffer(64), U(64), np.zeros(4, "uint64"), U(32)
    lib.query_set_data_buffer(query, name, memory, C.byref(size))
    lib.query_set_offsets_buffer(query, name, offsets.ctypes.data_as(P), C.byref(starts))
    lib.query_submit(query)
    judge.same(f"control {number} {odd!r}", "".join(words), memory.raw[:size.value].decode())
    kind, count, value = C.c_int(), C.c_uint32(), C.c_void_p()
    lib.array_get_metadata(array, odd, C.byref(kind), C.byref(count), C.byref(value))
    judge.same(f"control {number} key", odd, C.string_at(value, count.value).decode())
    text = lib.message("array_schema", lib.schema(uri), 0, 0)
    made = lib.new("deserialize_array_schema", lib.buffer(text), 0, 0)
    has = C.c_int32()
    lib.array_schema_has_attribute(made, name, C.byref(has))
    judge.same(f"control {number} schema as JSON", 1, has.value)


FRAMES = pathlib.Path(__file__).parents[2] / "azulejo-format/src/filter/tests/old_zstd"


def legacy(judge, r, lib, folder, number):
    """An array of one tile whose chunk is put into a frame of an old release: 200 numbers, see the frames' README."""
    uri, sparse = os.path.join(folder, f"z{number}"), r.random() < 0.5
    values = np.array([i * i // 70 * 3 for i in range(200)], "uint32")
    dim = tiledb.Dim("d", domain=(0, 199), tile=200, dtype="int32", filters=tiledb.FilterList([]))
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=tiledb.Domain(dim), sparse=sparse, capacity=200, attrs=[
        tiledb.Attr("v", dtype="uint32", filters=tiledb.FilterList([tiledb.ZstdFilter(3)]))]))
    with tiledb.open(uri, "w") as array:
        array[np.arange(200, dtype="int32") if sparse else slice(None)] = values
    (fragment,) = pathlib.Path(uri, "__fragments").iterdir()
    frame = r.choice(sorted(FRAMES.glob("*.zst")))
    # A tile: chunks; a chunk: bytes before, after, of the metadata; of that: parts and sizes in them; then the frame.
    tile, metadata = fragment / "a0.tdb", fragment / "__fragment_metadata.tdb"
    chunks, plain, stored, own = struct.unpack_from("<QIII", raw := tile.read_bytes())
    assert (chunks, plain, own, len(raw)) == (1, 800, 16, 20 + own + stored)
    new = frame.read_bytes()
    head = raw[20:20 + own - 8] + struct.pack("<II", 800, len(new))
    tile.write_bytes(struct.pack("<QIII", 1, 800, len(new), own) + head + new)
    size, said = struct.pack("<Q", len(raw)), metadata.read_bytes()
    assert said.count(size) == 1, "the size of the file is said once"
    metadata.write_bytes(said.replace(size, struct.pack("<Q", 28 + own - 8 + len(new))))
    array = lib.open(uri)
    query = lib.new("query_alloc", array, 0)
    lib.query_set_layout(query, 0)
    lib.query_set_subarray_t(query, subarray(lib, array, [[(0, 199)]], "int32"))
    memory, size = np.zeros(200, "uint32"), U(800)
    lib.query_set_data_buffer(query, "v", memory.ctypes.data_as(P), C.byref(size))
    lib.query_submit(query)
    judge.same(f"legacy {number} {frame.name} {sparse}", values.tolist(), memory[:size.value // 4].tolist())
    try:
        with tiledb.open(uri) as array:
            theirs = array[:]["v"]
    except tiledb.TileDBError:
        # Its Zstandard does not know the oldest frames.
        return
    judge.same(f"legacy {number} {frame.name} {sparse}, reference", values.tolist(), theirs.tolist())


def main():
    ours, folder, seed, count = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    lib, judge = Library(ours), Judge()
    for number in range(int(seed), int(seed) + int(count)):
        for one in (aggregates, lossy, shrunk, control, legacy):
            judge.run(f"{one.__name__} {number}", lambda: one(judge, random.Random(number), lib, folder, number))
    print("\n".join(judge.wrong[:40]))
    print(f"{judge.checks} reads of selections, {len(judge.wrong)} wrong")
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if judge.wrong else 0)


if __name__ == "__main__":
    main()
