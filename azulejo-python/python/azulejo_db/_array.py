"""Open arrays."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _datafusion, _time
from ._changing import Changing
from ._context import Context, shared
from ._metadata import Metadata
from ._reading import Reading
from ._schema import Schema
from ._time import U64_MAX
from ._types import cell_type, dtype_of, from_bytes, shown_name

#: Names the dimensions of an array that have no coordinates yet, which no domain can say.
EMPTY_DIMS = "__azulejo_empty_dims"


def empty_dims(names: Iterable[str], shape: Iterable[int]) -> str:
    """What that key says of an array of this shape."""
    return ";".join(name for name, size in zip(names, shape) if size == 0)


class Array(Reading, Changing):
    """An array as it was at a time. Opening it reads its schema; cells are read when asked for.

    ``a[1:5, ..., ::2]`` takes half-open positions, as numpy does; :attr:`loc` takes coordinates and
    includes both ends, as pandas does; :meth:`query` takes conditions.
    """

    def __init__(
        self,
        uri: str,
        mode: str = "r",
        *,
        at: Any = None,
        since: Any = None,
        ctx: Context | None = None,
        _attr: str | None = None,
        _range: tuple[int, int] | None = None,
        _pin: bytes | None = None,
        _opened: tuple[Any, tuple, dict] | None = None,
    ):
        if mode not in ("r", "w"):
            raise ValueError(f"mode is 'r' or 'w', not {mode!r}")
        self._uri, self._mode, self._ctx, self._attr = str(uri), mode, ctx or shared(), _attr
        self._asked = _range or (_time.first(since), _time.last(at))
        self._pid, self._core, self._schema = -1, None, None
        #: Names what it shows, where another process has opened it before.
        self._pin = _pin
        self._empty: tuple[Any, frozenset[str]] | None = None
        self._attrs: Metadata | None = None
        self._stored: tuple[Any, dict] | None = None
        self._closed, self._stale = False, False
        #: What a variable of a dataset is made of (`head.rs`), where the schema was not asked for.
        self._head: tuple | None = None
        if _opened:
            self._core, self._head, keys = _opened
            self._pid, self._stored = os.getpid(), (self._core, keys)
            return
        core = self.core  # what is not there is said now
        if _pin:
            self._asked = core.time_range

    # -- life --------------------------------------------------------------------------------

    @property
    def core(self):
        """The engine's array of this process: after a fork it is opened anew, at the same time."""
        if self._closed:
            raise ValueError(f"{self._uri} was closed")
        if self._stale:
            self._forget()
        if self._core is None or self._pid != os.getpid():
            # After a fork the other process's array still says what it has shown.
            pin, asked = self._pin, self._asked
            if self._core is not None:
                pin, asked = self._core.known_pin(), self._core.time_range
            core = self._ctx.core
            self._core = core.open_pinned(self._uri, pin) if pin else core.open(self._uri, *asked)
            self._pid = os.getpid()
        return self._core

    def reopen(self, *, at: Any = None, since: Any = None) -> Array:
        """The array as it is now, or as it was at another time."""
        return Array(self._uri, self._mode, at=at, since=since, ctx=self._ctx, _attr=self._attr)

    def _refresh(self) -> None:
        """From the next look on this handle sees what it has just written, unless it shows an earlier
        time.
        """
        self._stale = self._asked[1] == U64_MAX

    def _forget(self) -> None:
        """The same, of a schema that was just changed: nothing is written with the one before."""
        if self._asked[1] == U64_MAX:
            self._core = self._schema = self._attrs = None
            self._stale = False

    def _as_written(self, write: Callable[[Array], Any]) -> Any:
        """Does a write, which needs a schema and nothing else: one after another opens nothing anew.
        If it does not fit, another program may have changed the schema, and it is done with that of now.
        """
        if self._closed or not self._stale:
            return write(self)
        before = Array.__new__(Array)
        before.__dict__ |= self.__dict__ | {"_stale": False}
        try:
            return write(before)
        except (LookupError, TypeError, ValueError):
            return write(self.reopen())

    def close(self) -> None:
        """Lets go of everything."""
        self._core, self._closed = None, True

    def _written_to(self) -> None:
        if self._mode == "r":
            raise io.UnsupportedOperation(f"{self._uri} was opened to be read: open it with the mode 'w' to write")

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self):
        # The names of its fragments: of a moment alone others might see more, since a writer may
        # still commit with an older timestamp.
        pin = zlib.compress(self.core.pin(), 9)
        return (_reopened, (self._uri, self._mode, pin, self._ctx, self._attr))

    def _fixed(self) -> Array:
        """The same to be read only, whole, and whatever is written meanwhile."""
        core = self.core
        return Array(self._uri, ctx=self._ctx, _pin=core.pin())

    if _datafusion.AVAILABLE:
        def __datafusion_table_provider__(self, session: Any) -> Any:
            return _datafusion.table_provider(self, session)

    # -- what it is ---------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where it lies."""
        return self._uri

    @property
    def at(self) -> np.datetime64:
        """The moment that it shows."""
        return np.datetime64(self.core.time_range[1], "ms")

    @property
    def schema(self) -> Schema:
        """Its dimensions and attributes."""
        core = self.core
        if self._schema is None:
            self._schema = Schema.from_json(core.schema())
        return self._schema

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.schema.dims)

    @property
    def domain(self) -> tuple[tuple[Any, Any], ...]:
        """First and last coordinate of each dimension: of the current domain, if there is one."""
        current = self.schema._json.get("current_domain")
        pairs = []
        for i, dim in enumerate(self.schema.dims):
            low_high = current[i] if current else dim["domain"]
            if low_high is None:
                pairs.append((None, None))
                continue
            dtype = dtype_of(dim["datatype"])
            if dim["datatype"] == "STRING_ASCII":
                pairs.append(tuple(low_high))
            elif dtype.kind in "mM":
                pairs.append(tuple(np.array(v, np.int64).view(dtype)[()] for v in low_high))
            else:
                pairs.append(tuple(dtype.type(v) for v in low_high))
        return tuple(pairs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of coordinates of each dimension, which must be whole numbers or times."""
        empty = self._empty_dims()
        lengths = []
        for dim in self.schema.axes:
            if not dim.countable:
                raise TypeError(f"dimension {dim.name!r} ({dim.datatype}) has no length")
            lengths.append(0 if dim.name in empty else dim.high - dim.low + 1)
        return tuple(lengths)

    def _empty_dims(self) -> frozenset[str]:
        """Dimensions of no length: something was written that has no cells."""
        core = self.core
        if self._empty is None or self._empty[0] is not core:
            names: frozenset[str] = frozenset()
            if not self.schema.sparse and any(d.low == d.high for d in self.schema.axes):
                found = self._key_values().get(EMPTY_DIMS)
                if found is not None and core.non_empty_domain() is None:
                    names = frozenset(found[1].decode("utf-8", "replace").split(";"))
            self._empty = (core, names)
        return self._empty[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    @property
    def chunks(self) -> tuple[int, ...]:
        """The tile extents."""
        return tuple(dim["tile_extent"] for dim in self.schema.dims)

    @property
    def dtype(self) -> np.dtype:
        """The type of the only attribute, or of the one looked at."""
        return self._cell_type(self._only("dtype"))[0]

    def _cell_type(self, name: str) -> tuple[np.dtype, tuple[int, ...]]:
        attr = self.schema.attr(name)
        return cell_type(attr["datatype"], attr["cell_val_num"], bool(attr["enumeration"]))

    @property
    def non_empty_domain(self) -> tuple[tuple[Any, Any], ...] | None:
        """The box around all cells written."""
        found = self.core.non_empty_domain()
        if found is None:
            return None
        kinds = [dim["datatype"] for dim in self.schema.dims]
        return tuple(
            (from_bytes(low, kind), from_bytes(high, kind)) for (low, high), kind in zip(found, kinds)
        )

    def _key_values(self) -> dict[str, tuple[str, bytes]]:
        """The key-values as they are stored, at the time of opening."""
        core = self.core
        if self._stored is None or self._stored[0] is not core:
            self._stored = (core, core.metadata())
        return self._stored[1]

    @property
    def attrs(self) -> Metadata:
        """The array's key-values."""
        self.core  # noqa: B018 - of this process, and open
        if self._attrs is None:
            self._attrs = Metadata(
                self._key_values,
                self._change_key_values,
            )
        return self._attrs

    def _change_key_values(self, changes: list) -> None:
        self._written_to()
        self._ctx.core.change_metadata(self._uri, False, changes)

    @property
    def fragments(self) -> list[dict]:
        """One dict for each write that counts, oldest first."""
        return self.core.fragments()

    def _only(self, what: str) -> str:
        if self._attr is not None:
            return self._attr
        names = self.schema.attr_names
        if len(names) != 1:
            raise TypeError(f"{what}: the array has the attributes {names}; choose one, as in a[{names[0]!r}]")
        return names[0]

    # -- how it looks -------------------------------------------------------------------------

    def __repr__(self) -> str:
        if self._closed:
            return f"<azulejo_db.Array {self._uri!r} (closed)>"
        kind = "sparse" if self.schema.sparse else "dense"
        dims = ", ".join(f"{d['name']}: {d['datatype'].lower()}" for d in self.schema.dims)
        attrs = ", ".join(f"{shown_name(a['name'])}: {a['datatype'].lower()}" for a in self.schema.attrs)
        return f"<azulejo_db.Array {self._uri!r} {kind} [{dims}] {{{attrs}}}>"

    def _repr_html_(self) -> str:
        import html

        rows = []
        for dim, (low, high) in zip(self.schema.dims, self.domain):
            rows.append(("dimension", dim["name"], dim["datatype"], f"{low} … {high}", dim["tile_extent"]))
        for attr in self.schema.attrs:
            filters = ", ".join(f["filter"] for f in attr["filters"]["filters"])
            rows.append(("attribute", shown_name(attr["name"]), attr["datatype"], filters, ""))
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows
        )
        kind = "sparse" if self.schema.sparse else "dense"
        return f"<b>{html.escape(self._uri)}</b> ({kind}, {len(self.fragments)} fragments)<table>{cells}</table>"


def _reopened(uri: str, mode: str, pin: bytes, ctx: Context, attr: str | None) -> Array:
    return Array(uri, mode, ctx=ctx, _attr=attr, _pin=zlib.decompress(pin))
