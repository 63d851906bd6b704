"""Results of reads as numpy arrays, and numpy arrays as columns of writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._dimension import held, ticks_of
from ._given import has_no_value, is_null
from ._types import dtype_of, is_bytes, is_text


def column_to_numpy(column: tuple, labels: list | None = None) -> np.ndarray:
    """A column as one numpy array; without a copy where cells are numbers of one length.

    Nulls make a masked array. Text becomes ``str`` objects, bytes ``bytes`` objects, indices of an
    enumeration its labels.
    """
    datatype, values, _, (data, offsets, validity) = column
    valid = None if validity is None else np.frombuffer(validity, dtype=np.uint8).astype(bool)
    if values is None:
        cells = _strings(datatype, data, offsets, valid)
    elif (is_text(datatype) or is_bytes(datatype)) and (
        values > 1 or (is_text(datatype) and datatype != "CHAR")
    ):
        size = values * dtype_of(datatype).itemsize
        raw = np.frombuffer(data, dtype=f"S{size}")
        cells = np.array([_text(v) for v in raw.tolist()], dtype=object) if is_text(datatype) else raw
    else:
        cells = np.frombuffer(data, dtype=dtype_of(datatype))
        if values > 1:
            cells = cells.reshape(-1, values)
    if labels is not None:
        cells = _labelled(cells, labels, valid)
    if valid is not None and not valid.all():
        mask = ~valid
        if cells.ndim > 1:
            mask = np.broadcast_to(mask[:, None], cells.shape)
        return np.ma.MaskedArray(cells, mask=mask)
    return cells


def _labelled(cells: np.ndarray, labels: list, valid: np.ndarray | None) -> np.ndarray:
    known = np.array([*labels, None], dtype=object)
    index = cells.astype(np.int64)
    index[(index < 0) | (index >= len(labels))] = len(labels)
    if valid is not None:
        index[~valid] = len(labels)
    return known[index]


def _text(raw: bytes) -> str:
    # What is no UTF-8, such as bytes that were written as CHAR, comes back when it is written.
    return raw.decode("utf-8", "surrogateescape")


def _strings(datatype: str, data: Any, offsets: Any, valid: np.ndarray | None) -> np.ndarray:
    ends = np.frombuffer(offsets, dtype=np.uint64).tolist()
    raw = memoryview(data)
    out = np.empty(len(ends) - 1, dtype=object)
    if is_text(datatype):
        whole = bytes(raw)
        if whole.isascii():
            text = whole.decode("ascii")
            out[:] = [text[a:b] for a, b in zip(ends, ends[1:])]
        else:
            out[:] = [_text(whole[a:b]) for a, b in zip(ends, ends[1:])]
    elif is_bytes(datatype):
        out[:] = [bytes(raw[a:b]) for a, b in zip(ends, ends[1:])]
    else:
        numbers, size = np.frombuffer(raw, dtype=dtype_of(datatype)), dtype_of(datatype).itemsize
        for i, (a, b) in enumerate(zip(ends, ends[1:])):
            out[i] = numbers[a // size : b // size]
    if valid is not None:
        out[~valid] = None
    return out


def celled(
    name: str, field: Mapping[str, Any], values: np.ndarray, mask: np.ndarray | None, ndim: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Values and nulls of numbers that are several a cell: where it is any number of them, an object a cell of
    ``ndim`` dimensions; where it is always as many, a dimension more.
    """
    number = field["cell_val_num"]
    if number == 1 or is_text(field["datatype"]) or is_bytes(field["datatype"]):
        return values, mask
    if number != "var":
        return _stacked(name, number, values, mask) if values.dtype.kind == "O" else (values, mask)
    if values.ndim != ndim + 1:
        return values, mask
    found = np.empty(values.shape[:ndim], object)
    for place in np.ndindex(found.shape):
        found[place] = values[place]
    return found, None if mask is None else _null_cells(name, mask)


def _null_cells(name: str, mask: np.ndarray) -> np.ndarray:
    """Which cells are null, of what says it of each of their values: of all of a cell, or of none."""
    null = mask.any(axis=-1)
    if (part := null & ~mask.all(axis=-1)).any():
        cell = int(np.flatnonzero(part)[0])
        raise ValueError(f"{name!r}: cell {cell} has values beside nulls; only whole cells can be null")
    return null


def _stacked(
    name: str, number: int, values: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Objects of which each is all values of a cell, as one object a value; those of null cells are null."""
    cells = values.reshape(-1)
    null = np.fromiter(map(is_null, cells), bool, cells.size)
    null = null if mask is None else null | mask.reshape(-1)
    there = np.flatnonzero(~null)
    if not len(there) or not np.ndim(cells[there[0]]):
        return values, mask
    found = np.empty((cells.size, number), object)
    for i in there:
        if np.shape(cells[i]) != (number,):
            raise ValueError(f"{name!r} takes {number} values a cell, not {cells[i]!r}")
        found[i] = list(cells[i])
        if any(map(has_no_value, found[i])):
            raise ValueError(f"{name!r}: cell {i} is a list with a null; only whole cells can be")
    return found.reshape((*values.shape, number)), None


def numpy_to_column(name: str, field: Mapping[str, Any], values: np.ndarray, mask: np.ndarray | None) -> tuple:
    """What the engine writes for one field: name, bytes of values, offsets, validity. ``mask`` says
    which of the values are null.
    """
    datatype, number, nullable = field["datatype"], field["cell_val_num"], field.get("nullable", False)
    values, mask = celled(name, field, values, mask, 1)
    if values.dtype.kind == "O" and values.size:
        # Not a number is a number of reals.
        reals = number != "var" and dtype_of(datatype).kind == "f"
        null = np.fromiter(map(has_no_value if reals else is_null, values.reshape(-1)), bool, values.size)
        if null.any():
            mask = null if mask is None else null | mask.reshape(-1)
    mask = None if mask is None else mask.reshape(-1)
    if mask is not None and not nullable and number != "var" and dtype_of(datatype).kind in "mM":
        # What is none is no time, as which it comes back: tables of Arrow's are written so too.
        values = converted(name, values, dtype_of(datatype), mask)
        values = np.where(mask.reshape(values.shape), np.array("NaT", values.dtype), values)
        mask = None
    if number == "var":
        data, offsets = _var(name, datatype, values, mask)
        cells = len(offsets) - 1
    else:
        data, offsets = _fixed(name, datatype, number, values, mask), None
        cells = len(data) // (dtype_of(datatype).itemsize * number)
        if mask is not None and len(mask) != cells:
            mask = _null_cells(name, mask.reshape(cells, -1))
    validity = None
    if nullable:
        validity = np.ones(cells, np.uint8) if mask is None else (~mask).astype(np.uint8)
    elif mask is not None and mask.any():
        raise ValueError(f"{name!r} has no nulls, but cell {int(mask.argmax())} is one")
    return (name, data, offsets, validity)


def _fixed(name: str, datatype: str, number: int, values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The bytes of cells of one length."""
    dtype = dtype_of(datatype)
    if is_text(datatype) or (is_bytes(datatype) and values.dtype.kind in "SO"):
        width = number * dtype.itemsize
        null = np.zeros(values.size, bool) if mask is None else mask
        cells = [b"" if n else _encoded(name, datatype, v) for v, n in zip(values.reshape(-1).tolist(), null)]
        if long := next((c for c in cells if len(c) > width), None):
            raise ValueError(f"{name!r} takes {width} bytes a cell, not {len(long)}: {long!r}")
        array = np.array([c.ljust(width, b"\0") for c in cells], dtype=f"S{width}")
    else:
        array = converted(name, values, dtype, mask)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def converted(name: str, values: np.ndarray, dtype: np.dtype, mask: np.ndarray | None = None) -> np.ndarray:
    """Numbers and times in another type, which must hold every one of them.

    Raises ``TypeError`` for another kind of values, ``ValueError`` for one that does not fit.
    """
    if values.dtype == dtype:
        return values
    if values.dtype.kind == "O":
        return _of_objects(name, values, dtype, mask)
    kinds = values.dtype.kind + dtype.kind
    if mask is not None and mask.size == values.size and mask.any():
        # What lies under a mask is no value: it may be anything.
        values = np.where(mask.reshape(values.shape), np.zeros((), values.dtype), values)
    if values.size == 0:
        return np.empty(values.shape, dtype)
    if kinds in ("bi", "bu", "bf", "if", "uf", "ff"):
        with np.errstate(over="ignore"):
            made = values.astype(dtype)
        if kinds == "ff" and (np.isinf(made) & ~np.isinf(values)).any():
            raise ValueError(f"{name!r} takes {dtype}, which does not hold {values[np.isinf(made) & ~np.isinf(values)][0]}")
        return made
    if kinds in ("ii", "iu", "ui", "uu"):
        info, least, most = np.iinfo(dtype), int(values.min()), int(values.max())
        if least < info.min or most > info.max:
            wrong = least if least < info.min else most
            raise ValueError(f"{name!r} takes {dtype}, which does not hold {wrong}")
        return values.astype(dtype)
    if kinds in ("MM", "mm"):
        made = values.astype(dtype)
        # numpy cuts fractions off, and overflows in silence.
        lost = ~np.isnat(values) & ((made.astype(values.dtype) != values) | np.isnat(made))
        if lost.any():
            raise ValueError(f"{name!r} takes {dtype}, which does not hold {values[lost][0]}")
        return made
    raise TypeError(f"{name!r} takes {dtype}, not {values.dtype}")


def _of_objects(name: str, values: np.ndarray, dtype: np.dtype, mask: np.ndarray | None) -> np.ndarray:
    flat = values.reshape(-1)
    null = np.zeros(flat.size, bool) if mask is None else mask.reshape(-1)
    plain = flat[~null]
    if plain.size == 0:
        return np.zeros(values.shape, dtype)
    if dtype.kind in "iu" and all(isinstance(v, (int, np.integer)) and not isinstance(v, np.timedelta64) for v in plain):
        info = np.iinfo(dtype)
        if (wrong := next((v for v in plain if not info.min <= v <= info.max), None)) is not None:
            raise ValueError(f"{name!r} takes {dtype}, which does not hold {wrong}")
        out = np.zeros(flat.size, dtype)
        out[~null] = plain
        return out.reshape(values.shape)
    if dtype.kind in "mM":
        out = np.full(flat.size, "NaT", dtype)
        out[~null] = _times(name, plain, dtype)
        return out.reshape(values.shape)
    try:
        typed = np.array(plain.tolist())
    except (ValueError, TypeError, OverflowError):
        typed = plain
    if typed.dtype.kind == "O" and all(isinstance(v, int) for v in plain):
        raise ValueError(f"{name!r} takes {dtype}, which does not hold {max(plain, key=abs)}")
    if typed.dtype.kind in "OUS" or typed.shape != plain.shape:
        raise TypeError(f"{name!r} takes {dtype}, not {', '.join(sorted({type(v).__name__ for v in plain}))}")
    out = np.zeros(flat.size, dtype)
    out[~null] = converted(name, typed, dtype)
    return out.reshape(values.shape)


def _times(name: str, plain: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Objects that are times, texts of times, or ticks. Each is looked at by itself: numpy would cut fractions off,
    and wrap what lies beyond the type.
    """
    made = np.empty(plain.size, np.int64)
    for i, value in enumerate(plain.tolist()):
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_, np.timedelta64)):
            ratio = int(value), 1
        else:
            try:
                ratio = ticks_of(value, dtype)
            except ValueError:
                raise TypeError(f"{name!r} takes {dtype}, not {type(value).__name__}: {value!r}") from None
        if (ticks := held(ratio)) is None:
            raise ValueError(f"{name!r} takes {dtype}, which does not hold {value!r}")
        made[i] = ticks
    return made.view(dtype)


def _encoded(name: str, datatype: str, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and is_text(datatype):
        return value.encode("utf-8", "surrogateescape")
    raise TypeError(f"{name!r} takes {'text' if is_text(datatype) else 'bytes'}, not {type(value).__name__}: {value!r}")


def _var(
    name: str, datatype: str, values: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values and starts of cells of any length."""
    items = values.reshape(-1).tolist() if values.dtype.kind != "O" else list(values.reshape(-1))
    null = np.zeros(len(items), bool) if mask is None else mask
    if is_text(datatype) or is_bytes(datatype):
        cells = [b"" if n else _encoded(name, datatype, v) for v, n in zip(items, null)]
    else:
        dtype = dtype_of(datatype)
        cells = [b"" if n else converted(name, np.asarray(v), dtype).tobytes() for v, n in zip(items, null)]
    offsets = np.zeros(len(cells) + 1, dtype=np.uint64)
    np.cumsum([len(c) for c in cells], out=offsets[1:])
    return np.frombuffer(b"".join(cells), dtype=np.uint8), offsets
