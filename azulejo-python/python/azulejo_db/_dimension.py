"""Dimensions: coordinates as people write them, as whole numbers, and as bytes of the engine's."""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._types import dtype_of, is_bytes, is_text

#: Attoseconds of each unit of numpy's that always lasts as long.
_LENGTHS = {
    "W": 604800 * 10**18, "D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18, "s": 10**18,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}
#: After all text.
_LAST_TEXT = b"\xff" * 8


class Dimension:
    """One dimension. Whole numbers and times are counted in ``ticks``: the numbers stored.

    ``low`` and ``high`` are the first and last tick of the current domain, else of the domain;
    ``None`` for text.
    """

    __slots__ = ("countable", "datatype", "dtype", "extent", "high", "low", "name", "text", "unit", "_pack")

    def __init__(self, document: Mapping[str, Any], current: Any):
        self.name, self.datatype = document["name"], document["datatype"]
        self.extent = document["tile_extent"]
        self.text = is_text(self.datatype) or is_bytes(self.datatype)
        self.dtype = dtype_of(self.datatype)
        kind = self.dtype.kind
        self.unit = np.datetime_data(self.dtype)[0] if kind in "mM" else None
        domain = current or document["domain"]
        self.countable = domain is not None and not self.text and kind in "iumM"
        self.low, self.high = (None, None) if domain is None or self.text else map(self._stored, domain)
        letter = {"i": "bhiq", "u": "BHIQ", "m": "bhiq", "M": "bhiq", "f": "  fd"}.get(kind, "BHIQ")
        self._pack = struct.Struct("<" + letter[self.dtype.itemsize.bit_length() - 1]).pack

    @classmethod
    def of(cls, document: Mapping[str, Any], current: Any) -> Dimension:
        """One of these, which arrays with the same dimension share."""
        domain = document["domain"]
        return _shared(
            document["name"], document["datatype"], document["tile_extent"],
            None if domain is None else tuple(domain), None if current is None else tuple(current),
        )

    def _stored(self, bound: Any) -> int | float:
        return float(bound) if self.dtype.kind == "f" else int(bound)

    # -- what the engine takes ----------------------------------------------------------------

    def pack(self, tick: Any) -> bytes:
        """The bytes of a tick."""
        return tick if self.text else self._pack(tick)

    def pack_all(self, ticks: np.ndarray) -> list[bytes]:
        """The bytes of each of these ticks."""
        size = self.dtype.itemsize
        raw = ticks.astype(np.int64 if self.unit else self.dtype).tobytes()
        return [raw[i : i + size] for i in range(0, len(raw), size)]

    def pack_values(self, values: Any) -> tuple[bytes, list[int] | None]:
        """The bytes of a list of coordinates, and where each of them begins if they are text."""
        if self.text:
            cells = [self._bound(v) for v in (np.asarray(values).tolist() if isinstance(values, np.ndarray) else values)]
            ends = np.cumsum([0, *map(len, cells)])
            return b"".join(cells), [int(end) for end in ends]
        found = np.atleast_1d(np.asarray(values))
        if self.dtype.kind == "f" and found.dtype.kind in "iuf":
            return found.astype(self.dtype).tobytes(), None
        if not self.unit and found.dtype.kind in "iu":
            info = np.iinfo(self.dtype)
            if found.size and not info.min <= int(found.min()) <= int(found.max()) <= info.max:
                raise ValueError(f"dimension {self.name!r} ({self.datatype}) has no such coordinates")
            return found.astype(self.dtype).tobytes(), None
        ticks = [self.exact(v) for v in (found if self.unit and found.dtype.kind in "mM" else found.tolist())]
        return np.array(ticks, np.int64 if self.unit else self.dtype).tobytes(), None

    # -- positions ----------------------------------------------------------------------------

    def position(self, value: Any) -> int:
        """The tick that stands in square brackets: a whole number, or a time."""
        if self._is_time(value):
            return self.exact(value)
        if isinstance(value, (bool, np.bool_)):
            raise IndexError(f"dimension {self.name!r} takes whole numbers, not {value!r}")
        try:
            return operator.index(value)
        except TypeError:
            raise IndexError(
                f"dimension {self.name!r} takes whole numbers, slices and lists of them, not {value!r}"
            ) from None

    def _is_time(self, value: Any) -> bool:
        """Whether what stands in square brackets is a time, not a whole number (as which numpy has its durations)."""
        return self.unit is not None and (
            isinstance(value, np.timedelta64) or not isinstance(value, (int, np.integer))
        )

    def edge(self, value: Any) -> int | None:
        """An end of a half-open slice."""
        if value is None:
            return None
        if self._is_time(value):
            return _ceil(self._time(value)[0])
        return self.position(value)

    def wrapped(self, value: Any, tick: int) -> int:
        """A whole number below 0 counted from the end, where positions begin at 0. Times never are: there
        are times before 1970.
        """
        return tick + self.high + 1 if self.low == 0 and tick < 0 and not self._is_time(value) else tick

    def positions(self, values: Any) -> np.ndarray:
        """A list of positions as ticks."""
        found = np.asarray(values)
        if found.ndim != 1:
            raise IndexError(f"dimension {self.name!r} takes lists of one dimension, not of {found.ndim}")
        wide = np.uint64 if self.dtype.kind == "u" else np.int64
        if found.dtype.kind in "mMUO" and self.unit:
            ticks = [self.exact(v) for v in (found if found.dtype.kind in "mM" else found.tolist())]
            for tick, value in zip(ticks, found):
                if not self.low <= tick <= self.high:
                    raise IndexError(f"{value} is outside dimension {self.name!r}")
            return np.array(ticks, np.int64)
        if found.size == 0:
            return np.empty(0, wide)
        if found.dtype.kind not in "iu":
            raise IndexError(f"dimension {self.name!r} takes lists of whole numbers, not of {found.dtype}")
        if self.low == 0 and -self.high - 1 <= int(found.min()) < 0:
            # There may be more positions than a signed number counts.
            count = np.uint64(self.high + 1)
            found = np.where(found < 0, found.astype(np.int64).view(np.uint64) + count, found.astype(np.uint64))
        least, most = int(found.min()), int(found.max())
        if not self.low <= least <= most <= self.high:
            raise IndexError(
                f"positions {least} to {most} lie outside dimension {self.name!r}, {self.low} to {self.high}"
            )
        return found.astype(wide)

    # -- coordinates --------------------------------------------------------------------------

    def exact(self, value: Any) -> Any:
        """The tick of one coordinate, which must be one."""
        low, high = self.span(value, whole=False)
        if low != high:
            raise IndexError(f"{value!r} is no coordinate of dimension {self.name!r} ({self.datatype})")
        return low

    def span(self, value: Any, *, whole: bool = True) -> tuple[Any, Any]:
        """First and last tick of what a coordinate names: ``"2024-05"`` is a month where days are
        counted.
        """
        if not self.unit:
            found = self._bound(value)
            if self._counts:
                if found != math.floor(found):
                    raise IndexError(f"{value!r} is no whole number, but dimension {self.name!r} counts them")
                found = int(found)
            return found, found
        first, following = self._time(value)
        named = whole and isinstance(value, str)
        ends = _ceil(first), (_ceil(following) - 1 if named else _floor(first))
        if ends[0] > ends[1]:
            raise IndexError(f"{value!r} is no coordinate of dimension {self.name!r} ({self.datatype})")
        return ends

    def names_many(self, value: Any) -> bool:
        """Whether a coordinate is text such as ``"2024-05"``, which names all of a month."""
        if not (self.unit and isinstance(value, str)):
            return False
        (n, d), (m, e) = self._time(value)
        return m * d - n * e > d * e

    def first(self, value: Any) -> Any:
        """The first tick that is not before a coordinate; ``None`` is the first of all."""
        if value is None:
            return b"" if self.text else self.low
        if self.unit:
            return _ceil(self._time(value)[0])
        found = self._bound(value)
        return math.ceil(found) if self._counts else found

    def last(self, value: Any) -> Any:
        """The last tick that is not after a coordinate, or after what text names."""
        if value is None:
            return _LAST_TEXT if self.text else self.high
        if self.unit:
            start, following = self._time(value)
            return _ceil(following) - 1 if isinstance(value, str) else _floor(start)
        found = self._bound(value)
        return math.floor(found) if self._counts else found

    @property
    def _counts(self) -> bool:
        return self.dtype.kind in "iu" and not self.text

    def _bound(self, value: Any) -> Any:
        """A bound of text, or a number: exact where whole numbers are counted."""
        if self.text:
            if isinstance(value, (bytes, str)):
                return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
            raise TypeError(f"dimension {self.name!r} takes text, not {value!r}")
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if isinstance(value, (bool, np.bool_, str, bytes)) or not _is_number(value):
            raise TypeError(f"dimension {self.name!r} ({self.datatype}) takes numbers, not {value!r}")
        if value != value:
            raise ValueError(f"dimension {self.name!r}: a bound is not a number")
        if self.dtype.kind == "f":
            return float(self.dtype.type(value))
        if isinstance(value, (float, np.floating)) and math.isinf(value):
            return self.low - 1 if value < 0 else self.high + 1
        return int(value) if isinstance(value, (int, np.integer)) else float(value)

    def _time(self, value: Any) -> tuple[_Ratio, _Ratio]:
        """When a time begins and when it has ended, in ticks, exactly."""
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
            return (int(value), 1), (int(value) + 1, 1)
        named = as_time(value, self.dtype.kind)
        count, (unit, step) = int(named.view(np.int64)), np.datetime_data(named.dtype)
        ends = (count * step, (count + 1) * step)
        if unit == "generic":
            return (ends[0], 1), (ends[1], 1)
        return _scaled(ends[0], unit, self.unit), _scaled(ends[1], unit, self.unit)


@functools.lru_cache(4096)
def _shared(name: str, datatype: str, extent: Any, domain: Any, current: Any) -> Dimension:
    return Dimension({"name": name, "datatype": datatype, "tile_extent": extent, "domain": domain}, current)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) or (
        hasattr(value, "__float__") and not isinstance(value, np.ndarray)
    )


#: Two whole numbers, of which the second is positive: what divides the first.
_Ratio = tuple[int, int]


def _floor(ratio: _Ratio) -> int:
    return ratio[0] // ratio[1]


def _ceil(ratio: _Ratio) -> int:
    return -(-ratio[0] // ratio[1])


def _scaled(count: int, unit: str, into: str) -> _Ratio:
    """So many of a unit in another. Months and years are those of the calendar since 1970."""
    if unit == into:
        return count, 1
    if unit == "Y":
        count, unit = count * 12, "M"
    if into in ("Y", "M"):
        months, parts = (count, 1) if unit == "M" else _months(count * _LENGTHS[unit])
        return months, parts if into == "M" else parts * 12
    if unit == "M":
        count, unit = _days(count), "D"
    return count * _LENGTHS[unit], _LENGTHS[into]


def held(ratio: _Ratio) -> int | None:
    """A whole number of ticks that a type of times holds: the least one of 64 bits is NaT. ``None`` if it holds none."""
    ticks, rest = divmod(*ratio)
    return ticks if not rest and -(2**63) < ticks < 2**63 else None


def ticks_of(value: Any, dtype: np.dtype) -> _Ratio:
    """A time or duration in the unit of a type; see :func:`held`."""
    found = as_time(value, dtype.kind)
    given, step = np.datetime_data(found.dtype)
    ticks = int(found.view(np.int64)) * step
    return (ticks, 1) if given == "generic" else _scaled(ticks, given, np.datetime_data(dtype)[0])


def _days(months: int) -> int:
    """Days from 1970 to the beginning of a month."""
    years, month = divmod(months, 12)
    # The calendar repeats itself every 400 years of 146097 days.
    cycles, year = divmod(years + 1970 - 1, 400)
    return (dt.date(year + 1, month + 1, 1).toordinal() - 719163) + cycles * 146097


def _months(attoseconds: int) -> _Ratio:
    """Months from 1970 to a time: whole ones, and the part that has passed of the last."""
    day = _LENGTHS["D"]
    days = attoseconds // day
    months = round(days / 30.436875)
    while _days(months) > days:
        months -= 1
    while _days(months + 1) <= days:
        months += 1
    first = _days(months) * day
    length = _days(months + 1) * day - first
    return months * length + attoseconds - first, length


def as_time(value: Any, kind: str = "M") -> Any:
    """A time as ``datetime64`` (a duration as ``timedelta64``), in the unit in which it is given.

    Times with a zone are taken to UTC.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    try:
        if kind == "m":
            if isinstance(value, dt.time) and value.tzinfo is None:
                # A time of day is how long the day has lasted.
                value = dt.datetime.combine(dt.date.min, value) - dt.datetime.min
            found = value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value)
        else:
            if isinstance(value, str):
                value = value.strip().removesuffix("Z")
            elif getattr(value, "tzinfo", None) is not None:
                value = (
                    value.tz_convert(None) if hasattr(value, "tz_convert")
                    else value.astimezone(dt.timezone.utc).replace(tzinfo=None)
                )
            found = value.to_datetime64() if hasattr(value, "to_datetime64") else np.datetime64(value)
    except (ValueError, TypeError):
        raise ValueError(f"{value!r} is no {'time' if kind == 'M' else 'duration'}") from None
    if np.isnat(found):
        raise ValueError("NaT is neither before nor after any time")
    return found
