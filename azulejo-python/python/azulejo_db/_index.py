"""From what stands in square brackets to what the engine selects."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._dimension import Dimension

if TYPE_CHECKING:
    from ._array import Array

_LISTS = (list, range, np.ndarray)


class Axis:
    """What is selected along one dimension, in ticks: a range with a step, a list, or ranges that
    cannot be counted.
    """

    __slots__ = ("dim", "items", "ranges", "squeeze", "start", "step", "stop")

    def __init__(
        self,
        dim: Dimension,
        start: int,
        stop: int,
        step: int = 1,
        *,
        squeeze: bool = False,
        items: np.ndarray | None = None,
    ):
        self.dim, self.start, self.stop, self.step = dim, start, stop, step
        self.squeeze, self.items = squeeze, items
        self.ranges: Any = _counted(self) if items is None else _runs(dim, items)

    @classmethod
    def of_ranges(cls, dim: Dimension, ranges: Any) -> Axis:
        """Ranges of coordinates that have no positions; ``None`` is everything."""
        axis = cls.__new__(cls)
        axis.dim, axis.start, axis.stop, axis.step = dim, 0, 0, 1
        axis.squeeze, axis.items, axis.ranges = False, None, ranges
        return axis

    @property
    def length(self) -> int:
        """The number of positions."""
        if self.items is not None:
            return len(self.items)
        if self.step == 1:
            return max(self.stop - self.start, 0)
        # Not len(): there may be more than a machine's word counts.
        away = self.stop - self.start if self.step > 0 else self.start - self.stop
        return max(-(-away // abs(self.step)), 0)

    @property
    def names_some(self) -> bool:
        """Whether it names positions one by one, which must be there."""
        return self.squeeze or (self.items is not None and len(self.items) > 0)

    @property
    def backwards(self) -> bool:
        """Whether the engine's cells come the other way round."""
        return self.items is None and self.step < 0


def _counted(axis: Axis) -> Any:
    """A range with a step as the engine takes it."""
    pack, length = axis.dim.pack, axis.length
    if length == 0:
        return []
    last = axis.start + (length - 1) * axis.step
    low, high = (axis.start, last) if axis.step > 0 else (last, axis.start)
    ends = (pack(low), pack(high))
    # The step of a single one may be beyond what the engine counts.
    return [ends] if length == 1 or axis.step in (1, -1) else (*ends, abs(axis.step))


def _runs(dim: Dimension, items: np.ndarray) -> list[tuple[bytes, bytes]]:
    """A list as ranges: what follows one another is one."""
    if not len(items):
        return []
    breaks = np.flatnonzero(items[1:] != items[:-1] + items.dtype.type(1))
    starts = np.concatenate([[0], breaks + 1])
    stops = np.concatenate([breaks, [len(items) - 1]])
    return list(zip(dim.pack_all(items[starts]), dim.pack_all(items[stops])))


class Box:
    """A selection a dimension, and what becomes of the result's shape."""

    __slots__ = ("axes", "full_shape")

    def __init__(self, axes: Sequence[Axis]):
        self.axes = axes
        self.full_shape = tuple([axis.length for axis in axes])

    @classmethod
    def of_pairs(cls, array: Array, pairs: Sequence[tuple[int, int]]) -> Box:
        """The box between first and last ticks."""
        return cls([Axis(dim, low, high + 1) for dim, (low, high) in zip(array.schema.axes, pairs, strict=True)])

    @property
    def ranges(self) -> list:
        """What the engine takes."""
        return [axis.ranges for axis in self.axes]

    @property
    def backwards(self) -> bool:
        """Whether a dimension is read in steps backwards."""
        return any(axis.backwards for axis in self.axes)

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """A read's cells in the shape asked for."""
        out = values.reshape(self.full_shape + values.shape[1:])
        if not any(axis.squeeze or axis.step < 0 for axis in self.axes):
            return out
        return out[tuple([
            0 if axis.squeeze else slice(None, None, -1) if axis.backwards else slice(None)
            for axis in self.axes
        ])]

    def unsqueezed(self, values: np.ndarray, ndim: int) -> np.ndarray:
        """Values to be written, with those of ``ndim`` dimensions that a number took away."""
        places = tuple(i for i, axis in enumerate(self.axes) if axis.squeeze)
        if places and values.ndim == ndim - len(places):
            expand = np.ma.expand_dims if isinstance(values, np.ma.MaskedArray) else np.expand_dims
            values = expand(values, places)
        return values

    def bounds(self) -> list[tuple[bytes, bytes]]:
        """The box that a write fills."""
        if any(axis.items is not None or axis.step != 1 for axis in self.axes):
            raise IndexError("a write fills a box: neither lists nor steps")
        return [axis.ranges[0] for axis in self.axes]


class Point:
    """A list of cells."""

    __slots__ = ("columns", "shape")

    def __init__(self, columns: list, shape: tuple[int, ...]):
        self.columns, self.shape = columns, shape

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """A read's cells in the shape of the lists."""
        return values.reshape(self.shape + values.shape[1:])


def plain(key: Any) -> Any:
    """What stands in square brackets, with columns of other makers as numpy has them."""
    if isinstance(key, tuple):
        return tuple([plain(part) for part in key])
    if isinstance(key, (np.ndarray, np.generic)) or not hasattr(key, "__array__"):
        return key
    found = np.asarray(key)
    return found if found.ndim else key


def _expanded(key: Any, ndim: int) -> list:
    key = plain(key)
    key = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("one ellipsis is enough")
    if dots:
        key[dots[0] : dots[0] + 1] = [slice(None)] * (ndim - len(key) + 1)
    if len(key) > ndim:
        raise IndexError(f"{len(key)} indices for {ndim} dimensions")
    if any(k is None for k in key):
        raise IndexError("None makes no dimension here; use numpy.newaxis on what was read")
    return key + [slice(None)] * (ndim - len(key))


def is_mask(array: Array, key: Any) -> bool:
    """Whether the key is one flag a cell of an array of several dimensions."""
    return isinstance(key, np.ndarray) and key.dtype == bool and key.ndim == array.ndim > 1


def picks_points(array: Array, key: Any) -> bool:
    """Whether numpy would take cell after cell for this key: lists for all dimensions, several or of more
    dimensions than one.

    Raises ``IndexError`` for several lists among slices, which numpy reads in its own way.
    """
    key = key if isinstance(key, tuple) else (key,)
    lists = [np.ndim(part) for part in key if isinstance(part, _LISTS) and np.ndim(part) > 0]
    if len(lists) < 2 and max(lists, default=0) < 2:
        return False
    if len(without_dots(key)) == array.ndim and not any(isinstance(part, slice) for part in key):
        return True
    if len(lists) < 2:
        return False
    raise IndexError("several lists among slices: oindex takes all combinations of them, vindex cell after cell")


def without_dots(key: Any) -> Any:
    """The parts of a key of lists; dots among those for all dimensions stand for nothing."""
    return tuple([part for part in key if part is not Ellipsis]) if isinstance(key, tuple) else key


def leading(array: Array, key: Any) -> int | None:
    """The axis that numpy puts first: that of a list, if a slice lies between it and a number."""
    if not isinstance(key, tuple) or array.schema.sparse:
        return None
    picks = [i for i, part in enumerate(key) if not isinstance(part, slice) and part is not Ellipsis]
    lists = [i for i in picks if np.ndim(key[i]) > 0]
    if len(lists) != 1 or len(picks) == picks[-1] - picks[0] + 1:
        return None
    before = key[: lists[0]]
    dots = array.ndim - len(key) if any(part is Ellipsis for part in before) else 0
    return sum(isinstance(part, slice) or part is Ellipsis for part in before) + dots


def index_box(array: Array, key: Any) -> Box:
    """Half-open positions; coordinates where a domain does not start at 0. Lists are taken along
    their own dimension.
    """
    schema = array.schema
    dims, squeeze = schema.axes, not schema.sparse
    parts = [key] if isinstance(key, slice) and len(dims) == 1 else _expanded(key, len(dims))
    return Box([_axis(array, dim, part, squeeze) for dim, part in zip(dims, parts)])


def _axis(array: Array, dim: Dimension, part: Any, squeeze: bool) -> Axis:
    if not dim.countable:
        if isinstance(part, slice) and part == slice(None):
            return Axis.of_ranges(dim, None)
        raise IndexError(f"dimension {dim.name!r} ({dim.datatype}) has no positions; use loc")
    low, high = dim.low, dim.high
    if isinstance(part, slice):
        step = 1 if part.step is None else operator.index(part.step)
        edges = ((end, dim.edge(end)) for end in (part.start, part.stop))
        start, stop = (None if tick is None else dim.wrapped(end, tick) for end, tick in edges)
        if step == 0:
            raise ValueError("slice step cannot be zero")
        if step < 0:
            start = high if start is None else min(start, high)
            stop = low - 1 if stop is None else max(stop, low - 1)
            return Axis(dim, start, min(start, stop), step)
        start = low if start is None else max(start, low)
        stop = high + 1 if stop is None else min(stop, high + 1)
        return Axis(dim, start, max(start, stop), step)
    if isinstance(part, _LISTS) and np.ndim(part) > 0:
        return Axis(dim, 0, 0, items=dim.positions(_places(array, dim, part)))
    at = dim.wrapped(part, dim.position(part))
    if not low <= at <= high:
        raise IndexError(f"{part} is outside dimension {dim.name!r}, {low} to {high}")
    return Axis(dim, at, at + 1, squeeze=squeeze)


def coordinates_box(array: Array, key: Any) -> Box:
    """Coordinates, both ends included. What lies beyond the domain holds no cells."""
    schema = array.schema
    squeeze = not schema.sparse
    return Box([
        (_coordinates if dim.countable else _uncounted)(dim, part, squeeze)
        for dim, part in zip(schema.axes, _expanded(key, array.ndim))
    ])


def _coordinates(dim: Dimension, part: Any, squeeze: bool) -> Axis:
    if isinstance(part, slice):
        if part.step is not None:
            raise IndexError("loc takes no steps")
        low, high = max(dim.first(part.start), dim.low), min(dim.last(part.stop), dim.high)
        return Axis(dim, low, max(high + 1, low))
    if isinstance(part, _LISTS) and np.ndim(part) > 0:
        ticks = [dim.exact(v) for v in part]
        for tick, value in zip(ticks, part):
            _inside(dim, tick, value)
        return Axis(dim, 0, 0, items=np.array(ticks, np.uint64 if dim.dtype.kind == "u" else np.int64))
    low, high = dim.span(part)
    if dim.names_many(part):
        return Axis(dim, max(low, dim.low), max(min(high, dim.high) + 1, low))
    _inside(dim, low, part)
    return Axis(dim, low, low + 1, squeeze=squeeze)


def _inside(dim: Dimension, tick: int, value: Any) -> None:
    if not dim.low <= tick <= dim.high:
        raise IndexError(f"{value!r} is outside dimension {dim.name!r}")


def _uncounted(dim: Dimension, part: Any, _: bool) -> Axis:
    """Ranges of text or of numbers with fractions."""
    if isinstance(part, slice):
        if part.step is not None:
            raise IndexError("loc takes no steps")
        if part == slice(None):
            return Axis.of_ranges(dim, None)
        pairs = [(dim.first(part.start), dim.last(part.stop))]
    elif isinstance(part, _LISTS) and np.ndim(part) > 0:
        pairs = [(dim.exact(v),) * 2 for v in part]
    else:
        pairs = [(dim.exact(part),) * 2]
    if dim.low is not None:
        pairs = [(max(a, dim.low), min(b, dim.high)) for a, b in pairs]
    return Axis.of_ranges(dim, [(dim.pack(a), dim.pack(b)) for a, b in pairs if a <= b])


def _places(array: Array, dim: Dimension, part: Any) -> np.ndarray:
    """Positions of one dimension; of flags, one for each coordinate, those that are set."""
    items = np.asarray(part)
    if items.dtype != bool or items.ndim != 1:
        return items
    if len(items) != (length := array._length(dim)):
        raise IndexError(f"{len(items)} flags for {length} coordinates of dimension {dim.name!r}")
    wide = np.uint64 if dim.dtype.kind == "u" else np.int64
    return np.flatnonzero(items).astype(wide) + wide(dim.low)


def points_of(array: Array, key: Any) -> Point:
    """Lists of positions, broadcast against one another; or a flag for each cell."""
    dims = array.schema.axes
    if is_mask(array, key):
        if key.shape != array.shape:
            raise IndexError(f"flags of the shape {key.shape} for cells of the shape {array.shape}")
        lows = [dim.low for dim in dims]
        key = tuple(found + low for found, low in zip(np.nonzero(key), lows))
    key = key if isinstance(key, tuple) else (key,)
    if len(key) != len(dims):
        raise IndexError(f"vindex takes a list for each of the {len(dims)} dimensions")
    for part in key:
        if isinstance(part, slice) or part is None or part is Ellipsis:
            raise IndexError("vindex takes lists of positions, no slices; oindex takes both")
    lists = np.broadcast_arrays(*(_places(array, dim, k) for k, dim in zip(key, dims)))
    columns = []
    for items, dim in zip(lists, dims):
        ticks = dim.positions(items.reshape(-1))
        columns.append((ticks.astype(np.int64 if dim.unit else dim.dtype).tobytes(), None))
    return Point(columns, lists[0].shape)
