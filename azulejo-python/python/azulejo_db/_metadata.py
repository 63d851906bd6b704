"""Key-values of arrays and groups as a dict."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, MutableMapping
from typing import Any, Callable

import numpy as np

from ._dimension import as_time
from ._types import datatype_of, dtype_of, is_bytes, is_text


def decoded(datatype: str, raw: bytes) -> Any:
    """A stored value as Python has it: text, bytes, a number, or a numpy array of several."""
    if is_text(datatype):
        return raw.decode("utf-8", "surrogateescape")
    if is_bytes(datatype):
        return raw
    values = np.frombuffer(raw, dtype=dtype_of(datatype))
    return values[0].item() if len(values) == 1 and values.dtype.kind in "biuf" else (
        values[0] if len(values) == 1 else values.copy()
    )


def encoded(value: Any) -> tuple[str, bytes]:
    """A value as it is stored. Truth values are the numbers 0 and 1, as TileDB-Py stores them, which
    does not read the format's own type for these.
    """
    if isinstance(value, str):
        return "STRING_UTF8", value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray)):
        return "BLOB", bytes(value)
    if isinstance(value, (dt.date, dt.timedelta)):
        # pandas' own objects have nanoseconds.
        value = as_time(value, "m" if isinstance(value, dt.timedelta) else "M")
    array = np.asarray(value)
    if array.dtype == bool:
        array = array.astype(np.int64)
    several = value if isinstance(value, (list, tuple)) else ()
    # numpy makes reals of whole numbers that no integer type of its own holds together; what is masked is none.
    rounded = array.dtype.kind == "f" and bool(several) and all(isinstance(v, (int, np.integer)) for v in several)
    if rounded or np.ma.is_masked(value) or array.ndim > 1 or array.dtype.kind not in "biufmM":
        raise TypeError(f"a key's value is text, bytes, a number or a row of numbers, not {value!r}")
    datatype, _ = datatype_of(array.dtype)
    # Of either order of bytes; the format has one.
    return datatype, array.astype(array.dtype.newbyteorder("<")).tobytes()


class Metadata(MutableMapping[str, Any]):
    """The key-values: reads those of the time of opening, writes at once."""

    def __init__(self, load: Callable[[], dict], change: Callable[[list], None]):
        self._load, self._change = load, change
        self._values: dict[str, Any] | None = None

    def _all(self) -> dict[str, Any]:
        if self._values is None:
            self._values = {k: decoded(*v) for k, v in self._load().items()}
        return self._values

    def __getitem__(self, key: str) -> Any:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self._all():
            raise KeyError(key)
        self._change([(key, None)])
        self._all().pop(key)

    def update(self, *others: Any, **more: Any) -> None:
        """Sets several keys in one step."""
        new = dict(*others, **more)
        stored = {key: encoded(value) for key, value in new.items()}
        if stored:
            self._change(list(stored.items()))
            self._all().update({k: decoded(*v) for k, v in stored.items()})

    def __repr__(self) -> str:
        return repr(self._all())
