"""Lets the reference and Azulejo exchange serialized messages: `cargo xtask interop messages`.

usage: interop_messages.py REFERENCE_LIBRARY OUR_LIBRARY FOLDER SEED COUNT

Both libraries are called through their C API. For random schemas and arrays: what both write as JSON must be the
same (but for what only one knows, see ONLY); what one writes, in either form, the other must read as the same; and
queries that one sends are run by the other and answered, with the same cells. Prints a line for each difference."""
import ctypes as C
import json
import os
import random
import shutil
import sys

import numpy as np
import tiledb

P, U = C.c_void_p, C.c_uint64
JSON, CAPNP = 0, 1
# Fields of messages that are not compared: times of opening, and what is read for the message alone.
ONLY = {"openedAtEndTimestamp", "timestampEnd", "arrayMetaUris", "stats", "rtree", "uri"}
ONLY |= {f"tile{w}" for w in ("MinBuffer", "MaxBuffer", "MinVarBuffer", "MaxVarBuffer", "Sums", "NullCounts")}
ONLY |= {f"fragment{w}" for w in ("Mins", "Maxs", "Sums", "NullCounts")} | {"tileOffsets", "tileVarOffsets"}


class Library:
    """One library and a context of it."""

    def __init__(self, path):
        self.lib, self.ctx = C.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW), P()
        assert self.lib.tiledb_ctx_alloc(None, C.byref(self.ctx)) == 0

    def error(self):
        handle, text = P(), C.c_char_p()
        self.lib.tiledb_ctx_get_last_error(self.ctx, C.byref(handle))
        if not handle:
            return "no error"
        self.lib.tiledb_error_message(handle, C.byref(text))
        return text.value.decode()

    def __getattr__(self, name):
        function = getattr(self.lib, "tiledb_" + name)

        def call(*args):
            status = function(self.ctx, *[a.encode() if isinstance(a, str) else a for a in args])
            if status:
                raise RuntimeError(f"{name}: {self.error()}")

        return call

    def new(self, name, *args):
        made = P()
        getattr(self, name)(*args, C.byref(made))
        return made

    def message(self, name, *args):
        return self.bytes(self.new("serialize_" + name, *args))

    def bytes(self, buffer):
        data, size = P(), U()
        self.buffer_get_data(buffer, C.byref(data), C.byref(size))
        return C.string_at(data, size.value) if size.value else b""

    def flat(self, parts):
        return self.bytes(self.new("buffer_list_flatten", parts))

    def buffer(self, data):
        made, memory = self.new("buffer_alloc"), C.create_string_buffer(data, len(data))
        self.buffer_set_data(made, memory, U(len(data)))
        made.memory = memory
        return made

    def open(self, uri, kind=0):
        array = self.new("array_alloc", uri)
        self.array_open(array, kind)
        return array

    def schema(self, uri):
        return self.new("array_get_schema", self.open(uri))

    def info(self, uri):
        info = self.new("fragment_info_alloc", uri)
        self.fragment_info_load(info)
        return info

    def text(self, name, handle):
        string, data, size = P(), C.c_char_p(), C.c_size_t()
        getattr(self, name)(handle, C.byref(string))
        self.lib.tiledb_string_view(string, C.byref(data), C.byref(size))
        return C.string_at(data, size.value).decode()


def differences(a, b, path=""):
    if type(a) is not type(b):
        return [(path, a, b)]
    if isinstance(a, dict):
        keys = sorted((set(a) | set(b)) - ONLY)
        both = [k for k in keys if k in a and k in b]
        return [(f"{path}.{k}", a.get(k), b.get(k)) for k in keys if k not in both] + [
            d for k in both for d in differences(a[k], b[k], f"{path}.{k}")]
    if isinstance(a, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")]
    return [] if a == b else [(path, a, b)]


class Judge:
    def __init__(self):
        self.checks, self.wrong = 0, []

    def same(self, what, a, b):
        self.checks += 1
        found = differences(a, b)
        if found:
            self.wrong.append(f"{what}: {[tuple(str(x)[:80] for x in d) for d in found[:3]]}")

    def run(self, what, body):
        try:
            body()
        except Exception as error:
            self.checks += 1
            self.wrong.append(f"{what}: {type(error).__name__} {error}")


FILTERS = [lambda r: tiledb.ZstdFilter(r.randint(1, 9)), lambda r: tiledb.GzipFilter(r.randint(1, 9)),
           lambda r: tiledb.LZ4Filter(), lambda r: tiledb.Bzip2Filter(r.randint(1, 9)), lambda r: tiledb.ByteShuffleFilter(),
           lambda r: tiledb.BitShuffleFilter(), lambda r: tiledb.ChecksumMD5Filter(), lambda r: tiledb.ChecksumSHA256Filter(),
           lambda r: tiledb.RleFilter()]
ORDERS = ["row-major", "col-major"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def pipeline(r, integers):
    some = [r.choice(FILTERS)(r) for _ in range(r.randint(0, 3))]
    if integers and r.random() < 0.3:
        some.insert(0, r.choice([tiledb.BitWidthReductionFilter(r.choice([64, 256])), tiledb.PositiveDeltaFilter(512),
                                 tiledb.DoubleDeltaFilter(), tiledb.DeltaFilter()]))
    return tiledb.FilterList(some)


def random_schema(r):
    sparse = r.random() < 0.6
    dims = []
    kind = r.choice(INTEGERS)
    for i in range(r.randint(1, 3)):
        if sparse and r.random() < 0.25:
            dims.append(tiledb.Dim(f"d{i}", domain=(None, None), tile=None, dtype="ascii", filters=pipeline(r, False)))
        elif sparse and r.random() < 0.2:
            dims.append(tiledb.Dim(f"d{i}", domain=(-5.5, 100.25), tile=3.5, dtype=r.choice(["float32", "float64"])))
        else:
            own = r.choice(INTEGERS) if sparse else kind
            dims.append(tiledb.Dim(f"d{i}", domain=(1, 60), tile=r.choice([4, 7, 10]), dtype=own, filters=pipeline(r, sparse)))
    enums, attrs = [], []
    for i in range(r.randint(1, 4)):
        choice = r.random()
        nullable = r.random() < 0.3
        if choice < 0.2:
            enums.append(tiledb.Enumeration(f"e{i}", r.random() < 0.5, r.choice([["a", "bc", ""], [3, 1, 2], [0.5, -1.0]])))
            attrs.append(tiledb.Attr(f"a{i}", dtype="int16", enum_label=f"e{i}", nullable=nullable))
        elif choice < 0.4:
            attrs.append(tiledb.Attr(f"a{i}", dtype=r.choice(["U", "ascii", "S"]), var=True, nullable=nullable))
        elif choice < 0.5:
            attrs.append(tiledb.Attr(f"a{i}", dtype="float64", filters=tiledb.FilterList(
                [tiledb.FloatScaleFilter(r.choice([0.5, 2.0]), 1.0, r.choice([4, 8]))])))
        elif choice < 0.6:
            attrs.append(tiledb.Attr(f"a{i}", dtype="datetime64[ms]", nullable=nullable))
        else:
            attrs.append(tiledb.Attr(f"a{i}", dtype=r.choice(INTEGERS + ["float32", "float64", "bool"]), nullable=nullable,
                                     filters=pipeline(r, False)))
    order = dict(cell_order=r.choice(ORDERS + ["hilbert"] if sparse else ORDERS), tile_order=r.choice(ORDERS))
    return tiledb.ArraySchema(domain=tiledb.Domain(*dims), attrs=attrs, enums=enums, sparse=sparse,
                              allows_duplicates=sparse and r.random() < 0.5, capacity=r.choice([5, 100, 10000]), **order)


def schemas(judge, a, b, uri, name):
    want = json.loads(a.message("array_schema", a.schema(uri), JSON, 1))
    for form in (JSON, CAPNP):
        sent = a.message("array_schema", a.schema(uri), form, 1)
        got = b.new("deserialize_array_schema", b.buffer(sent), form, 1)
        judge.same(f"{name} schema {form}", want, json.loads(b.message("array_schema", got, JSON, 1)))
        sent = a.message("array", a.open(uri), form, 1)
        got = b.new("deserialize_array", b.buffer(sent), form, 1, uri)
        judge.same(f"{name} array {form}", json.loads(a.message("array", a.open(uri), JSON, 1)),
                   json.loads(b.message("array", got, JSON, 1)))
        got = b.new("fragment_info_alloc", uri)
        b.deserialize_fragment_info(b.buffer(a.message("fragment_info", a.info(uri), form, 1)), form, uri, 1, got)
        judge.same(f"{name} fragments {form}", a.text("fragment_info_dump_str", a.info(uri)), b.text("fragment_info_dump_str", got))
        got = b.open(uri)
        b.deserialize_array_metadata(got, form, b.buffer(a.message("array_metadata", a.open(uri), form)))
        judge.same(f"{name} key-values {form}", json.loads(a.message("array_metadata", a.open(uri), JSON)),
                   json.loads(b.message("array_metadata", got, JSON)))


class Buffers:
    """Memory for the cells of a read, by field and part."""

    def __init__(self, fields, room):
        self.parts = {(f, k): (C.create_string_buffer(room), U(room)) for f, kinds in fields.items() for k in kinds}

    def give(self, lib, query):
        for (field, kind), (memory, size) in self.parts.items():
            getattr(lib, f"query_set_{kind}_buffer")(query, field, memory, C.byref(size))

    def cells(self):
        return {f"{f}/{k}": memory.raw[:size.value].hex() for (f, k), (memory, size) in self.parts.items()}


def remember(lib, query, fields, kept):
    """As a server does: buffers that have a size and no memory get some."""
    for field, kinds in fields.items():
        for kind in kinds:
            data, size = P(), C.POINTER(U)()
            getattr(lib, f"query_get_{kind}_buffer")(query, field, C.byref(data), C.byref(size))
            if not data and size and size.contents.value:
                memory, own = C.create_string_buffer(size.contents.value), U(size.contents.value)
                kept += [memory, own]
                getattr(lib, f"query_set_{kind}_buffer")(query, field, memory, C.byref(own))


def ask(client, server, uri, fields, layout, bounds, condition):
    """A read that `client` makes and `server` runs; without a server, the client's own answer."""
    kept, buffers = [], Buffers(fields, 1 << 16)
    array = client.open(uri)
    query = client.new("query_alloc", array, 0)
    client.query_set_layout(query, layout)
    if bounds:
        subarray = client.new("subarray_alloc", array)
        low, high = (np.array([v], bounds[1]) for v in bounds[0])
        client.subarray_add_range(subarray, 0, low.ctypes.data_as(P), high.ctypes.data_as(P), None)
        client.query_set_subarray_t(query, subarray)
    if condition:
        name, value, op = condition
        made = client.new("query_condition_alloc")
        client.query_condition_init(made, name, value.ctypes.data_as(P), U(value.nbytes), op)
        client.query_set_condition(query, made)
    buffers.give(client, query)
    if server is None:
        client.query_submit(query)
        return buffers.cells()
    sent = client.flat(client.new("serialize_query", query, CAPNP, 1))
    theirs, on = P(), P()
    server.deserialize_query_and_array(server.buffer(sent), CAPNP, 0, uri, C.byref(theirs), C.byref(on))
    remember(server, theirs, fields, kept)
    server.query_submit(theirs)
    client.deserialize_query(client.buffer(server.flat(server.new("serialize_query", theirs, CAPNP, 0))), CAPNP, 1, query)
    return buffers.cells()


def queries(judge, r, libraries, folder, number):
    """Reads of a sparse or dense array with numbers, text and nulls, sent to and fro."""
    uri, sparse = os.path.join(folder, f"q{number}"), r.random() < 0.5
    dom = tiledb.Domain(tiledb.Dim("x", domain=(1, 200), tile=20, dtype="int32"))
    attrs = [tiledb.Attr("a", dtype="int64"), tiledb.Attr("v", dtype="ascii", var=True), tiledb.Attr("n", dtype="uint8")]
    tiledb.Array.create(uri, tiledb.ArraySchema(domain=dom, attrs=attrs if sparse else attrs[:1], sparse=sparse, capacity=7))
    for _ in range(r.randint(1, 3)):
        at = np.sort(np.array(r.sample(range(1, 201), r.randint(1, 60)), "int32"))
        with tiledb.open(uri, "w") as array:
            if sparse:
                text = np.array(["t" * r.randint(0, 4) for _ in at], dtype=object)
                array[at] = {"a": np.array([r.randint(-9, 9) for _ in at], "int64"), "v": text,
                             "n": np.array([r.randint(0, 255) for _ in at], "uint8")}
            else:
                low = r.randint(1, 150)
                array[low:low + 40] = np.array([r.randint(-9, 9) for _ in range(40)], "int64")
    fields = {"a": ["data"]}
    if sparse:
        fields |= {"v": ["offsets", "data"], "n": ["data"], "x": ["data"]}
    for _ in range(3):
        bounds = ((r.randint(1, 90), r.randint(91, 200)), "int32")
        bounds = r.choice([None, bounds]) if sparse else bounds
        condition = r.choice([None, ("a", np.array([r.randint(-5, 5)], "int64"), r.randint(0, 5))])
        layout = r.choice([0, 2, 3]) if sparse else r.choice([0, 1])
        (theirs, ours), case = libraries, (uri, fields, layout, bounds, condition)
        want = ask(theirs, None, *case)
        for name, client, server in (("ours->ours", ours, ours), ("reference->ours", theirs, ours), ("ours->reference", ours, theirs)):
            judge.run(f"query {number} {name}", lambda: judge.same(f"query {number} {name} {layout} {bounds}", want, ask(client, server, *case)))


def main():
    theirs, ours, folder, seed, count = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    libraries, judge, skipped = (Library(theirs), Library(ours)), Judge(), 0
    for number in range(int(seed), int(seed) + int(count)):
        r = random.Random(number)
        uri = os.path.join(folder, f"s{number}")
        try:
            tiledb.Array.create(uri, random_schema(r))
        except (tiledb.TileDBError, ValueError):
            # The reference refuses some combinations.
            skipped += 1
            continue
        with tiledb.open(uri, "w") as array:
            array.meta["number"], array.meta["text"] = number, "text"
        (a, b) = libraries
        for what, args in (("array_schema", (lambda lib: lib.schema(uri), JSON, 1)), ("array", (lambda lib: lib.open(uri), JSON, 1))):
            judge.run(f"{number} {what}", lambda: judge.same(f"{number} {what}", *(
                json.loads(lib.message(what, args[0](lib), *args[1:])) for lib in libraries)))
        for name, x, y in (("reference->ours", a, b), ("ours->reference", b, a)):
            judge.run(f"{number} {name}", lambda: schemas(judge, x, y, uri, f"{number} {name}"))
        judge.run(f"{number} queries", lambda: queries(judge, r, libraries, folder, number))
    print("\n".join(judge.wrong[:40]))
    print(f"{judge.checks} comparisons of messages, {len(judge.wrong)} differ; {skipped} schemas refused")
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if judge.wrong else 0)


if __name__ == "__main__":
    main()
