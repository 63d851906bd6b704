"""A process of `cargo xtask endure` through TileDB-Py: `endure.py WHOSE NUMBER SECONDS SEED FOLDER`, or `endure.py theirs read FOLDER`.

WHOSE is `theirs` (libtiledb) or `ours` (our C API in its place). What is written and checked is what
`xtask/src/endure/model.rs` says.
"""

import collections
import ctypes
import glob
import json
import os
import random
import re
import sys
import time

import numpy as np
import tiledb

CELLS, BLOCKS, WORKERS, EXTRA, FILL = 16, 40, 4, "e", np.iinfo(np.int64).min
KINDS = ["sparse", "duplicates", "dense"]
# What libtiledb's readers say when our vacuum was faster. Ours try again by themselves.
GONE = re.compile(r"No such file|does not exist|Cannot open file|Cannot get (file )?size|not found|[Cc]annot read|Cannot list", re.S)


class Wrong(Exception):
    """Cells that are not as they should be."""


def text(block, version, cell):
    return f"{block}.{version}.{cell}"


def coordinate(kind, block, cell):
    if kind == "dense":
        return block * CELLS + cell
    return (block // WORKERS * CELLS + cell) * WORKERS + block % WORKERS


def blocks_of(kind, x, b, v, s, e):
    """Versions by block; every cell is looked at."""
    found = collections.defaultdict(list)
    for x, b, v, s, e in zip(x.tolist(), b.tolist(), v.tolist(), s, e.tolist()):
        if kind == "dense" and b == FILL and v == FILL:
            continue
        s = s.decode() if isinstance(s, bytes) else str(s)
        cell = int(s.rpartition(".")[2] or -1)
        # Where the newest fragment of a dense array lacks an attribute, libtiledb shows what an attribute of the same name, dropped
        # since, had in an older one.
        is_older = kind == "dense" and whose == "theirs" and FILL < e < v
        if not 0 <= cell < CELLS or coordinate(kind, b, cell) != x or s != text(b, v, cell) or not (e in (v, FILL) or is_older):
            raise Wrong(f"cell {x}: block {b}, version {v}, {s!r}, extra {e}")
        found[b].append((v, cell))
    for b, cells in found.items():
        if sorted(cells) != [(cells[0][0], cell) for cell in range(CELLS)]:
            raise Wrong(f"block {b} is not whole: {sorted(cells)}")
    return {b: cells[0][0] for b, cells in found.items()}


def read(folder, kind):
    with tiledb.open(f"{folder}/{kind}", ctx=ctx) as array:
        got = array[:] if kind == "dense" else array.query(coords=True)[:]
        x = np.arange(CELLS * BLOCKS * WORKERS) if kind == "dense" else got["x"]
        return blocks_of(kind, x, got["b"], got["v"], got["s"], got.get(EXTRA, got["v"]))


def delete_fragments(uri, names):
    """Deletes fragments by their names, for which TileDB-Py has no function."""
    folder = os.path.join(os.path.dirname(os.path.dirname(tiledb.__file__)), "tiledb.libs")
    library = ctypes.CDLL(glob.glob(os.path.join(folder, "libtiledb*.so*"))[0])
    own, error, text = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p()
    library.tiledb_ctx_alloc(None, ctypes.byref(own))
    try:
        uris = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
        if library.tiledb_array_delete_fragments_list(own, uri.encode(), uris, ctypes.c_size_t(len(names))) != 0:
            library.tiledb_ctx_get_last_error(own, ctypes.byref(error))
            library.tiledb_error_message(error, ctypes.byref(text))
            said = text.value.decode()
            library.tiledb_error_free(ctypes.byref(error))
            raise tiledb.TileDBError(said)
    finally:
        library.tiledb_ctx_free(ctypes.byref(own))


def resident_kib():
    try:
        with open("/proc/self/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
    except OSError:
        return None


class Worker:
    def __init__(self, whose, number, seed, folder):
        self.ours, self.number, self.folder = whose == "ours", number, folder
        self.random = random.Random(seed * 4 + number)
        self.version = 0
        self.own = {kind: {} for kind in KINDS}
        self.others = {kind: {} for kind in KINDS}
        self.counts = collections.Counter()

    def uri(self, kind):
        return f"{self.folder}/{kind}"

    def tried(self, what, change, lost=None):
        """Does it and counts it; an error that a race explains is counted, too."""
        # Two changes of one process have two times, or no order.
        time.sleep(0.002)
        try:
            result = change()
        except tiledb.TileDBError as error:
            if lost is None or not lost.search(str(error)):
                raise
            said = re.sub(r"\S*(/|__)\S*", "NAME", str(error))
            self.counts[f"{what}: {re.sub('[0-9]', '', said)}"] += 1
            return False
        self.counts[what] += 1
        return True if result is None else result

    def choose(self, kind):
        block = self.random.randrange(BLOCKS) * WORKERS + self.number
        return block, self.own[kind].get(block)

    def put(self, kind, block, version):
        cells = range(CELLS)
        with tiledb.open(self.uri(kind), "w", ctx=ctx) as array:
            values = {
                "b": np.full(CELLS, block, dtype=np.int64),
                "v": np.full(CELLS, version, dtype=np.int64),
                "s": np.array([text(block, version, cell) for cell in cells], dtype="O"),
            }
            if array.schema.has_attr(EXTRA):
                values[EXTRA] = np.full(CELLS, version, dtype=np.int64)
            x = [coordinate(kind, block, cell) for cell in cells]
            if kind == "dense":
                array[x[0] : x[-1] + 1] = values
            else:
                array[np.array(x, dtype=np.int64)] = values
            return [uri for uri in array.last_write_info] if array.last_write_info else []

    # What libtiledb does when the files that it has listed are vacuumed before it reads them: the same command works when it is
    # given again.
    def patiently(self, what, change):
        for _ in range(50):
            if self.tried(what, change, None if self.ours else GONE) is not False:
                return
        raise Wrong(f"{what}: fifty times in a row something was gone")

    def write(self, kind):
        block, there = self.choose(kind)
        if kind == "duplicates" and there is not None:
            return self.delete_block(kind, block)
        self.version += 1
        self.patiently("write", lambda: self.put(kind, block, self.version) and None)
        self.own[kind][block] = self.version

    def delete(self, kind):
        block, there = self.choose(kind)
        if kind != "dense" and there is not None:
            self.delete_block(kind, block)

    def delete_block(self, kind, block):
        def submit():
            with tiledb.open(self.uri(kind), "d", ctx=ctx) as array:
                array.query(cond=f"b == {block}").submit()

        self.patiently("delete cells", submit)
        self.own[kind].pop(block)

    def delete_fragments(self, kind):
        block, there = self.choose(kind)
        if there is not None:
            return
        self.version += 1
        names = []
        self.tried("write", lambda: names.extend(self.put(kind, block, self.version)))
        deleted = self.tried("delete fragments", lambda: delete_fragments(self.uri(kind), names), re.compile("fragment"))
        found = read(self.folder, kind).get(block)
        if found not in (None, self.version) or (found is None and not deleted):
            raise Wrong(f"{kind}: block {block} has version {found}, wrote {self.version}, deleted: {deleted}")
        if found is None:
            self.own[kind].pop(block, None)
        else:
            self.own[kind][block] = found

    def metadata(self, kind):
        self.version += 1
        key = f"worker {self.number}"

        def put():
            with tiledb.open(self.uri(kind), "w", ctx=ctx) as array:
                array.meta[key] = self.version

        found = []

        def get():
            with tiledb.open(self.uri(kind), ctx=ctx) as array:
                found.append(int(array.meta[key]))

        self.patiently("metadata", put)
        self.patiently("read metadata", get)
        if found[-1] != self.version:
            raise Wrong(f"{kind}: {key!r} is {found[-1]}, not {self.version}")

    def evolve(self, kind):
        change = tiledb.ArraySchemaEvolution(ctx)
        if tiledb.ArraySchema.load(self.uri(kind), ctx=ctx).has_attr(EXTRA):
            change.drop_attribute(EXTRA)
        else:
            change.add_attribute(tiledb.Attr(name=EXTRA, dtype=np.int64, ctx=ctx))
        self.tried("evolve", lambda: change.array_evolve(self.uri(kind)), re.compile("attribute"))

    def settings(self, **more):
        return tiledb.Config({**ctx.config().dict(), **{key.replace("__", "."): value for key, value in more.items()}})

    def consolidate(self, kind):
        mode = self.random.choice(["commits", "fragment_meta", "array_meta", "fragments", "fragments", "fragments"])
        config = self.settings(sm__consolidation__mode=mode)
        lost = re.compile("fragment") if mode == "fragments" else None
        self.tried(f"consolidate {mode}", lambda: tiledb.consolidate(self.uri(kind), config=config, ctx=ctx) and None, lost)

    def vacuum(self, kind):
        mode = self.random.choice(["commits", "fragment_meta", "array_meta", "fragments", "fragments"])
        config = self.settings(sm__vacuum__mode=mode)
        self.tried(f"vacuum {mode}", lambda: tiledb.vacuum(self.uri(kind), config=config, ctx=ctx))

    def looked(self, kind):
        """All blocks. libtiledb may lose a race with our vacuum, and sees a consolidation of duplicates before it knows what was
        replaced: looking again helps."""
        for attempt in range(60):
            try:
                return read(self.folder, kind)
            except tiledb.TileDBError as error:
                if self.ours or not GONE.search(str(error)):
                    raise
                self.counts["read: gone, then read again"] += 1
            except Wrong:
                if self.ours or kind != "duplicates" or attempt == 59:
                    raise
                self.counts["read: doubled, then read again"] += 1
                time.sleep(0.1)
        raise Wrong(f"{kind}: sixty times in a row something was gone")

    def look(self, kind):
        found = self.looked(kind)
        self.counts["read"] += 1
        own = {block: version for block, version in found.items() if block % WORKERS == self.number}
        if own != self.own[kind]:
            differing = dict(own.items() ^ self.own[kind].items()).keys()
            raise Wrong(f"{kind}: " + "; ".join(f"block {b}: version {own.get(b)}, not {self.own[kind].get(b)}" for b in differing))
        for block, version in found.items():
            if self.others[kind].get(block, 0) > version:
                raise Wrong(f"{kind}: block {block} went from {self.others[kind][block]} to {version}")
            self.others[kind][block] = version

    def step(self):
        kind = self.random.choice(KINDS)
        n = self.random.randrange(100)
        if n < 40:
            self.write(kind)
        elif n < 50:
            self.delete(kind)
        elif n < 56:
            self.metadata(kind)
        # libtiledb's maintenance knows nothing of our lock.
        elif self.ours and n < 60:
            self.delete_fragments(kind)
        elif self.ours and n < 62:
            self.evolve(kind)
        elif self.ours and n < 74:
            self.consolidate(kind)
        elif self.ours and n < 82:
            self.vacuum(kind)
        self.look(kind)


def say(**words):
    print(json.dumps(words), flush=True)


def is_ours():
    """Whether this process has our library, as far as the system tells."""
    try:
        with open("/proc/self/maps") as maps:
            return "azulejo_capi" in maps.read()
    except OSError:
        return whose == "ours"


whose = sys.argv[1]
ctx = tiledb.Ctx({"sm.compute_concurrency_level": "2", "sm.io_concurrency_level": "2"})
if is_ours() != (whose == "ours"):
    sys.exit(f"the C API is not {whose}")
if sys.argv[2] == "read":
    say(own={kind: read(sys.argv[3], kind) for kind in KINDS})
else:
    worker = Worker(whose, int(sys.argv[2]), int(sys.argv[4]), sys.argv[5])
    end, said = time.monotonic() + float(sys.argv[3]), time.monotonic()
    while time.monotonic() < end:
        try:
            worker.step()
        except (Wrong, tiledb.TileDBError) as error:
            sys.exit(f"worker {worker.number} ({whose}): {type(error).__name__}: {error}")
        if time.monotonic() - said >= 1:
            said = time.monotonic()
            say(kib=resident_kib())
    say(own=worker.own, counts=worker.counts)
