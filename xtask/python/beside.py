"""The second operation of `cargo xtask interop beside`: libtiledb, told line by line what to do.

Each line is `{"do": ..., "root": FOLDER}`; the answer is `{"seen": ...}` or `{"error": ...}`.
"""

import json
import os
import sys

import numpy as np
import tiledb

ctx = tiledb.Ctx({"sm.compute_concurrency_level": "1", "sm.io_concurrency_level": "1"})


def cells(uri, timestamp=None):
    with tiledb.open(uri, ctx=ctx, timestamp=timestamp) as array:
        if array.schema.sparse:
            got = array.query(attrs=["a"], coords=True)[:]
            return sorted(zip(got["x"].tolist(), got["a"].tolist()))
        got = array.query(attrs=["a"])[:]
        return (got["a"] if isinstance(got, dict) else got).tolist()


def write(uri):
    with tiledb.open(uri, "w", ctx=ctx) as array:
        count = 1 if array.schema.sparse else 20
        values = {}
        for i in range(array.schema.nattr):
            attribute = array.schema.attr(i)
            values[attribute.name] = np.full(count, 9 if attribute.name == "a" else 0, dtype=attribute.dtype)
        if array.schema.sparse:
            array[np.array([60], dtype=np.int64)] = values
        else:
            array[:] = values


def delete_cells(uri):
    with tiledb.open(uri, "d", ctx=ctx) as array:
        array.query(cond="x == 3").submit()


def metadata(uri):
    with tiledb.open(uri, "w", ctx=ctx) as array:
        array.meta["theirs"] = 1


def look_at_array(uri):
    with tiledb.open(uri, ctx=ctx) as array:
        names = sorted(array.schema.attr(i).name for i in range(array.schema.nattr))
        keys = sorted(array.meta.keys())
    return [names, keys, cells(uri, (0, 25)), cells(uri)]


def look_at_group(uri):
    with tiledb.Group(uri, ctx=ctx) as group:
        return [sorted(str(member.name) for member in group), sorted(group.meta.keys())]


def edit_group(uri):
    member = os.path.join(os.path.dirname(uri), "member")
    with tiledb.Group(uri, "w", ctx=ctx) as group:
        group.add(f"file://{member}", name="theirs")


def group_metadata(uri):
    with tiledb.Group(uri, "w", ctx=ctx) as group:
        group.meta["theirs"] = 1


def look(root):
    seen = {}
    for name in ["array", "new/moved", "group"]:
        kind = tiledb.object_type(f"{root}{name}", ctx=ctx)
        if kind is not None:
            at = look_at_group if kind == "group" else look_at_array
            seen[name] = at(f"{root}{name}")
    return seen


DO = {
    "write": lambda root: write(f"{root}array"),
    "delete cells": lambda root: delete_cells(f"{root}array"),
    "metadata": lambda root: metadata(f"{root}array"),
    "read": lambda root: look_at_array(f"{root}array"),
    "edit group": lambda root: edit_group(f"{root}group"),
    "group metadata": lambda root: group_metadata(f"{root}group"),
    "read group": lambda root: look_at_group(f"{root}group"),
    "look": look,
}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = {"seen": DO[asked["do"]](asked["root"])}
    except Exception as error:  # whatever it is, it is the answer
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
