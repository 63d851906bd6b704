"""From what stands in square brackets to what the engine selects."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import dtype_of, last_tick, scalar_bytes

if TYPE_CHECKING:
    from ._array import Array


#: Everything along a dimension.
_All = object()


@dataclasses.dataclass
class Axis:
    """What is selected along one dimension, in ticks."""

    kind: str
    start: int
    stop: int
    step: int = 1
    squeeze: bool = False
    items: np.ndarray | None = None
    ranges: Any = None

    @property
    def length(self) -> int:
        if self.items is not None:
            return len(self.items)
        return len(range(self.start, self.stop, self.step))


@dataclasses.dataclass
class Box:
    """A selection a dimension, and what becomes of the result's shape."""

    axes: list[Axis]
    ranges: list

    @classmethod
    def of(cls, axes: list[Axis]) -> Box:
        def selected(axis: Axis) -> Any:
            if axis.ranges is _All:
                return None
            return axis.ranges if axis.ranges is not None else _ranges(axis)

        return cls(axes, [selected(axis) for axis in axes])

    @classmethod
    def of_pairs(cls, array: Array, pairs: list[tuple[int, int]]) -> Box:
        kinds = [dim["datatype"] for dim in array.schema.dims]
        return cls.of([Axis(k, a, b + 1) for (a, b), k in zip(pairs, kinds, strict=True)])

    @property
    def full_shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """A read's cells in the shape asked for."""
        out = values.reshape(self.full_shape + values.shape[1:])
        key: list[Any] = []
        for axis in self.axes:
            if axis.squeeze:
                key.append(0)
            elif axis.items is None and axis.step < 0:
                key.append(slice(None, None, -1))
            else:
                key.append(slice(None))
        if all(isinstance(k, slice) and k == slice(None) for k in key):
            return out
        return out[tuple(key)]

    def unsqueezed(self, values: np.ndarray) -> np.ndarray:
        """Values to be written, with the dimensions that a number took away."""
        places = [i for i, axis in enumerate(self.axes) if axis.squeeze]
        if places and values.ndim == len(self.axes) - len(places):
            values = np.expand_dims(values, tuple(places)) if not isinstance(
                values, np.ma.MaskedArray
            ) else np.ma.expand_dims(values, tuple(places))
        return values

    def bounds(self) -> list[tuple[bytes, bytes]]:
        """The box that a write fills."""
        found = []
        for axis in self.axes:
            if axis.items is not None or axis.step != 1:
                raise IndexError("a write fills a box: neither lists nor steps")
            if axis.length == 0:
                raise IndexError("nothing is selected")
            found.append((_bytes(axis.start, axis.kind), _bytes(axis.stop - 1, axis.kind)))
        return found


@dataclasses.dataclass
class Point:
    """A list of cells."""

    columns: list
    shape: tuple[int, ...]

    def shaped(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(self.shape + values.shape[1:])


def _bytes(tick: int, kind: str) -> bytes:
    dtype = dtype_of(kind)
    return np.array(tick, np.int64 if dtype.kind in "mM" else dtype).tobytes()


def _ranges(axis: Axis) -> Any:
    if axis.items is not None:
        runs: list[tuple[bytes, bytes]] = []
        items = axis.items.tolist()
        i = 0
        while i < len(items):
            j = i
            while j + 1 < len(items) and items[j + 1] == items[j] + 1:
                j += 1
            runs.append((_bytes(items[i], axis.kind), _bytes(items[j], axis.kind)))
            i = j + 1
        return runs
    if axis.length == 0:
        return []
    picked = range(axis.start, axis.stop, axis.step)
    low, high = min(picked[0], picked[-1]), max(picked[0], picked[-1])
    ends = (_bytes(low, axis.kind), _bytes(high, axis.kind))
    return [ends] if abs(axis.step) == 1 else (*ends, abs(axis.step))


def _expanded(key: Any, ndim: int) -> list:
    key = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("one ellipsis is enough")
    if dots:
        at = dots[0]
        key[at : at + 1] = [slice(None)] * (ndim - len(key) + 1)
    if len(key) > ndim:
        raise IndexError(f"{len(key)} indices for {ndim} dimensions")
    return key + [slice(None)] * (ndim - len(key))


def _whole(array: Array, i: int) -> tuple[int, int]:
    low, high = array.domain[i]
    return _tick(low), _tick(high)


def _tick(value: Any, kind: str | None = None) -> int:
    if kind is not None and dtype_of(kind).kind in "mM" and not isinstance(value, (int, np.integer)):
        return int(np.array(np.datetime64(value) if isinstance(value, str) else value, dtype_of(kind)).view(np.int64))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return int(value.view(np.int64))
    return operator.index(value)


def _countable(dim: dict) -> bool:
    return dim["domain"] is not None and dtype_of(dim["datatype"]).kind in "iumM"


def index_box(array: Array, key: Any) -> Box:
    """Half-open positions; coordinates where a domain does not start at 0."""
    axes = []
    for i, (part, dim) in enumerate(zip(_expanded(key, array.ndim), array.schema.dims)):
        if isinstance(part, (list, np.ndarray)):
            axes.append(_list_axis(array, i, part))
            continue
        axes.append(_axis(array, i, part, dim))
    return Box.of(axes)


def orthogonal_box(array: Array, key: Any) -> Box:
    """As :func:`index_box`; lists are taken along their own dimension."""
    return index_box(array, key)


def _axis(array: Array, i: int, part: Any, dim: dict) -> Axis:
    kind = dim["datatype"]
    if not _countable(dim):
        if not isinstance(part, slice):
            part = slice(part, part)
        if part == slice(None):
            return Axis(kind, 0, 0, ranges=_All)
        raise IndexError(f"dimension {dim['name']!r} ({kind}) has no positions; use loc")
    low, high = _whole(array, i)
    if isinstance(part, slice):
        step = 1 if part.step is None else operator.index(part.step)
        if low == 0:
            start, stop, step = slice(
                _maybe(part.start, kind), _maybe(part.stop, kind), step
            ).indices(high + 1)
            return Axis(kind, start, stop, step)
        if step < 0:
            raise IndexError("negative steps need a domain that starts at 0")
        start = low if part.start is None else max(_tick(part.start, kind), low)
        stop = high + 1 if part.stop is None else min(_tick(part.stop, kind), high + 1)
        return Axis(kind, start, max(start, stop), step)
    at = _tick(part, kind)
    if low == 0 and at < 0:
        at += high + 1
    if not low <= at <= high:
        raise IndexError(f"{part} is outside dimension {dim['name']!r}, {low} to {high}")
    return Axis(kind, at, at + 1, squeeze=not array.schema.sparse)


def _maybe(value: Any, kind: str) -> int | None:
    return None if value is None else _tick(value, kind)


def _list_axis(array: Array, i: int, part: Any) -> Axis:
    dim = array.schema.dims[i]
    low, high = _whole(array, i)
    items = np.asarray(part)
    if items.dtype == bool:
        if len(items) != high - low + 1:
            raise IndexError(f"{len(items)} flags for {high - low + 1} coordinates")
        items = np.flatnonzero(items) + low
    items = items.astype(np.int64)
    if low == 0:
        items = np.where(items < 0, items + high + 1, items)
    if len(items) and not (low <= items.min() and items.max() <= high):
        raise IndexError(f"positions outside dimension {dim['name']!r}, {low} to {high}")
    return Axis(dim["datatype"], 0, 0, items=items)


def coordinates_box(array: Array, key: Any) -> Box:
    """Coordinates, both ends included."""
    axes = []
    for i, (part, dim) in enumerate(zip(_expanded(key, array.ndim), array.schema.dims)):
        kind = dim["datatype"]
        if _countable(dim):
            low, high = _whole(array, i)
            if isinstance(part, slice):
                if part.step is not None:
                    raise IndexError("loc takes no steps")
                start = low if part.start is None else max(_int(scalar_bytes(part.start, kind), kind), low)
                stop = high if part.stop is None else min(_int(last_tick(part.stop, kind), kind), high)
                axes.append(Axis(kind, start, max(stop + 1, start)))
            elif isinstance(part, (list, np.ndarray)):
                items = np.array([_int(scalar_bytes(v, kind), kind) for v in part], np.int64)
                axes.append(Axis(kind, 0, 0, items=items))
            else:
                at = _int(scalar_bytes(part, kind), kind)
                if not low <= at <= high:
                    raise IndexError(f"{part!r} is outside dimension {dim['name']!r}")
                axes.append(Axis(kind, at, at + 1, squeeze=not array.schema.sparse))
            continue
        axis = Axis(kind, 0, 0)
        if isinstance(part, slice):
            if part == slice(None):
                axis.ranges = _All
            else:
                low, high = dim["domain"] or (None, None)
                start = scalar_bytes(part.start if part.start is not None else low or "", kind)
                stop_at = part.stop if part.stop is not None else high
                stop = scalar_bytes(stop_at, kind) if stop_at is not None else b"\xff" * 8
                axis.ranges = [(start, stop)]
        else:
            several = part if isinstance(part, (list, np.ndarray)) else [part]
            axis.ranges = [(scalar_bytes(v, kind), scalar_bytes(v, kind)) for v in several]
        axes.append(axis)
    return Box.of(axes)


def _int(raw: bytes, kind: str) -> int:
    dtype = dtype_of(kind)
    return int(np.frombuffer(raw, np.int64 if dtype.kind in "mM" else dtype)[0])


def points_of(array: Array, key: Any) -> Point:
    """Lists of positions, broadcast against one another."""
    key = key if isinstance(key, tuple) else (key,)
    if len(key) != array.ndim:
        raise IndexError(f"vindex takes a list for each of the {array.ndim} dimensions")
    lists = np.broadcast_arrays(*(np.asarray(k) for k in key))
    columns = []
    for i, (items, dim) in enumerate(zip(lists, array.schema.dims)):
        low, high = _whole(array, i)
        items = items.reshape(-1).astype(np.int64)
        if low == 0:
            items = np.where(items < 0, items + high + 1, items)
        if len(items) and not (low <= items.min() and items.max() <= high):
            raise IndexError(f"positions outside dimension {dim['name']!r}, {low} to {high}")
        dtype = dtype_of(dim["datatype"])
        columns.append((items.astype(np.int64 if dtype.kind in "mM" else dtype).tobytes(), None))
    return Point(columns, lists[0].shape)


def size(shape: tuple[int, ...]) -> int:
    """The number of cells of a shape."""
    return math.prod(shape)
