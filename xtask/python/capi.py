"""The reference's C API through ctypes: only the calls that the interop scripts need.

No binding stands between: every value that is written or read is the raw bytes of TileDB's own buffers.
"""
import ctypes as C
import glob
import os

import numpy as np
import tiledb  # only to find the shared library

LIB = C.CDLL(glob.glob(os.path.join(os.path.dirname(os.path.dirname(tiledb.__file__)), "tiledb.libs", "libtiledb*.so*"))[0])
LIB.tiledb_datatype_size.restype = C.c_uint64
VAR = 0xFFFFFFFF
READ, WRITE, DELETE = 0, 1, 2
DENSE, SPARSE = 0, 1
ROW, COL, GLOBAL, UNORDERED, HILBERT = range(5)


class Refused(Exception):
    """The reference returned an error."""


class Ctx:
    def __init__(self, settings=None):
        config, err = C.c_void_p(), C.c_void_p()
        LIB.tiledb_config_alloc(C.byref(config), C.byref(err))
        for key, value in dict({"sm.compute_concurrency_level": "1", "sm.io_concurrency_level": "1"}, **(settings or {})).items():
            if LIB.tiledb_config_set(config, key.encode(), str(value).encode(), C.byref(err)) != 0:
                raise Refused("config " + key)
        self.config, self.p = config, C.c_void_p()
        if LIB.tiledb_ctx_alloc(config, C.byref(self.p)) != 0:
            raise Refused("ctx")

    def __call__(self, name, *args):
        if getattr(LIB, name)(self.p, *args) != 0:
            err, text = C.c_void_p(), C.c_char_p()
            LIB.tiledb_ctx_get_last_error(self.p, C.byref(err))
            if err:
                LIB.tiledb_error_message(err, C.byref(text))
            raise Refused("%s: %s" % (name, (text.value or b"?").decode("utf8", "replace")))

    def new(self, name, *args):
        p = C.c_void_p()
        self(name, *args, C.byref(p))
        return p

    def get(self, ctype, name, *args):
        v = ctype()
        self(name, *args, C.byref(v))
        return v.value


def raw(data):
    """bytes -> (buffer, size in bytes); never a null pointer"""
    return C.create_string_buffer(bytes(data) or b"\0", max(len(data), 1)), C.c_uint64(len(data))


def filter_list(c, specs):
    out = c.new("tiledb_filter_list_alloc")
    for kind, options in specs:
        f = c.new("tiledb_filter_alloc", C.c_int(kind))
        for option, value in options:
            c("tiledb_filter_set_option", f, C.c_int(option), C.byref(value))
        c("tiledb_filter_list_add_filter", out, f)
    return out


class Field:
    """An attribute or dimension: name, datatype id, values a cell (or VAR), nullable."""

    def __init__(self, name, datatype, num=1, nullable=False, filters=(), **more):
        self.name, self.datatype, self.num, self.nullable, self.filters = name, datatype, num, nullable, list(filters)
        self.size = LIB.tiledb_datatype_size(C.c_int(datatype))
        self.domain = self.extent = self.fill = self.enumeration = None
        self.__dict__.update(more)

    @property
    def var(self):
        return self.num == VAR


def open_array(c, uri, mode, t=None):
    a = c.new("tiledb_array_alloc", uri.encode())
    if t:
        c("tiledb_array_set_open_timestamp_start", a, C.c_uint64(t[0]))
        c("tiledb_array_set_open_timestamp_end", a, C.c_uint64(t[1]))
    c("tiledb_array_open", a, C.c_int(mode))
    return a


def close(c, a):
    c("tiledb_array_close", a)
    LIB.tiledb_array_free(C.byref(a))


def add_attribute(c, target, call, f):
    at = c.new("tiledb_attribute_alloc", f.name.encode(), C.c_int(f.datatype))
    if f.num != 1:
        c("tiledb_attribute_set_cell_val_num", at, C.c_uint32(f.num))
    if f.nullable:
        c("tiledb_attribute_set_nullable", at, C.c_uint8(1))
    if f.filters:
        c("tiledb_attribute_set_filter_list", at, filter_list(c, f.filters))
    if f.fill is not None:
        b, n = raw(f.fill)
        if f.nullable:
            c("tiledb_attribute_set_fill_value_nullable", at, b, n, C.c_uint8(0))
        else:
            c("tiledb_attribute_set_fill_value", at, b, n)
    if f.enumeration:
        c("tiledb_attribute_set_enumeration_name", at, f.enumeration.encode())
    c(call, target, at)


class Range(C.Structure):
    _fields_ = [("min", C.c_void_p), ("min_size", C.c_uint64), ("max", C.c_void_p), ("max_size", C.c_uint64)]


def current_domain(c, domain, bounds):
    """bounds: {dimension name: (low bytes, high bytes)}"""
    box, keep = c.new("tiledb_ndrectangle_alloc", domain), []
    for name, (lo, hi) in bounds.items():
        keep += [raw(lo), raw(hi)]
        (a, n), (b, m) = keep[-2:]
        r = Range(C.cast(a, C.c_void_p), n, C.cast(b, C.c_void_p), m)
        c("tiledb_ndrectangle_set_range_for_name", box, name.encode(), C.byref(r))
    out = c.new("tiledb_current_domain_create")
    c("tiledb_current_domain_set_ndrectangle", out, box)
    return out


def expand_current_domain(c, uri, bounds, t):
    schema = c.new("tiledb_array_schema_load", uri.encode())
    domain = c.new("tiledb_array_schema_get_domain", schema)
    e = c.new("tiledb_array_schema_evolution_alloc")
    c("tiledb_array_schema_evolution_expand_current_domain", e, current_domain(c, domain, bounds))
    c("tiledb_array_schema_evolution_set_timestamp_range", e, C.c_uint64(t), C.c_uint64(t))
    c("tiledb_array_evolve", uri.encode(), e)


def label_home(c, uri, name):
    """-> URI of the array and name of the attribute that hold a dimension label"""
    schema = c.new("tiledb_array_schema_load", uri.encode())
    label = c.new("tiledb_array_schema_get_dimension_label_from_name", schema, name.encode())
    return tuple(c.get(C.c_char_p, "tiledb_dimension_label_get_" + what, label).decode() for what in ("uri", "label_attr_name"))


def create(c, uri, kind, dims, attrs, cell, tile, capacity, dups, coords, offsets, validity, enumerations, current=None, labels=()):
    """current: bounds as for `current_domain`; labels: [(name, dimension's index, order (1: up, 2: down), datatype)]"""
    schema = c.new("tiledb_array_schema_alloc", C.c_int(kind))
    domain = c.new("tiledb_domain_alloc")
    for d in dims:
        dom = raw(d.domain)[0] if d.domain is not None else None
        ext = raw(d.extent)[0] if d.extent is not None else None
        dim = c.new("tiledb_dimension_alloc", d.name.encode(), C.c_int(d.datatype), dom, ext)
        if d.filters:
            c("tiledb_dimension_set_filter_list", dim, filter_list(c, d.filters))
        c("tiledb_domain_add_dimension", domain, dim)
    c("tiledb_array_schema_set_domain", schema, domain)
    for name, (datatype, num, ordered, data, offs) in enumerations.items():
        b, n = raw(data)
        o, on = raw(np.array(offs, dtype="u8").tobytes()) if num == VAR else (None, C.c_uint64(0))
        e = c.new("tiledb_enumeration_alloc", name.encode(), C.c_int(datatype), C.c_uint32(num), C.c_int(ordered), b, n, o, on)
        c("tiledb_array_schema_add_enumeration", schema, e)
    for f in attrs:
        add_attribute(c, schema, "tiledb_array_schema_add_attribute", f)
    c("tiledb_array_schema_set_cell_order", schema, C.c_int(cell))
    c("tiledb_array_schema_set_tile_order", schema, C.c_int(tile))
    if kind == SPARSE:
        c("tiledb_array_schema_set_capacity", schema, C.c_uint64(capacity))
        c("tiledb_array_schema_set_allows_dups", schema, C.c_int(dups))
    for call, specs in (("coords", coords), ("offsets", offsets), ("validity", validity)):
        if specs is not None:
            c("tiledb_array_schema_set_%s_filter_list" % call, schema, filter_list(c, specs))
    if current:
        c("tiledb_array_schema_set_current_domain", schema, current_domain(c, domain, current))
    for name, at, order, datatype in labels:
        c("tiledb_array_schema_add_dimension_label", schema, C.c_uint32(at), name.encode(), C.c_int(order), C.c_int(datatype))
    c("tiledb_array_schema_check", schema)
    c("tiledb_array_create", uri.encode(), schema)


def write(c, uri, layout, columns, box=None, t=None):
    """columns: [(Field, [bytes or None per cell])]; box: bytes of lo, hi for each dimension"""
    a = open_array(c, uri, WRITE, t and (0, t))
    q = c.new("tiledb_query_alloc", a, C.c_int(WRITE))
    c("tiledb_query_set_layout", q, C.c_int(layout))
    keep = []
    if box is not None:
        s = c.new("tiledb_subarray_alloc", a)
        for i, (lo, hi) in enumerate(box):
            keep += [raw(lo)[0], raw(hi)[0]]
            c("tiledb_subarray_add_range", s, C.c_uint32(i), keep[-2], keep[-1], None)
        c("tiledb_query_set_subarray_t", q, s)
    for f, cells in columns:
        name = f.name.encode()
        blank = b"" if f.var else bytes(f.size * f.num)
        data = raw(b"".join(blank if x is None else x for x in cells))
        keep.append(data)
        c("tiledb_query_set_data_buffer", q, name, data[0], C.byref(data[1]))
        if f.var:
            lengths = [0 if x is None else len(x) for x in cells]
            offs = raw(np.cumsum([0] + lengths)[:-1].astype("u8").tobytes())
            keep.append(offs)
            c("tiledb_query_set_offsets_buffer", q, name, offs[0], C.byref(offs[1]))
        if f.nullable:
            valid = raw(bytes(x is not None for x in cells))
            keep.append(valid)
            c("tiledb_query_set_validity_buffer", q, name, valid[0], C.byref(valid[1]))
    try:
        c("tiledb_query_submit", q)
        c("tiledb_query_finalize", q)
    finally:
        LIB.tiledb_query_free(C.byref(q))
        close(c, a)


def aggregate(c, uri, f, ops, t=None):
    """Aggregates of a field over all cells: {op: bytes, or None where there is no value}"""
    a = open_array(c, uri, READ, t)
    q = c.new("tiledb_query_alloc", a, C.c_int(READ))
    keep = {}
    try:
        c("tiledb_query_set_layout", q, C.c_int(UNORDERED))
        channel = c.new("tiledb_query_get_default_channel", q)
        for op in ops:
            if op == "count":
                operation = c.new("tiledb_aggregate_count_get")
            else:
                operator = c.new("tiledb_channel_operator_%s_get" % op)
                operation = c.new("tiledb_create_unary_aggregate", q, operator, f.name.encode())
            c("tiledb_channel_apply_aggregate", channel, op.encode(), operation)
            data, valid = raw(bytes(f.size if op in ("min", "max") else 8)), raw(b"\0")
            keep[op] = (data, valid)
            c("tiledb_query_set_data_buffer", q, op.encode(), data[0], C.byref(data[1]))
            if f.nullable and op in ("min", "max", "sum"):
                c("tiledb_query_set_validity_buffer", q, op.encode(), valid[0], C.byref(valid[1]))
        c("tiledb_query_submit", q)
        null = lambda op: f.nullable and op in ("min", "max", "sum") and keep[op][1][0].raw[0] == 0
        return {op: None if null(op) else keep[op][0][0].raw for op in ops}
    finally:
        LIB.tiledb_query_free(C.byref(q))
        close(c, a)


COMPARISONS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "==": 4, "!=": 5}


def condition(c, tree):
    """tree: ('cmp', name, op, bytes or None) | ('in', name, negated, [bytes]) | ('and'|'or', a, b) | ('not', a)"""
    kind = tree[0]
    if kind == "cmp":
        q = c.new("tiledb_query_condition_alloc")
        b, n = (None, C.c_uint64(0)) if tree[3] is None else raw(tree[3])
        c("tiledb_query_condition_init", q, tree[1].encode(), b, n, C.c_int(COMPARISONS[tree[2]]))
        return q
    if kind == "in":
        data = raw(b"".join(tree[3]))
        offs = raw(np.cumsum([0] + [len(x) for x in tree[3]])[:-1].astype("u8").tobytes())
        return c.new("tiledb_query_condition_alloc_set_membership", tree[1].encode(), data[0], data[1], offs[0], offs[1], C.c_int(7 if tree[2] else 6))
    if kind == "not":
        return c.new("tiledb_query_condition_negate", condition(c, tree[1]))
    return c.new("tiledb_query_condition_combine", condition(c, tree[1]), condition(c, tree[2]), C.c_int(0 if kind == "and" else 1))


def read(c, uri, fields, layout, ranges, tree=None, t=None, capacity=None):
    """-> {name: (data bytes, offsets bytes, validity bytes)} and the number of cells; offsets: one a cell

    ranges: for each dimension (or label: its name and the ranges of its values) whether they are var-length, and the ranges
    """
    a = open_array(c, uri, READ, t)
    out = {f.name: [bytearray(), bytearray(), bytearray()] for f in fields}
    # Room for the result of one step: where it takes several, the reference keeps the order within each.
    total, capacity = 0, capacity or 1 << (20 if any(getattr(f, "long", False) for f in fields) else 16)
    q = c.new("tiledb_query_alloc", a, C.c_int(READ))
    try:
        c("tiledb_query_set_layout", q, C.c_int(layout))
        keep = []
        s = c.new("tiledb_subarray_alloc", a)
        for i, (var, several, *label) in enumerate(ranges):
            for lo, hi in several:
                keep += [raw(lo), raw(hi)]
                (lo, ln), (hi, hn) = keep[-2:]
                if label and var:
                    c("tiledb_subarray_add_label_range_var", s, label[0].encode(), lo, ln, hi, hn)
                elif label:
                    c("tiledb_subarray_add_label_range", s, label[0].encode(), lo, hi, None)
                elif var:
                    c("tiledb_subarray_add_range_var", s, C.c_uint32(i), lo, ln, hi, hn)
                else:
                    c("tiledb_subarray_add_range", s, C.c_uint32(i), lo, hi, None)
        c("tiledb_query_set_subarray_t", q, s)
        if tree is not None:
            c("tiledb_query_set_condition", q, condition(c, tree))
        while True:
            bufs = {}
            for f in fields:
                name, b = f.name.encode(), []
                for call, wanted in (("data", True), ("offsets", f.var), ("validity", f.nullable)):
                    if wanted:
                        room = capacity * (8 if call == "offsets" else max(f.size, 1) * (4 if f.var else f.num) if call == "data" else 1)
                        mem = np.zeros(room, dtype="u1")
                        n = C.c_uint64(room)
                        c("tiledb_query_set_%s_buffer" % call, q, name, mem.ctypes.data_as(C.c_void_p), C.byref(n))
                        b.append((mem, n))
                    else:
                        b.append(None)
                bufs[f.name] = b
            c("tiledb_query_submit", q)
            status = c.get(C.c_int, "tiledb_query_get_status", q)
            got = 0
            for f in fields:
                d, o, v = bufs[f.name]
                got = o[1].value // 8 if f.var else d[1].value // (f.size * f.num)
                base = len(out[f.name][0])
                out[f.name][0] += d[0][: d[1].value].tobytes()
                if o:
                    out[f.name][1] += (o[0][: o[1].value].view("u8") + np.uint64(base)).astype("u8").tobytes()
                if v:
                    out[f.name][2] += v[0][: v[1].value].tobytes()
            total += got
            if status == 1:
                return {k: tuple(map(bytes, v)) for k, v in out.items()}, total
            if status != 3:
                raise Refused("query status %d" % status)
            if layout in (ROW, COL) and capacity < 1 << 23:
                return read(c, uri, fields, layout, ranges, tree, t, capacity * 4)
            if got == 0:
                capacity *= 4
                if capacity > 1 << 26:
                    raise Refused("no progress")
    finally:
        LIB.tiledb_query_free(C.byref(q))
        close(c, a)
