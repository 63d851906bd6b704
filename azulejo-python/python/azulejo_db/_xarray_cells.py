"""The cells of an xarray variable, read where they are looked at."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

from . import _replace
from ._array import Array
from ._index import Axis, Box, points_of
from .errors import NotFoundError

#: All combinations of lists are read at once if they are at most so many times the cells wanted.
_AROUND = 4
#: Cells of lists that are read at once.
_POINTS = 1 << 22


class Cells(BackendArray):
    """The cells of a variable of a dataset, which lies in the group ``group``."""

    def __init__(
        self, group: str, array: Array, attribute: str, shape: tuple[int, ...], dtype: np.dtype, null: Any = None
    ):
        self._group, self._tiledb, self._attribute = group, array, attribute
        self.shape, self.dtype, self._null = shape, dtype, null

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if (lists := self._lists(key)) is not None:
            return self._points(lists)
        if not any(isinstance(part, np.ndarray) for part in key.tuple):
            return self._outer(key.tuple)
        return indexing.explicit_indexing_adapter(
            self._cut(key), self.shape, indexing.IndexingSupport.OUTER, self._outer
        )

    def _cut(self, key: indexing.ExplicitIndexer) -> indexing.ExplicitIndexer:
        """The same with slices of nothing as xarray can reverse them."""
        parts = [
            slice(0, 0) if isinstance(part, slice) and not range(*part.indices(size)) else part
            for part, size in zip(key.tuple, self.shape)
        ]
        return key if isinstance(key, indexing.VectorizedIndexer) else type(key)(tuple(parts))

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        if (lists := self._lists(key)) is not None:
            return await asyncio.to_thread(self._points, lists)
        if not any(isinstance(part, np.ndarray) for part in key.tuple):
            return await asyncio.to_thread(self._outer, key.tuple)

        async def read(outer: tuple) -> np.ndarray:
            return await asyncio.to_thread(self._outer, outer)

        return await indexing.async_explicit_indexing_adapter(
            self._cut(key), self.shape, indexing.IndexingSupport.OUTER, read
        )

    def _lists(self, key: indexing.ExplicitIndexer) -> list[np.ndarray] | None:
        """A list of positions for each dimension, if cells are to be read one by one: they are few of
        the combinations.
        """
        if not isinstance(key, indexing.VectorizedIndexer):
            return None
        if not all(isinstance(part, np.ndarray) for part in key.tuple):
            return None
        lists = [np.where(part < 0, part + size, part) for part, size in zip(key.tuple, self.shape, strict=True)]
        wanted = math.prod(np.broadcast_shapes(*(part.shape for part in lists)))
        around = math.prod(len(np.unique(part)) for part in lists)
        return lists if around > _AROUND * wanted else None

    def _points(self, lists: list[np.ndarray]) -> np.ndarray:
        shape = np.broadcast_shapes(*(part.shape for part in lists))
        out = np.empty(shape, self.dtype)
        lows = [dim.low for dim in self._tiledb.schema.axes]
        step = max(_POINTS * shape[0] // max(math.prod(shape), 1), 1)
        for first in range(0, shape[0], step):
            rows = slice(first, first + step)
            part = [cells[rows] if len(cells) == shape[0] else cells for cells in lists]
            point = points_of(self._tiledb, tuple(cells + low for cells, low in zip(part, lows, strict=True)))
            out[rows] = point.shaped(self._read(points=point.columns))
        return out

    def _outer(self, key: tuple) -> np.ndarray:
        if not self.shape:
            return self._cells(Box.of_pairs(self._tiledb, [(0, 0)])).reshape(())
        axes = []
        for part, size, dim in zip(key, self.shape, self._tiledb.schema.axes, strict=True):
            low = dim.low
            if isinstance(part, slice):
                start, stop, step = part.indices(size)
                axes.append(Axis(dim, start + low, stop + low, step))
            elif isinstance(part, np.ndarray):
                items = np.where(part < 0, part + size, part).astype(np.int64) + low
                axes.append(Axis(dim, 0, 0, items=items))
            else:
                at = int(part) + (size if part < 0 else 0) + low
                axes.append(Axis(dim, at, at + 1, squeeze=True))
        return self._cells(Box(axes))

    def _cells(self, box: Box) -> np.ndarray:
        if 0 in box.full_shape:
            return box.shaped(np.empty(0, self.dtype))
        work = self._tiledb._work(box, [self._attribute])
        return box.shaped(self._read(ranges=box.ranges, work=work))

    def _read(self, **query: Any) -> np.ndarray:
        array = self._tiledb
        try:
            found = array._read([self._attribute], **query)[self._attribute]
        except NotFoundError as error:
            if not _replace.has_left(self._group, array.uri, array._ctx):
                raise
            raise NotFoundError(
                f"{self._group}: another dataset took its place (mode=\"w\") after this one was opened, "
                f"whose cells are gone: open it again",
                self._group,
            ) from error
        if not isinstance(found, np.ma.MaskedArray):
            return found if found.dtype == self.dtype or self.dtype.kind != "O" else found.astype(object)
        # Not by numpy's own fill values, such as 999999 and "?", which nobody could tell from cells.
        cells = np.array(np.ma.getdata(found), object if self.dtype.kind == "O" else None)
        cells[np.ma.getmaskarray(found)] = self._null
        return cells
