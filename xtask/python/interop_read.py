"""Random arrays written by the reference, and random queries with what the reference answers.

usage: interop_read.py OUT --seed S --count N
Array `a<seed>` follows from its seed alone; what came into the generator later draws from a stream of its own, so that old
seeds keep their arrays and queries as far as possible. OUT/queries.jsonl has one query a line; its answer is OUT/<result>: for each
column the bytes of data, offsets and validity one after another, with their lengths in the line.
"""
import argparse
import ctypes as C
import json
import math
import os
import random
import shutil
import struct
import sys
import time

import numpy as np

import capi
from capi import COL, DENSE, GLOBAL, HILBERT, ROW, SPARSE, UNORDERED, VAR, Ctx, Field, Refused

I32, I64, F32, F64, CHAR, I8, U8, I16, U16, U32, U64, ASCII, UTF8 = range(13)
BLOB, BOOL, WKB, WKT = 40, 41, 42, 43
UTF16, UTF32, UCS2, UCS4 = range(13, 17)
WIDE = {UTF16: "H", UTF32: "I", UCS2: "H", UCS4: "I"}
KEY = "0123456789abcdeF0123456789abcdeF"
INTEGERS = {I8: "b", U8: "B", I16: "h", U16: "H", I32: "i", U32: "I", I64: "q", U64: "Q"}
TICKS = list(range(18, 40))
FORMAT = {**INTEGERS, **WIDE, **{t: "q" for t in TICKS}, F32: "f", F64: "d", BOOL: "B", CHAR: "b", BLOB: "B", WKB: "B", WKT: "B", ASCII: "B", UTF8: "B"}
BOUNDS = {f: (0, 2 ** (8 * struct.calcsize(f)) - 1) if f.isupper() else (-2 ** (8 * struct.calcsize(f) - 1), 2 ** (8 * struct.calcsize(f) - 1) - 1) for f in "bBhHiIqQ"}
GZIP, ZSTD, LZ4, RLE, BZIP2, DDELTA, BITWIDTH, BITSHUF, BYTESHUF, POSDELTA = range(1, 11)
MD5, SHA256, DICT, SCALE, XOR, WEBP, DELTA = 12, 13, 14, 15, 16, 18, 19
LAYOUTS = {ROW: "row", COL: "col", GLOBAL: "global", UNORDERED: "unordered"}


def pack(t, v):
    return struct.pack("<" + FORMAT[t], v)


def compressor(R):
    kind = R.choice([GZIP, ZSTD, LZ4, BZIP2])
    return (kind, [] if kind == LZ4 or R.random() < 0.5 else [(0, C.c_int32(R.randint(1, 9)))])


def chain(R, t, num, var):
    """a random legal pipeline for a field; every filter can occur"""
    if R.random() < 0.2:
        return []
    out = []
    if var and t in (ASCII, UTF8) and R.random() < 0.4:
        out.append((R.choice([RLE, DICT]), []))
        if R.random() < 0.5:
            out.append(compressor(R))
    elif not var and t in (F32, F64) and R.random() < 0.2:
        out.append((SCALE, [(3, C.c_uint64(8)), (4, C.c_double(0.25)), (5, C.c_double(1.0))]))
        if R.random() < 0.5:
            out.append((R.choice([DELTA, BITWIDTH, BYTESHUF, XOR]), []))
    elif t in INTEGERS or t in TICKS:
        head = R.choice(["none", "bitwidth", "ddelta", "delta", "xor", "rle"])
        if head == "bitwidth":
            out.append((BITWIDTH, [] if R.random() < 0.5 else [(1, C.c_uint32(R.choice([64, 256, 1024])))]))
        elif head == "xor":
            out.append((XOR, []))
        elif head == "rle" and num == 1 and not var:
            out.append((RLE, []))
        elif head == "ddelta" and t not in (U64,):
            out.append((DDELTA, []))
        elif head == "delta":
            out.append((DELTA, []))
    elif t in (F32, F64):
        if R.random() < 0.3:
            out.append((XOR, []))
    if R.random() < 0.4:
        out.append((R.choice([BYTESHUF, BITSHUF]), []))
    if R.random() < 0.6:
        out.append(compressor(R))
    if R.random() < 0.2:
        out.append((R.choice([MD5, SHA256]), []))
    return out


def odd_chain(Y, t):
    """integers taken for others, and windows that are no whole number of values"""
    filters = [(BITWIDTH, [(1, C.c_uint32(Y.choice([1, 7, 13, 33, 100])))])]
    if Y.random() < 0.6:
        narrower = [n for n in INTEGERS if struct.calcsize(INTEGERS[n]) <= struct.calcsize(FORMAT[t])]
        filters = [(DELTA, [(9, C.c_uint8(Y.choice(narrower)))])]
    shuffle = [(Y.choice([BYTESHUF, BITSHUF]), [])] * (Y.random() < 0.3)
    return [(Y.choice([MD5, SHA256]), [])] * (Y.random() < 0.2) + filters + shuffle + [compressor(Y)] * (Y.random() < 0.7)


def scalar(R, t, wide=True):
    if t in (F32, F64):
        special = [0.0, -0.0] + ([float("inf"), float("-inf"), float("nan")] if wide and R.random() < 0.3 else [])
        return pack(t, R.choice(special) if R.random() < 0.08 else R.randint(-4000, 4000) * 0.25)
    if t == BOOL:
        return pack(t, R.randint(0, 1))
    if t in (ASCII, UTF8, CHAR, WKT):
        return bytes([R.choice(b"abcdXYZ019 ")])
    if t in WIDE:
        return pack(t, R.choice([0x41, 0x7A, 0xE9, 0x4E2D]))
    lo, hi = BOUNDS[FORMAT[t]]
    near = R.random()
    if near < 0.05 and wide:
        return pack(t, R.choice([lo, hi]))
    return pack(t, R.randint(max(lo, -1000), min(hi, 1000)))


def cell(R, f, words):
    if f.nullable and R.random() < 0.3:
        return None
    if f.enumeration:
        return pack(f.datatype, R.randint(0, f.entries - 1))
    wide = not any(k in (SCALE, DDELTA) for k, _ in f.filters)
    if f.var:
        if getattr(f, "long", False) and R.random() < 0.3:
            one = scalar(R, f.datatype, wide)
            return one * R.choice([100, 1000, 9000, 40000])
        if f.datatype in (ASCII, UTF8):
            s = R.choice(words) if R.random() < 0.6 else "".join(R.choice("abc xyz") for _ in range(R.choice([0, 0, 1, 4, 9])))
            if f.datatype == UTF8 and R.random() < 0.3:
                s += "\u00e9\u4e2d"
            return s.encode()
        return b"".join(scalar(R, f.datatype, wide) for _ in range(R.choice([0, 1, 1, 2, 5])))
    return b"".join(scalar(R, f.datatype, wide) for _ in range(f.num))


def dimension(R, i, t, dense):
    if t == ASCII:
        return Field("d%d" % i, t, VAR, filters=[(R.choice([RLE, DICT, ZSTD]), [])] if R.random() < 0.5 else [])
    if t in (F32, F64):
        return Field("d%d" % i, t, domain=pack(t, -256.0) + pack(t, 256.0), extent=R.choice([None, pack(t, 16.0)]), lo=-256.0, hi=256.0)
    blo, bhi = BOUNDS[FORMAT[t]]
    ext = R.randint(1, 7) if dense else R.randint(5, 60)
    n = max(1, R.randint(1, 4) * ext - R.randint(0, ext - 1)) if dense else R.randint(50, 110)
    where = R.random()
    lo = blo if where < 0.15 else max(blo, bhi - n - ext - ext) if where < 0.3 else max(blo, R.randint(-20, 5))
    d = Field("d%d" % i, t, domain=pack(t, lo) + pack(t, lo + n - 1), extent=pack(t, min(ext, n)), lo=lo, hi=lo + n - 1)
    if not dense and R.random() < 0.6:
        d.filters = [f for f in chain(R, t, 1, False) if f[0] not in (SCALE,)]
    return d


def literal(f, b):
    """how Azulejo's condition language writes a value"""
    if f.datatype in (ASCII, UTF8, CHAR) or f.enumeration:
        return json.dumps(b.decode("utf8"), ensure_ascii=False)
    if f.enumeration:
        return json.dumps(b.decode())
    v = struct.unpack("<" + FORMAT[f.datatype], b)[0]
    return repr(v)


def random_condition(R, fields, words, depth=0):
    if depth < 2 and R.random() < 0.45:
        kind = R.choice(["and", "or", "not"])
        a, ta = random_condition(R, fields, words, depth + 1)
        if kind == "not":
            return ("not", a), "not (%s)" % ta
        b, tb = random_condition(R, fields, words, depth + 1)
        return (kind, a, b), "(%s) %s (%s)" % (ta, kind, tb)
    f = R.choice(fields)
    if f.nullable and R.random() < 0.3:
        op = R.choice(["==", "!="])
        return ("cmp", f.name, op, None), "%s is %snull" % (f.name, "not " if op == "!=" else "")
    plain = Field(f.name, f.datatype, f.num, False, f.filters)
    value = lambda: R.choice(f.labels).encode() if f.enumeration else cell(R, plain, words)
    if f.datatype not in (F32, F64) and R.random() < 0.25:
        values = sorted({value() for _ in range(R.randint(1, 4))})
        negated = R.random() < 0.5
        return ("in", f.name, negated, values), "%s %sin (%s)" % (f.name, "not " if negated else "", ", ".join(literal(f, v) for v in values))
    op = R.choice(list(capi.COMPARISONS) if not f.enumeration or f.ordered else ["==", "!="])
    v = value()
    if f.datatype in (F32, F64):
        v = pack(f.datatype, R.randint(-4000, 4000) * 0.25)
    return ("cmp", f.name, op, v), "%s %s %s" % (f.name, op, literal(f, v))


class Generated:
    def __init__(self, out, seed):
        self.R = R = random.Random(seed)
        self.X = random.Random("later %d" % seed)
        self.Y = random.Random("later still %d" % seed)
        self.seed, self.name = seed, "a%d" % seed
        self.uri = os.path.join(out, self.name)
        shutil.rmtree(self.uri, ignore_errors=True)
        self.key = KEY if R.random() < 0.1 else None
        crypt = {"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": KEY} if self.key else {}
        self.crypt, self.c = crypt, Ctx(crypt)
        self.dense = R.random() < 0.45
        self.words = ["".join(R.choice("abcxyz") for _ in range(R.randint(0, 6))) for _ in range(5)]
        # The schema is created now, so every later step comes after now.
        self.start = self.clock = int(time.time() * 1000) + 10_000
        self.log = []
        self.make()

    def tick(self):
        self.clock += self.R.randint(1, 20)
        return self.clock

    def unit(self, t):
        """sometimes another unit of time"""
        return self.Y.choice(TICKS) if t in TICKS and self.Y.random() < 0.5 else t

    def attribute(self, i, dense):
        R = self.R
        r = R.random()
        if r < 0.3:
            t, num = R.choice([ASCII, ASCII, UTF8, CHAR, BLOB]), VAR
        elif r < 0.4:
            t, num = R.choice([I16, I32, U64, F64, F32, 25]), VAR
        elif r < 0.5:
            t, num = R.choice([ASCII, CHAR, U8, F32, I32, BLOB]), R.randint(2, 4)
        else:
            t, num = R.choice(list(INTEGERS) + [F32, F64, BOOL] + TICKS), 1
        f = Field("at%d" % i, t, num, nullable=R.random() < 0.35)
        f.filters = chain(R, t, num, num == VAR)
        if R.random() < 0.3 and t not in (CHAR,):
            plain = Field("", t, num, filters=f.filters)
            f.fill = cell(R, plain, self.words) or None
        X = self.X
        if X.random() < 0.15:
            f = Field(f.name, X.choice(list(WIDE)), X.choice([VAR, VAR, 1, 3]), nullable=X.random() < 0.3)
            f.filters = [(X.choice([BYTESHUF, BITSHUF]), [])] * (X.random() < 0.4) + [compressor(X)] * (X.random() < 0.7)
        elif f.var and X.random() < 0.15:
            f.long = True
        Y = self.Y
        if Y.random() < 0.1:
            f = Field(f.name, Y.choice([BLOB, WKB, WKT]), Y.choice([VAR, 1, 7]), nullable=Y.random() < 0.4)
            f.filters = [compressor(Y)] * (Y.random() < 0.7)
        elif (f.datatype in INTEGERS or f.datatype in TICKS) and Y.random() < 0.3:
            f.filters = odd_chain(Y, f.datatype)
        return f

    def picture(self):
        """the only shape that the reference compresses as WebP: a dense 2-D array of bytes, colours along the columns"""
        X = self.X
        kind = X.choice([1, 2, 3, 4])
        channels = 3 if kind < 3 else 4
        t = X.choice([I32, U64, I16])
        for i, d in enumerate(self.dims):
            unit = channels if i else 1
            ext = unit * X.randint(1, 9)
            lo = X.randint(0, 5)
            hi = lo + ext * X.randint(1, 3) - 1
            self.dims[i] = Field(d.name, t, domain=pack(t, lo) + pack(t, hi), extent=pack(t, ext), lo=lo, hi=hi)
        filters = [(WEBP, [(7, C.c_uint8(kind)), (8, C.c_uint8(1)) if X.random() < 0.6 else (6, C.c_float(X.choice([1.0, 50.0, 100.0])))])]
        self.attrs = [Field("pixel", U8, filters=filters, pixels=True)]

    def add_labels(self):
        """ordered labels of dimensions of integers: up or down"""
        X, self.labels = self.X, []
        for i, d in enumerate(self.dims):
            if d.var or d.datatype in (F32, F64) or X.random() < 0.4 or d.hi - d.lo > 4000:
                continue
            self.labels.append(("l%d" % i, i, X.choice([1, 2]), X.choice([I64, F64, I16, 25, ASCII])))

    def write_labels(self):
        X = self.X
        for name, i, order, t in self.labels:
            d = self.dims[i]
            folder, attribute = capi.label_home(self.c, self.uri, name)
            n = d.hi - d.lo + 1
            if t == ASCII:
                values = [b.encode() for b in sorted({"%05d" % v + "x" * X.randint(0, 3) for v in X.sample(range(9 * n), n)})]
            else:
                values = [pack(t, v * (0.5 if t == F64 else 1)) for v in sorted(X.sample(range(-2 * n, 2 * n), n))]
            f = Field(attribute, t, VAR if t == ASCII else 1, values=values, down=order == 2)
            d.label = (name, f)
            capi.write(self.c, folder, ROW, [(f, values[:: 1 if order == 1 else -1])], [(pack(d.datatype, d.lo), pack(d.datatype, d.hi))], self.tick())

    def make(self):
        R, c = self.R, self.c
        dense = self.dense
        if dense:
            nd = R.choice([1, 2, 2, 2, 3])
            t = self.unit(R.choice(list(INTEGERS) + [18, 21, 25, 27]))
            self.dims = [dimension(R, i, t, True) for i in range(nd)]
        else:
            nd = R.choice([1, 1, 2, 2, 3])
            self.dims = [dimension(R, i, self.unit(R.choice(list(INTEGERS) + [F32, F64, ASCII, 21, 25, 34])), False) for i in range(nd)]
        self.attrs = [self.attribute(i, dense) for i in range(R.randint(1, 4))]
        enumerations = {}
        if R.random() < 0.25:
            labels = sorted({"".join(R.choice("rgb") for _ in range(R.randint(1, 4))) for _ in range(5)})
            enumerations["colour"] = (ASCII, VAR, R.randint(0, 1), "".join(labels).encode(), list(np.cumsum([0] + [len(x) for x in labels])[:-1]))
            self.attrs.append(Field("en", R.choice([I8, U8, I32, U16]), nullable=R.random() < 0.3, enumeration="colour", entries=len(labels), labels=labels, ordered=enumerations["colour"][2]))
        self.dups = 0 if dense else int(R.random() < 0.35)
        order = R.choice([ROW, COL])
        if not dense and R.random() < 0.2:
            order = HILBERT
        self.cell_order = order
        offsets = R.choice([None, [(ZSTD, [])], [], [(POSDELTA, []), (BITWIDTH, []), (ZSTD, [])], [(BITWIDTH, []), (LZ4, [])], [(DDELTA, []), (BZIP2, [])]])
        validity = R.choice([None, [], [(ZSTD, [])], [(BYTESHUF, []), (LZ4, [])]])
        X, current, self.current = self.X, None, {}
        tile_order, capacity, self.many = R.choice([ROW, COL]), R.randint(2, 25), False
        coords = R.choice([None, [], [(GZIP, [])]])
        if dense and len(self.dims) == 2 and X.random() < 0.3:
            self.picture()
            order = tile_order = self.cell_order = ROW
            enumerations = {}
        elif X.random() < 0.25 and not any(d.var for d in self.dims):
            current = self.shrink()
        if not dense and X.random() < 0.08:
            # Tiles of several chunks.
            self.many, capacity = True, X.choice([1000, 3000])
        self.labels = []
        if X.random() < 0.3 and not current and not self.key:
            self.add_labels()
        capi.create(c, self.uri, DENSE if dense else SPARSE, self.dims, self.attrs, order, tile_order, capacity, self.dups, coords, offsets, validity, enumerations, current, self.labels)
        self.written = []
        self.write_labels()
        for _ in range(R.randint(1, 5)):
            self.step_write()
            if R.random() < 0.3:
                self.step_more()
            if hasattr(self.dims[0], "whole") and not self.key and self.X.random() < 0.3:
                self.grow()
        self.last = self.clock

    def shrink(self):
        """a current domain inside the domain; from now on everything happens there"""
        X, bounds = self.X, {}
        for d in self.dims:
            d.whole = d.lo, d.hi
            if d.datatype in (F32, F64):
                d.lo, d.hi = sorted(X.sample(range(-256, 257), 2))
            else:
                d.lo, d.hi = sorted((X.randint(d.lo, d.hi), X.randint(d.lo, d.hi)))
            bounds[d.name] = pack(d.datatype, d.lo), pack(d.datatype, d.hi)
        return bounds

    def grow(self):
        """a larger current domain"""
        X, bounds = self.X, {}
        for d in self.dims:
            lo, hi = d.whole
            if d.datatype in (F32, F64):
                d.lo, d.hi = X.randint(-256, int(d.lo)), X.randint(int(d.hi), 256)
            else:
                d.lo, d.hi = X.randint(lo, d.lo), X.randint(d.hi, hi)
            bounds[d.name] = pack(d.datatype, d.lo), pack(d.datatype, d.hi)
        capi.expand_current_domain(self.c, self.uri, bounds, self.tick())
        self.log.append("grow@%d" % self.clock)

    def step_write(self):
        R, c, t = self.R, self.c, self.tick()
        if self.dense:
            box = []
            for d in self.dims:
                x, y = R.randint(d.lo, d.hi), R.randint(d.lo, d.hi)
                box.append((d.lo, d.hi) if R.random() < 0.3 else (min(x, y), max(x, y)))
            n = math.prod(y - x + 1 for x, y in box)
            columns = [(f, [cell(R, f, self.words) for _ in range(n)]) for f in self.attrs]
            layout = R.choice([ROW, COL])
            capi.write(c, self.uri, layout, columns, [(pack(d.datatype, x), pack(d.datatype, y)) for d, (x, y) in zip(self.dims, box)], t)
        else:
            cells = set() if not self.dups else []
            want = R.choice([1, 3, 20, 60])
            if self.many:
                want = self.X.choice([500, 2000, 4000])
            for _ in range(want * 3):
                if len(cells) >= want:
                    break
                if self.written and R.random() < 0.2:
                    p = R.choice(self.written)
                else:
                    p = tuple("".join(R.choice("ACGT") for _ in range(R.randint(0 if i else 1, 4))).encode() if d.var else pack(d.datatype, R.randint(*(int(4 * v) for v in (d.lo, d.hi)) if hasattr(d, "whole") else (-1000, 1000)) * 0.25) if d.datatype in (F32, F64) else pack(d.datatype, R.randint(d.lo, d.hi)) for i, d in enumerate(self.dims))
                cells.add(p) if not self.dups else cells.append(p)
            cells = sorted(cells)
            R.shuffle(cells)
            self.written += cells
            columns = [(d, [p[i] for p in cells]) for i, d in enumerate(self.dims)] + [(f, [cell(R, f, self.words) for _ in cells]) for f in self.attrs]
            capi.write(c, self.uri, UNORDERED, columns, None, t)
        self.log.append("write@%d" % t)

    def step_more(self):
        """evolution, deletes, consolidation, vacuum"""
        R = self.R
        kind = R.choice(["evolve", "drop", "delete", "delete", "consolidate", "meta", "commits", "vacuum"])
        ctx = lambda **more: Ctx(dict(self.crypt, **{k.replace("__", "."): v for k, v in more.items()}))
        uri = self.uri.encode()
        try:
            if kind in ("evolve", "drop") and self.key:
                # The reference writes the new schema without encryption, and nobody opens the array again.
                return
            if kind == "evolve" and len(self.attrs) < 6:
                f = self.attribute(10 + len(self.log), self.dense)
                f.added = True
                e = self.c.new("tiledb_array_schema_evolution_alloc")
                capi.add_attribute(self.c, e, "tiledb_array_schema_evolution_add_attribute", f)
                t = self.tick()
                self.c("tiledb_array_schema_evolution_set_timestamp_range", e, C.c_uint64(t), C.c_uint64(t))
                self.c("tiledb_array_evolve", uri, e)
                self.attrs.append(f)
            elif kind == "drop" and len(self.attrs) > 1 and not self.attrs[0].enumeration:
                e = self.c.new("tiledb_array_schema_evolution_alloc")
                self.c("tiledb_array_schema_evolution_drop_attribute", e, self.attrs[0].name.encode())
                t = self.tick()
                self.c("tiledb_array_schema_evolution_set_timestamp_range", e, C.c_uint64(t), C.c_uint64(t))
                self.c("tiledb_array_evolve", uri, e)
                self.attrs.pop(0)
            elif kind == "delete" and not self.dense and self.conditional():
                tree, text = random_condition(R, self.conditional(), self.words, 1)
                t = self.tick()
                a = capi.open_array(self.c, self.uri, capi.DELETE, (0, t))
                q = self.c.new("tiledb_query_alloc", a, C.c_int(capi.DELETE))
                self.c("tiledb_query_set_condition", q, capi.condition(self.c, tree))
                self.c("tiledb_query_submit", q)
                capi.LIB.tiledb_query_free(C.byref(q))
                capi.close(self.c, a)
                kind += " " + text
            elif kind in ("consolidate", "meta", "commits"):
                mode = {"consolidate": "fragments", "meta": "fragment_meta", "commits": "commits"}[kind]
                c = ctx(**{"sm__consolidation__mode": mode, "sm__consolidation__purge_deleted_cells": R.choice(["true", "false"])})
                c("tiledb_array_consolidate", uri, c.config)
            elif kind == "vacuum":
                for mode in ("fragments", "commits", "fragment_meta"):
                    c = ctx(**{"sm__vacuum__mode": mode})
                    c("tiledb_array_vacuum", uri, c.config)
            else:
                return
            self.log.append(kind + "@%d" % self.clock)
        except Refused as e:
            self.log.append("%s refused: %s" % (kind, str(e)[:80]))

    def conditional(self):
        """fields that the reference compares without special rules; attributes added later are a documented difference"""
        plain = [f for f in [a for a in self.attrs if not hasattr(a, "added")] + ([] if self.dense else self.dims) if (f.num == 1 and f.datatype not in (BLOB, BOOL, WKB, WKT, CHAR, *WIDE) and not hasattr(f, "pixels")) or (f.var and f.datatype in (ASCII, UTF8))]
        return plain

    def taken_for_sorted(self, d):
        """strings that the reference takes for sorted in a tile, though tiles of other dimensions come before them: a documented difference"""
        first = {ROW: self.dims[0], COL: self.dims[-1]}.get(self.cell_order)
        return d.var and d is first and any(other.extent for other in self.dims)

    def query(self, number):
        R = self.R
        fields = R.sample(self.attrs, R.randint(1, len(self.attrs)))
        if not self.dense or R.random() < 0.2:
            fields = list(self.dims) + fields
        several = not self.dense or R.random() < 0.5
        ranges, cells = [], 1
        layout = R.choice([ROW, COL, GLOBAL] + ([] if self.dense else [UNORDERED]))
        multi = R.random() < 0.4 and not (layout == GLOBAL and self.dense)
        for d in self.dims:
            mine = []
            if self.dense or R.random() < 0.45:
                for _ in range(R.randint(1, 3) if multi else 1):
                    if d.var:
                        x, y = sorted("".join(R.choice("ACGT") for _ in range(R.randint(1, 3))).encode() for _ in range(2))
                        mine.append((x, y))
                    elif d.datatype in (F32, F64):
                        x, y = sorted(R.randint(-1000, 1000) * 0.25 for _ in range(2))
                        mine.append((pack(d.datatype, x), pack(d.datatype, y)))
                    else:
                        x, y = (d.lo, d.hi) if R.random() < 0.4 else sorted(R.randint(d.lo, d.hi) for _ in range(2))
                        mine.append((pack(d.datatype, x), pack(d.datatype, y)))
            if self.taken_for_sorted(d):
                mine = []
            if len(mine) > 1:
                # Overlapping ranges are a documented difference of sparse arrays, and corrupt the memory of the
                # reference in dense ones: keep those that are disjoint.
                key = (lambda b: b) if d.var else (lambda b: struct.unpack("<" + FORMAT[d.datatype], b)[0])
                apart = []
                for lo, hi in mine:
                    if all(key(hi) < key(a) or key(b) < key(lo) for a, b in apart):
                        apart.append((lo, hi))
                # Where a sparse result takes the reference several steps, it follows the order of the ranges.
                mine = apart if self.dense else sorted(apart, key=lambda r: key(r[0]))
            ranges.append((d.var, mine))
        tree = text = None
        if R.random() < 0.35 and self.conditional():
            tree, text = random_condition(R, self.conditional(), self.words)
        if self.dense and text and "null" in text and layout not in (GLOBAL, self.cell_order):
            # The reference then looks at the validity of other cells.
            tree = text = None
        if tree is None and layout != GLOBAL:
            ranges = [self.label_ranges(d, mine) for d, mine in zip(self.dims, ranges)]
        t = (0, R.randint(self.start - 10, self.last)) if R.random() < 0.2 else (R.randint(self.start - 10, self.last), self.last) if R.random() < 0.1 else (0, self.last)
        line = dict(array=self.name, seed=self.seed, number=number, key=self.key, dense=self.dense, dups=bool(self.dups), layout=LAYOUTS[layout], t=t, condition=text,
                    ranges=[[[lo.hex(), hi.hex()] for lo, hi in mine] for _, mine, *_ in ranges], labels=[label[0] if label else None for _, _, *label in ranges], fields=[f.name for f in fields], dims=[d.name for d in self.dims], log=self.log)
        picked = self.X.random() < 0.3 and not any(label for _, _, *label in ranges)
        if hasattr(self.dims[0], "whole") and t != (0, self.last):
            # The current domain was another one then.
            picked = False
        try:
            if picked:
                line, got, n = self.picked(line, fields, layout, tree, t)
            else:
                got, n = capi.read(self.c, self.uri, fields, layout, ranges, tree, t)
        except Refused as e:
            return dict(line, refused=str(e)[:300]), b""
        blob, columns = b"", []
        for f in fields:
            parts = got[f.name]
            columns.append(dict(name=f.name, var=f.var, nullable=f.nullable, lengths=[len(p) for p in parts]))
            blob += b"".join(parts)
        return dict(line, cells=n, columns=columns, result="%s.q%d" % (self.name, number)), blob


    def label_ranges(self, d, mine):
        """sometimes ranges of a label instead of ranges of its dimension"""
        X = self.X
        if not hasattr(d, "label") or X.random() < 0.4:
            return mine
        name, f = d.label
        at = sorted(X.randrange(len(f.values)) for _ in range(2 * X.randint(1, 2 if not self.dense else 1)))
        # Disjoint, as for dimensions.
        pairs = [(a, b) for a, b in zip(at[::2], at[1::2])]
        if any(b >= c for (_, b), (c, _) in zip(pairs, pairs[1:])):
            pairs = pairs[:1]
        if not self.dense and f.down:
            # In the order of the coordinates, as above.
            pairs.reverse()
        return f.var, [(f.values[a], f.values[b]) for a, b in pairs], name

    def picked(self, line, fields, layout, tree, t):
        """points or strides: cells picked here from what the reference reads as a whole"""
        X = self.X
        layout = X.choice([ROW, COL]) if tree is None or not self.dense else self.cell_order
        extra = [d for d in self.dims if d not in fields]
        whole = [(d.var, [(pack(d.datatype, d.lo), pack(d.datatype, d.hi))] if self.dense else []) for d in self.dims]
        got, n = capi.read(self.c, self.uri, fields + extra, layout, whole, tree, t)
        cells = {f.name: split(f, got[f.name], n) for f in fields + extra}
        rows = list(zip(*(cells[d.name][0] for d in self.dims)))
        line = dict(line, layout=LAYOUTS[layout])
        number = lambda d, b: struct.unpack("<" + FORMAT[d.datatype], b)[0]
        whole_numbers = not any(d.var or d.datatype in (F32, F64) for d in self.dims)
        if whole_numbers and X.random() < 0.5:
            steps, want = [], range(n)
            for i, d in enumerate(self.dims):
                lo, hi = (d.lo, d.hi) if X.random() < 0.5 else sorted((X.randint(d.lo, d.hi), X.randint(d.lo, d.hi)))
                step = X.choice([1, 2, 3, 7, hi - lo + 1])
                steps.append([pack(d.datatype, lo).hex(), pack(d.datatype, hi).hex(), step])
                want = [r for r in want if lo <= number(d, rows[r][i]) <= hi and (number(d, rows[r][i]) - lo) % step == 0]
            line["steps"] = steps
        else:
            known = [X.choice(rows) for _ in range(X.choice([0, 1, 5, 40]) if rows else 0)]
            random_one = lambda d: "".join(X.choice("ACGT") for _ in range(X.randint(0, 3))).encode() if d.var else pack(d.datatype, X.randint(int(d.lo), int(d.hi)))
            points = known + [tuple(random_one(d) for d in self.dims) for _ in range(X.randint(0 if known else 1, 5))]
            X.shuffle(points)
            if self.dense:
                at = {row: r for r, row in enumerate(rows)}
                want = [at[p] for p in points]
            else:
                chosen = set(points)
                want = [r for r in range(n) if rows[r] in chosen]
            line["points"] = [[p[i].hex() for p in points] for i in range(len(self.dims))]
        return line, {f.name: join(f, cells[f.name], want) for f in fields}, len(want)


def split(f, parts, n):
    """the buffers of a column -> (cells, validity bytes)"""
    data, offsets, validity = parts
    if f.var:
        ends = [int(o) for o in np.frombuffer(offsets, "u8")] + [len(data)]
        return [data[a:b] for a, b in zip(ends, ends[1:])], validity
    size = f.size * f.num
    return [data[i * size : (i + 1) * size] for i in range(n)], validity


def join(f, cells, want):
    """the buffers of some cells"""
    values, validity = cells
    chosen = [values[r] for r in want]
    offsets = np.cumsum([0] + [len(v) for v in chosen])[:-1].astype("u8").tobytes() if f.var else b""
    return b"".join(chosen), offsets, bytes(validity[r] for r in want) if f.nullable else b""


def one(out, seed, queries):
    """all of one seed, in a process of its own: the reference may crash"""
    try:
        g = Generated(out, seed)
    except Refused as e:
        print("seed %d: schema or write refused: %s" % (seed, str(e)[:160]), file=sys.stderr)
        return 2
    with open(os.path.join(out, "a%d.jsonl" % seed), "w") as lines:
        for number in range(queries):
            line, blob = g.query(number)
            if "result" in line:
                with open(os.path.join(out, line["result"]), "wb") as f:
                    f.write(blob)
            lines.write(json.dumps(line) + "\n")
            lines.flush()
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("out"), p.add_argument("--seed", type=int, default=1), p.add_argument("--count", type=int, default=300), p.add_argument("--queries", type=int, default=8)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    refused = crashed = 0
    with open(os.path.join(a.out, "queries.jsonl"), "w") as lines:
        for seed in range(a.seed, a.seed + a.count):
            sys.stdout.flush(), sys.stderr.flush()
            child = os.fork()
            if child == 0:
                code = 3
                try:
                    code = one(a.out, seed, a.queries)
                except BaseException:
                    import traceback

                    traceback.print_exc()
                os._exit(code)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status == 3:
                sys.exit("seed %d: the script failed" % seed)
            refused += status == 2
            crashed += status < 0
            if status < 0:
                print("seed %d: the reference crashed (signal %d)" % (seed, -status), file=sys.stderr)
            part = os.path.join(a.out, "a%d.jsonl" % seed)
            if os.path.exists(part):
                # After a crash the memory of that process, and so its answers, cannot be trusted.
                lines.write(open(part).read() if status == 0 else "")
                os.remove(part)
    print("seeds %d to %d: %d refused, %d crashes of the reference" % (a.seed, a.seed + a.count - 1, refused, crashed))


main()
