"""What a write to an existing dataset may do: modes, regions, sizes, in xarray's own words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.coding.times import CFDatetimeCoder, CFTimedeltaCoder

from ._array import Array
from ._job import is_dask

_SCALAR = "__scalar"
_MODES = ("w-", "w", "a", "a-", "r+")
#: Units of durations, as xarray writes them.
_DURATIONS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


def mode(mode: str | None, append_dim: str | None, region: Any) -> str:
    """The mode that is meant.

    Raises ``ValueError`` for modes that contradict the rest.
    """
    if mode is None:
        mode = "a" if append_dim else "r+" if region is not None else "w-"
    if mode not in _MODES:
        raise ValueError(f"mode is one of {_MODES}, not {mode!r}")
    if append_dim is not None and mode not in ("a", "a-"):
        raise ValueError(f"cannot set append_dim unless mode='a' or mode=None, not {mode!r}")
    if region is not None and mode not in ("a", "a-", "r+"):
        raise ValueError("cannot set region unless mode='a', mode='a-', mode='r+' or mode=None")
    return mode


def encodings(opened: xr.Dataset, encoding: Mapping | None, append_dim: str | None) -> None:
    """Variables that are there keep their encodings."""
    if append_dim is not None and append_dim not in opened.dims:
        raise ValueError(f"append_dim={append_dim!r} does not match any existing dataset dimensions {dict(opened.sizes)}")
    for name in set(encoding or {}) & set(opened.variables):
        raise ValueError(f"variable {name!r} already exists, but encoding was provided")


def appended(dataset: xr.Dataset, opened: xr.Dataset, append_dim: str) -> None:
    """Raises ``ValueError`` for a dataset that leaves some variables shorter than others: beyond the
    shortest none of them would be seen.
    """
    along = lambda found: {name for name, v in found.variables.items() if append_dim in v.dims}  # noqa: E731
    there, new = along(opened), along(dataset)
    if missing := sorted(map(str, there - new)):
        raise ValueError(f"what is appended along {append_dim!r} lacks {missing}, which the dataset that is there has along it")
    if unknown := sorted(map(str, new - there)):
        raise ValueError(
            f"what is appended along {append_dim!r} has {unknown} along it, of which the dataset that is there has no cells"
        )


def held(name: Any, variable: xr.Variable, encoding: Mapping[str, Any]) -> xr.Variable:
    """Numbers in the type of a variable that is there, which xarray would make fit by rounding and
    wrapping. Those that are scaled are rounded, as is meant.
    """
    dtype, packed = encoding.get("dtype"), {"scale_factor", "add_offset", "_Unsigned"} & set(encoding)
    if dtype is None or packed or variable.dtype.kind not in "biuf" or np.dtype(dtype).kind not in "biu":
        return variable
    dtype, filled = np.dtype(dtype), encoding.get("_FillValue") is not None
    if variable.dtype == dtype:
        return variable
    return variable.copy(data=_mapped(variable.data, lambda block: _whole(name, block, dtype, filled)))


def packed(name: Any, variable: xr.Variable) -> xr.Variable:
    """A variable whose encoding asks for a type, in which all of its values can be kept: xarray rounds
    them to whole numbers, as is meant, and wraps what is beyond the type. Times are looked at as the
    numbers that they are counted by.
    """
    encoding = variable.encoding
    dtype = encoding.get("dtype")
    if dtype is None or dtype is str or variable.dtype.kind not in "biufmM":
        return variable
    dtype, of_time = np.dtype(dtype), variable.dtype.kind in "mM"
    if dtype.kind not in ("iu" if of_time else "biuf"):
        return variable
    scale, offset = encoding.get("scale_factor"), encoding.get("add_offset")
    missing = any(encoding.get(key) is not None for key in ("_FillValue", "missing_value"))

    def check(block: np.ndarray) -> np.ndarray:
        kept = _counted(name, block, encoding) if of_time else block
        none = np.isnat(block) if of_time else kept != kept
        if scale is not None or offset is not None:
            kept = (np.asarray(kept, np.float64) - (0 if offset is None else offset)) / (1 if scale is None else scale)
        beyond = _beyond(kept, dtype, "_Unsigned" in encoding) & ~none
        # The least number of 64 bits is NaT.
        if dtype.kind != "f" and not missing and not (of_time and dtype == np.int64):
            beyond |= none
        if beyond.any():
            raise ValueError(f"variable {name!r} is kept as {dtype}, which {block[beyond].reshape(-1)[0]} is none of")
        return block

    return variable.copy(data=_mapped(variable.data, check))


def _counted(name: Any, block: np.ndarray, encoding: Mapping[str, Any]) -> np.ndarray:
    """Times as xarray counts them before it makes them fit."""
    known = {key: encoding[key] for key in ("units", "calendar", "scale_factor", "add_offset") if key in encoding}
    coder = CFDatetimeCoder() if block.dtype.kind == "M" else CFTimedeltaCoder()
    with warnings.catch_warnings():
        # It will say so itself.
        warnings.simplefilter("ignore")
        counted = coder.encode(xr.Variable("x", block.reshape(-1), None, {**known, "dtype": np.dtype("int64")}), name)
    return np.asarray(counted.data).reshape(block.shape)


def _beyond(values: np.ndarray, dtype: np.dtype, either_sign: bool) -> np.ndarray:
    """Which of these numbers, once they are rounded, a type does not hold; of what is no number, anything."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.isinf(values.astype(dtype)) & np.isfinite(values)
    if dtype.kind == "b":
        return (values != 0) & (values != 1)
    info = np.iinfo(dtype)
    low, high = info.min, info.max
    if either_sign:
        # Bits of the type, whatever its sign.
        low, high = -(2 ** (info.bits - 1)), 2**info.bits - 1
    if values.dtype.kind == "f":
        # Compared where neither bound is rounded.
        values = np.around(values)
        return (values < float(low)) | (values >= float(high) + (1.0 if high < 2**53 else 0.0))
    if not values.size or low <= int(values.min()) <= int(values.max()) <= high:
        return np.zeros(values.shape, bool)
    return np.fromiter((not low <= v <= high for v in values.reshape(-1).tolist()), bool, values.size).reshape(values.shape)


def _mapped(data: Any, check: Any) -> Any:
    """A check of all values: of those of dask's when they are computed."""
    return data.map_blocks(check, dtype=data.dtype, meta=data._meta) if is_dask(data) else check(np.asarray(data))


def _whole(name: Any, values: np.ndarray, dtype: np.dtype, filled: bool) -> np.ndarray:
    """The same values.

    Raises ``ValueError`` if one of them is none of a type; NaN may be where there is a fill value.
    """
    with np.errstate(invalid="ignore"):
        made = values.astype(dtype)
        # Compared where neither side is rounded: 2**63 is a real, and no int64.
        fits = (made == values) & (made.astype(values.dtype) == values) & ((made < 0) == (values < 0))
    if dtype.kind in "iu" and values.dtype.kind == "f":
        info = np.iinfo(dtype)
        fits &= (values >= float(info.min)) & (values < float(info.max) + 1.0)
    if filled:
        fits |= values != values
    if not fits.all():
        raise ValueError(f"variable {name!r} holds {dtype}, which {values[~fits].reshape(-1)[0]} is none of")
    return values


def region(
    dataset: xr.Dataset, opened: xr.Dataset, asked: Any, append_dim: str | None
) -> tuple[dict[str, slice], xr.Dataset]:
    """A region as slices, and what of the dataset is to be written there."""
    if asked is None:
        return {}, dataset
    automatic = asked == "auto"
    if automatic:
        asked = dict.fromkeys(dataset.dims, "auto")
    if not isinstance(asked, Mapping):
        raise TypeError(f"``region`` must be a dict, got {type(asked)}")
    found: dict[str, slice] = {}
    for dim, part in asked.items():
        if isinstance(part, str) and part == "auto":
            found[dim] = _labels(dataset, opened, dim)
            automatic = True
        elif isinstance(part, slice):
            found[dim] = part
        else:
            raise TypeError(f"all values in ``region`` must be slice objects, got {asked}")
    if any(part.step not in (None, 1) for part in found.values()):
        raise ValueError("step on all slices in ``region`` must be 1 or None")
    if unknown := set(found) - set(dataset.dims):
        raise ValueError(f"all keys in ``region`` are not in Dataset dimensions: {sorted(unknown)}")
    if append_dim in found:
        raise ValueError(f"cannot list the same dimension in both ``append_dim`` and ``region``: {append_dim!r}")
    indexes = [name for name in dataset.variables if name in dataset.dims]
    if automatic:
        dataset = dataset.drop_vars(indexes)
    outside = [n for n, v in dataset.variables.items() if not set(v.dims) & set(found)]
    if found and outside:
        raise ValueError(
            "when setting `region` explicitly, all variables in the dataset to write must have at "
            f"least one dimension in common with the region's dimensions {list(found)}; {outside} have none"
        )
    return found, dataset


def _labels(dataset: xr.Dataset, opened: xr.Dataset, dim: Any) -> slice:
    """Where a dimension's labels lie among those that are there."""
    places = opened.get_index(dim).get_indexer(dataset.get_index(dim))
    if (places < 0).any():
        raise KeyError(f"Not all values of coordinate {dim!r} in the new array were found in the original store")
    if not len(places):
        return slice(0, 0)
    if (np.diff(places) != 1).any():
        raise ValueError(f"The auto-detected region of coordinate {dim!r} for writing new data is not contiguous")
    return slice(int(places[0]), int(places[-1]) + 1)


class Existing:
    """The arrays that are there, and where new cells go in them."""

    def __init__(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        append_dim: str | None,
        region: Mapping[str, slice],
    ):
        self._arrays, self._sizes = arrays, sizes
        self._append_dim, self._region = append_dim, region

    def start(self, dim: str) -> int:
        """The first position along a dimension that is written."""
        if dim == self._append_dim:
            return self._sizes[dim]
        if dim in self._region:
            return self._region[dim].indices(self._sizes[dim])[0]
        return 0

    def is_written(self, variable: xr.Variable, mode: str) -> bool:
        """Whether a variable that is there gets new cells."""
        return mode != "a-" or self._append_dim in variable.dims

    @staticmethod
    def _times(array: Array, name: str, variable: xr.Variable) -> None:
        """Raises ``ValueError`` for times that are not whole in the unit of those that are there:
        xarray has written them in another unit, and warned.
        """
        kept = array._key_values().get(f"__tiledb_attr.{array.schema.attr_names[0]}.units")
        there, new = kept and kept[1].decode(errors="replace"), variable.attrs.get("units")
        unit = lambda text: text.split()[0].lower().rstrip("s")  # noqa: E731
        counts = there and (" since " in there or there in _DURATIONS)
        if counts and new and unit(there) != unit(new):
            raise ValueError(
                f"variable {name!r} is kept in {there!r}, in which its new values are no whole numbers; "
                f"write it anew with a unit such as encoding={{{name!r}: {{'units': {new!r}}}}}"
            )

    def _new(self, name: str, variable: xr.Variable) -> None:
        """Raises ``ValueError`` for a variable that is not there yet, of another length along a dimension
        that is: a dataset is as long as the shortest of its arrays.
        """
        for dim, size in variable.sizes.items():
            wanted = self._sizes.get(dim, size)
            if size == wanted:
                continue
            if dim in self._region:
                raise ValueError(
                    f"variable {name!r} does not exist yet, and its region along {dim!r} has {size} of {wanted}: "
                    f"write all of it first, then its regions"
                )
            raise ValueError(
                f"variable {name!r} conflicts with the dataset that is there: its dimension {dim!r} has the size {wanted}, not {size}"
            )

    def variable(self, name: str, variable: xr.Variable, mode: str, encoded: bool) -> None:
        """Raises ``ValueError`` for a variable that does not suit what is there."""
        member = "v" + name if name.startswith("__") else name
        array = self._arrays.get(member)
        if array is None:
            if mode == "r+" and self._arrays:
                raise ValueError(f"dataset contains non-pre-existing variables [{name!r}], which is not allowed with mode='r+'")
            self._new(name, variable)
            return
        names = [dim for dim in array.schema.dim_names if dim != _SCALAR]
        if names != list(variable.dims):
            raise ValueError(
                f"variable {name!r} already exists with different dimension names {tuple(names)} != "
                f"{variable.dims}, but changing variable dimensions is not supported"
            )
        if not self.is_written(variable, mode):
            return
        self._times(array, name, variable)
        for dim, size in variable.sizes.items():
            wanted = self._sizes[dim]
            if dim == self._append_dim:
                continue
            if dim in self._region:
                wanted = len(range(*self._region[dim].indices(self._sizes[dim])))
            if size != wanted:
                raise ValueError(
                    f"variable {name!r} already exists with different dimension sizes. Unable to update "
                    f"size for existing dimension {dim!r} ({wanted} != {size}); to append, set append_dim"
                )
