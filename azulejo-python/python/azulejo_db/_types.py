"""Datatypes: TileDB's names, numpy's types, and cells between the two."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_UNITS = {
    "YEAR": "Y", "MONTH": "M", "WEEK": "W", "DAY": "D", "HR": "h", "MIN": "m", "SEC": "s",
    "MS": "ms", "US": "us", "NS": "ns", "PS": "ps", "FS": "fs", "AS": "as",
}
#: Units of which there are no durations.
_LONG = {"YEAR", "MONTH", "WEEK", "DAY"}
_NUMBERS = {
    name.upper(): np.dtype(name)
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64",
    )
}
TEXT = {"STRING_ASCII", "STRING_UTF8", "CHAR", "GEOM_WKT"}
_BYTES = {"BLOB", "GEOM_WKB", "ANY", "STRING_UTF16", "STRING_UCS2", "STRING_UTF32", "STRING_UCS4"}


def shown_name(name: str) -> str:
    """A field's name as it is listed: that of an attribute may be empty."""
    return name or "'' (no name)"


@functools.cache
def dtype_of(datatype: str) -> np.dtype:
    """The numpy type of one value."""
    if datatype in _NUMBERS:
        return _NUMBERS[datatype]
    if datatype == "BOOL":
        return np.dtype(bool)
    if datatype == "CHAR":
        return np.dtype("S1")
    kind, _, unit = datatype.partition("_")
    if kind == "DATETIME" and unit in _UNITS:
        return np.dtype(f"datetime64[{_UNITS[unit]}]")
    if kind == "TIME" and unit in _UNITS:
        return np.dtype(f"timedelta64[{_UNITS[unit]}]")
    if datatype in ("STRING_UTF16", "STRING_UCS2"):
        return np.dtype(np.uint16)
    if datatype in ("STRING_UTF32", "STRING_UCS4"):
        return np.dtype(np.uint32)
    return np.dtype(np.uint8)


def is_datatype(name: str) -> bool:
    """Whether this is TileDB's name of a type."""
    kind, _, unit = name.partition("_")
    times = (kind == "DATETIME" and unit in _UNITS) or (kind == "TIME" and unit in _UNITS and unit not in _LONG)
    return times or name == "BOOL" or name in _NUMBERS or name in TEXT or name in _BYTES


def is_text(datatype: str) -> bool:
    """Whether cells are text of one byte a code unit."""
    return datatype in TEXT


def is_bytes(datatype: str) -> bool:
    """Whether cells are strings of bytes."""
    return datatype in _BYTES


@functools.cache
def cell_type(datatype: str, values: int | str, labels: bool = False) -> tuple[np.dtype, tuple[int, ...]]:
    """How numpy has a cell: its type, and the shape of a cell of several values."""
    if values == "var" or labels:
        return np.dtype(object), ()
    if is_text(datatype) and (values > 1 or datatype != "CHAR"):
        return np.dtype(object), ()
    if is_bytes(datatype) and values > 1:
        return np.dtype(f"S{values * dtype_of(datatype).itemsize}"), ()
    return dtype_of(datatype), () if values == 1 else (values,)


def datatype_of(dtype: Any) -> tuple[str, int | None]:
    """TileDB's datatype for a numpy type, and the values a cell; ``None``: any number."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return "BOOL", 1
    if dtype.kind in "iuf" and dtype.name.upper() in _NUMBERS:
        return dtype.name.upper(), 1
    if dtype.kind in "mM":
        unit, step = np.datetime_data(dtype)
        names = {code: name for name, code in _UNITS.items()}
        if step == 1 and unit in names and (dtype.kind == "M" or unit not in "YMWD"):
            return f"{'DATETIME' if dtype.kind == 'M' else 'TIME'}_{names[unit]}", 1
        raise TypeError(f"no attribute holds values of numpy's type {dtype}: convert them to another unit")
    if dtype.kind in "UOT":
        return "STRING_UTF8", None
    if dtype.kind == "S":
        return ("CHAR", 1) if dtype.itemsize == 1 else ("BLOB", None)
    if dtype.names:
        raise TypeError("records are written as one attribute a field: {name: x[name] for name in x.dtype.names}")
    raise TypeError(f"no attribute holds values of numpy's type {dtype}")


def from_bytes(raw: bytes, datatype: str) -> Any:
    """A bound or coordinate as a Python or numpy value."""
    if is_text(datatype):
        return raw.decode("utf-8", "surrogateescape")
    if is_bytes(datatype):
        return raw
    values = np.frombuffer(raw, dtype=dtype_of(datatype))
    return values[0] if len(values) == 1 else values


def is_plain(field: dict) -> bool:
    """Whether cells are numbers that numpy has as they are stored."""
    text = is_text(field["datatype"]) or is_bytes(field["datatype"])
    return field["cell_val_num"] != "var" and not (field.get("nullable") or field.get("enumeration") or text)
