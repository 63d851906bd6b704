"""The reference on an S3 server: a command a line, an answer a line. `cloud_reference.py HOST:PORT KEY SECRET BUCKET`."""

import json
import sys
import time

import numpy as np
import tiledb

LAST, MANY_LAST, MANY_CELLS = 999, 3_999_999, 100
endpoint, key, secret, bucket = sys.argv[1:]
config = {
    "vfs.s3.endpoint_override": endpoint,
    "vfs.s3.scheme": "http",
    "vfs.s3.use_virtual_addressing": "false",
    "vfs.s3.region": "us-east-1",
    "vfs.s3.aws_access_key_id": key,
    "vfs.s3.aws_secret_access_key": secret,
}
ctx = tiledb.Ctx(config)
opened = None


def number(x):
    return x * 31 % 101


def text(x):
    return "é" * (x % 5) + str(x)


def create(uri, dense, many=False):
    last, tile = (MANY_LAST, MANY_CELLS) if many else (LAST, 10)
    dim = tiledb.Dim(name="x", domain=(0, last), tile=tile, dtype=np.int64, ctx=ctx)
    attrs = [tiledb.Attr(name="a", dtype=np.int32, ctx=ctx)]
    if not many:
        attrs.append(tiledb.Attr(name="s", dtype="U0", var=True, ctx=ctx))
    schema = tiledb.ArraySchema(domain=tiledb.Domain(dim, ctx=ctx), attrs=attrs, sparse=not dense, ctx=ctx)
    tiledb.Array.create(uri, schema, ctx=ctx)


def write(uri, xs):
    with tiledb.open(uri, "w", ctx=ctx) as array:
        values = {"a": np.array([number(x) for x in xs], dtype=np.int32)}
        if array.schema.nattr > 1:
            values["s"] = np.array([text(x) for x in xs], dtype="O")
        if array.schema.sparse:
            array[np.array(xs, dtype=np.int64)] = values
        elif array.schema.nattr > 1:
            array[xs[0] : xs[-1] + 1] = values
        else:
            array[xs[0] : xs[-1] + 1] = values["a"]


def read(uri, first, last):
    with tiledb.open(uri, ctx=ctx) as array:
        got = array.query(coords=True)[first : last + 1]
        xs = got["x"] if "x" in got else range(first, last + 1)
        rows = zip(xs, got["a"], got["s"])
        return sorted((int(x), int(a), s.decode() if isinstance(s, bytes) else str(s)) for x, a, s in rows)


def run(c):
    global ctx, opened
    uri = c.get("uri")
    match c["do"]:
        case "fresh":
            # A client of its own, with connections of its own.
            opened = None
            ctx = tiledb.Ctx(config)
        case "configure":
            config.update(c["config"])
            ctx = tiledb.Ctx(config)
        case "create":
            create(uri, c["dense"], c.get("many", False))
        case "write":
            write(uri, c["xs"])
        case "read":
            return {"cells": read(uri, c["first"], c["last"])}
        case "open":
            opened = tiledb.open(uri, ctx=ctx)
        case "sum":
            got = opened[c["first"] : c["last"] + 1]
            got = got["a"] if isinstance(got, dict) else got
            return {"sum": int(got.astype(np.int64).sum()), "cells": int(got.size)}
        case "close":
            opened.close()
            opened = None
        case "consolidate":
            modes = {"sm.consolidation.mode": c["mode"], "sm.vacuum.mode": c["mode"]}
            changed = ctx.config().dict() | modes | c.get("config", {})
            inner = tiledb.Ctx(changed)
            tiledb.consolidate(uri, ctx=inner, config=tiledb.Config(changed))
            if c.get("vacuum"):
                tiledb.vacuum(uri, ctx=inner, config=tiledb.Config(changed))
        case "delete":
            with tiledb.open(uri, "d", ctx=ctx) as array:
                array.query(cond=c["where"]).submit()
        case "group":
            tiledb.group_create(uri, ctx=ctx)
            with tiledb.Group(uri, "w", ctx=ctx) as group:
                for name, member in c["members"].items():
                    group.add(member, name=name)
                for name, value in c["meta"].items():
                    group.meta[name] = value
        case "members":
            with tiledb.Group(uri, ctx=ctx) as group:
                members = {member.name: [member.uri, member.type.__name__] for member in group}
                return {"members": members, "meta": {name: int(value) for name, value in group.meta.items()}}
        case "meta":
            with tiledb.open(uri, "w", ctx=ctx) as array:
                array.meta[c["key"]] = c["value"]
        case other:
            raise ValueError(other)
    return {}


for line in sys.stdin:
    command = json.loads(line)
    begun = time.perf_counter()
    try:
        answer = run(command)
        answer["seconds"] = time.perf_counter() - begun
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
