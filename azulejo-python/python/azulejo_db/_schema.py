"""Schemas: dimensions, attributes, and how their cells are kept."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import operator
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from . import _core
from ._dimension import Dimension, held, ticks_of
from ._given import kind_of, rows, tabled, with_index
from ._types import datatype_of, dtype_of, is_bytes, is_datatype, is_text, shown_name

_ZSTD = ({"filter": "zstd", "level": -1},)
_CHUNK = 65536


def _pipeline(filters: Any) -> dict:
    if isinstance(filters, Mapping) and "filter" not in filters:
        return dict(filters)
    if isinstance(filters, (str, Mapping)):
        filters = [filters]
    steps = [{"filter": f} if isinstance(f, str) else dict(f) for f in filters or ()]
    for step in steps:
        if step["filter"] in ("gzip", "zstd", "lz4", "bzip2", "rle", "dictionary"):
            step.setdefault("level", -1)
        if step["filter"] in ("bit_width_reduction", "positive_delta"):
            step.setdefault("max_window", 256)
        if step["filter"] in ("delta", "double_delta"):
            step.setdefault("level", -1)
            step.setdefault("reinterpret", None)
    return {"chunk_size": _CHUNK, "filters": steps}


def _fill(datatype: str, values: int | None) -> Any:
    if is_text(datatype) or is_bytes(datatype):
        size = dtype_of(datatype).itemsize if not is_text(datatype) else 1
        return {"hex": "00" * (size * (values or 1))}
    dtype = dtype_of(datatype)
    if dtype.kind == "b":
        one: Any = 0
    elif dtype.kind == "f":
        one = "NaN"
    elif dtype.kind == "u":
        one = int(np.iinfo(dtype).max)
    elif dtype.kind in "mM":
        one = int(np.iinfo(np.int64).min)
    else:
        one = int(np.iinfo(dtype).min)
    return one if values == 1 else [one] * (values or 1)


def _plain(value: Any, datatype: str) -> Any:
    """A value as the JSON of schemas has it."""
    dtype = dtype_of(datatype)
    if isinstance(value, str) and dtype.kind == "M":
        value = np.datetime64(value)
    if value is None or isinstance(value, (str, dict)):
        return value
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if dtype.kind in "mM":
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value):
            return -(2**63)
        # numpy would cut fractions off, and wrap what lies beyond the type.
        if (ticks := held(ticks_of(value, dtype))) is None:
            raise ValueError(f"{datatype} does not hold {value!r}")
        return ticks
    if dtype.kind == "f":
        value = float(value)
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, (float, np.floating)) and not value.is_integer():
        raise ValueError(f"{value} is no value of {datatype}")
    return int(value)


def _filled(name: str, fill: Any, datatype: str, values: int | None) -> Any:
    """A fill value as the JSON of schemas has it: those of a cell, or one that all of them are."""
    text = is_text(datatype) or is_bytes(datatype)
    if isinstance(fill, (bytes, dict)) or (text and isinstance(fill, str)):
        return _plain(fill, datatype)
    several = isinstance(fill, (list, tuple, np.ndarray)) and np.ndim(fill) > 0
    cell = [_plain(value, datatype) for value in (fill if several else [fill] * (values or 1))]
    if values is not None and len(cell) != values:
        raise ValueError(f"the fill value of {name!r} has {len(cell)} values, a cell {values}")
    return cell[0] if values == 1 else cell


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension: its name, inclusive domain, tile extent and type.

    ``dtype`` is numpy's (``"datetime64[D]"``) or ``str`` for strings, which have no domain.
    """

    name: str
    domain: tuple[Any, Any] | None = None
    tile: Any = None
    dtype: Any = "int64"
    filters: Any = _ZSTD

    def _json(self) -> dict:
        if self.dtype in (str, "ascii", "str"):
            return {
                "name": self.name, "datatype": "STRING_ASCII", "cell_val_num": "var",
                "domain": None, "tile_extent": None, "filters": _pipeline(self.filters),
            }
        datatype, _ = datatype_of(self.dtype)
        if self.domain is None:
            raise ValueError(f"dimension {self.name!r} needs a domain")
        low, high = (_plain(value, datatype) for value in self.domain)
        tile = self.tile
        if isinstance(tile, np.timedelta64):
            unit = np.datetime_data(dtype_of(datatype))[0]
            made = tile.astype(f"timedelta64[{unit}]")
            if made != tile:
                raise ValueError(f"a tile's extent is a number of {datatype}, which does not hold {tile!r}")
            tile = int(made.view(np.int64))
        elif tile is not None:
            tile = float(tile) if dtype_of(datatype).kind == "f" else _whole(tile, "a tile's extent")
        return {
            "name": self.name, "datatype": datatype, "cell_val_num": 1, "domain": [low, high],
            "tile_extent": tile, "filters": _pipeline(self.filters),
        }


@dataclasses.dataclass(frozen=True)
class Attr:
    """An attribute: its name and type, numpy's or TileDB's name of it. Text (``str``) and ``bytes``
    have any length; with ``var`` cells have any number of values, else ``values``. ``fill`` is all values
    of a cell, or one that each of them is.
    """

    name: str
    dtype: Any = "float64"
    nullable: bool = False
    fill: Any = None
    filters: Any = _ZSTD
    enumeration: str | None = None
    var: bool = False
    values: int = 1

    def _json(self) -> dict:
        if self.dtype is bytes:
            datatype, values = "BLOB", None
        elif isinstance(self.dtype, str) and is_datatype(self.dtype):
            datatype = self.dtype
            values = None if is_text(datatype) or is_bytes(datatype) else 1
        else:
            datatype, values = datatype_of(self.dtype)
        values = None if self.var else values if self.values == 1 else _whole(self.values, "values a cell")
        fill = _fill(datatype, values) if self.fill is None else _filled(self.name, self.fill, datatype, values)
        return {
            "name": self.name, "datatype": datatype,
            "cell_val_num": "var" if values is None else values, "nullable": self.nullable,
            "fill_value": fill, "fill_validity": False, "order": "unordered",
            "enumeration": self.enumeration, "filters": _pipeline(self.filters),
        }


def enumeration(
    name: str, values: Sequence[Any], ordered: bool = False, *, like: Mapping[str, Any] | None = None
) -> dict:
    """The labels of an enumerated attribute, in the type of another enumeration's if that is given."""
    values = list(values)
    texts, several = [isinstance(v, str) for v in values], [isinstance(v, bytes) for v in values]
    if values and (any(texts) != all(texts) or any(several) != all(several)):
        # numpy would make text of all of them.
        raise TypeError(f"the labels of {name!r} are of one type, not {values!r}")
    if not values:
        # Of none nobody can tell what they are: text, unless it is known.
        texts = [like is None or is_text(like["datatype"])]
    # As objects: numpy cuts zero bytes off the end of text.
    array = np.asarray(values, dtype=object if any(texts) else bytes if any(several) else None)
    if array.dtype.kind == "f" and values and all(isinstance(v, (int, np.integer)) for v in values):
        # numpy makes reals of whole numbers that no integer type of its own holds together.
        raise ValueError(f"no type holds all labels of {name!r}, whole numbers from {min(values)} to {max(values)}")
    datatype, number = ("BLOB", None) if any(several) else datatype_of(array.dtype)
    if like is not None:
        number, ordered = like["cell_val_num"], like["ordered"]
        if is_text(like["datatype"]) != is_text(datatype):
            raise TypeError(f"the labels of {name!r} are {like['datatype']}, not {array.dtype}")
        datatype, number = like["datatype"], None if number == "var" else number
    plain = [v if isinstance(v, str) else _plain(v, datatype) for v in (array if array.dtype.kind in "mMiufb" else values)]
    return {
        "name": name, "datatype": datatype, "cell_val_num": number or "var", "ordered": ordered,
        "values": plain,
    }


class Schema:
    """What an array is made of. Equal schemas make equal arrays."""

    def __init__(
        self,
        dims: Iterable[Dim],
        attrs: Iterable[Attr] = (),
        *,
        sparse: bool = False,
        duplicates: bool = False,
        cell_order: str = "row-major",
        tile_order: str = "row-major",
        capacity: int = 10_000,
        enumerations: Iterable[dict] = (),
        current_domain: Sequence[tuple[Any, Any]] | None = None,
    ):
        dims, attrs = _each(dims, Dim), _each(attrs, Attr)
        made = [dim._json() for dim in dims]
        current = None
        if current_domain is not None:
            if len(current_domain) != len(dims):
                raise ValueError(f"{len(current_domain)} ranges of the current domain for {len(dims)} dimensions")
            current = [
                [_plain(low, d["datatype"]), _plain(high, d["datatype"])]
                for (low, high), d in zip(current_domain, made, strict=True)
            ]
        self._json: dict[str, Any] = {
            "version": 22,
            "array_type": "sparse" if sparse else "dense",
            "allows_dups": duplicates,
            "tile_order": tile_order,
            "cell_order": cell_order,
            "capacity": capacity,
            "coords_filters": _pipeline(_ZSTD),
            "offsets_filters": _pipeline(_ZSTD),
            "validity_filters": _pipeline(["rle"]),
            "dimensions": made,
            "attributes": [attr._json() for attr in attrs],
            "enumerations": list(enumerations),
            "dimension_labels": [],
            "current_domain": current,
        }

    @classmethod
    def from_json(cls, document: str | Mapping[str, Any]) -> Schema:
        """A schema from the document that ``azulejo schema --json`` prints."""
        schema = cls.__new__(cls)
        schema._json = json.loads(document) if isinstance(document, str) else dict(document)
        return schema

    def to_json(self) -> str:
        """The schema as a JSON document, without loss."""
        return json.dumps(self._json)

    @classmethod
    def from_numpy(
        cls,
        array: np.ndarray,
        dims: Sequence[str] | None = None,
        *,
        name: str = "",
        tiles: Sequence[int] | None = None,
        filters: Any = _ZSTD,
    ) -> Schema:
        """A dense array with the shape and type of a numpy array, which can grow."""
        return cls._grid(array.shape, {name: array.dtype}, dims, tiles, filters)

    @classmethod
    def _grid(cls, shape, dtypes, dims, tiles, filters=_ZSTD, nullable=frozenset(), several=frozenset()) -> Schema:
        if not shape:
            raise ValueError("an array needs at least one dimension")
        names = [dims] if isinstance(dims, str) else list(dims or (f"dim_{i}" for i in range(len(shape))))
        size = max(8 if t in (str, bytes) else np.dtype(t).itemsize or 8 for t in dtypes.values())
        lengths = [tiles] if isinstance(tiles, (int, np.integer)) else list(tiles or default_tiles(shape, size))
        for what, given in (("names of dimensions", names), ("tile lengths", lengths)):
            if len(given) != len(shape):
                raise ValueError(f"{len(given)} {what} for the shape {tuple(shape)}: {given}")
        lengths = [_whole(t, "a tile's length") for t in lengths]
        top = np.iinfo(np.int64).max
        made = [Dim(n, (0, int(top - 2 * t)), t, "int64") for n, t in zip(names, lengths)]
        attrs = [Attr(n, t, n in nullable, filters=filters, var=n in several) for n, t in dtypes.items()]
        return cls(made, attrs, current_domain=[(0, max(s, 1) - 1) for s in shape])

    @classmethod
    def from_arrow(
        cls, schema: Any, index: str | Sequence[str], domains: Mapping[str, tuple] | None = None, **options
    ) -> Schema:
        """A sparse array for tables of an Arrow schema (of whatever has ``__arrow_c_schema__``, or a
        stream's capsule); ``index`` names the dimensions.
        """
        capsule = schema.__arrow_c_schema__() if hasattr(schema, "__arrow_c_schema__") else schema
        fields = [
            Attr(name, datatype, nullable, var=values is None, values=values or 1)
            for name, datatype, values, nullable in _core.arrow_fields(capsule)
        ]
        return cls._table(fields, index, domains, **options)

    @classmethod
    def _table(
        cls, fields: Sequence[Attr], index: Sequence[str], domains: Mapping[str, tuple] | None = None, **options
    ) -> Schema:
        """A sparse array of these fields, some of which become dimensions."""
        index = [index] if isinstance(index, str) else list(index)
        named = {field.name: field for field in fields}
        missing = [name for name in index if name not in named]
        if missing:
            raise ValueError(f"the table has no columns {missing} to be dimensions; it has {list(named)}")
        dims = [_table_dim(named[n], (domains or {}).get(n)) for n in index]
        return cls(dims, [field for field in fields if field.name not in index], sparse=True, **options)

    @classmethod
    def from_pandas(cls, frame: Any, index: str | Sequence[str] | None = None, **options) -> Schema:
        """A sparse array for data frames like this one; its index makes the dimensions."""
        frame, index = with_index(frame, index)
        table = tabled(frame)
        if isinstance(table, Mapping):
            return cls._table(cls._settled(table)[0], index, **options)
        return cls.from_arrow(table.schema, index, **options)

    @staticmethod
    def _settled(table: Mapping[str, Any]) -> tuple[list[Attr], dict[str, Any]]:
        """Columns as the fields that they become, and as what is written to these."""
        fields, columns = [], {}
        for name, values in table.items():
            found, mask, number = rows(name, values)
            kind, several = kind_of(found)
            fields.append(Attr(name, kind, mask is not None, var=several, values=number))
            columns[name] = found if mask is None else np.ma.MaskedArray(found, mask=mask)
        return fields, columns

    # -- what it says ------------------------------------------------------------------------

    @property
    def sparse(self) -> bool:
        """Whether cells are only where somebody wrote them."""
        return self._json["array_type"] == "sparse"

    @property
    def dims(self) -> list[dict]:
        """The dimensions, as in the JSON document."""
        return self._json["dimensions"]

    @property
    def attrs(self) -> list[dict]:
        """The attributes, as in the JSON document."""
        return self._json["attributes"]

    @functools.cached_property
    def axes(self) -> tuple[Dimension, ...]:
        """The dimensions, as coordinates are counted along them."""
        current = self._json.get("current_domain") or [None] * len(self.dims)
        return tuple(map(Dimension.of, self.dims, current))

    @functools.cached_property
    def dim_names(self) -> list[str]:
        """Names of the dimensions."""
        return [dim["name"] for dim in self.dims]

    @functools.cached_property
    def attr_names(self) -> list[str]:
        """Names of the attributes."""
        return [attr["name"] for attr in self.attrs]

    @functools.cached_property
    def enumerations(self) -> dict[str, list]:
        """The labels of each enumeration."""
        return {e["name"]: _labels(e) for e in self._json.get("enumerations", [])}

    def cell_bytes(self, names: Iterable[str]) -> int:
        """Bytes of a cell of these attributes; some, where they vary."""
        return sum(map(self._cell_bytes.__getitem__, names))

    @functools.cached_property
    def _cell_bytes(self) -> dict[str, int]:
        return {a["name"]: _bytes_of(a) for a in self.attrs}

    def attr(self, name: str) -> dict:
        """One attribute."""
        for attr in self.attrs:
            if attr["name"] == name:
                return attr
        raise KeyError(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._json == other._json

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return (Schema.from_json, (self.to_json(),))

    def __repr__(self) -> str:
        kind = "sparse" if self.sparse else "dense"
        lines = [f"<azulejo_db.Schema {kind}>"]
        for dim in self.dims:
            lines.append(f"  dim  {dim['name']}: {dim['datatype']} {dim['domain']} tile {dim['tile_extent']}")
        for attr in self.attrs:
            null = " nullable" if attr["nullable"] else ""
            lines.append(f"  attr {shown_name(attr['name'])}: {attr['datatype']}{null}")
        return "\n".join(lines)


def _labels(document: Mapping[str, Any]) -> list:
    """The labels of an enumeration as Python has them, which the JSON of schemas has in its own way."""
    datatype, values = document["datatype"], document["values"]
    if is_text(datatype):
        return values
    if is_bytes(datatype):
        return [bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in values]
    dtype = dtype_of(datatype)
    if document["cell_val_num"] != 1:
        return values
    if dtype.kind in "mM":
        return list(np.array(values, np.int64).view(dtype))
    return [float(v) if dtype.kind == "f" else bool(v) if dtype.kind == "b" else v for v in values]


def _each(given: Any, kind: type) -> list:
    """Dimensions or attributes, which must be such."""
    found = [given] if isinstance(given, kind) else list(given)
    for one in found:
        if not isinstance(one, kind):
            raise TypeError(f"az.{kind.__name__}(..) is wanted, not {one!r}")
    return found


def _whole(number: Any, what: str) -> int:
    try:
        found = operator.index(number)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {number!r}") from None
    if found < 1:
        raise ValueError(f"{what} is at least 1, not {found}")
    return found


def _bytes_of(attr: Mapping[str, Any]) -> int:
    values = attr["cell_val_num"]
    return 64 if values == "var" else values * dtype_of(attr["datatype"]).itemsize


def default_tiles(shape: Sequence[int], itemsize: int) -> list[int]:
    """Tiles of about a megabyte, of the array's proportions."""
    tiles = [max(int(s), 1) for s in shape]
    while math.prod(tiles) * itemsize > 1 << 20:
        widest = max(range(len(tiles)), key=lambda i: tiles[i])
        if tiles[widest] == 1:
            break
        tiles[widest] = -(-tiles[widest] // 2)
    return tiles


def _table_dim(field: Attr, domain: tuple | None) -> Dim:
    """The dimension that a column becomes: as wide as its type, unless a domain is given."""
    made = field._json()
    name, datatype = field.name, made["datatype"]
    if is_text(datatype):
        return Dim(name, dtype=str)
    kind = dtype_of(datatype)
    if kind.kind == "b" or is_bytes(datatype) or made["cell_val_num"] != 1:
        raise TypeError(f"column {name!r} ({datatype}) cannot be a dimension")
    if kind.kind == "f":
        return Dim(name, domain or (float(np.finfo(kind).min), float(np.finfo(kind).max)), None, kind)
    if kind.kind in "mM":
        # All times that there are: the least number is none. Tiles of this length divide them.
        low, high = domain or (-(2**63) + 1, 2**63 - 1)
        return Dim(name, (low, high), 9615, kind)
    info = np.iinfo(kind)
    # All values of the type but one, which a domain cannot have, in tiles that divide them.
    low, high = domain or (int(info.min), int(info.max) - 1)
    return Dim(name, (low, high), 16 if kind.itemsize == 1 else 256 if kind.itemsize == 2 else 8192, kind)
