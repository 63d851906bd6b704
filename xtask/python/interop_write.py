"""The reference as a server: one JSON command a line on standard input, one JSON answer a line on standard output.

Values travel as hexadecimal digits; the cells of a read go to a file, for each column the bytes of data, offsets and
validity one after another, with their lengths in the answer.
"""
import ctypes as C
import json
import os
import sys

import capi
from capi import COL, DELETE, READ, ROW, VAR, Ctx, Field, Refused


def context(command, **settings):
    if command.get("key"):
        settings.update({"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": command["key"]})
    return Ctx(settings)


def field(f):
    out = Field(f["name"], f["datatype"], VAR if f["num"] == 0 else f["num"], f["nullable"])
    out.long = True
    if f.get("fill") is not None:
        out.fill = bytes.fromhex(f["fill"])
    return out


def tree(t):
    kind = t[0]
    if kind == "cmp":
        return (kind, t[1], t[2], bytes.fromhex(t[3]))
    if kind == "in":
        return (kind, t[1], t[2], [bytes.fromhex(v) for v in t[3]])
    return (kind, *map(tree, t[1:]))


def ranges_of(command):
    return [(var, [(bytes.fromhex(lo), bytes.fromhex(hi)) for lo, hi in several]) for var, several in command["ranges"]]


def do_read(command):
    fields = [field(f) for f in command["fields"]]
    condition = tree(command["tree"]) if command.get("tree") else None
    got, n = capi.read(context(command), command["uri"], fields, command["layout"], ranges_of(command), condition, command["t"])
    columns = [[len(part) for part in got[f.name]] for f in fields]
    with open(command["out"], "wb") as out:
        for f in fields:
            out.write(b"".join(got[f.name]))
    return dict(cells=n, columns=columns)


def do_aggregate(command):
    f = field(command["field"])
    found = capi.aggregate(context(command), command["uri"], f, command["ops"], command["t"])
    return dict(found={op: None if v is None else v.hex() for op, v in found.items()})


def do_write(command):
    columns = [(field(f), [None if v is None else bytes.fromhex(v) for v in cells]) for f, cells in command["columns"]]
    box = command.get("box") and [(bytes.fromhex(lo), bytes.fromhex(hi)) for lo, hi in command["box"]]
    capi.write(context(command), command["uri"], command["layout"], columns, box, command["t"])
    return {}


def do_delete(command):
    c, t = context(command), command["t"]
    a = capi.open_array(c, command["uri"], DELETE, (0, t))
    try:
        q = c.new("tiledb_query_alloc", a, C.c_int(DELETE))
        c("tiledb_query_set_condition", q, capi.condition(c, tree(command["tree"])))
        c("tiledb_query_submit", q)
        capi.LIB.tiledb_query_free(C.byref(q))
    finally:
        capi.close(c, a)
    return {}


def do_evolve(command):
    c = context(command)
    e = c.new("tiledb_array_schema_evolution_alloc")
    if command.get("add"):
        capi.add_attribute(c, e, "tiledb_array_schema_evolution_add_attribute", field(command["add"]))
    if command.get("drop"):
        c("tiledb_array_schema_evolution_drop_attribute", e, command["drop"].encode())
    t = C.c_uint64(command["t"])
    c("tiledb_array_schema_evolution_set_timestamp_range", e, t, t)
    c("tiledb_array_evolve", command["uri"].encode(), e)
    return {}


def do_consolidate(command):
    c = context(command, **{"sm.consolidation.mode": command["mode"], "sm.consolidation.purge_deleted_cells": command.get("purge", "false")})
    c("tiledb_array_consolidate", command["uri"].encode(), c.config)
    return {}


def do_vacuum(command):
    c = context(command, **{"sm.vacuum.mode": command["mode"]})
    c("tiledb_array_vacuum", command["uri"].encode(), c.config)
    return {}


def do_upgrade(command):
    c = context(command)
    c("tiledb_array_upgrade_version", command["uri"].encode(), c.config)
    return {}


def main():
    answers = os.fdopen(os.dup(1), "w")
    # Whatever else prints must not end up among the answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = globals()["do_" + command["cmd"]](command)
        except Refused as e:
            answer = dict(error=str(e)[:400])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
