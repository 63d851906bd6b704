"""Open arrays."""

from __future__ import annotations

import io
import math
import os
import sys
import zlib
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np

from . import _async, _time
from ._cells import column_to_numpy, numpy_to_column, rows
from ._context import Context, shared
from ._expr import Condition, condition_text
from ._given import given, is_frame, is_null, tabled
from ._index import Box, Point, coordinates_box, index_box, is_mask, picks_points, points_of
from ._metadata import Metadata
from ._progress import Progress, observed
from ._query import Query
from ._schema import Attr, Schema, _each, enumeration
from ._types import cell_type, dtype_of, from_bytes, is_bytes, is_text
from .errors import BudgetError

U64_MAX = 2**64 - 1
#: What queries may hold unless a setting says otherwise.
_BUDGET = 10 << 30
#: Names the dimensions of an array that have no coordinates yet, which no domain can say.
EMPTY_DIMS = "__azulejo_empty_dims"


class Array:
    """An array as it was at a time. Opening it reads its schema; cells are read when asked for.

    ``a[1:5, ..., ::2]`` takes half-open positions, as numpy does; :attr:`loc` takes coordinates and
    includes both ends, as pandas does; :meth:`query` takes conditions.
    """

    def __init__(
        self,
        uri: str,
        mode: str = "r",
        *,
        at: Any = None,
        since: Any = None,
        ctx: Context | None = None,
        _attr: str | None = None,
        _range: tuple[int, int] | None = None,
        _pin: bytes | None = None,
    ):
        if mode not in ("r", "w"):
            raise ValueError(f"mode is 'r' or 'w', not {mode!r}")
        self._uri, self._mode, self._ctx, self._attr = str(uri), mode, ctx or shared(), _attr
        self._asked = _range or (_time.first(since), _time.last(at))
        self._pid, self._core, self._schema = -1, None, None
        #: Names what it shows, where another process has opened it before.
        self._pin = _pin
        self._empty: tuple[Any, frozenset[str]] | None = None
        self._attrs: Metadata | None = None
        self._stored: tuple[Any, dict] | None = None
        self._closed = False
        core = self.core  # what is not there is said now
        if _pin:
            self._asked = core.time_range

    # -- life --------------------------------------------------------------------------------

    @property
    def core(self):
        """The engine's array of this process: after a fork it is opened anew, at the same time."""
        if self._closed:
            raise ValueError(f"{self._uri} was closed")
        if self._core is None or self._pid != os.getpid():
            # After a fork the other process's array still says what it has shown.
            pin = self._pin if self._core is None else self._core.pin()
            core = self._ctx.core
            self._core = core.open_pinned(self._uri, pin) if pin else core.open(self._uri, *self._asked)
            self._pid = os.getpid()
        return self._core

    def reopen(self, *, at: Any = None, since: Any = None) -> Array:
        """The array as it is now, or as it was at another time."""
        return Array(self._uri, self._mode, at=at, since=since, ctx=self._ctx, _attr=self._attr)

    def _refresh(self) -> None:
        """Sees what this handle has just written, unless it shows an earlier time."""
        if self._asked[1] == U64_MAX:
            self._core = self._schema = self._attrs = None

    def close(self) -> None:
        """Lets go of everything."""
        self._core, self._closed = None, True

    def _written_to(self) -> None:
        if self._mode == "r":
            raise io.UnsupportedOperation(f"{self._uri} was opened to be read: open it with the mode 'w' to write")

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self):
        # The names of its fragments: of a moment alone others might see more, since a writer may
        # still commit with an older timestamp.
        pin = zlib.compress(self.core.pin(), 9)
        return (_reopened, (self._uri, self._mode, pin, self._ctx, self._attr))

    def _fixed(self) -> Array:
        """The same to be read only, whole, and whatever is written meanwhile."""
        core = self.core
        return Array(self._uri, ctx=self._ctx, _pin=core.pin())

    # -- what it is ---------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where it lies."""
        return self._uri

    @property
    def at(self) -> np.datetime64:
        """The moment that it shows."""
        return np.datetime64(self.core.time_range[1], "ms")

    @property
    def schema(self) -> Schema:
        """Its dimensions and attributes."""
        core = self.core
        if self._schema is None:
            self._schema = Schema.from_json(core.schema())
        return self._schema

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.schema.dims)

    @property
    def domain(self) -> tuple[tuple[Any, Any], ...]:
        """First and last coordinate of each dimension: of the current domain, if there is one."""
        current = self.schema._json.get("current_domain")
        pairs = []
        for i, dim in enumerate(self.schema.dims):
            low_high = current[i] if current else dim["domain"]
            if low_high is None:
                pairs.append((None, None))
                continue
            dtype = dtype_of(dim["datatype"])
            if dim["datatype"] == "STRING_ASCII":
                pairs.append(tuple(low_high))
            elif dtype.kind in "mM":
                pairs.append(tuple(np.array(v, np.int64).view(dtype)[()] for v in low_high))
            else:
                pairs.append(tuple(dtype.type(v) for v in low_high))
        return tuple(pairs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of coordinates of each dimension, which must be whole numbers or times."""
        empty = self._empty_dims()
        lengths = []
        for dim in self.schema.axes:
            if not dim.countable:
                raise TypeError(f"dimension {dim.name!r} ({dim.datatype}) has no length")
            lengths.append(0 if dim.name in empty else dim.high - dim.low + 1)
        return tuple(lengths)

    def _empty_dims(self) -> frozenset[str]:
        """Dimensions of no length: something was written that has no cells."""
        core = self.core
        if self._empty is None or self._empty[0] is not core:
            names: frozenset[str] = frozenset()
            if not self.schema.sparse and any(d.low == d.high for d in self.schema.axes):
                found = self._key_values().get(EMPTY_DIMS)
                if found is not None and core.non_empty_domain() is None:
                    names = frozenset(found[1].decode("utf-8", "replace").split(";"))
            self._empty = (core, names)
        return self._empty[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    @property
    def chunks(self) -> tuple[int, ...]:
        """The tile extents."""
        return tuple(dim["tile_extent"] for dim in self.schema.dims)

    @property
    def dtype(self) -> np.dtype:
        """The type of the only attribute, or of the one looked at."""
        return self._cell_type(self._only("dtype"))[0]

    def _cell_type(self, name: str) -> tuple[np.dtype, tuple[int, ...]]:
        attr = self.schema.attr(name)
        return cell_type(attr["datatype"], attr["cell_val_num"], bool(attr["enumeration"]))

    @property
    def non_empty_domain(self) -> tuple[tuple[Any, Any], ...] | None:
        """The box around all cells written."""
        found = self.core.non_empty_domain()
        if found is None:
            return None
        kinds = [dim["datatype"] for dim in self.schema.dims]
        return tuple(
            (from_bytes(low, kind), from_bytes(high, kind)) for (low, high), kind in zip(found, kinds)
        )

    def _key_values(self) -> dict[str, tuple[str, bytes]]:
        """The key-values as they are stored, at the time of opening."""
        core = self.core
        if self._stored is None or self._stored[0] is not core:
            self._stored = (core, core.metadata())
        return self._stored[1]

    @property
    def attrs(self) -> Metadata:
        """The array's key-values."""
        self.core  # noqa: B018 - of this process, and open
        if self._attrs is None:
            self._attrs = Metadata(
                self._key_values,
                self._change_key_values,
            )
        return self._attrs

    def _change_key_values(self, changes: list) -> None:
        self._written_to()
        self._ctx.core.change_metadata(self._uri, False, changes)

    @property
    def fragments(self) -> list[dict]:
        """One dict for each write that counts, oldest first."""
        return self.core.fragments()

    def _only(self, what: str) -> str:
        if self._attr is not None:
            return self._attr
        names = self.schema.attr_names
        if len(names) != 1:
            raise TypeError(f"{what}: the array has the attributes {names}; choose one, as in a[{names[0]!r}]")
        return names[0]

    # -- reading ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.schema.attr_names:
                raise KeyError(f"there is no attribute {key!r}; there are {', '.join(map(repr, self.schema.attr_names))}")
            # What is open already serves the view too.
            view = Array.__new__(Array)
            view.__dict__ |= self.__dict__ | {"_attr": key, "_asked": self.core.time_range}
            return view
        if not isinstance(key, slice) and (is_mask(self, key) or picks_points(self, key)):
            return self._points(points_of(self, key))
        return self._box(index_box(self, key))

    @property
    def oindex(self) -> _Indexer:
        """Orthogonal indexing: ``a.oindex[[1, 9], :]``."""
        return _Indexer(self, index_box)

    @property
    def vindex(self) -> _PointIndexer:
        """Cells by lists of positions: ``a.vindex[i, j]``."""
        return _PointIndexer(self)

    @property
    def loc(self) -> _Indexer:
        """Cells by coordinates, both ends included: ``a.loc[10:20, "2024-05":"2024-06"]``."""
        return _Indexer(self, coordinates_box)

    def _fields(self) -> list[str]:
        return [self._attr] if self._attr is not None else self.schema.attr_names

    def _box(self, box: Box) -> Any:
        fields, schema = self._fields(), self.schema
        if schema.sparse:
            return self._read(schema.dim_names + fields, ranges=box.ranges)
        empty = self._empty_dims()
        if empty or 0 in box.full_shape:
            out = {name: self._nothing(box, name, empty) for name in fields}
            return out[fields[0]] if len(fields) == 1 else out
        cells = math.prod(box.full_shape)
        if len(fields) == 1 and self._comes_in_batches(box, cells, fields[0]):
            return self._read_out(box, np.empty(self._out_shape(box, fields[0]), self.dtype))
        columns = self._read(fields, ranges=box.ranges, work=self._work(box, fields))
        if len(fields) == 1:
            return box.shaped(columns[fields[0]])
        return {name: box.shaped(values) for name, values in columns.items()}

    def _nothing(self, box: Box, name: str, empty: frozenset[str]) -> np.ndarray:
        """A result without cells."""
        dtype, inner = self._cell_type(name)
        shape = tuple(
            0 if axis.dim.name in empty else axis.length for axis in box.axes if not axis.squeeze
        )
        if 0 not in shape:
            raise IndexError("there are no cells yet")
        return np.empty(shape + inner, dtype)

    def _work(self, box: Box, fields: Sequence[str]) -> int | None:
        """Bytes that a box takes to be decoded of one fragment, at most; ``None``: nobody knows."""
        cells = 1
        for axis in box.axes:
            extent = axis.dim.extent
            if extent is None:
                return None
            cells *= ((axis.length * abs(axis.step) - 1) // extent + 2) * extent
        return min(cells * self.schema.cell_bytes(fields), U64_MAX)

    def _points(self, point: Point) -> Any:
        fields = self._fields()
        columns = self._read(fields, points=point.columns)
        out = {name: point.shaped(values) for name, values in columns.items()}
        return out[fields[0]] if len(fields) == 1 else out

    def _read(self, fields: Sequence[str], **query: Any) -> dict[str, np.ndarray]:
        return self._numpy(_async.read_all(self.core, _query(fields, **query)))

    def _numpy(self, columns: Mapping[str, tuple]) -> dict[str, np.ndarray]:
        return {
            name: column_to_numpy(column, self.schema.enumerations.get(column[2]) if column[2] else None)
            for name, column in columns.items()
        }

    def query(
        self,
        where: Condition | str | None = None,
        fields: Sequence[str] | None = None,
        *,
        order: str | None = None,
        limit: int | None = None,
        memory: int | None = None,
        strings: str = "large",
    ) -> Query:
        """The cells that meet a condition, as a table: to numpy, Arrow, pandas or polars.

        Nothing is read before the table is asked for its rows. ``strings="view"``: text and bytes
        are views in Arrow, as polars and duckdb keep them.
        """
        if strings not in ("large", "view"):
            raise ValueError(f"strings is 'large' or 'view', not {strings!r}")
        return Query(
            self, condition_text(where), fields, order, limit, memory, views=strings == "view"
        )

    def dataset(self) -> Any:
        """The cells as a ``pyarrow.dataset.Dataset``: query engines such as DuckDB, DataFusion and
        polars (``scan_pyarrow_dataset``) read the columns and rows of it that they need.
        """
        from ._dataset import ArrayDataset

        return ArrayDataset(self)

    def read(self, key: Any = ..., *, out: np.ndarray | None = None) -> Any:
        """``a[key]``; with ``out``, into memory that is there already: one C-contiguous array of
        the shape and type of the result.
        """
        return self[key] if out is None else self._read_out(index_box(self, key), out)

    def _piece(self) -> int:
        """Bytes that the engine makes in one piece."""
        return int(self._ctx.config.get("sm.mem.total_budget", _BUDGET)) // 4

    def _comes_in_batches(self, box: Box, cells: int, name: str) -> bool:
        """Whether a result of plain numbers is more than the engine makes in one piece: then its
        place is made first, and it is there but once.
        """
        dtype, inner = self._cell_type(name)
        size = cells * math.prod(inner) * dtype.itemsize
        if size <= self._piece():
            return False
        if size > sys.maxsize:
            raise BudgetError(
                f"{cells} cells of {self._uri} are more than memory can hold: take a part, "
                f"such as what non_empty_domain says was written"
            )
        return not box.backwards and _is_plain(self.schema.attr(name))

    def _out_shape(self, box: Box, name: str) -> tuple[int, ...]:
        shape = tuple(axis.length for axis in box.axes if not axis.squeeze)
        return shape + self._cell_type(name)[1]

    def _read_out(self, box: Box, out: np.ndarray) -> np.ndarray:
        name = self._only("out")
        field = self.schema.attr(name)
        if self.schema.sparse or not _is_plain(field):
            raise TypeError(f"out takes plain numbers of a dense array, not {name!r}")
        shape = self._out_shape(box, name)
        if (out.shape, out.dtype) != (shape, self.dtype):
            raise ValueError(f"out has the shape {out.shape} and type {out.dtype}; {shape} and {self.dtype} are read")
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError("out must be C-contiguous and writable")
        if box.backwards:
            raise ValueError("out takes no steps backwards")
        if out.size:
            query = _query([name], ranges=box.ranges, work=self._work(box, [name]))
            reader = _async.watched(self.core.read(query))
            memory, done, complete = out.reshape(-1).view(np.uint8), 0, False
            size = self.dtype.itemsize * math.prod(self._cell_type(name)[1])
            while not complete and done < len(memory):
                cells, complete = reader.read_into([(memory[done:], None, None)])
                done += cells * size
        return out

    def to_numpy(self) -> Any:
        """All cells."""
        return self[...]

    async def read_async(self, key: Any = ..., *, out: np.ndarray | None = None) -> Any:
        """:meth:`read`, off the event loop's thread; a cancelled task ends the read."""
        return await _async.run(self.read, key, out=out)

    async def write_async(self, data: Any, *, at: Any = None) -> list[str]:
        """:meth:`write`, off the event loop's thread. A write that has begun comes to its end."""
        return await _async.run(self.write, data, at=at)

    def __dlpack__(self, **options: Any) -> Any:
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
        name = self._only("numpy takes one attribute")
        cells = self._box(index_box(self, ...))
        cells = cells[name] if isinstance(cells, dict) else cells
        if isinstance(cells, np.ma.MaskedArray):
            cells = _filled(cells, name)
        return cells if dtype is None else cells.astype(dtype, copy=False)

    def agg(self, *count: str, where: Condition | str | None = None, **of: str | Sequence[str]) -> Any:
        """Aggregates: ``a.agg("count", mean="t", max=["t", "u"])``.

        One answer for one question; else a dict, by names such as ``mean_t``. What tile statistics
        say is not read.
        """
        asked = {name: name for name in count}
        for function, names in of.items():
            for name in [names] if isinstance(names, str) else names:
                asked[f"{function}_{name}"] = f"{function}:{name}"
        values = self.core.aggregate(list(asked.values()), _query([], condition=condition_text(where)))
        answers = {}
        for (name, text), value in zip(asked.items(), values):
            if isinstance(value, tuple):
                value = from_bytes(value[1], value[0])
            elif text.startswith("sum:") and value is not None:
                value = _summed(value, self.schema, text[4:])
            answers[name] = value
        return next(iter(answers.values())) if len(answers) == 1 else answers

    # -- changing -----------------------------------------------------------------------------

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set(index_box, key, value)

    def _set(self, box: Any, key: Any, value: Any) -> None:
        if self.schema.sparse:
            raise TypeError("cells of a sparse array are written with write(), coordinates and all")
        if is_mask(self, key):
            raise IndexError("a write fills a box: no flags")
        self._write_box(box(self, key), value)

    def _write_box(
        self, box: Box, value: Any, at: Any = None, *, uncommitted: bool = False
    ) -> list[str]:
        return self._store_box(box, self._box_columns(box, value), at, uncommitted)

    def _box_columns(self, box: Box, value: Any) -> list[tuple]:
        """What is written to a box, checked and in the array's types."""
        self._written_to()
        schema = self.schema
        named = value if isinstance(value, Mapping) else {self._only("writing needs a dict"): value}
        _complete(schema.attr_names, named)
        shape, columns = box.full_shape, []
        for name, values in named.items():
            field = schema.attr(name)
            values, mask = _indexed(schema, field, *given(values))
            values = rows(field, values, len(shape))
            whole = shape + self._cell_type(name)[1] if values.dtype.kind != "O" else shape
            values = np.broadcast_to(box.unsqueezed(values), whole)
            if mask is not None:
                mask = np.broadcast_to(box.unsqueezed(mask), whole)
            columns.append(numpy_to_column(name, field, values, mask))
        return columns

    def _store_box(self, box: Box, columns: list[tuple], at: Any, uncommitted: bool = False) -> list[str]:
        if 0 in box.full_shape:
            return []
        names = self._ctx.core.write(
            self._uri, columns, "row", box.bounds(), _time.moment(at), uncommitted
        )
        self._refresh()
        return names

    def write(self, data: Any, *, at: Any = None) -> list[str]:
        """Writes cells: a dict of columns, a data frame, or whatever speaks Arrow's C stream.

        Of a sparse array they need coordinates; dense arrays are written with ``a[...] = x``. All
        of it is one write: readers see all or nothing.
        """
        self._written_to()
        schema = self.schema
        data = self._table(data)
        if not isinstance(data, Mapping):
            return self._write_table(data, at)
        if not schema.sparse:
            return self._write_box(index_box(self, ...), data, at)
        fields = {dim["name"]: dim for dim in schema.dims}
        fields |= {attr["name"]: attr for attr in schema.attrs}
        _complete(fields, data)
        columns = [
            numpy_to_column(name, fields[name], *_indexed(schema, fields[name], *given(values)))
            for name, values in data.items()
        ]
        if all(np.size(given(values)[0]) == 0 for values in data.values()):
            return []
        names = self._ctx.core.write(self._uri, columns, None, None, _time.moment(at))
        self._refresh()
        return names

    def _write_table(self, table: Any, at: Any, *, uncommitted: bool = False) -> list[str]:
        stream = getattr(table, "__arrow_c_stream__", None)
        if stream is None:
            raise TypeError(
                f"{self._uri} is written with a dict of columns, a data frame or an Arrow table, not {type(table).__name__}"
            )
        return self._write_stream(stream(), at, uncommitted)

    def _write_stream(self, stream: Any, at: Any, uncommitted: bool = False) -> list[str]:
        names = self._ctx.core.write_arrow(self._uri, stream, _time.moment(at), uncommitted)[1]
        self._refresh()
        return names

    def _table(self, data: Any) -> Any:
        """A data frame as a table with the array's types; all else as it is."""
        if not is_frame(data):
            return data
        if any(data.index.names):
            data = data.reset_index()
        table = tabled(data)
        if isinstance(table, Mapping):
            return table
        import pyarrow as pa

        fields = {field["name"]: field for field in (*self.schema.dims, *self.schema.attrs)}
        for i, column in enumerate(table.schema):
            field = fields.get(column.name)
            if field is None or field["cell_val_num"] != 1 or field.get("enumeration"):
                continue
            dtype = dtype_of(field["datatype"])
            wanted = pa.from_numpy_dtype(dtype) if dtype.kind in "iuf" else None
            numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            if wanted is None or not numbers or column.type == wanted:
                continue
            try:
                # Refuses what would become another value.
                cast = table.column(i).cast(wanted, safe=not pa.types.is_floating(wanted))
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {column.name!r}, as {field['datatype']}: {error}") from None
            table = table.set_column(i, column.name, cast)
        return table

    def append(self, data: Any, axis: int = 0, *, at: Any = None) -> list[str]:
        """Writes a dense box behind what is there, and lets the array grow along ``axis``."""
        schema = self.schema
        if schema.sparse:
            raise TypeError("cells of a sparse array are written with write(), coordinates and all")
        named = data if isinstance(data, Mapping) else {self._only("append"): data}
        axis, dims, shape = range(self.ndim)[axis], schema.axes, self.shape
        for name, values in named.items():
            # Nothing is stretched, and nothing grows along other dimensions, unless there is nothing yet.
            added = np.shape(values)[: self.ndim]
            others = [i for i in range(self.ndim) if i != axis]
            if len(added) != self.ndim or (0 not in shape and any(added[i] != shape[i] for i in others)):
                raise ValueError(f"{name!r} has the shape {added}; along dimension {axis}, {shape} grows by its like")
        added = np.shape(next(iter(named.values())))
        if 0 in added[: self.ndim]:
            return []
        pairs = [(dim.low, dim.high) for dim in dims]
        start, written = dims[axis].low, self.core.non_empty_domain()
        if self._empty_dims():
            pairs = [(dim.low, dim.low + n - 1) for dim, n in zip(dims, added)]
        elif written is not None:
            # A job that did not come to its end may have left cells beyond the current domain.
            last = _ticks(from_bytes(written[axis][1], dims[axis].datatype))
            start = min(last, dims[axis].high) + 1
        pairs[axis] = (start, start + added[axis] - 1)
        box = Box.of_pairs(self, pairs)
        # Whatever is wrong with them is said before anything grows.
        columns = self._box_columns(box, named)
        grown = [(min(low, dim.low), max(high, dim.high)) for (low, high), dim in zip(pairs, dims)]
        if schema._json.get("current_domain") and grown != [(dim.low, dim.high) for dim in dims]:
            self.evolve(expand=grown)
        return self._store_box(box, columns, at)

    def delete(self, where: Condition | str, *, at: Any = None) -> str:
        """Deletes the cells of a sparse array that meet a condition, from now on."""
        self._written_to()
        name = self._ctx.core.delete_cells(self._uri, condition_text(where), _time.moment(at))
        self._refresh()
        return name

    def evolve(
        self,
        *,
        add: Iterable[Attr] = (),
        drop: Iterable[str] = (),
        enumerations: Mapping[str, Sequence[Any]] | None = None,
        expand: Sequence[tuple[Any, Any]] | None = None,
        at: Any = None,
    ) -> None:
        """Adds and drops attributes, adds enumerations, expands the current domain."""
        import json

        self._written_to()
        bounds = None
        if expand is not None:
            if len(expand) != self.ndim:
                raise ValueError(f"{len(expand)} ranges for {self.ndim} dimensions")
            bounds = [
                (dim.pack(dim.exact(a)), dim.pack(dim.exact(b)))
                for (a, b), dim in zip(expand, self.schema.axes, strict=True)
            ]
        self._ctx.core.evolve(
            self._uri,
            [json.dumps(attr._json()) for attr in _each(add, Attr)],
            [drop] if isinstance(drop, str) else list(drop),
            [json.dumps(enumeration(n, v)) for n, v in (enumerations or {}).items()],
            bounds,
            _time.moment(at),
        )
        self._refresh()

    def consolidate(
        self,
        mode: str = "fragments",
        *,
        fragments: Sequence[str] = (),
        max_fragment_size: int | None = None,
        purge_deleted: bool = False,
        memory: int | None = None,
        progress: Progress = None,
    ) -> list[dict]:
        """Makes few fragments (or commits, footers, key-value files) of many.

        ``progress``: ``True`` shows how far it has come; a function gets what is counted, how many
        are done, and how many there are.
        """
        done = observed(self._ctx, progress).consolidate(
            self._uri, mode, list(fragments), max_fragment_size, purge_deleted, memory
        )
        self._refresh()
        return done

    def vacuum(
        self, mode: str = "fragments", *, dry_run: bool = False, progress: Progress = None
    ) -> tuple[list[str], int]:
        """Removes what consolidations have replaced: the paths, and their bytes."""
        done = observed(self._ctx, progress).vacuum(self._uri, mode, dry_run)
        self._refresh()
        return done

    def check(self, deep: bool = False, *, progress: Progress = None) -> list[tuple[str, str, str]]:
        """Verifies the array: severity, path and description of each finding."""
        return observed(self._ctx, progress).check(self._uri, deep)

    # -- how it looks -------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self._closed:
            return f"<azulejo_db.Array {self._uri!r} (closed)>"
        kind = "sparse" if self.schema.sparse else "dense"
        dims = ", ".join(f"{d['name']}: {d['datatype'].lower()}" for d in self.schema.dims)
        attrs = ", ".join(f"{a['name']}: {a['datatype'].lower()}" for a in self.schema.attrs)
        return f"<azulejo_db.Array {self._uri!r} {kind} [{dims}] {{{attrs}}}>"

    def _repr_html_(self) -> str:
        import html

        rows = []
        for dim, (low, high) in zip(self.schema.dims, self.domain):
            rows.append(("dimension", dim["name"], dim["datatype"], f"{low} … {high}", dim["tile_extent"]))
        for attr in self.schema.attrs:
            filters = ", ".join(f["filter"] for f in attr["filters"]["filters"])
            rows.append(("attribute", attr["name"], attr["datatype"], filters, ""))
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows
        )
        kind = "sparse" if self.schema.sparse else "dense"
        return f"<b>{html.escape(self._uri)}</b> ({kind}, {len(self.fragments)} fragments)<table>{cells}</table>"


class _Indexer:
    """What stands between an array and square brackets."""

    def __init__(self, array: Array, box: Callable[[Array, Any], Box]):
        self._array, self._box = array, box

    def __getitem__(self, key: Any) -> Any:
        return self._array._box(self._box(self._array, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._set(self._box, key, value)


class _PointIndexer:
    """The same for lists of cells."""

    def __init__(self, array: Array):
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return self._array._points(points_of(self._array, key))


def _complete(names: Iterable[str], given: Mapping[str, Any]) -> None:
    names = list(names)
    unknown, missing = set(given) - set(names), set(names) - set(given)
    if unknown or missing:
        raise ValueError(
            f"a write takes the columns {names}; missing: {sorted(missing)}; not in the schema: {sorted(unknown, key=str)}"
        )


def _filled(cells: np.ma.MaskedArray, name: str) -> np.ndarray:
    """Masked cells as numpy alone has them."""
    if cells.dtype.kind == "f":
        return cells.filled(np.nan)
    if cells.dtype.kind in "mM":
        return cells.filled(np.array("NaT", cells.dtype))
    if cells.dtype.kind == "O":
        return cells.filled(None)
    raise TypeError(f"{name!r} has nulls, which {cells.dtype} cannot say: a[...] gives a masked array")


def _is_plain(field: dict) -> bool:
    """Whether cells are numbers that numpy has as they are stored."""
    text = is_text(field["datatype"]) or is_bytes(field["datatype"])
    return field["cell_val_num"] != "var" and not (field.get("nullable") or field.get("enumeration") or text)


def _reopened(uri: str, mode: str, pin: bytes, ctx: Context, attr: str | None) -> Array:
    return Array(uri, mode, ctx=ctx, _attr=attr, _pin=zlib.decompress(pin))


def _ticks(value: Any) -> int:
    return int(value.view(np.int64)) if isinstance(value, (np.datetime64, np.timedelta64)) else int(value)


def _indexed(
    schema: Schema, field: dict, values: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as the indices that are stored."""
    name = field.get("enumeration")
    if not name:
        return values, mask
    labels = schema.enumerations[name]
    if values.dtype.kind in "iu" and not all(isinstance(label, (int, float)) for label in labels):
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < len(labels):
            raise ValueError(f"the enumeration {name!r} has {len(labels)} labels: {values.min()} to {values.max()} are no indices of them")
        return values, mask
    flat = values.reshape(-1).tolist()
    null = np.fromiter(map(is_null, flat), bool, len(flat)).reshape(values.shape)
    null = null if mask is None else null | mask
    places = {label: i for i, label in enumerate(labels)}
    try:
        index = [0 if n else places[v] for v, n in zip(flat, null.reshape(-1))]
    except (KeyError, TypeError) as missing:
        raise ValueError(f"the enumeration {name!r} has no label {missing.args[0]!r}") from None
    found = np.array(index, dtype=dtype_of(field["datatype"])).reshape(values.shape)
    return found, null if null.any() else None


def _summed(value: Any, schema: Schema, name: str) -> Any:
    kinds = {f["name"]: f["datatype"] for f in [*schema.dims, *schema.attrs]}
    dtype = dtype_of(kinds.get(name, "INT64"))
    return np.timedelta64(value, np.datetime_data(dtype)[0]) if dtype.kind == "m" else value


def _query(
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
    return {
        "ranges": ranges, "points": points, "fields": fields, "condition": condition, "order": order,
        "memory": memory, "matching_only": matching_only, "limit": limit, "work": work,
    }
