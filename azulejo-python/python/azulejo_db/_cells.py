"""Results of reads as numpy arrays, and numpy arrays as columns of writes."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    return raw.decode("utf-8", "replace")


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


def numpy_to_column(name: str, field: dict, values: Any) -> tuple:
    """What the engine writes for one field: name, bytes of values, offsets, validity."""
    datatype, number, nullable = field["datatype"], field["cell_val_num"], field.get("nullable", False)
    mask = np.ma.getmaskarray(values).reshape(-1) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.ma.getdata(values) if mask is not None else values
    if number == "var":
        column, mask = _var(name, datatype, plain, mask)
    else:
        dtype = dtype_of(datatype)
        array = np.asarray(plain)
        if array.dtype == object and mask is None:
            mask = np.array([v is None for v in array.reshape(-1)])
            if mask.any():
                array = np.where(mask.reshape(array.shape), np.zeros((), dtype), array)
        if is_text(datatype) or (is_bytes(datatype) and array.dtype.kind == "S"):
            size = number * dtype.itemsize
            array = np.asarray([_encode(v).ljust(size, b"\0") for v in array.reshape(-1)], dtype=f"S{size}")
        elif array.dtype != dtype:
            if not np.can_cast(array.dtype, dtype, "same_kind") and not _fits(array, dtype):
                raise TypeError(f"{name!r} takes {dtype}, not {array.dtype}")
            array = array.astype(dtype)
        array = np.ascontiguousarray(array)
        column = (array.reshape(-1).view(np.uint8), None)
        if mask is not None and number != 1 and len(mask) != len(column[0]) // (number * dtype.itemsize):
            mask = mask.reshape(-1, number).any(axis=1)
    data, offsets = column
    validity = None
    if nullable:
        cells = len(offsets) - 1 if offsets is not None else len(data) // (
            dtype_of(datatype).itemsize * number
        )
        validity = np.ones(cells, np.uint8) if mask is None else (~mask).astype(np.uint8)
    elif mask is not None and mask.any():
        raise ValueError(f"{name!r} has no nulls, but cell {int(mask.argmax())} is one")
    return (name, data, offsets, validity)


def _fits(array: np.ndarray, dtype: np.dtype) -> bool:
    if array.dtype.kind in "iu" and dtype.kind in "iuf":
        return array.size == 0 or bool((array.astype(dtype) == array).all())
    if array.dtype.kind == "f" and dtype.kind in "iu":
        return False
    return array.dtype.kind == dtype.kind or array.dtype == object


def _encode(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _var(name: str, datatype: str, values: Any, mask: np.ndarray | None):
    items = values.reshape(-1).tolist() if isinstance(values, np.ndarray) else list(values)
    if mask is None:
        mask = np.fromiter((v is None for v in items), bool, len(items))
    if is_text(datatype) or is_bytes(datatype):
        cells = [b"" if null else _encode(v) for v, null in zip(items, mask)]
    else:
        dtype = dtype_of(datatype)
        cells = [b"" if null else np.asarray(v, dtype=dtype).tobytes() for v, null in zip(items, mask)]
    offsets = np.zeros(len(cells) + 1, dtype=np.uint64)
    np.cumsum([len(c) for c in cells], out=offsets[1:])
    data = np.frombuffer(b"".join(cells), dtype=np.uint8)
    return (data, offsets), mask if mask.any() else None
