"""TileDB arrays in Python, on the Azulejo engine.

>>> import azulejo_db as az
>>> import numpy as np
>>> a = az.write("mem://docs", np.arange(12).reshape(3, 4), dims=("y", "x"))
>>> a[1, ::2].tolist()
[4, 6]
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np

from . import _made, _replace, errors
from ._array import Array
from ._context import Context, shared
from ._core import __version__
from ._expr import Column, Condition, col
from ._given import as_array, is_column, is_frame
from ._group import Group
from ._optimize import GOALS, optimized
from ._progress import Progress, observed
from ._query import Query
from ._schema import Attr, Dim, Schema, enumeration
from ._sql import sql
from ._time import moment as _moment
from .errors import (
    ArgumentError,
    AzulejoError,
    BudgetError,
    CancelledError,
    ConflictError,
    CorruptError,
    EncryptionError,
    ExistsError,
    NotFoundError,
    SchemaError,
    StorageError,
    UnsupportedError,
)

__all__ = [
    "ArgumentError", "Array", "Attr", "AzulejoError", "BudgetError", "CancelledError", "Column",
    "Condition", "ConflictError", "Context", "CorruptError", "Dim", "EncryptionError", "ExistsError", "Group",
    "NotFoundError", "Query", "Schema", "SchemaError", "StorageError", "UnsupportedError",
    "__version__", "col", "copy", "create", "create_group", "delete", "enumeration", "errors",
    "move", "object_type", "open", "open_async", "optimized", "sql", "write", "write_async",
]


def _chosen(config: Mapping[str, Any] | None, key: Any, ctx: Context | None) -> Context:
    if ctx is not None and (config or key):
        raise TypeError("give a context, or settings and a key")
    return ctx or shared(config, key)


def open(
    uri: str | os.PathLike,
    mode: str = "r",
    *,
    at: Any = None,
    since: Any = None,
    key: bytes | str | None = None,
    config: Mapping[str, Any] | None = None,
    ctx: Context | None = None,
) -> Array | Group:
    """Opens an array or a group, as it is now or as it was ``at`` a time.

    ``at`` and ``since`` are milliseconds since 1970, datetimes, or texts such as ``"2024-05"``,
    which stand for their last (``since``: first) moment. What is opened with the mode ``"r"`` is not
    written to.
    """
    ctx, uri = _chosen(config, key, ctx), os.fspath(uri)
    try:
        return Array(uri, mode, at=at, since=since, ctx=ctx)
    except NotFoundError:
        # Most are arrays: to ask what it is first would take them another look at the storage.
        if ctx.core.object_type(uri) != "group":
            raise
        return Group(uri, mode, at=at, ctx=ctx)


async def open_async(uri: str | os.PathLike, mode: str = "r", **options: Any) -> Array | Group:
    """:func:`open`, off the event loop's thread."""
    from ._async import run

    return await run(open, uri, mode, **options)


def create(
    uri: str | os.PathLike,
    schema: Schema,
    *,
    at: Any = None,
    key: bytes | str | None = None,
    config: Mapping[str, Any] | None = None,
    ctx: Context | None = None,
) -> Array:
    """Creates an array and opens it."""
    if not isinstance(schema, Schema):
        raise TypeError(f"a schema is wanted, not {schema!r}")
    ctx, uri = _chosen(config, key, ctx), os.fspath(uri)
    ctx.core.create(uri, schema.to_json(), _moment(at))
    return Array(uri, "w", ctx=ctx)


def create_group(uri: str | os.PathLike, *, ctx: Context | None = None, **settings: Any) -> Group:
    """Creates an empty group and opens it."""
    ctx, uri = _chosen(settings.get("config"), settings.get("key"), ctx), os.fspath(uri)
    ctx.core.create_group(uri)
    return Group(uri, "w", ctx=ctx)


def write(
    uri: str | os.PathLike,
    data: Any,
    *,
    mode: str = "w-",
    dims: Sequence[str] | None = None,
    index: str | Sequence[str] | None = None,
    tiles: Sequence[int] | None = None,
    filters: Any = None,
    optimize: str | None = None,
    name: str = "",
    at: Any = None,
    key: bytes | str | None = None,
    config: Mapping[str, Any] | None = None,
    ctx: Context | None = None,
) -> Array:
    """Makes an array of numpy arrays, a data frame or an Arrow table, and writes it.

    ``mode``: ``"w-"`` refuses to write where something lies, ``"w"`` replaces it once all is written
    (a write that fails leaves what was there), ``"a"`` appends. Arrays (also lists, and columns of pandas, polars,
    Arrow and xarray) become dense ones that can grow; tables sparse ones, whose dimensions are the
    columns ``index`` (of a data frame: its index). ``optimize`` chooses the filters of what is made
    by the cells, as :func:`optimized` does: ``"size"``, ``"balanced"`` or ``"speed"``.
    """
    ctx, uri = _chosen(config, key, ctx), os.fspath(uri)
    if mode not in ("w-", "w", "a"):
        raise ValueError(f"mode is 'w-', 'w' or 'a', not {mode!r}")
    if optimize is not None and optimize not in GOALS:
        raise ValueError(f"optimize is one of {', '.join(GOALS)}, not {optimize!r}")
    if optimize is not None and filters is not None:
        raise ValueError("either filters are given, or optimize chooses them")
    # With an index it is a table: rows of Arrow's may come as an array of structures.
    column = index is None and is_column(data) and not isinstance(data, Array)
    if column or isinstance(data, (list, tuple, range)):
        data = as_array(data)
    table = is_frame(data) or hasattr(data, "__arrow_c_stream__")
    if not table and not isinstance(data, (np.ndarray, Mapping)):
        raise TypeError(
            f"what is written is a numpy array, a dict of them, a data frame or an Arrow table, not {type(data).__name__}"
        )
    if index is not None and not table and not isinstance(data, Mapping):
        raise TypeError("index names columns, of which a plain array has none")
    index = [index] if isinstance(index, str) else index
    grid = not table and index is None
    kind = ctx.core.object_type(uri)
    there = kind is not None
    if mode == "w" and kind == "group":
        raise ExistsError(f"{uri} is a group, no array: it is not replaced; delete it first", uri)
    if mode == "a" and there:
        array = Array(uri, "w", ctx=ctx)
        if grid and not array.schema.sparse:
            array.append(data, at=at)
        else:
            array.write(data, at=at)
        return array
    if not grid and (unused := [n for n, v in {"dims": dims, "tiles": tiles, "name": name}.items() if v]):
        raise ValueError(f"{' and '.join(unused)}: of dense arrays; a table's columns have names, and index names its dimensions")
    replaced = mode == "w" and there
    # What is there stays until all of the new is written, beside it.
    lies = _made.behind_links(uri) if replaced else uri
    place = _replace.folder(lies.rstrip("/"), _replace.generation()) if replaced else uri
    if grid:
        named = data if isinstance(data, Mapping) else {name: data}
        array = _made.grid(place, named, dims, tiles, filters, optimize, at, ctx)
    else:
        array = _made.table(place, data, index, filters, optimize, at, ctx)
    if replaced:
        _made.put_in_place(place, lies, ctx)
        return Array(uri, "w", ctx=ctx)
    return array


async def write_async(uri: str | os.PathLike, data: Any, **options: Any) -> Array:
    """:func:`write`, off the event loop's thread. A write that has begun comes to its end."""
    from ._async import run

    return await run(write, uri, data, **options)


def delete(uri: str | os.PathLike, *, recursive: bool = False, ctx: Context | None = None) -> list[str]:
    """Deletes an array or group for good; ``recursive``: a group's members too."""
    return (ctx or shared()).core.delete(os.fspath(uri), recursive)


def move(old: str | os.PathLike, new: str | os.PathLike, *, ctx: Context | None = None) -> None:
    """Moves an array or group."""
    (ctx or shared()).core.transfer(os.fspath(old), os.fspath(new), False)


def copy(
    old: str | os.PathLike,
    new: str | os.PathLike,
    *,
    progress: Progress = None,
    ctx: Context | None = None,
) -> None:
    """Copies an array or group, history and all."""
    observed(ctx or shared(), progress).transfer(os.fspath(old), os.fspath(new), True)


def object_type(uri: str | os.PathLike, *, ctx: Context | None = None) -> str | None:
    """What lies there: ``"array"``, ``"group"`` or ``None``."""
    return (ctx or shared()).core.object_type(os.fspath(uri))
