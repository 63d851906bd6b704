"""New arrays, made of numpy arrays and of tables: what cannot be written leaves nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ._array import EMPTY_DIMS, Array, empty_dims
from ._context import Context
from ._core import Batches
from ._given import is_frame, kind_of, settled, streamed, tabled, with_index
from ._index import Box
from ._optimize import optimized
from ._schema import Schema, _pipeline
from ._time import moment


@contextlib.contextmanager
def _created(uri: str, schema: Schema, at: Any, ctx: Context) -> Iterator[Array]:
    """A new array, which goes again if it is not filled."""
    ctx.core.create(uri, schema.to_json(), moment(at))
    try:
        yield Array(uri, "w", ctx=ctx)
    except BaseException:
        ctx.core.delete(uri, False)
        raise


def grid(
    uri: str,
    named: Mapping[str, Any],
    dims: Sequence[str] | None,
    tiles: Sequence[int] | None,
    filters: Any,
    optimize: str | None,
    at: Any,
    ctx: Context,
) -> Array:
    """A dense array of arrays of one shape, by their names."""
    columns = {n: settled(n, v) for n, v in named.items()}
    schema = _grid_of(columns, dims, tiles, {} if filters is None else {"filters": filters})
    cells = {n: v if m is None else np.ma.MaskedArray(v, mask=m) for n, (v, m) in columns.items()}
    if optimize is not None:
        schema = optimized(schema, cells, optimize, ctx=ctx)
    with _created(uri, schema, at, ctx) as array:
        shape = next(iter(columns.values()))[0].shape
        if 0 in shape:
            name_empty_dims(array, shape)
        else:
            array._write_box(Box.of_pairs(array, [(0, s - 1) for s in shape]), cells, at)
    return array


def name_empty_dims(array: Array, shape: Sequence[int]) -> None:
    """Says of a new array which of its dimensions have no coordinates yet."""
    array.attrs[EMPTY_DIMS] = empty_dims(array.schema.dim_names, shape)
    # The next write has to know it, too.
    array._forget()


def _grid_of(columns: Mapping[str, Any], dims: Any, tiles: Any, options: dict) -> Schema:
    """The schema of dense arrays of one shape."""
    shapes = {values.shape for values, _ in columns.values()}
    if len(shapes) != 1:
        raise ValueError(f"arrays of one shape make an array, not of {sorted(shapes) or 'none'}")
    kinds = {n: kind_of(values) for n, (values, _) in columns.items()}
    nullable = {n for n, (_, mask) in columns.items() if mask is not None}
    several = {n for n, (_, is_several) in kinds.items() if is_several}
    types = {n: kind for n, (kind, _) in kinds.items()}
    return Schema._grid(shapes.pop(), types, dims, tiles, nullable=nullable, several=several, **options)


def table(
    uri: str,
    data: Any,
    index: Sequence[str] | None,
    filters: Any,
    optimize: str | None,
    at: Any,
    ctx: Context,
) -> Array:
    """A sparse array of a table, whose dimensions are the columns ``index``."""
    if is_frame(data):
        data, index = with_index(data, index)
        data = tabled(data)
    if not index:
        raise ValueError("which columns are the dimensions? Name them: index=[..]")
    if isinstance(data, Mapping):
        fields, rows = Schema._settled(data)
        schema = Schema._table(fields, index)
    else:
        # One stream: it may be the only one that there is.
        rows = streamed(data).__arrow_c_stream__()
        schema = Schema.from_arrow(rows, index)
        if optimize is not None:
            kept = Batches(rows)
            schema, rows = optimized(schema, kept, optimize, ctx=ctx), kept.__arrow_c_stream__()
    if optimize is not None and isinstance(rows, Mapping):
        schema = optimized(schema, rows, optimize, ctx=ctx)
    if filters is not None:
        for attr in schema.attrs:
            attr["filters"] = _pipeline(filters)
    with _created(uri, schema, at, ctx) as array:
        array.write(rows, at=at) if isinstance(rows, Mapping) else array._write_stream(rows, at)
    return array


def behind_links(uri: str) -> str:
    """Where an array lies to which a link of the file system may lead."""
    path = uri.removeprefix("file://").rstrip("/")
    return os.path.realpath(path) if os.path.islink(path) else uri


def put_in_place(new: str, uri: str, ctx: Context) -> None:
    """Moves a new array to where another one lies, which goes. Whatever fails, one of the two is there."""
    aside = f"{new}.old"
    try:
        ctx.core.transfer(uri, aside, False)
        try:
            ctx.core.transfer(new, uri, False)
        except BaseException:
            ctx.core.transfer(aside, uri, False)
            raise
    except BaseException:
        ctx.core.delete(new, False)
        raise
    ctx.core.delete(aside, False)
    # Files in an array's folder that are none of it stay where they were.
    left, place = aside.removeprefix("file://"), uri.removeprefix("file://")
    if os.path.isdir(left):
        for name in os.listdir(left):
            os.replace(os.path.join(left, name), os.path.join(place, name))
        os.rmdir(left)
