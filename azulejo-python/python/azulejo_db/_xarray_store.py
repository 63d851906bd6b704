"""A group of arrays as xarray's store of variables, as TileDB-CF-Py lays datasets out."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends.common import (
    WritableCFDataStore,
    _decode_variable_name,
    _encode_variable_name,
)
from xarray.coding.strings import CharacterArrayCoder, EncodedStringCoder
from xarray.core import indexing

from . import _context, _replace
from . import _xarray_checks as _checks
from ._array import EMPTY_DIMS, Array, empty_dims
from ._changing import _ticks
from ._group import Group
from ._job import Job, is_dask
from ._metadata import decoded, encoded
from ._schema import _ZSTD, Attr, Dim, Schema, _fill, default_tiles
from ._types import cell_type, dtype_of, is_bytes, is_text
from ._xarray_cells import Cells
from .errors import ExistsError

_ATTR = "__tiledb_attr."
_DIM = "__tiledb_dim."
_FIXED = "__tiledb_array_fixed_dimensions."
_SCALAR = "__scalar"
_NAME, _UNLIMITED = "__azulejo_name", "__azulejo_unlimited_dims"
#: What a variable's encoding may say.
_KNOWN = {
    "attr_name", "filters", "tiledb_filters", "tiles", "max_shape", "dim_dtype", "preferred_chunks", "_FillValue",
}
#: What other engines leave in an encoding.
_FOREIGN = {
    "source", "original_shape", "chunksizes", "chunks", "zlib", "complevel", "shuffle", "fletcher32",
    "contiguous", "szip", "zstd", "bzip2", "blosc", "least_significant_digit", "compressor",
    "compressors", "serializer", "_FillValue", "char_dim_name", "endian", "shards", "dtype", "coordinates",
}
#: Begins the names of members whose variables' names begin with two underscores.
_PREFIX = "v"
_TOP = np.iinfo(np.int64).max


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


@functools.lru_cache(1024)
def _looks(
    datatype: str, values: int | None, labels: bool, fill: str, filters: str, nullable: bool
) -> tuple[np.dtype, Any, tuple[dict, ...]]:
    """What many variables share: the type of cells, the fill value if it is not the type's or if nulls
    cannot be told without it, the filters.
    """
    dtype, _ = cell_type(datatype, values or "var", labels)
    found = json.loads(fill)
    usual = _fill(datatype, values)
    is_own = values is not None and isinstance(found, (int, float)) and found not in (usual, [usual])
    if nullable and dtype.kind == "b":
        # No truth value is left to stand for nulls.
        dtype, is_own = np.dtype(object), False
    is_own |= nullable and dtype.kind in "iu" and isinstance(found, (int, float))
    return dtype, dtype.type(found) if is_own else None, tuple(json.loads(filters)["filters"])


def _null(dtype: np.dtype, fill: Any) -> Any:
    """What stands for nulls among cells of a type: what xarray takes for missing."""
    if dtype.kind == "O":
        return None
    if dtype.kind in "mM":
        return np.array("NaT", dtype)[()]
    if fill is not None and np.ndim(fill) == 0 and not isinstance(fill, (str, bytes)):
        return fill
    return np.nan if dtype.kind in "fc" else np.zeros((), dtype)[()]


def _label(attribute: str, dims: Sequence[str]) -> str:
    """The variable that an attribute is, as far as its name tells."""
    ends = attribute.endswith("_") and attribute[:-1] in dims
    return attribute[:-1] if ends else attribute


def _member(name: str) -> str:
    return _PREFIX + name if name.startswith("__") else name


def member_of(variable: Any) -> str:
    """The member that holds the cells of a variable."""
    return _member(_encode_variable_name(variable))


class AzulejoStore(WritableCFDataStore):
    """A group as a store of variables."""

    def __init__(self, uri: str, *, at: Any = None, ctx: Any = None, mode: str = "r"):
        self._uri, self._at, self._ctx, self._mode = _context.rooted(uri), at, ctx or _context.shared(), mode
        self._group: Group | None = None
        self._append_dim: str | None = None
        self._region: Mapping[str, slice] = {}
        #: Members that are written anew if they are gone.
        self._restored: frozenset[str] = frozenset()
        #: Where the dataset takes the place of another: the groups that become members with its
        #: arrays, as (folder, name), and the ending of new folders.
        self._groups: list[tuple[str, str]] = []
        self._generation: str | None = None

    @property
    def group(self) -> Group:
        """The group, opened when first asked for."""
        if self._group is None:
            mode = "r" if self._mode == "r" else "w"
            self._group = _replace.opened(self._uri, mode, self._at, self._ctx)
        return self._group

    # -- reading ------------------------------------------------------------------------------

    def get_attrs(self) -> dict[str, Any]:
        keys = _keys(self.group._metadata)
        return {k: v for k, v in keys.items() if not k.startswith(("__tiledb_", "__azulejo_"))}

    def get_encoding(self) -> dict[str, Any]:
        names = self.group.attrs.get(_UNLIMITED)
        return {"unlimited_dims": set(names.split(";"))} if names else {}

    def get_dimensions(self) -> dict[str, int]:
        return self._sizes(self.group._arrays())

    def _sizes(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        keys = self.group.attrs
        for name, array in arrays.items():
            sparse, grows, axes, _ = array._head
            if sparse:
                raise ValueError(
                    f"{array.uri} is sparse: it is no grid of xarray's; open it with azulejo_db and query it"
                )
            fixed = () if grows else str(keys.get(_FIXED + name, "")).split(";")
            empty = array._empty_dims() if EMPTY_DIMS in array._key_values() else ()
            written = None
            for i, (dim, _, low, high) in enumerate(axes):
                if not grows and dim not in fixed:
                    written = written or array.non_empty_domain
                    high = low - 1 if written is None else _ticks(written[i][1])
                size = 0 if dim in empty else high - low + 1
                sizes[dim] = min(sizes.get(dim, size), size)
        sizes.pop(_SCALAR, None)
        return sizes

    def load(self) -> tuple[dict[str, xr.Variable], dict[str, Any]]:
        arrays = self.group._arrays(self._restored)
        sizes = self._sizes(arrays)
        variables = {}
        for name, array in arrays.items():
            _, _, axes, attrs = array._head
            dims = [axis[0] for axis in axes]
            keys = _keys(array._key_values())
            for attr in attrs:
                label = _label(attr[0], dims) or name
                if len(attrs) == 1 and keys.get(_NAME):
                    label = keys[_NAME]
                variables[_decode_variable_name(label)] = self._variable(array, dims, attr, sizes, keys)
        return variables, self.get_attrs()

    def _variable(self, array: Array, dims: list[str], attr: tuple, sizes: dict, keys: Mapping) -> xr.Variable:
        attribute = attr[0]
        dtype, fill, filters = _looks(*attr[1:])
        attrs = _prefixed(keys, f"{_ATTR}{attribute}.")
        if fill is not None and "_FillValue" not in attrs:
            attrs["_FillValue"] = fill
        # Not "filters": that name is Zarr's too, whose writer would take them for its own.
        encoding: dict[str, Any] = {"tiledb_filters": [dict(step) for step in filters]}
        if dims == [_SCALAR]:
            dims = []
        shape = tuple([sizes[dim] for dim in dims])
        if dims:
            extents = tuple([axis[1] for axis in array._head[2]])
            encoding["preferred_chunks"] = {d: min(t, max(s, 1)) for d, t, s in zip(dims, extents, shape)}
            encoding["tiles"] = extents
        data = indexing.LazilyIndexedArray(
            Cells(self._uri, array, attribute, shape, dtype, _null(dtype, attrs.get("_FillValue")))
        )
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
        job = writer if isinstance(writer, Job) else Job(self._ctx)
        variables = {name: _to_the_second(name, variable) for name, variable in variables.items()}
        variables = {name: _checks.packed(name, variable) for name, variable in variables.items()}
        variables, attributes = self.encode(variables, attributes)
        there = self._ctx.core.object_type(self._uri)
        if there is None:
            try:
                make_group(self._uri, self._ctx, job)
            except ExistsError:
                if self._mode == "w-":
                    raise
                there = "group"  # another one has made it meanwhile
        if there and self._mode == "w-":
            raise FileExistsError(self._uri)
        if there and self._mode == "w" and self._generation is None:
            # Folders of its own: what is there, or is being written, stays.
            self._generation = _replace.generation()
        arrays = {} if self._mode == "w" else self.group._arrays(self._restored)
        gone = self._restored.intersection(self.group if there and self._mode != "w" else ()) - set(arrays)
        checks = _checks.Existing(arrays, self._sizes(arrays), self._append_dim, self._region)
        changes = {} if self._mode == "r+" and there else {k: _plain(v) for k, v in attributes.items()}
        for key, value in changes.items():
            # Said before anything is written: cells that count are not taken back.
            _stored("the dataset", key, value)
        if unlimited_dims:
            changes[_UNLIMITED] = ";".join(sorted(unlimited_dims))
        created: list[tuple[str, bool, str]] = []
        members = {member_of(name): name for name in variables}
        if clash := [name for name in variables if members[member_of(name)] != name]:
            other = members[member_of(clash[0])]
            raise ValueError(f"variables {clash[0]!r} and {other!r} would be one member, {member_of(other)!r}: rename one of them")
        if out := [member for member in members if not {"", ".", ".."}.isdisjoint(member.split("/"))]:
            raise ValueError(f"variable {members[out[0]]!r} names no folder in that of the dataset: rename it")
        subgroups = {name for _, name in self._groups}
        if self._mode != "w":
            subgroups |= {name for name in self.group if self.group.kind(name) == "group"}
        for name, variable in variables.items():
            given = name in check_encoding_set
            unknown = set(variable.encoding) - _KNOWN - (set() if given else _FOREIGN)
            if unknown and given:
                raise ValueError(f"unexpected encoding parameters {sorted(unknown)} of {name!r}")
            checks.variable(_encode_variable_name(name), variable, self._mode, given)
            if (member := member_of(name)) not in arrays:
                if member in subgroups:
                    raise ExistsError(f"{self._uri}: {member!r} is a group below, no variable: rename one of them")
                for key, value in variable.attrs.items():
                    _stored(f"variable {name!r}", key, value)
        chosen = set(map(_encode_variable_name, check_encoding_set))
        for name, variable in variables.items():
            name = _encode_variable_name(name)
            member = _member(name)
            folder = _replace.folder(member, self._generation)
            if member in gone:
                # Elsewhere than it was: until all is written the dataset is no other than before.
                folder = f"{member}.{secrets.token_hex(4)}"
            array = arrays.get(member)
            if array is None:
                array, folder = self._create(name, member, folder, variable, job, given=name in chosen)
                created.append((folder, True, member))
                self._write(array, True, variable, checks, job)
            elif checks.is_written(variable, self._mode):
                self._write(array, False, variable, checks, job)

        def register() -> None:
            # The last step: what is no member of the group is no part of the dataset.
            if self._mode == "w":
                members = [(path, name) for path, _, name in created]
                _replace.swap(
                    self._ctx, self._uri, members + self._groups, changes, self._generation, job
                )
                self._group = None
                return
            if created:
                self._ctx.core.edit_group(self._uri, created, sorted(gone))
                names = [name for _, _, name in created]
                job.undo(partial(self._ctx.core.edit_group, self._uri, [], names))
            self._group = None
            if changes:
                self.group.attrs.update(changes)

        job.after(register)
        if job is not writer:
            job.finish()

    def _write(self, array: Array, new: bool, variable: xr.Variable, checks, job: Job) -> None:
        dims = list(variable.dims)
        low = [checks.start(dim) if not new else 0 for dim in dims] or [0]
        data = variable.data if dims else np.asarray(variable.data).reshape(1)
        grown, end = None, None
        if not new and self._append_dim in dims:
            axis = dims.index(self._append_dim)
            shape = [max(s, 1) for s in self._shape(array)]
            shape[axis] = low[axis] + variable.shape[axis]
            grown, end = [(0, s - 1) for s in shape], array._extent()
        attribute = array.schema.attr_names[0]
        if 0 not in np.shape(data):
            job.write(array.uri, low, {attribute: data if is_dask(data) else np.asarray(data)}, grown, end)

    @staticmethod
    def _shape(array: Array) -> list[int]:
        empty = array._empty_dims()
        return [0 if d in empty else s for d, s in zip(array.schema.dim_names, array.shape)]

    def _create(
        self, name: str, member: str, folder: str, variable: xr.Variable, job: Job, *, given: bool
    ) -> tuple[Array, str]:
        """An array for a new variable, and the folder in which it lies: another one where that is taken.
        ``given``: whether its encoding is the caller's own, not what another file has left there.
        """
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
        filters = _filters(encoding, given)
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
        base = self._uri.rstrip("/") + "/"
        try:
            self._ctx.core.create(base + folder, schema.to_json(), None)
        except ExistsError:
            # No member of the group: what a job has left that was never finished, or what another one is
            # about to add. Only its owner knows which.
            folder = f"{member}.{secrets.token_hex(4)}"
            self._ctx.core.create(base + folder, schema.to_json(), None)
        uri = base + folder
        job.undo(partial(self._ctx.core.delete, uri, True))
        keys = {f"{_ATTR}{attribute}.{k}": v for k, v in attrs.items()}
        if _label(attribute, dims) != name:
            keys[_NAME] = name
        if 0 in shape:
            keys[EMPTY_DIMS] = empty_dims(dims, shape)
        changes = [(k, encoded(_plain(v))) for k, v in keys.items()]
        if changes:
            self._ctx.core.change_metadata(uri, False, changes)
        return Array(uri, "w", ctx=self._ctx), folder

    def close(self) -> None:
        pass


def _filters(encoding: Mapping[str, Any], given: bool) -> Any:
    """The filters that an encoding asks for: none, if that is what it says. What another engine has left
    under their name, such as Zarr's codecs, are none of ours.
    """
    found = encoding.get("filters")
    if found is not None and not given:
        steps = [found] if isinstance(found, (str, Mapping)) else list(found)
        ours = steps and all(isinstance(s, str) or (isinstance(s, Mapping) and "filter" in s) for s in steps)
        found = steps if ours else None
    if found is None:
        found = encoding.get("tiledb_filters")
    return list(_ZSTD) if found is None else found


def _plain(value: Any) -> Any:
    """An attribute as a key-value has it: texts become one, as TileDB-CF-Py joins names."""
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.ndarray) and value.dtype.kind in "UOT":
        return ";".join(str(v) for v in value)
    return value


def _stored(owner: str, key: str, value: Any) -> tuple[str, bytes]:
    """An attribute as it is stored.

    Raises ``TypeError`` for one that no key-value holds.
    """
    try:
        return encoded(_plain(value))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"attribute {key!r} of {owner}: {error}") from None


def _to_the_second(name: Any, variable: xr.Variable) -> xr.Variable:
    """A coordinate of times in seconds, if nothing says otherwise. xarray would take the longest unit
    of which these times are whole ones, which those that are appended later need not be.
    """
    if variable.dims != (name,) or variable.dtype.kind != "M" or {"units", "dtype"} & set(variable.encoding):
        return variable
    times = np.asarray(variable.data)
    if np.isnat(times).any() or (times != times.astype("datetime64[s]")).any():
        return variable
    variable = variable.copy(deep=False)
    variable.encoding = {**variable.encoding, "units": "seconds since 1970-01-01"}
    return variable


def make_group(path: str, ctx: Any, job: Job) -> None:
    """Makes a group, which goes again if the job fails."""
    ctx.core.create_group(path)
    job.undo(partial(_replace.drop_group, ctx, path))
