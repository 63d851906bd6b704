"""Open arrays."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import _datafusion, _time
from ._changing import Changing
from ._context import Context, rooted, shared
from ._dimension import Dimension
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
        self._uri, self._mode, self._ctx, self._attr = rooted(str(uri)), mode, ctx or shared(), _attr
        self._asked = _range or (_time.first(since), _time.last(at))
        #: The array of which this is one attribute: what one of them writes the other shows.
        self._whole: Array | None = None
        self._pid, self._core = -1, None
        #: What was read with an engine's array, and that array.
        self._schema: tuple[Any, Schema] | None = None
        #: Names what it shows, where another process has opened it before.
        self._pin = _pin
        self._empty: tuple[Any, frozenset[str]] | None = None
        self._attrs: tuple[Any, Metadata] | None = None
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
        return self._handle._opened()

    @property
    def _handle(self) -> Array:
        """What is open: of a view, its array, whether or not that was closed."""
        return self if self._whole is None else self._whole

    def _opened(self) -> Any:
        if self._stale:
            self._forget()
        # Another thread may let go of it at any time: what is found here is what is returned.
        opened = self._core
        if opened is None or self._pid != os.getpid():
            # After a fork the other process's array still says what it has shown.
            pin, asked = self._pin, self._asked
            if opened is not None:
                pin, asked = opened.known_pin(), opened.time_range
            core = self._ctx.core
            opened = core.open_pinned(self._uri, pin) if pin else core.open(self._uri, *asked)
            self._core, self._pid = opened, os.getpid()
        return opened

    def _view(self, attribute: str) -> Array:
        """One of its attributes. What is open is the whole array's, and serves the view too."""
        view = type(self).__new__(type(self))
        kept = dict.fromkeys(("_core", "_schema", "_stored", "_empty", "_attrs"))
        view.__dict__ |= self.__dict__ | kept | {"_attr": attribute, "_whole": self._handle}
        return view

    def reopen(self, *, at: Any = None, since: Any = None) -> Array:
        """The array as it is now, or as it was at another time."""
        return Array(self._uri, self._mode, at=at, since=since, ctx=self._ctx, _attr=self._attr)

    def _refresh(self) -> None:
        """From the next look on this handle sees what it has just written, unless it shows an earlier
        time.
        """
        self._handle._stale = self._asked[1] == U64_MAX

    def _forget(self) -> None:
        """The same, of a schema that was just changed: nothing is written with the one before."""
        if self._asked[1] == U64_MAX:
            handle = self._handle
            handle._stale = False
            handle._core = None

    def _as_written(self, write: Callable[[Array], Any]) -> Any:
        """Does a write, which needs a schema and nothing else: one after another opens nothing anew.
        If it does not fit, another program may have changed the schema, and it is done with that of now.
        """
        handle = self._handle
        if self._closed or not handle._stale:
            return write(self)
        before = Array.__new__(Array)
        before.__dict__ |= handle.__dict__ | {"_stale": False, "_attr": self._attr, "_closed": False}
        try:
            return write(before)
        except (LookupError, TypeError, ValueError):
            return write(self.reopen())
        finally:
            # Somebody may have looked at this one meanwhile, and seen it as it was.
            self._refresh()

    def close(self) -> None:
        """Lets go of everything."""
        self._closed = True
        self._core = self._schema = self._stored = self._empty = self._attrs = None

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
        """Where it lies: of local files the whole path."""
        return self._uri

    @property
    def at(self) -> np.datetime64:
        """The moment that it shows."""
        return np.datetime64(self.core.time_range[1], "ms")

    @property
    def schema(self) -> Schema:
        """Its dimensions and attributes."""
        core, handle = self.core, self._handle
        found = handle._schema
        if found is None or found[0] is not core:
            found = handle._schema = (core, Schema.from_json(core.schema()))
        return found[1]

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
        return tuple([self._length(dim) for dim in self.schema.axes])

    def _length(self, dim: Dimension) -> int:
        if not dim.countable:
            raise TypeError(f"dimension {dim.name!r} ({dim.datatype}) has no length")
        return 0 if dim.name in self._empty_dims() else dim.high - dim.low + 1

    def _empty_dims(self) -> frozenset[str]:
        """Dimensions of no length: something was written that has no cells."""
        core, empty = self.core, self._empty
        if empty is None or empty[0] is not core:
            names: frozenset[str] = frozenset()
            if not self.schema.sparse and any(d.low == d.high for d in self.schema.axes):
                found = self._key_values().get(EMPTY_DIMS)
                if found is not None and core.non_empty_domain() is None:
                    names = frozenset(found[1].decode("utf-8", "replace").split(";"))
            empty = self._empty = (core, names)
        return empty[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: Any) -> bool:
        """Whether it has an attribute of this name, which ``a[name]`` shows."""
        return name in self.schema.attr_names

    def __iter__(self) -> Iterator[Any]:
        """Its rows: ``a[i]`` of each position ``i`` of the first dimension."""
        dim = self.schema.axes[0]
        if self.schema.sparse or not dim.countable:
            raise TypeError(f"{self._uri} has no rows to go through: cells of sparse arrays come with query()")
        empty = dim.name in self._empty_dims()
        return (self[i] for i in (() if empty else range(dim.low, dim.high + 1)))

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
        handle = self._handle
        core, stored = handle._opened(), handle._stored
        if stored is None or stored[0] is not core:
            stored = handle._stored = (core, core.metadata())
        return stored[1]

    @property
    def attrs(self) -> Metadata:
        """The array's key-values."""
        core, handle = self.core, self._handle
        found = handle._attrs
        if found is None or found[0] is not core:
            found = handle._attrs = (core, Metadata(handle._key_values, handle._change_key_values))
        return found[1]

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
