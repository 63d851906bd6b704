"""What callers give to be written: numpy's, pandas', polars' or Arrow's columns, or plain lists."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ._dimension import as_time
from ._types import datatype_of

#: Values, and flags of those that are null.
Given = tuple[np.ndarray, "np.ndarray | None"]


def is_null(value: Any) -> bool:
    """Whether a Python object stands for no value: ``None``, pandas' ``NA``, ``NaT`` and ``nan``."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and value != value
    )


def has_no_value(value: Any) -> bool:
    """The same where reals may be no number, which is a value of theirs."""
    return is_null(value) and not isinstance(value, (float, np.floating))


def _objects(cells: Collection) -> np.ndarray:
    """One object a cell, whatever it is: numpy would make several of lists of one length."""
    return np.fromiter(cells, object, len(cells))


def given(values: Any) -> Given:
    """Values as numpy has them, and which of them are null."""
    if values is np.ma.masked:
        # A real to numpy, but what a null of any type is read as.
        return np.array(None, object), np.array(True)
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        return np.ma.getdata(values), mask if mask.any() else None
    if isinstance(values, np.ndarray):
        # numpy's own text of any length may have nulls, which objects say too.
        return values.astype(object) if values.dtype.kind == "T" else values, None
    if all(hasattr(values, name) for name in ("isna", "to_numpy", "dtype")):
        return _from_pandas(values)
    if hasattr(values, "is_null") and hasattr(values, "type"):
        return _from_arrow(values)
    if hasattr(values, "is_null") and hasattr(values, "to_arrow"):
        return _from_polars(values)
    try:
        found = np.asarray(values)
    except ValueError:
        # Rows of different lengths: cells of any number of values.
        found = _objects(values)
    if found.dtype.kind in "US":
        # numpy writes numbers among text as text, and cuts zero bytes off its end.
        found = np.asarray(values, dtype=object)
    if found.dtype.kind == "f" and found.size and _are_whole(values):
        # numpy makes reals of whole numbers that no integer type of its own holds together.
        found = np.asarray(values, dtype=object)
    return found, None


def _are_whole(values: Any) -> bool:
    """Whether lists, or lists of lists, hold whole numbers and nothing else."""
    if isinstance(values, (list, tuple)):
        return all(map(_are_whole, values))
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "iu"
    return isinstance(values, (int, np.integer))


def _from_pandas(values: Any) -> Given:
    mask = np.asarray(values.isna())
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        found = values.to_numpy()
        return found, mask if dtype.kind == "O" and mask.any() else None
    if getattr(dtype, "tz", None) is not None:
        found = values.to_numpy(dtype=f"datetime64[{dtype.unit}]")
        return found, None
    if getattr(dtype, "categories", None) is not None and mask.any():
        # pandas makes reals of whole numbers beside which there are nulls.
        codes = np.asarray(getattr(values, "cat", values).codes)
        found = np.full(len(codes), None, object)
        found[codes >= 0] = np.asarray(dtype.categories, dtype=object)[codes[codes >= 0]]
        return found, mask
    plain = getattr(dtype, "numpy_dtype", None)
    if plain is not None and plain.kind in "biuf":
        return values.to_numpy(dtype=plain, na_value=plain.type(0)), mask if mask.any() else None
    return np.asarray(values, dtype=object), mask if mask.any() else None


def _from_arrow(values: Any) -> Given:
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    mask = np.asarray(values.is_null()) if values.null_count else None
    # Times of day are durations here, as everywhere; numpy would get objects, which no unit tells.
    unit = values.type.unit if pa.types.is_time(values.type) else None
    if unit is not None:
        values = values.cast(f"int{values.type.bit_width}")
    plain = pa.types.is_primitive(values.type) or pa.types.is_boolean(values.type)
    if plain and mask is not None:
        # Not every type can be cast from a number: bits of the same width can be looked at as any.
        width = values.type.bit_width
        values = values.fill_null(False if width == 1 else pa.array([0], f"int{width}").view(values.type)[0])
    if plain:
        found = values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)
        found = found if unit is None else found.astype(f"timedelta64[{unit}]")
    else:
        found = _arrays_of(values)
        found = _objects(values.to_pylist()) if found is None else found
    return found, mask


def _arrays_of(lists: Any) -> np.ndarray | None:
    """Arrow's lists of numbers as an array a cell, in the type that they have there; ``None`` of other values, and
    where there are nulls in a list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = lists.type
    several = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not several or not (pa.types.is_primitive(kind.value_type) or pa.types.is_boolean(kind.value_type)):
        return None
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    values, nulls = _from_arrow(lists.flatten())
    if nulls is not None:
        return None
    there = np.asarray(lists.is_valid())
    lengths = np.where(there, np.asarray(pc.list_value_length(lists).fill_null(0)), 0)
    cells = np.full(len(lists), None, object)
    if len(lists):
        parts = np.split(values, np.cumsum(lengths)[:-1])
        cells[there] = _objects([part for part, valid in zip(parts, there) if valid])
    return cells


def _from_polars(values: Any) -> Given:
    import polars as pl

    mask = values.is_null().to_numpy() if values.null_count() else None
    if values.dtype.is_numeric() and mask is not None:
        values = values.fill_null(0)
    if values.dtype == pl.Time:
        # Times of day are durations here, as everywhere.
        values = values.cast(pl.Duration("ns"))
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        return values.to_numpy(), mask
    if isinstance(values.dtype, (pl.List, pl.Array)):
        with contextlib.suppress(ModuleNotFoundError):
            return _from_arrow(values.to_arrow())
    return _objects(values.to_list()), mask


def streamed(data: Any) -> Any:
    """A table as one whose stream can be taken: polars gives columns of nulls alone, which say nothing of their
    type, in a way that is not Arrow's.
    """
    if type(data).__module__.partition(".")[0] != "polars" or not hasattr(data, "to_arrow"):
        return data
    kinds = list(getattr(data, "dtypes", ()))
    for index, kind in enumerate(kinds):
        if _has_objects(kind):
            # As Arrow it gives where they lie in memory.
            name = data.columns[index]
            raise TypeError(f"column {name!r}: no attribute holds values of polars' type Object")
    nothing = any(str(kind) == "Null" for kind in kinds)
    return data.to_arrow() if nothing else data


def _has_objects(kind: Any) -> bool:
    """Whether values of a type of polars' are objects, or are made of some. Its text tells that of no other: it
    has the names of fields and labels.
    """
    inside = [field.dtype for field in getattr(kind, "fields", ())]
    inside += [kind.inner] if getattr(kind, "inner", None) is not None else []
    return str(kind) == "Object" or any(_has_objects(one) for one in inside)


def is_frame(data: Any) -> bool:
    """Whether it is a data frame of pandas'."""
    return all(hasattr(data, name) for name in ("columns", "index", "reset_index"))


def is_column(data: Any) -> bool:
    """Whether it is an array of another maker's, no table: pandas' and polars' series, Arrow's and xarray's arrays."""
    if isinstance(data, (np.ndarray, np.generic, Mapping)) or hasattr(data, "dask"):
        return False
    return hasattr(data, "__array__") and not hasattr(data, "columns")


def as_array(data: Any) -> np.ndarray:
    """A column or lists as an array of numpy's, whose nulls are masked."""
    values, mask = given(data)
    return values if mask is None else np.ma.MaskedArray(values, mask=mask)


def index_names(frame: Any) -> list:
    """What the levels of a data frame's index are called as columns: pandas' names for those that
    have none.
    """
    names = frame.index.names
    one = len(names) == 1 and "index" not in frame.columns
    unnamed = ["index"] if one else [f"level_{i}" for i in range(len(names))]
    return [other if name is None or name == "" else str(name) for name, other in zip(names, unnamed)]


def with_index(frame: Any, index: Sequence[str] | None) -> tuple[Any, Sequence[str]]:
    """A data frame with its index among the columns, and which of them are to be dimensions: those that are
    named, else those of the index. An index without names only counts rows where others are named.
    """
    names = index_names(frame)
    if index is None or any(name is not None for name in frame.index.names):
        frame = _beside_columns(plain_names(frame), names)
    return frame, names if index is None else index


def for_dims(frame: Any, dims: Collection[str]) -> Any:
    """A data frame with its index among the columns, if that has a name, or if these dimensions are called what an
    index without names is called when a data frame makes an array.
    """
    frame, names = plain_names(frame), index_names(frame)
    unnamed = set(names) <= set(dims) and set(names).isdisjoint(frame.columns)
    named = any(name is not None for name in frame.index.names)
    return _beside_columns(frame, names) if named or unnamed else frame


def _beside_columns(frame: Any, names: list) -> Any:
    """A data frame with the levels of its index, under these names, as columns before the others, among which
    they may be already (``set_index(drop=False)``).
    """
    import pandas as pd

    level = frame.index.get_level_values
    there = [i for i, name in enumerate(names) if name in frame.columns and level(i).equals(pd.Index(frame[name]))]
    if len(there) == len(names):
        return frame.reset_index(drop=True)
    frame = frame.droplevel(there) if there else frame
    return frame.reset_index(names=[name for i, name in enumerate(names) if i not in there])


def plain_names(frame: Any) -> Any:
    """A data frame whose columns have one name each, as Arrow names those of several levels."""
    if frame.columns.nlevels == 1:
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def tabled(frame: Any) -> Any:
    """A data frame without its index, as a table of Arrow's; where pyarrow is missing, its columns by
    name, of which text takes longer.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return {str(name): frame[name] for name in frame.columns}
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (OverflowError, pa.ArrowInvalid):
        table = pa.Table.from_pandas(_with_large(frame), preserve_index=False)
    for i, column in enumerate(table.schema):
        if getattr(column.type, "extension_name", "").startswith("pandas."):
            # Arrow would be read as the numbers that periods are counted by.
            hint = "; .dt.to_timestamp() makes times of them" if "period" in column.type.extension_name else ""
            raise TypeError(f"column {column.name!r}: no attribute holds values of pandas' type {frame.dtypes.iloc[i]}{hint}")
        if pa.types.is_null(column.type):
            # Objects of which none says what they are.
            table = table.set_column(i, column.name, table.column(i).cast(pa.large_string()))
    return table


def _with_large(frame: Any) -> Any:
    """A data frame whose objects are whole numbers beyond those with a sign, which Arrow does not take them for."""
    import pandas as pd

    def is_large(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(map(is_large, value))
        return _is_whole(value) and abs(int(value)) > np.iinfo(np.int64).max

    frame = frame.copy(deep=False)
    for i, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, i]
        if dtype == object and any(map(is_large, column)):
            values, mask = settled(str(frame.columns[i]), column)
            plain = mask is None or values.dtype.kind == "O"
            frame.isetitem(i, values if plain else pd.arrays.IntegerArray(values, mask))
    return frame


def _is_whole(value: Any) -> bool:
    """Whether an object is a whole number, as which numpy has its durations, too."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def all_bytes(values: np.ndarray) -> bool:
    """Whether there are objects, and all of them bytes or null."""
    cells = [v for v in values.reshape(-1) if not is_null(v)]
    return bool(cells) and all(isinstance(v, bytes) for v in cells)


def settled(name: str, values: Any) -> Given:
    """Values in a type that an attribute can have, told by what the objects among them are."""
    found, mask = given(values)
    if found.dtype.kind != "O":
        return found, mask
    null = np.fromiter(map(is_null, found.reshape(-1)), bool, found.size).reshape(found.shape)
    null = null if mask is None else null | mask
    cells = [v for v, n in zip(found.reshape(-1).tolist(), null.reshape(-1)) if not n]
    if all(isinstance(v, str) for v in cells):
        return found, null if null.any() else None
    for kind, classes in {"M": (dt.date, np.datetime64), "m": (dt.timedelta, np.timedelta64, dt.time)}.items():
        if all(isinstance(v, classes) for v in cells):
            times = _times(name, cells, kind)
            made = np.full(found.shape, "NaT", times.dtype)
            made[~null] = times
            return made, None
    kinds: Mapping[str, tuple[Any, Any]] = {
        "bool": ((bool, np.bool_), 0), "int64": ((int, np.integer), 0), "float64": ((int, float, np.integer, np.floating), np.nan),
    }
    if all(isinstance(v, bytes) for v in cells):
        return found, null if null.any() else None
    if (own := _own_type(cells)) is not None:
        made = np.full(found.shape, np.nan if own.kind == "f" else 0, own)
        made[~null] = cells
        return made, null if null.any() and own.kind != "f" else None
    for dtype, (classes, empty) in kinds.items():
        if all(isinstance(v, classes) and (dtype == "bool") == isinstance(v, (bool, np.bool_)) for v in cells):
            if dtype == "int64" and max(cells) > np.iinfo(np.int64).max:
                dtype = "uint64"
            if dtype.endswith("int64") and not np.iinfo(dtype).min <= min(cells) <= max(cells) <= np.iinfo(dtype).max:
                raise ValueError(f"{name!r}: no attribute holds whole numbers from {min(cells)} to {max(cells)}")
            made = np.full(found.shape, empty, dtype)
            made[~null] = cells
            return made, null if null.any() and made.dtype.kind != "f" else None
    if all(map(_is_flat, cells)):
        found = _lists(name, cells, found, null)
        return found, null if null.any() else None
    names = sorted({type(v).__name__ for v in cells})
    several = f"types {', '.join(names)} at once" if len(names) > 1 else f"type {names[0]}"
    raise TypeError(f"{name!r}: no attribute holds values of the {several}")


def _own_type(cells: list) -> np.dtype | None:
    """The type of numpy's whose numbers all of these objects are, if an attribute can have it."""
    kinds = {cell.dtype for cell in cells if isinstance(cell, np.generic)}
    if len(kinds) != 1 or not all(isinstance(cell, np.generic) for cell in cells):
        return None
    own = kinds.pop()
    return own if own.kind in "biuf" and _is_held(own) else None


def _is_held(dtype: np.dtype) -> bool:
    """Whether there are attributes of a type of numpy's."""
    try:
        datatype_of(dtype)
    except TypeError:
        return False
    return True


def rows(name: str, values: Any) -> tuple[np.ndarray, np.ndarray | None, int]:
    """The cells of a column, each of which is a row of a table, and how many values a cell has. Those that are
    lists may have any number of them, those of an array of two dimensions have as many.
    """
    found, mask = settled(name, values)
    if found.ndim > 1 and isinstance(values, (list, tuple)):
        found, mask = settled(name, _objects(values))
    if found.ndim == 2 and found.shape[1] == 1:
        return found.reshape(-1), None if mask is None else mask.reshape(-1), 1
    if found.ndim == 2 and found.shape[1] and found.dtype.kind in "biufmM":
        return found, mask, found.shape[1]
    if found.ndim > 1:
        raise TypeError(f"{name!r}: no attribute holds cells of {found.dtype} of the shape {found.shape[1:]}")
    return found, mask, 1


def _is_flat(cell: Any) -> bool:
    """Whether this is a list of values that are no lists themselves."""
    if isinstance(cell, np.ndarray):
        return cell.ndim == 1
    several = (list, tuple, np.ndarray)
    return isinstance(cell, (list, tuple)) and not any(isinstance(v, several) for v in cell)


def _lists(name: str, cells: list, found: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Cells of any number of values, each an array, all of one type."""
    values, nulls = _values_of(name, cells)
    if nulls is not None:
        raise ValueError(f"{name!r} has a list with a null; only whole cells can be")
    if values.dtype.kind == "O":
        what = "texts" if values.size else "nothing"
        raise TypeError(f"{name!r}: no attribute holds lists of {what}")
    ends = np.cumsum([len(cell) for cell in cells])
    made = np.full(found.shape, None, object)
    made[~null] = _objects(np.split(values, ends[:-1]))
    return made


def _values_of(name: str, cells: list) -> Given:
    """The values of all lists, of the type of arrays where all of them have it."""
    kinds = {cell.dtype if isinstance(cell, np.ndarray) else None for cell in cells}
    own = kinds.pop() if len(kinds) == 1 else None
    if own is not None and own.kind in "biufmM" and _is_held(own):
        return np.concatenate(cells), None
    values = [value for cell in cells for value in cell]
    reals, numbers = (float, np.floating), (int, float, np.integer, np.floating)
    if (
        any(isinstance(v, reals) for v in values)
        and all(isinstance(v, numbers) and not isinstance(v, bool) for v in values)
        and _own_type(values) is None
    ):
        # Not a number is one of them.
        return np.array(values, float), None
    found, nulls = settled(name, _objects(values))
    if found.dtype.kind == "f" and nulls is None:
        none = np.fromiter(map(has_no_value, values), bool, len(values))
        nulls = none if none.any() else None
    return found, nulls


def kind_of(values: np.ndarray) -> tuple[Any, bool]:
    """The type of an attribute for values that are settled, and whether its cells have any number of them."""
    if values.dtype.kind != "O":
        return values.dtype, False
    first = next((v for v in values.reshape(-1) if not is_null(v)), None)
    if isinstance(first, np.ndarray):
        return first.dtype, True
    return (bytes if all_bytes(values) else values.dtype), False


def _times(name: str, cells: list, kind: str) -> np.ndarray:
    """Times in microseconds, or in a finer unit if one of them needs it."""
    times = [as_time(v, kind) for v in cells]
    for unit in ("us", "ns", "ps", "fs", "as"):
        try:
            made = [t.astype(f"{kind}8[{unit}]") for t in times]
        except OverflowError:
            continue
        if all(m.astype(t.dtype) == t for m, t in zip(made, times)):
            return np.array(made)
    raise ValueError(f"{name!r}: no unit of time holds all of its values")
