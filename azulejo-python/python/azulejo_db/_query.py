"""Queries: cells as a table, read when the rows are asked for."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence

import numpy as np

from . import _async
from ._time import U64_MAX
from ._types import cell_type, dtype_of, is_plain, shown_name

if TYPE_CHECKING:
    from ._array import Array

#: What a dense array's query decodes is not counted beforehand.
_MUCH = 2**63
#: The tick of what is no time.
_NO_TIME = -(2**63)
_SECONDS = ("DATETIME_SEC", "TIME_SEC")
#: Bytes with which rows begin that may be more than memory can hold.
_FIRST = 64 << 20


class Query:
    """The cells of an array that meet a condition, as a table.

    Anything that takes Arrow takes it (``pa.table(query)``, ``pl.DataFrame(query)``, duckdb): each
    time, the cells are read anew, in batches.
    """

    def __init__(
        self,
        array: Array,
        where: str | None,
        fields: Sequence[str] | None,
        order: str | None,
        limit: int | None,
        memory: int | None,
        box: Mapping[str, Any] | None = None,
        points: list | None = None,
        views: bool = False,
        raw: bool = False,
    ):
        schema = array.schema
        self._array = array
        self._where = where
        self._fields = schema.dim_names + array._fields() if fields is None else _names(fields)
        self._order = order or ("unordered" if schema.sparse else "row")
        self._limit, self._memory = _count("limit", limit), _count("memory", memory)
        #: What the engine takes of each dimension that a box names.
        self._box, self._points = box or {}, points
        self._views, self._raw = views, raw

    def points(self, *coordinates: Any) -> Query:
        """The same of the cells at these coordinates: a list for each dimension."""
        self._takes_no_more("points")
        dims = self._array.schema.axes
        if len(coordinates) != len(dims):
            raise ValueError(f"{len(coordinates)} lists for {len(dims)} dimensions")
        columns = [dim.pack_values(values) for values, dim in zip(coordinates, dims)]
        return self._with(points=columns)

    def box(self, **ranges: tuple[Any, Any]) -> Query:
        """The same within ranges of coordinates, both ends included: ``box(x=(1, 9))``; of one
        coordinate: ``box(x=3)``. A further box is of other dimensions.
        """
        from ._index import coordinates_box

        names = self._array.schema.dim_names
        unknown = set(ranges) - set(names)
        if unknown:
            raise KeyError(f"no dimensions: {sorted(unknown)}; there are {names}")
        self._takes_no_more("box", ranges)
        key = tuple(
            slice(None) if n not in ranges else slice(*ranges[n]) if isinstance(ranges[n], (tuple, list)) else ranges[n]
            for n in names
        )
        found = dict(zip(names, coordinates_box(self._array, key).ranges))
        return self._with(box={**self._box, **{n: found[n] for n in ranges}})

    def _takes_no_more(self, what: str, dims: Iterable[str] = ()) -> None:
        """Refuses what the engine does not select at once."""
        if twice := sorted(self._box.keys() & dims):
            raise ValueError(f"{twice} have a range already: one box says all of a dimension")
        if self._points is not None or (what == "points" and self._box):
            raise ValueError(f"{what}: a query takes its cells from one list of points, or from a box")

    def _with(self, **changes: Any) -> Query:
        kept = {
            "limit": self._limit, "box": self._box, "points": self._points, "views": self._views, "raw": self._raw,
        }
        return Query(
            self._array, self._where, self._fields, self._order, memory=self._memory, **(kept | changes)
        )

    def _asked(self) -> dict:
        dense = not self._array.schema.sparse
        # Domains have at least one coordinate; that there is none yet a key-value says.
        limit = 0 if dense and self._array._empty_dims() else self._limit
        ranges = [self._box.get(name) for name in self._array.schema.dim_names] if self._box else None
        return request(
            self._fields, ranges=ranges, points=self._points, condition=self._where,
            order=self._order, memory=self._memory, limit=limit,
            matching_only=dense and self._points is None, work=_MUCH if dense else None,
        )

    def _comes_to_an_end(self) -> None:
        """Refuses all rows of what has no end."""
        if self._limit is self._points is None and not self._box:
            self._array._has_an_end()

    def _reader(self) -> Any:
        return _async.watched(self._array.core.read(self._asked()))

    # -- numpy --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """Batches, each a dict of arrays."""
        return map(self._array._numpy, self._columns())

    def _columns(self) -> Iterator[dict[str, tuple]]:
        """The same as the engine has them."""
        reader = self._reader()
        while (batch := reader.next()) is not None:
            yield batch[1]

    def to_numpy(self) -> dict[str, np.ndarray]:
        """All rows, as a dict of arrays."""
        self._comes_to_an_end()
        found = self._in_place()
        return self._array._numpy(_async.read_all(self._array.core, self._asked())) if found is None else found

    def _in_place(self) -> dict[str, np.ndarray] | None:
        """Numbers that come in batches, read to where they stay: they are there but once. ``None``:
        they come in one piece, or are not such numbers.
        """
        fields = self._plain()
        if fields is None or not self._array.schema.sparse:
            return None
        most = self._array.core.most_cells()
        most = most if self._limit is None else min(most, self._limit)
        types = {f["name"]: cell_type(f["datatype"], f["cell_val_num"]) for f in fields}
        cell = sum(t.itemsize * math.prod(inner) for t, inner in types.values())
        if most * cell <= self._array._piece():
            return None
        # Pages are there once they are written to. One more than there can be: the end is seen.
        room = most + 1
        try:
            memory = _room(types, room)
        except MemoryError:
            # That many there may be, of which few may meet a condition: it grows as they come.
            room = max(min(self._array._piece(), _FIRST) // cell, 1)
            memory = _room(types, room)
        reader, done, complete = self._reader(), 0, False
        while not complete:
            if done == room:
                room = min(2 * room, most + 1)
                for name, (_, inner) in types.items():
                    memory[name].resize((room, *inner), refcheck=False)
            rest = [(cells[done:].reshape(-1).view(np.uint8), None, None) for cells in memory.values()]
            count, complete = reader.read_into(rest)
            done += count
            del rest
        for name, (_, inner) in types.items():
            memory[name].resize((done, *inner), refcheck=False)
        return memory

    def _known(self) -> list[dict]:
        """Those of the fields that are dimensions and attributes."""
        schema = self._array.schema
        known = {field["name"]: field for field in (*schema.dims, *schema.attrs)}
        return [known[name] for name in self._fields if name in known]

    def _plain(self) -> list[dict] | None:
        """The fields, if all of them are numbers and times as numpy has them."""
        fields = self._known()
        return fields if len(fields) == len(self._fields) and all(map(is_plain, fields)) else None

    def count(self) -> int:
        """The number of rows."""
        self._comes_to_an_end()
        return sum(len(next(iter(batch.values()))) for batch in self)

    # -- Arrow --------------------------------------------------------------------------------

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader().arrow_stream(self._views, self._raw)

    def __arrow_c_schema__(self) -> Any:
        return self._with(limit=0)._reader().arrow_schema(self._views, self._raw)

    def _streamed(self, take: Callable[[Any], Any]) -> Any:
        """What a taker of Arrow's streams makes of all rows. What the engine raises goes through it
        unchanged.
        """
        self._comes_to_an_end()
        reader = self._reader()
        try:
            return take(_Stream(reader, self._views, self._raw))
        except Exception:
            if (failure := reader.failure()) is not None:
                raise failure from None
            raise

    def to_arrow(self) -> Any:
        """All rows as a ``pyarrow.Table``. What is no time (NaT) is null."""
        import pyarrow as pa

        table = self._streamed(lambda stream: pa.RecordBatchReader.from_stream(stream).read_all())
        for i, column in enumerate(table.columns):
            some = without_no_times(column)
            if some is not column:
                table = table.set_column(i, table.schema.field(i).with_nullable(True), some)
        return table

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a ``pandas.DataFrame``; the options are those of ``pyarrow.Table.to_pandas``.

        Numbers and times are not copied, and need no pyarrow. Whole numbers beside nulls are of pandas' own
        types for these, such as ``Int64``.
        """
        if options or not self._is_framed_as_it_is():
            return _framed(self.to_arrow(), options)
        import pandas as pd

        return pd.DataFrame(self.to_numpy(), copy=False)

    def _is_framed_as_it_is(self) -> bool:
        """Whether pandas has all fields as numpy has them: numbers, and times in units of pandas' own."""
        fields, kept = self._plain(), {"s", "ms", "us", "ns"}
        return fields is not None and all(
            f["cell_val_num"] == 1 and (d := dtype_of(f["datatype"])).kind in "biufmM"
            and (d.kind not in "mM" or np.datetime_data(d)[0] in kept)
            for f in fields
        )

    def to_polars(self) -> Any:
        """All rows as a ``polars.DataFrame``. What is no time (NaT) is null."""
        import polars as pl

        if not self._raw and any(f["datatype"] in _SECONDS and f["cell_val_num"] == 1 for f in self._known()):
            # Which it makes other units of, in which what is no time would be 1970.
            with contextlib.suppress(ModuleNotFoundError):
                return pl.DataFrame(_Table(self.to_arrow()))
        frame = self._streamed(pl.DataFrame)
        times = [column for column in frame if isinstance(column.dtype, (pl.Datetime, pl.Duration))]
        # It takes them for moments, most of which it cannot show. Not by their names, which may be patterns.
        plain = [pl.when(t.cast(pl.Int64) != _NO_TIME).then(t).alias(t.name) for t in times]
        return frame.with_columns(plain) if plain else frame

    # -- off the event loop's thread ----------------------------------------------------------

    async def to_numpy_async(self) -> dict[str, np.ndarray]:
        """:meth:`to_numpy`; a cancelled task ends the read."""
        return await _async.run(self.to_numpy)

    async def to_arrow_async(self) -> Any:
        """:meth:`to_arrow`; a cancelled task ends the read."""
        return await _async.run(self.to_arrow)

    async def to_pandas_async(self, **options: Any) -> Any:
        """:meth:`to_pandas`; a cancelled task ends the read."""
        return await _async.run(self.to_pandas, **options)

    async def to_polars_async(self) -> Any:
        """:meth:`to_polars`; a cancelled task ends the read."""
        return await _async.run(self.to_polars)

    def __repr__(self) -> str:
        where = f" where {self._where}" if self._where else ""
        return f"<azulejo_db.Query of {self._array.uri!r}: {', '.join(map(shown_name, self._fields))}{where}>"


class _Stream:
    """A read under way, for who takes Arrow."""

    def __init__(self, reader: Any, views: bool, raw: bool):
        self._reader, self._views, self._raw = reader, views, raw

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.arrow_stream(self._views, self._raw)


class _Table:
    """A table, for who would take one of pyarrow's in another way than a stream."""

    def __init__(self, table: Any):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def _framed(table: Any, options: Mapping[str, Any]) -> Any:
    """A table as a data frame. Unless it is told what to do with them, Arrow makes reals of whole numbers
    beside which there are nulls.
    """
    import pyarrow as pa

    kept = {}
    if not options.keys() & {"types_mapper", "integer_object_nulls"}:
        for i, column in enumerate(table.columns):
            is_category = table.field(i).name in (options.get("categories") or ())
            if column.null_count and pa.types.is_integer(column.type) and not is_category:
                kept[i] = whole_type(column.type).__from_arrow__(column)
    frame = table.to_pandas(**options)
    for i, column in kept.items():
        frame.isetitem(i, column)
    return frame


def whole_type(kind: Any) -> Any:
    """pandas' type for whole numbers of Arrow's beside which there may be nulls."""
    import pandas as pd

    return pd.api.types.pandas_dtype(str(kind).replace("int", "Int").replace("u", "U"))


def without_no_times(column: Any) -> Any:
    """A column of Arrow's in which what is no time (NaT) is null; all others as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # In other units than these the engine has left it out.
    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)):
        return column
    ticks = column.cast(pa.int64())
    if pc.min(ticks).as_py() != _NO_TIME:
        return column
    return pc.if_else(pc.equal(ticks, _NO_TIME), pa.scalar(None, column.type), column)


def _room(types: dict[str, tuple[np.dtype, tuple[int, ...]]], cells: int) -> dict[str, np.ndarray]:
    """Memory for so many cells of each field."""
    return {name: np.empty((cells, *inner), dtype) for name, (dtype, inner) in types.items()}


def _names(fields: Any) -> list[str]:
    names = [fields] if isinstance(fields, str) else list(fields)
    if not names:
        raise ValueError("a query of no fields has no rows: name one")
    return names


def _count(what: str, number: Any) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
        raise ValueError(f"{what} is a whole number from 0, not {number!r}")
    return min(int(number), U64_MAX)


def request(
    fields: Sequence[str],
    *,
    ranges: list | None = None,
    points: list | None = None,
    condition: str | None = None,
    order: str = "row",
    memory: int | None = None,
    matching_only: bool = False,
    limit: int | None = None,
    work: int | None = None,
) -> dict:
    """What the engine is asked."""
    return {
        "ranges": ranges, "points": points, "fields": fields, "condition": condition, "order": order,
        "memory": memory, "matching_only": matching_only, "limit": limit, "work": work,
    }
