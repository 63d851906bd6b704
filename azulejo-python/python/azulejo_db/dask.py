"""Arrays in parallel, with dask: in threads, processes or a cluster of machines.

>>> import azulejo_db.dask as azd              # doctest: +SKIP
>>> x = azd.read("heights")                    # a dask array, tiles as chunks   # doctest: +SKIP
>>> azd.write("halves", x / 2, dims=("y", "x"))  # one fragment a chunk, one commit   # doctest: +SKIP
>>> frame = azd.read_table("stations")         # a dask data frame   # doctest: +SKIP

What many tasks write counts together, once all of it is there: a job that fails leaves nothing to
be seen. Tasks get what they need (URI, settings without secrets, moment) with them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from . import _made, _time
from ._array import Array
from ._context import Context, rooted, shared
from ._expr import Condition, condition_text
from ._job import Job, Place, done, is_dask
from ._query import Query, whole_type
from ._schema import Schema
from ._types import dtype_of, is_plain

#: Bytes of a chunk, about, unless chunks are named.
_CHUNK = 64 << 20


def _opened(array: Array | str | os.PathLike, at: Any, ctx: Context | None) -> Array:
    if isinstance(array, Array):
        return array
    return Array(os.fspath(array), at=at, ctx=ctx or shared())


def _settled(array: Array) -> Any:
    """What all tasks see, whatever is written meanwhile: one object, sent to each worker once."""
    import dask

    return dask.delayed(array._fixed(), pure=False, traverse=False)


def _block(name: str, *, array: Array, block_info: Any) -> np.ndarray:
    """The cells of one chunk."""
    lows = [dim.low for dim in array.schema.axes]
    places = block_info[None]["array-location"]
    key = tuple(slice(a + low, b + low) for (a, b), low in zip(places, lows))
    cells = array[name][key] if name else array[key]
    return cells


def read(
    array: Array | str | os.PathLike,
    attribute: str | None = None,
    *,
    chunks: Sequence[int] | Mapping[int, int] | str = "auto",
    at: Any = None,
    ctx: Context | None = None,
) -> Any:
    """A dense array, or one of its attributes, as a dask array of the moment of this call.

    ``chunks``: lengths, ``"tiles"`` (one task a tile) or ``"auto"`` (as many whole tiles as make
    some 64 MB).
    """
    import dask.array as da

    array = _opened(array, at, ctx)
    if array.schema.sparse:
        raise TypeError("a sparse array has no chunks of numbers; see read_table")
    name = attribute if attribute is not None else array._only("dask takes one attribute")
    view = array[name] if name else array
    shape, tiles = array.shape, [int(t) for t in array.chunks]
    several = view._cell_type(view._only("dask takes one attribute"))[1]
    if chunks == "tiles":
        chunks = [min(t, s) for t, s in zip(tiles, shape)]
    elif chunks == "auto":
        chunks = _whole_tiles(shape, tiles, view.dtype.itemsize * math.prod(several))
    # Several values of a cell are a dimension of their own, which is never cut.
    split = (*da.core.normalize_chunks(chunks, shape, dtype=view.dtype), *((n,) for n in several))
    return da.map_blocks(
        _block, name, array=_settled(array), chunks=split, dtype=view.dtype,
        meta=np.empty((0,) * len(split), view.dtype),
    )


def _whole_tiles(shape: Sequence[int], tiles: Sequence[int], itemsize: int) -> list[int]:
    chunk = [min(t, s) for t, s in zip(tiles, shape)]
    # Along the last dimensions first: their tiles lie next to each other.
    for d in reversed(range(len(chunk))):
        room = _CHUNK // max(math.prod(chunk) * itemsize, 1)
        chunk[d] = min(chunk[d] * max(room, 1), shape[d])
    return chunk


def _one_shape(named: Mapping[str, Any], ndim: int | None = None) -> tuple[int, ...]:
    """The shape of several arrays, along the first so many dimensions: cells may have several values."""
    shapes = {tuple(values.shape[:ndim]) for values in named.values()}
    if len(shapes) != 1:
        raise ValueError(f"arrays of different shapes: {sorted(shapes)}")
    return shapes.pop()


def write(
    uri: Array | str | os.PathLike,
    data: Any,
    *,
    mode: str = "w-",
    dims: Sequence[str] | None = None,
    tiles: Sequence[int] | None = None,
    filters: Any = None,
    name: str = "",
    low: Sequence[int] | None = None,
    at: Any = None,
    compute: bool = True,
    ctx: Context | None = None,
) -> Any:
    """Writes a dask array (or several of one shape, by attribute): one fragment a chunk, all of
    which count at once when the last one is there.

    ``mode``: ``"w-"`` makes an array, whose tiles are the chunks unless others are named; ``"r+"``
    writes into the one that is there, ``"a"`` behind its last cell along the first dimension. ``low``: the
    first coordinate, with ``"r+"``. Without ``compute`` the result is a ``Delayed``.
    """
    named = dict(data) if isinstance(data, Mapping) else {name: data}
    if mode not in ("w-", "r+", "a"):
        raise ValueError(f"mode is 'w-', 'r+' or 'a', not {mode!r}")
    target = uri.uri if isinstance(uri, Array) else rooted(uri)
    ctx = uri._ctx if isinstance(uri, Array) else ctx or shared()
    if mode == "w-":
        first, shape = next(iter(named.values())), _one_shape(named)
        tiles = tiles or ([max(sizes) or 1 for sizes in first.chunks] if is_dask(first) else None)
        options = {} if filters is None else {"filters": filters}
        # Which cells are masked is known when they are computed; that some may be, dask says before.
        nullable = {n for n, v in named.items() if isinstance(getattr(v, "_meta", v), np.ma.MaskedArray)}
        types = {n: v.dtype for n, v in named.items()}
        schema = Schema._grid(shape, types, dims, tiles, nullable=nullable, **options)
        ctx.core.create(target, schema.to_json(), _time.moment(at))

    def fill(job: Job) -> None:
        array = Array(target, "w", ctx=ctx)
        if mode == "w-":
            job.undo(partial(ctx.core.delete, target, True))
        written = named
        if not isinstance(data, Mapping) and name not in array.schema.attr_names:
            written = {array._only("writing needs a dict"): data}
        missing = set(array.schema.attr_names) ^ set(written)
        if missing:
            raise ValueError(f"a write takes all attributes; {sorted(missing)} do not match")
        shape = _one_shape(written, array.ndim)
        if mode == "w-" and 0 in shape:
            _made.name_empty_dims(array, shape)
            return
        pairs = [(dim.low, dim.high) for dim in array.schema.axes]
        start, grown, end = [a for a, _ in pairs], None, None
        if mode == "a":
            array._added(written, 0)
            start[0] = array._end(0)
            grown = [(a, max(b, s + n - 1)) for (a, b), s, n in zip(pairs, start, shape, strict=True)]
            end = array._extent()
        elif low is not None:
            start = [dim.exact(v) for v, dim in zip(low, array.schema.axes, strict=True)]
        if mode == "r+" and 0 not in shape:
            # What is written beyond it nobody would see.
            inside = all(a <= s and s + n - 1 <= b for (a, b), s, n in zip(pairs, start, shape, strict=True))
            if not inside or array._empty_dims():
                raise IndexError(
                    f"cells of the shape {shape} that begin at {tuple(start)} do not lie in {target}, whose shape is {array.shape}; "
                    f"mode='a' adds to it"
                )
        job.write(target, start, written, grown, end)

    delayed = done(ctx, fill, compute, at=_time.moment(at))
    return Array(target, "w", ctx=ctx) if compute else delayed


# -- tables -----------------------------------------------------------------------------------


def partitions(array: Array, number: int | None = None) -> list[tuple[Any, Any] | None]:
    """Ranges of the first dimension that hold all cells, cut between tiles: about ``number``.
    ``None`` is everything, where the dimension cannot be cut.
    """
    written, dim = array.non_empty_domain, array.schema.dims[0]
    if written is None:
        return []
    kind = dtype_of(dim["datatype"])
    if dim["datatype"] == "STRING_ASCII" or kind.kind not in "iumMf":
        return [None]
    low, high = written[0]
    if kind.kind == "f":
        # Not by the difference, which may be more than the type holds.
        share = np.arange((number or 16) + 1) / (number or 16)
        edges = (low * (1 - share) + high * share).astype(kind)
        cuts = [(a, np.nextafter(b, kind.type(-np.inf))) for a, b in zip(edges, edges[1:])]
        cuts[-1] = (cuts[-1][0], high)
        return [(a, b) for a, b in cuts if a <= b]
    first, last = (int(bound.view(np.int64) if kind.kind in "mM" else bound) for bound in (low, high))
    origin, extent = int(dim["domain"][0]), int(dim["tile_extent"] or 1)
    tile, end = (first - origin) // extent, (last - origin) // extent
    count = end - tile + 1
    step = max(1, -(-count // (number or min(count, 64))))
    ranges = []
    while tile <= end:
        a = max(origin + tile * extent, first)
        b = min(origin + (tile + step) * extent - 1, last)
        ranges.append((_value(a, kind), _value(b, kind)))
        tile += step
    return ranges


def _value(tick: int, kind: np.dtype) -> Any:
    return np.int64(tick).view(kind) if kind.kind in "mM" else kind.type(tick)


def _rows(part: Any, array: Array, where: str | None, empty: Any, columns: list[str]) -> Any:
    """The rows of one partition. dask knows by its name that ``columns`` may become fewer."""
    query = array.query(where, columns)
    if part is not None:
        query = query.box(**{array.schema.dim_names[0]: part})
    frame = _frame(query)
    return frame[columns] if len(frame) else empty[columns]


def _frame(query: Query) -> Any:
    """The rows in types that do not depend on them, as those of all partitions must be. None is of objects, of
    which dask makes text.
    """
    if query._is_framed_as_it_is():
        return query.to_pandas()
    frame = query.to_pandas(types_mapper=_kept_type, date_as_object=False)
    plain = {
        field["name"]: dtype for field in query._known()
        if is_plain(field) and field["cell_val_num"] == 1 and (dtype := dtype_of(field["datatype"])).kind in "biu"
    }
    return frame.astype(plain)


def _kept_type(kind: Any) -> Any:
    """pandas' type for values of Arrow's that would be objects, or others beside nulls."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return whole_type(kind)
    if pa.types.is_boolean(kind):
        return pd.BooleanDtype()
    bytes_or_lists = (
        pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_large_list, pa.types.is_fixed_size_list,
    )
    return pd.ArrowDtype(kind) if any(is_one(kind) for is_one in bytes_or_lists) else None


def read_table(
    array: Array | str | os.PathLike,
    where: Condition | str | None = None,
    fields: Sequence[str] | None = None,
    *,
    npartitions: int | None = None,
    at: Any = None,
    ctx: Context | None = None,
) -> Any:
    """The cells of a sparse array as a ``dask.dataframe``, in partitions cut between tiles of the
    first dimension; conditions are looked at where tiles are read, and columns that the rest of the
    work does not use are not read. Numbers that may be null are of pandas' types for these (``Int64``,
    ``boolean``), bytes and lists of Arrow's, days are ``datetime64[ms]``.
    """
    import dask.dataframe as dd

    array = _opened(array, at, ctx)
    text = condition_text(where)
    names = list(fields) if fields is not None else array.schema.dim_names + array.schema.attr_names
    meta = _frame(array.query(text, names, limit=1)).iloc[:0]
    fixed = array._fixed()
    parts = partitions(fixed, npartitions)
    if not parts:
        return dd.from_pandas(meta, npartitions=1)
    return dd.from_map(_rows, parts, array=fixed, where=text, empty=meta, columns=names, meta=meta)


def _write_rows(frame: Any, place: Place) -> list[str]:
    if not len(frame):
        return []
    array = Array(place.uri, "w", ctx=place.ctx)
    return array._write_table(array._table(frame), place.at, uncommitted=True)


def write_table(
    uri: Array | str | os.PathLike,
    frame: Any,
    *,
    index: Sequence[str] | None = None,
    mode: str = "w-",
    at: Any = None,
    compute: bool = True,
    ctx: Context | None = None,
) -> Any:
    """Writes a ``dask.dataframe`` to a sparse array whose dimensions are the columns ``index``: one
    fragment a partition, all of which count at once. ``mode="a"`` adds to the array that is there.
    """
    import dask

    if mode not in ("w-", "a"):
        raise ValueError(f"mode is 'w-' or 'a', not {mode!r}")
    target = uri.uri if isinstance(uri, Array) else rooted(uri)
    ctx = uri._ctx if isinstance(uri, Array) else ctx or shared()
    if mode == "w-":
        if not index:
            raise ValueError("which columns are the dimensions? Name them: index=[..]")
        schema = Schema.from_pandas(frame._meta_nonempty, index)
        ctx.core.create(target, schema.to_json(), _time.moment(at))
    write = dask.delayed(_write_rows, pure=False)

    def fill(job: Job) -> None:
        if mode == "w-":
            job.undo(partial(ctx.core.delete, target, True))
        job.add(target, lambda place: [write(part, place) for part in frame.to_delayed()])

    delayed = done(ctx, fill, compute, at=_time.moment(at))
    return Array(target, ctx=ctx) if compute else delayed


__all__ = ["partitions", "read", "read_table", "write", "write_table"]
