"""Moments, as people write them, in milliseconds since 1970 UTC."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

U64_MAX = 2**64 - 1


def moment(at: Any, *, last: bool = False) -> int | None:
    """Milliseconds of a number, datetime, ``datetime64`` or text. Text may name a whole day."""
    found = None if at is None else _milliseconds(at, last)
    if found is not None and not 0 <= found <= U64_MAX:
        raise ValueError(f"a moment is a time since 1970, not {at!r}")
    return found


def _milliseconds(at: Any, last: bool) -> int:
    if isinstance(at, (int, np.integer)) and not isinstance(at, (bool, np.timedelta64)):
        return int(at)
    if isinstance(at, dt.datetime):
        # pandas' own has an astimezone that wants a zone.
        at = at.to_pydatetime() if hasattr(at, "to_pydatetime") else at
        at = at if at.tzinfo else at.astimezone()
        return round(at.timestamp() * 1000)
    if isinstance(at, str):
        at = at.strip().removesuffix("Z").replace(" ", "T")
    try:
        named = np.datetime64(at)
    except ValueError:
        named = np.datetime64("NaT")
    if np.isnat(named):
        raise ValueError(f"{at!r} is no moment: give milliseconds since 1970, a datetime, or text such as '2024-05-01T12:00'")
    unit = np.datetime_data(named.dtype)[0]
    first = named.astype("datetime64[ms]").view(np.int64)
    if last and unit in ("Y", "M", "W", "D", "h", "m", "s"):
        return int((named + np.timedelta64(1, unit)).astype("datetime64[ms]").view(np.int64)) - 1
    return int(first)


def first(since: Any) -> int:
    """The first millisecond that counts."""
    return moment(since) or 0


def last(at: Any) -> int:
    """The last millisecond that counts."""
    found = moment(at, last=True)
    return U64_MAX if found is None else found
