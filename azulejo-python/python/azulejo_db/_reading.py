"""What is read of an array: boxes, points, queries, aggregates."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _async
from ._aggregates import aggregated
from ._cells import column_to_numpy
from ._expr import Condition, condition_text
from ._index import (
    Box,
    Point,
    coordinates_box,
    index_box,
    is_mask,
    leading,
    picks_points,
    plain,
    points_of,
    without_dots,
)
from ._query import Query, request
from ._time import U64_MAX
from ._types import is_plain
from .errors import BudgetError

if TYPE_CHECKING:
    from ._array import Array

#: What queries may hold unless a setting says otherwise.
_BUDGET = 10 << 30
#: Cells of a dense array that are not walked over: at a thousand million a second, two years.
_ENDLESS = 1 << 56


class Reading:
    """The reading half of an :class:`~azulejo_db.Array`."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.schema.attr_names:
                raise KeyError(f"there is no attribute {key!r}; there are {', '.join(map(repr, self.schema.attr_names))}")
            return self._view(key)
        key = plain(key)
        if not isinstance(key, slice) and (is_mask(self, key) or picks_points(self, key)):
            return self._points_at(without_dots(key))
        found = self._box(index_box(self, key))
        if (axis := leading(self, key)) is None:
            return found
        if isinstance(found, dict):
            return {name: np.moveaxis(cells, axis, 0) for name, cells in found.items()}
        return np.moveaxis(found, axis, 0)

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
        if any(axis.dim.name in empty and axis.names_some for axis in box.axes):
            raise IndexError("there are no cells yet")
        shape = tuple(
            0 if axis.dim.name in empty else axis.length for axis in box.axes if not axis.squeeze
        )
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

    def _points_at(self, key: Any) -> Any:
        """Cells by lists of positions, in their order and as often as they are named."""
        if self.schema.sparse:
            raise TypeError(
                f"{self._uri} is sparse: its cells come in an order of their own, and not all of these may be there; "
                f"query().points(..) says where each one is"
            )
        return self._points(points_of(self, key))

    def _points(self, point: Point) -> Any:
        fields = self._fields()
        if self._empty_dims() and 0 not in point.shape:
            raise IndexError("there are no cells yet")
        columns = self._read(fields, points=point.columns)
        out = {name: point.shaped(values) for name, values in columns.items()}
        return out[fields[0]] if len(fields) == 1 else out

    def _read(self, fields: Sequence[str], **query: Any) -> dict[str, np.ndarray]:
        return self._numpy(_async.read_all(self.core, request(fields, **query)))

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
        raw: bool = False,
    ) -> Query:
        """The cells that meet a condition, as a table: to numpy, Arrow, pandas or polars.

        Nothing is read before the table is asked for its rows. ``strings="view"``: text and bytes
        are views in Arrow, as polars and duckdb keep them. ``raw``: Arrow gets values as they are
        stored, such as the bytes of text that is no UTF-8, indices of labels, and ticks of times.
        """
        if strings not in ("large", "view"):
            raise ValueError(f"strings is 'large' or 'view', not {strings!r}")
        return Query(
            self, condition_text(where), fields, order, limit, memory, views=strings == "view", raw=raw
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
        if out is None:
            return self[key]
        key = plain(key)
        if not (self._empty_dims() or is_mask(self, key) or picks_points(self, key) or leading(self, key) is not None):
            return self._read_out(index_box(self, key), out)
        # These cells do not lie in the result as they do in a box.
        self._plain_cells()
        found = self[key]
        self._room_for(found.shape, out)
        out[...] = found
        return out

    def _piece(self) -> int:
        """Bytes that the engine makes in one piece."""
        return int(self._ctx.config.get("sm.mem.total_budget", _BUDGET)) // 4

    def _has_an_end(self) -> None:
        """Refuses a walk over all of a dense array that would take years: cells that nobody wrote are
        walked over too.
        """
        if not self.schema.sparse and (cells := math.prod(self.shape)) > _ENDLESS:
            raise BudgetError(
                f"{cells} cells of {self._uri} come to no end: name a box of them or a limit; "
                f"non_empty_domain says what was written"
            )

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
        return not box.backwards and is_plain(self.schema.attr(name))

    def _out_shape(self, box: Box, name: str) -> tuple[int, ...]:
        shape = tuple(axis.length for axis in box.axes if not axis.squeeze)
        return shape + self._cell_type(name)[1]

    def _read_out(self, box: Box, out: np.ndarray) -> np.ndarray:
        name = self._plain_cells()
        self._room_for(self._out_shape(box, name), out)
        if box.backwards:
            raise ValueError("out takes no steps backwards")
        if out.size:
            query = request([name], ranges=box.ranges, work=self._work(box, [name]))
            reader = _async.watched(self.core.read(query))
            memory, done, complete = np.ma.getdata(out).reshape(-1).view(np.uint8), 0, False
            size = self.dtype.itemsize * math.prod(self._cell_type(name)[1])
            while not complete and done < len(memory):
                cells, complete = reader.read_into([(memory[done:], None, None)])
                done += cells * size
        if isinstance(out, np.ma.MaskedArray):
            # Every cell is one that was read.
            out.mask = np.ma.nomask
        return out

    def _plain_cells(self) -> str:
        """The attribute of which cells are read into memory that is there."""
        name = self._only("out")
        if self.schema.sparse or not is_plain(self.schema.attr(name)):
            raise TypeError(f"out takes plain numbers of a dense array, not {name!r}")
        return name

    def _room_for(self, shape: tuple[int, ...], out: np.ndarray) -> None:
        """Refuses memory that is not just what cells of this shape take."""
        if (out.shape, out.dtype) != (shape, self.dtype):
            raise ValueError(f"out has the shape {out.shape} and type {out.dtype}; {shape} and {self.dtype} are read")
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError("out must be C-contiguous and writable")

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
        if copy is False:
            raise ValueError("an array's cells are read into new memory: np.asarray(a) without copy=False does that")
        name = self._only("numpy takes one attribute")
        cells = self._box(index_box(self, ...))
        cells = cells[name] if isinstance(cells, dict) else cells
        if isinstance(cells, np.ma.MaskedArray):
            cells = _filled(cells, name)
        return cells if dtype is None else cells.astype(dtype, copy=False)

    def agg(self, *count: str, where: Condition | str | None = None, **of: str | Sequence[str]) -> Any:
        """Aggregates: ``a.agg("count", mean="t", max=["t", "u"])``.

        One answer for one question; else a dict, by names such as ``mean_t``. What tile statistics
        say is not read. The least and greatest label is that in the order of an ordered enumeration,
        else of the labels themselves. Of times, what is none (NaT) is left out.
        """
        asked = {name: name for name in count}
        for function, names in of.items():
            for name in [names] if isinstance(names, str) else names:
                asked[f"{function}_{name}"] = f"{function}:{name}"
        if where is not None or any(text != "count" for text in asked.values()):
            self._has_an_end()
        answers = dict(zip(asked, aggregated(self, list(asked.values()), condition_text(where))))
        return next(iter(answers.values())) if len(answers) == 1 else answers


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
        return self._array._points_at(plain(key))


def _filled(cells: np.ma.MaskedArray, name: str) -> np.ndarray:
    """Masked cells as numpy alone has them."""
    if cells.dtype.kind == "f":
        return cells.filled(np.nan)
    if cells.dtype.kind in "mM":
        return cells.filled(np.array("NaT", cells.dtype))
    if cells.dtype.kind == "O":
        return cells.filled(None)
    raise TypeError(f"{name!r} has nulls, which {cells.dtype} cannot say: a[...] gives a masked array")

