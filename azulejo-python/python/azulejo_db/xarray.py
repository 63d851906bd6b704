"""xarray on TileDB: the engine ``azulejo``, and ``ds.azulejo.to(..)``.

A dataset is a group; each of its variables a dense array of one attribute, as TileDB-CF-Py lays
them out, whose datasets are read too. Dimensions can grow: the current domain is a variable's shape.

>>> ds = xr.open_dataset("weather", engine="azulejo", at="2024-05")    # doctest: +SKIP
>>> ds.azulejo.to("s3://bucket/weather", mode="a", append_dim="time")  # doctest: +SKIP
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.backends.common import (
    ArrayWriter,
    WritableCFDataStore,
    _decode_variable_name,
    _encode_variable_name,
)
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding.strings import CharacterArrayCoder, EncodedStringCoder
from xarray.core import indexing

from . import _context
from ._array import Array
from ._group import Group
from ._index import Axis, Box
from ._metadata import decoded, encoded
from ._schema import _ZSTD, Attr, Dim, Schema, _fill, default_tiles
from ._types import dtype_of, is_bytes, is_text

_ATTR = "__tiledb_attr."
_DIM = "__tiledb_dim."
_FIXED = "__tiledb_array_fixed_dimensions."
_SCALAR = "__scalar"
_NAME, _EMPTY, _UNLIMITED = "__azulejo_name", "__azulejo_empty_dims", "__azulejo_unlimited_dims"
#: What a variable's encoding may say.
_KNOWN = {"attr_name", "filters", "tiles", "max_shape", "dim_dtype", "preferred_chunks", "_FillValue"}
#: What other engines leave in an encoding.
_FOREIGN = {
    "source", "original_shape", "chunksizes", "chunks", "zlib", "complevel", "shuffle", "fletcher32",
    "contiguous", "szip", "zstd", "bzip2", "blosc", "least_significant_digit", "compressor",
    "compressors", "serializer", "_FillValue", "char_dim_name", "endian", "shards", "dtype", "coordinates",
}
#: Begins the names of members whose variables' names begin with two underscores.
_PREFIX = "v"
_TOP = np.iinfo(np.int64).max


class _Cells(BackendArray):
    """The cells of a variable, read where they are looked at."""

    def __init__(self, array: Array, attribute: str, shape: tuple[int, ...], dtype: np.dtype):
        self._tiledb, self._attribute, self.shape, self.dtype = array, attribute, shape, dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._outer
        )

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        async def read(outer: tuple) -> np.ndarray:
            return await asyncio.to_thread(self._outer, outer)

        return await indexing.async_explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, read
        )

    def _outer(self, key: tuple) -> np.ndarray:
        if not self.shape:
            return self._cells(Box.of_pairs(self._tiledb, [(0, 0)])).reshape(())
        axes = []
        for part, size, dim in zip(key, self.shape, self._tiledb.schema.dims, strict=True):
            low = int(dim["domain"][0])
            if isinstance(part, slice):
                start, stop, step = part.indices(size)
                axes.append(Axis(dim["datatype"], start + low, stop + low, step))
            elif isinstance(part, np.ndarray):
                items = np.where(part < 0, part + size, part).astype(np.int64) + low
                axes.append(Axis(dim["datatype"], 0, 0, items=items))
            else:
                at = int(part) + (size if part < 0 else 0) + low
                axes.append(Axis(dim["datatype"], at, at + 1, squeeze=True))
        return self._cells(Box.of(axes))

    def _cells(self, box: Box) -> np.ndarray:
        if 0 in box.full_shape:
            return box.shaped(np.empty(0, self.dtype))
        found = box.shaped(self._tiledb._read([self._attribute], ranges=box.ranges)[self._attribute])
        return np.ma.filled(found, None) if isinstance(found, np.ma.MaskedArray) else found


def _prefixed(metadata: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {k[len(prefix):]: v for k, v in metadata.items() if k.startswith(prefix)}


def _typed(datatype: str, raw: bytes) -> Any:
    """A stored value in its very type, which decides what scaled values become."""
    if is_text(datatype) or is_bytes(datatype):
        return decoded(datatype, raw)
    values = np.frombuffer(raw, dtype=dtype_of(datatype))
    return values[0] if len(values) == 1 else values.copy()


def _keys(metadata: Mapping[str, tuple[str, bytes]]) -> dict[str, Any]:
    return {key: _typed(*value) for key, value in metadata.items()}


def _member(name: str) -> str:
    return _PREFIX + name if name.startswith("__") else name


class AzulejoStore(WritableCFDataStore):
    """A group as a store of variables."""

    def __init__(self, uri: str, *, at: Any = None, ctx: Any = None, mode: str = "r"):
        self._uri, self._at, self._ctx, self._mode = uri, at, ctx or _context.shared(), mode
        self._group: Group | None = None
        self._append_dim: str | None = None
        self._region: Mapping[str, slice] = {}

    @property
    def group(self) -> Group:
        if self._group is None:
            self._group = Group(self._uri, self._mode, at=self._at, ctx=self._ctx)
        return self._group

    # -- reading ------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, Array]:
        group = self.group
        return {name: group[name] for name in group if group.kind(name) == "array"}

    def get_attrs(self) -> dict[str, Any]:
        keys = _keys(self.group._metadata)
        return {k: v for k, v in keys.items() if not k.startswith(("__tiledb_", "__azulejo_"))}

    def get_encoding(self) -> dict[str, Any]:
        names = self.group.attrs.get(_UNLIMITED)
        return {"unlimited_dims": set(names.split(";"))} if names else {}

    def get_dimensions(self) -> dict[str, int]:
        return self._sizes(self._arrays())

    def _sizes(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        keys = self.group.attrs
        for name, array in arrays.items():
            fixed = str(keys.get(_FIXED + name, "")).split(";")
            empty = _empty_dims(array)
            written = None
            for i, dim in enumerate(array.schema.dims):
                low, high = (int(v) for v in array.domain[i])
                if not array.schema._json.get("current_domain") and dim["name"] not in fixed:
                    written = written or array.non_empty_domain
                    high = low - 1 if written is None else int(written[i][1])
                size = 0 if dim["name"] in empty else high - low + 1
                sizes[dim["name"]] = min(sizes.get(dim["name"], size), size)
        sizes.pop(_SCALAR, None)
        return sizes

    def load(self) -> tuple[dict[str, xr.Variable], dict[str, Any]]:
        arrays = self._arrays()
        sizes = self._sizes(arrays)
        variables = {}
        for name, array in arrays.items():
            if array.schema.sparse:
                raise ValueError(
                    f"{array.uri} is sparse: it is no grid of xarray's; open it with azulejo_db and query it"
                )
            keys = _keys(array.core.metadata())
            for attr in array.schema.attrs:
                attribute = attr["name"]
                label = attribute or name
                if label.endswith("_") and label[:-1] in array.schema.dim_names:
                    label = label[:-1]
                if len(array.schema.attrs) == 1 and keys.get(_NAME):
                    label = keys[_NAME]
                variables[_decode_variable_name(label)] = self._variable(array, attr, sizes, keys)
        return variables, self.get_attrs()

    def _variable(self, array: Array, attr: dict, sizes: dict, keys: Mapping) -> xr.Variable:
        attribute = attr["name"]
        dims = [dim for dim in array.schema.dim_names if dim != _SCALAR]
        shape = tuple(sizes[dim] for dim in dims)
        attrs = _prefixed(keys, f"{_ATTR}{attribute}.")
        view = array[attribute] if attribute else array
        empty = _fill(attr["datatype"], None if attr["cell_val_num"] == "var" else attr["cell_val_num"])
        text = attr["cell_val_num"] == "var"
        if "_FillValue" not in attrs and not text and attr["fill_value"] not in (empty, [empty]):
            if isinstance(attr["fill_value"], (int, float)):
                attrs["_FillValue"] = view.dtype.type(attr["fill_value"])
        encoding: dict[str, Any] = {"filters": attr["filters"]["filters"]}
        if dims:
            tiles = [min(int(t), max(s, 1)) for t, s in zip(array.chunks, shape)]
            encoding["preferred_chunks"] = dict(zip(dims, tiles))
            encoding["tiles"] = tuple(int(t) for t in array.chunks)
        data = indexing.LazilyIndexedArray(_Cells(array, attribute, shape, view.dtype))
        return xr.Variable(dims, data, attrs, encoding, fastpath=True)

    # -- writing ------------------------------------------------------------------------------

    def encode_variable(self, variable: xr.Variable, name: Any = None) -> xr.Variable:
        variable = EncodedStringCoder(allows_unicode=True).encode(variable, name)
        variable = CharacterArrayCoder().encode(variable, name)
        if variable.dtype.kind == "U":
            variable = variable.astype(object)
        if variable.dtype.kind not in "biufmMSOT":
            raise TypeError(f"no attribute holds values of type {variable.dtype}")
        return variable

    def store(self, variables, attributes, check_encoding_set=frozenset(), writer=None, unlimited_dims=None):
        writer = writer or ArrayWriter()
        variables, attributes = self.encode(variables, attributes)
        there = self._ctx.core.object_type(self._uri)
        if there is None:
            self._ctx.core.create_group(self._uri)
        elif self._mode == "w-":
            raise FileExistsError(self._uri)
        group = self.group
        members = set(group)
        if attributes:
            group.attrs.update(attributes)
        if unlimited_dims:
            group.attrs[_UNLIMITED] = ";".join(sorted(unlimited_dims))
        for name, variable in variables.items():
            unknown = set(variable.encoding) - _KNOWN - (set() if name in check_encoding_set else _FOREIGN)
            if unknown and name in check_encoding_set:
                raise ValueError(f"unexpected encoding parameters {sorted(unknown)} of {name!r}")
            self._write(group, members, _encode_variable_name(name), variable, writer)

    def _write(self, group: Group, members: set, name: str, variable: xr.Variable, writer) -> None:
        member = _member(name)
        dims = list(variable.dims)
        new = member not in members
        if new:
            array = self._create(group, name, member, variable)
        else:
            array = Array(group.location(member), "w", ctx=self._ctx)
            if array.schema.dim_names != (dims or [_SCALAR]):
                raise ValueError(f"{name!r} has the dimensions {array.schema.dim_names}, not {dims}")
        start = {dim: self._region[dim].start or 0 for dim in dims if dim in self._region}
        if not new and self._append_dim is None and not self._region:
            for dim, size, n in zip(dims, self._shape(array), variable.shape):
                if size != n:
                    raise ValueError(f"Unable to update size for existing dimension {dim!r} ({size} != {n})")
        if not new and self._append_dim in dims:
            axis = dims.index(self._append_dim)
            shape = self._shape(array)
            start[self._append_dim] = shape[axis]
            shape[axis] += variable.shape[axis]
            if variable.shape[axis]:
                array.evolve(expand=[(0, s - 1) for s in shape])
        elif not new and self._append_dim is not None:
            return
        if 0 in variable.shape:
            return
        pairs = [(start.get(d, 0), start.get(d, 0) + n - 1) for d, n in zip(dims, variable.shape)]
        for (_, last), size, dim in zip(pairs, array.shape, dims):
            if dims and last >= size:
                raise ValueError(f"{name!r}: {dim!r} ends at {size}, the region at {last + 1}")
        writer.add(variable.data, _Target(array, pairs or [(0, 0)]))

    @staticmethod
    def _shape(array: Array) -> list[int]:
        empty = _empty_dims(array)
        return [0 if d in empty else s for d, s in zip(array.schema.dim_names, array.shape)]

    def _create(self, group: Group, name: str, member: str, variable: xr.Variable) -> Array:
        encoding = variable.encoding
        dims, shape = list(variable.dims) or [_SCALAR], variable.shape or (1,)
        attribute = encoding.get("attr_name") or (name + "_" if name in dims else member)
        attrs = dict(variable.attrs)
        dtype, nullable = variable.dtype, False
        if dtype.kind == "O":
            cells = np.asarray(variable.data).reshape(-1)
            nullable = any(v is None for v in cells)
            first = next((v for v in cells if v is not None), "")
            dtype = bytes if isinstance(first, bytes) else str
        tiles = encoding.get("tiles")
        if tiles is None or len(tiles) != len(dims):
            chunks = getattr(variable.data, "chunks", None)
            tiles = [max(c) or 1 for c in chunks] if chunks else default_tiles(
                shape, np.dtype(dtype).itemsize or 8 if dtype not in (str, bytes) else 8
            )
        fill = attrs.get("_FillValue") if dtype not in (str, bytes) and dtype.kind != "S" else None
        filters = encoding.get("filters") or list(_ZSTD)
        made = [
            Dim(d, (0, 0), 1) if d == _SCALAR else Dim(d, (0, int(_TOP - 2 * t)), int(t))
            for d, t in zip(dims, tiles)
        ]
        kind = dtype if dtype in (str, bytes) else np.dtype(dtype)
        if kind not in (str, bytes) and kind.kind == "S" and kind.itemsize > 1:
            kind = bytes
        schema = Schema(
            made, [Attr(attribute, kind, fill=fill, filters=filters, nullable=nullable)],
            current_domain=[(0, max(s, 1) - 1) for s in shape],
        )
        uri = group.uri.rstrip("/") + "/" + member
        self._ctx.core.create(uri, schema.to_json(), None)
        keys = {f"{_ATTR}{attribute}.{k}": v for k, v in attrs.items()}
        if member != name:
            keys[_NAME] = name
        if 0 in shape:
            keys[_EMPTY] = ";".join(d for d, s in zip(dims, shape) if s == 0)
        changes = [(k, encoded(_plain(v))) for k, v in keys.items()]
        if changes:
            self._ctx.core.change_metadata(uri, False, changes)
        group.add(uri, member)
        return Array(uri, "w", ctx=self._ctx)

    def close(self) -> None:
        pass


def _empty_dims(array: Array) -> set[str]:
    """Dimensions of no length, which no domain can say."""
    names = array.attrs.get(_EMPTY)
    return set(names.split(";")) if names and array.non_empty_domain is None else set()


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        return ";".join(str(v) for v in value)
    return value


class _Target:
    """Where a variable's cells go: the box of a dense array."""

    def __init__(self, array: Array, pairs: list[tuple[int, int]]):
        self._array, self._pairs = array, pairs

    def __setitem__(self, key: Any, value: Any) -> None:
        pairs = self._pairs
        if isinstance(key, tuple) and key and all(isinstance(k, slice) for k in key):
            pairs = [
                (low + (k.start or 0), low + (k.start or 0) + n - 1)
                for (low, _), k, n in zip(pairs, key, np.shape(value))
            ]
        value = np.asarray(value)
        name = self._array.schema.attr_names[0]
        shape = tuple(b - a + 1 for a, b in pairs)
        self._array._write_box(Box.of_pairs(self._array, pairs), {name: value.reshape(shape)})


def _place(filename_or_obj: Any, group: str | None) -> str:
    uri = os.fspath(filename_or_obj) if isinstance(filename_or_obj, os.PathLike) else str(filename_or_obj)
    return uri if not group or group == "/" else uri.rstrip("/") + "/" + group.strip("/")


class AzulejoBackend(BackendEntrypoint):
    """The engine ``azulejo`` of ``xarray.open_dataset``."""

    description = "TileDB groups as datasets, through Azulejo"
    open_dataset_parameters = (
        "filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords",
        "drop_variables", "use_cftime", "decode_timedelta", "at", "config", "key", "group",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        path = os.fspath(filename_or_obj)
        return os.path.isdir(os.path.join(path, "__group"))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: Any = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        at: Any = None,
        config: Mapping[str, Any] | None = None,
        key: bytes | None = None,
        group: str | None = None,
    ) -> xr.Dataset:
        store = AzulejoStore(_place(filename_or_obj, group), at=at, ctx=_context.shared(config, key))
        return StoreBackendEntrypoint().open_dataset(
            store, mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime, decode_timedelta=decode_timedelta,
        )

    def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> dict[str, xr.Dataset]:
        """The datasets of a group and of all groups below it, by path."""
        found = {}
        ctx = _context.shared(options.get("config"), options.get("key"))

        def walk(path: str, uri: str) -> None:
            found[path or "/"] = self.open_dataset(uri, **options)
            group = Group(uri, at=options.get("at"), ctx=ctx)
            for name in group:
                if group.kind(name) == "group":
                    walk(f"{path}/{name}", group.location(name))

        walk("", _place(filename_or_obj, options.pop("group", None)))
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xr.DataTree:
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


@xr.register_dataset_accessor("azulejo")
class DatasetAccessor:
    """What ``ds.azulejo`` offers."""

    def __init__(self, dataset: xr.Dataset):
        self._dataset = dataset

    def to(
        self,
        uri: str | os.PathLike,
        *,
        mode: str | None = None,
        append_dim: str | None = None,
        region: Mapping[str, slice | str] | str | None = None,
        encoding: Mapping[str, Mapping[str, Any]] | None = None,
        compute: bool = True,
        group: str | None = None,
        unlimited_dims: Any = None,
        config: Mapping[str, Any] | None = None,
        key: bytes | None = None,
    ) -> Any:
        """Writes the dataset as a group of arrays.

        ``mode``: ``"w-"`` (the default) refuses what is there, ``"w"`` replaces it, ``"a"`` adds
        variables and appends along ``append_dim``, ``"r+"`` (the default with ``region``) writes
        into what is there. Without ``compute`` dask does the writing later.
        """
        from xarray.backends.writers import (
            _sanitize_unlimited_dims,
            _validate_dataset_names,
            dump_to_store,
        )

        place, ctx = _place(uri, group), _context.shared(config, key)
        mode = mode or ("r+" if region is not None else "a" if append_dim else "w-")
        if mode not in ("w-", "w", "a", "r+"):
            raise ValueError(f"mode is 'w-', 'w', 'a' or 'r+', not {mode!r}")
        if mode == "w" and ctx.core.object_type(place) is not None:
            ctx.core.delete(place, True)
        dataset = self._dataset
        _validate_dataset_names(dataset)
        unlimited = _sanitize_unlimited_dims(dataset, unlimited_dims)
        store = AzulejoStore(place, ctx=ctx, mode=mode)
        store._append_dim = append_dim
        if region is not None:
            store._region = _region(dataset, region, place, config, key)
            keep = [n for n, v in dataset.variables.items() if set(v.dims) & set(store._region)]
            dataset = dataset[keep].drop_vars([n for n in dataset.variables if n not in keep], errors="ignore")
        if ctx.core.object_type(place) == "group":
            dataset = _encoded_alike(dataset, place, config, key)
        if group and group.strip("/"):
            _parents(os.fspath(uri), group, ctx)
        writer = ArrayWriter()
        dump_to_store(dataset, store, writer, encoding=encoding, unlimited_dims=unlimited)
        writes = writer.sync(compute=compute)
        if compute:
            return None
        import dask

        return dask.delayed(lambda *_: None)(writes)


def _encoded_alike(dataset: xr.Dataset, place: str, config: Any, key: Any) -> xr.Dataset:
    """The dataset with the encodings (units, scales, fill values) of the variables that are there."""
    there = AzulejoBackend().open_dataset(place, config=config, key=key)
    dataset = dataset.copy()
    for name, variable in there.variables.items():
        if name in dataset.variables:
            dataset[name].encoding = dict(variable.encoding)
    return dataset


def _parents(root: str, group: str, ctx: Any) -> None:
    """Makes the groups on the way, each a member of the one above."""
    path = root
    if ctx.core.object_type(path) is None:
        ctx.core.create_group(path)
    for name in group.strip("/").split("/"):
        above, path = path, path.rstrip("/") + "/" + name
        if ctx.core.object_type(path) is None:
            ctx.core.create_group(path)
            ctx.core.edit_group(above, [(name, True, name)], [])


def _region(dataset: xr.Dataset, region: Any, place: str, config: Any, key: Any) -> dict[str, slice]:
    if region == "auto":
        region = dict.fromkeys(dataset.dims, "auto")
    found = {}
    for dim, part in region.items():
        if part != "auto":
            found[dim] = part
            continue
        there = xr.open_dataset(place, engine=AzulejoBackend, config=config, key=key)
        index = there.get_index(dim).get_indexer(dataset.get_index(dim))
        if (index < 0).any() or (np.diff(index) != 1).any():
            raise ValueError(f"the labels of {dim!r} are no contiguous part of those that are there")
        found[dim] = slice(int(index[0]), int(index[-1]) + 1)
    return found


__all__ = ["AzulejoBackend", "AzulejoStore", "DatasetAccessor"]
