"""What changes an array: cells, schemas, fragments."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _time
from ._cells import celled, numpy_to_column
from ._expr import Condition, condition_text
from ._given import for_dims, given, is_frame, is_null, streamed, tabled
from ._index import Axis, Box, index_box, is_mask
from ._progress import Progress, observed
from ._schema import Attr, Schema, _each, enumeration
from ._types import dtype_of, from_bytes
from .errors import ArgumentError, AzulejoError

if TYPE_CHECKING:
    from ._array import Array


class Changing:
    """The writing half of an :class:`~azulejo_db.Array`."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self._set(index_box, key, value)

    def _set(self, box: Any, key: Any, value: Any) -> None:
        def write(array: Array) -> None:
            if array.schema.sparse:
                raise TypeError("cells of a sparse array are written with write(), coordinates and all")
            if is_mask(array, key):
                raise IndexError("a write fills a box: no flags")
            array._write_box(array._there(box(array, key)), value)

        self._as_written(write)

    def _there(self, box: Box) -> Box:
        """What of a box is there: along dimensions that have no coordinates yet, nothing."""
        empty = self._empty_dims()
        if not empty:
            return box
        if any(axis.dim.name in empty and axis.names_some for axis in box.axes):
            raise IndexError("there are no cells yet; append(..) adds some")
        return Box([Axis(a.dim, a.dim.low, a.dim.low) if a.dim.name in empty else a for a in box.axes])

    def _write_box(
        self, box: Box, value: Any, at: Any = None, *, uncommitted: bool = False
    ) -> list[str]:
        return self._store_box(box, self._box_columns(box, value), at, uncommitted)

    def _box_columns(self, box: Box, value: Any) -> list[tuple]:
        """What is written to a box, checked and in the array's types."""
        self._written_to()
        schema = self.schema
        named = value if isinstance(value, Mapping) else {self._only("writing needs a dict"): value}
        _complete(schema.attr_names, named)
        shape, columns = box.full_shape, []
        for name, values in named.items():
            field = schema.attr(name)
            values, mask = celled(name, field, *_indexed(schema, field, *given(values)), len(shape))
            whole = shape + self._cell_type(name)[1]
            values = _stretched(name, box, values, whole).reshape(-1)
            if mask is not None:
                mask = _stretched(name, box, mask, whole).reshape(-1)
            columns.append(numpy_to_column(name, field, values, mask))
        return columns

    def _store_box(self, box: Box, columns: list[tuple], at: Any, uncommitted: bool = False) -> list[str]:
        if 0 in box.full_shape:
            return []
        names = self._ctx.core.write(
            self._uri, columns, "row", box.bounds(), _time.moment(at), uncommitted
        )
        self._refresh()
        return names

    def write(self, data: Any, *, at: Any = None) -> list[str]:
        """Writes cells: a dict of columns, a data frame, or whatever speaks Arrow's C stream.

        Of a sparse array they need coordinates; of a dense one, such a dict or a numpy array fills
        all of it, as ``a[...] = x`` does. All of it is one write: readers see all or nothing.
        """
        if not is_frame(data) and not isinstance(data, Mapping) and hasattr(data, "__arrow_c_stream__"):
            # The engine writes it with the schema of now; and a reader gives its rows once: what failed is
            # not tried again.
            self._written_to()
            return self._write_table(data, at)
        return self._as_written(lambda array: array._write(data, at))

    def _write(self, data: Any, at: Any) -> list[str]:
        self._written_to()
        data = self._table(data)
        schema = self.schema
        cells = isinstance(data, Mapping) or (not schema.sparse and isinstance(data, np.ndarray))
        if not cells:
            return self._write_table(data, at)
        if not schema.sparse:
            return self._write_box(self._there(index_box(self, ...)), data, at)
        fields = {dim["name"]: dim for dim in schema.dims}
        fields |= {attr["name"]: attr for attr in schema.attrs}
        _complete(fields, data)
        columns = [
            numpy_to_column(name, fields[name], *_indexed(schema, fields[name], *given(values)))
            for name, values in data.items()
        ]
        if all(np.size(given(values)[0]) == 0 for values in data.values()):
            return []
        names = self._ctx.core.write(self._uri, columns, None, None, _time.moment(at))
        self._refresh()
        return names

    def _write_table(self, table: Any, at: Any, *, uncommitted: bool = False) -> list[str]:
        stream = getattr(streamed(table), "__arrow_c_stream__", None)
        if stream is None:
            raise TypeError(
                f"{self._uri} is written with a dict of columns, a data frame or an Arrow table, not {type(table).__name__}"
            )
        return self._write_stream(stream(), at, uncommitted)

    def _write_stream(self, stream: Any, at: Any, uncommitted: bool = False) -> list[str]:
        names = self._ctx.core.write_arrow(self._uri, stream, _time.moment(at), uncommitted)[1]
        self._refresh()
        return names

    def _table(self, data: Any) -> Any:
        """A data frame as a table with the array's types; all else as it is."""
        if not is_frame(data):
            return data
        data = for_dims(data, self.schema.dim_names)
        table = tabled(data)
        if isinstance(table, Mapping):
            return table
        import pyarrow as pa

        fields = {field["name"]: field for field in (*self.schema.dims, *self.schema.attrs)}
        for i, column in enumerate(table.schema):
            field = fields.get(column.name)
            if field is None or field["cell_val_num"] != 1 or field.get("enumeration"):
                continue
            dtype, cells = dtype_of(field["datatype"]), data.iloc[:, i]
            plain = isinstance(cells.dtype, np.dtype) and cells.dtype.kind == dtype.kind == "f"
            if plain and not field.get("nullable") and table.column(i).null_count:
                # What is no number is a value here, of which pandas' columns become nulls.
                table = table.set_column(i, column.name, pa.array(cells.to_numpy(), from_pandas=False))
            nothing = table.column(i).null_count == len(table)
            wanted = pa.from_numpy_dtype(dtype) if dtype.kind in "iuf" or (nothing and dtype.kind == "b") else None
            numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or nothing
            if wanted is None or not numbers or column.type == wanted:
                continue
            try:
                # Refuses what would become another value.
                cast = table.column(i).cast(wanted, safe=not pa.types.is_floating(wanted))
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {column.name!r}, as {field['datatype']}: {error}") from None
            if pa.types.is_floating(wanted) and pa.types.is_floating(column.type):
                # Of reals beyond a type Arrow makes infinities.
                before, after = table.column(i).to_numpy(), cast.to_numpy()
                if len(beyond := before[np.isinf(after) & ~np.isinf(before)]):
                    raise ValueError(f"column {column.name!r} takes {field['datatype']}, which does not hold {beyond[0]}")
            table = table.set_column(i, column.name, cast)
        return table

    def append(self, data: Any, axis: int = 0, *, at: Any = None) -> list[str]:
        """Writes a dense box behind what is there, and lets the array grow along ``axis``. Any number
        of threads and programs may append at the same time: each box gets a place of its own, and
        all of it is seen at once.
        """
        if self.schema.sparse:
            raise TypeError("cells of a sparse array are written with write(), coordinates and all")
        named = data if isinstance(data, Mapping) else {self._only("append"): data}
        core, seen, hold = self._ctx.core, self, None
        unseen: list[str] = []
        try:
            while True:
                end = seen._extent()
                behind = seen._behind(named, axis)
                if behind is None:
                    return []
                box, columns, grown = behind
                names = seen._store_box(box, columns, at, uncommitted=True)
                unseen += names
                # Who was too late keeps the others off while it writes anew: nobody tries for ever.
                alone, hold = hold is not None, hold or core.hold(self._uri)
                now = self.reopen()
                if alone or now._extent() == end:
                    # Who is interrupted does not know whether they are seen.
                    unseen = [name for name in unseen if name not in names]
                    try:
                        hold.commit_fragments(names)
                    except AzulejoError:
                        # The engine has answered, and keeps what may be seen all the same.
                        unseen += names
                        raise
                    if grown is not None:
                        now._grow(hold, grown, at, names)
                    self._forget()
                    return names
                seen = now
        except KeyboardInterrupt:
            # To discard them would wait for others once more.
            unseen = []
            raise
        finally:
            if hold is not None:
                hold.release()
            if unseen:
                with contextlib.suppress(AzulejoError):
                    core.discard_fragments(self._uri, unseen)

    def _extent(self) -> Any:
        """What tells where the array ends: whoever appends changes it."""
        return self.schema._json.get("current_domain"), self.core.non_empty_domain()

    def _end(self, axis: int) -> int:
        """Where what is added along an axis begins: behind the last cell."""
        dim, written = self.schema.axes[axis], self.core.non_empty_domain()
        if written is None:
            return dim.low
        # A job that did not come to its end may have left cells beyond the current domain.
        return min(_ticks(from_bytes(written[axis][1], dim.datatype)), dim.high) + 1

    def _behind(self, named: Mapping, axis: int) -> tuple[Box, list[tuple], list[tuple[int, int]] | None] | None:
        """The box that these values fill behind the end, they as columns, and what the current domain
        becomes, if it is to grow; ``None`` if there are no values.
        """
        schema, dims = self.schema, self.schema.axes
        axis = range(self.ndim)[axis]
        added = self._added(named, axis)
        if 0 in added:
            return None
        pairs = [(dim.low, dim.high) for dim in dims]
        start = self._end(axis)
        if self._empty_dims():
            pairs = [(dim.low, dim.low + n - 1) for dim, n in zip(dims, added)]
        pairs[axis] = (start, start + added[axis] - 1)
        box = Box.of_pairs(self, pairs)
        # Whatever is wrong with them is said before anything is written.
        columns = self._box_columns(box, named)
        grown = [(min(low, dim.low), max(high, dim.high)) for (low, high), dim in zip(pairs, dims)]
        grows = schema._json.get("current_domain") and grown != [(dim.low, dim.high) for dim in dims]
        return box, columns, grown if grows else None

    def _added(self, named: Mapping, axis: int) -> tuple[int, ...]:
        """The shape of the cells that are added along an axis.

        Raises ``ValueError`` for one that does not fit. Nothing is stretched, and nothing grows along
        other dimensions, unless there is nothing yet.
        """
        shape, first = self.shape, None
        others = [i for i in range(self.ndim) if i != axis]
        for name, values in named.items():
            added = tuple(_shape(values)[: self.ndim])
            # Along dimensions without coordinates anything fits, but what was there is not cut off.
            fits = len(added) == self.ndim and all(shape[i] in (0, added[i]) for i in others)
            if not fits or (any(shape[i] == 0 for i in others) and added[axis] < shape[axis]):
                raise ValueError(f"{name!r} has the shape {added}; along dimension {axis}, {shape} grows by its like")
            first = first or (name, added)
            if added != first[1]:
                raise ValueError(f"{name!r} has the shape {added}, but {first[0]!r} has {first[1]}: all attributes grow by the same cells")
        if first is None:
            raise ValueError("nothing is added: a write takes all attributes")
        return first[1]

    def _grow(self, hold: Any, pairs: Sequence[tuple[Any, Any]], at: Any, names: Sequence[str]) -> None:
        """Expands the current domain as of a time (of the fragments with these names), so that it is as
        large then as what is written.
        """
        bounds = self._bounds(pairs)
        time = max((int(name.split("_")[3]) for name in names), default=None)
        try:
            hold.expand(bounds, _time.moment(at) if at is not None else time)
        except ArgumentError:
            # The schema is of a later time than the cells.
            hold.expand(bounds)

    def _bounds(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[bytes, bytes]]:
        if len(pairs) != self.ndim:
            raise ValueError(f"{len(pairs)} ranges for {self.ndim} dimensions")
        return [
            (dim.pack(dim.exact(a)), dim.pack(dim.exact(b)))
            for (a, b), dim in zip(pairs, self.schema.axes, strict=True)
        ]

    def delete(self, where: Condition | str, *, at: Any = None) -> str:
        """Deletes the cells of a sparse array that meet a condition, from now on."""
        self._written_to()
        name = self._ctx.core.delete_cells(self._uri, condition_text(where), _time.moment(at))
        self._refresh()
        return name

    def evolve(
        self,
        *,
        add: Iterable[Attr] = (),
        drop: Iterable[str] = (),
        enumerations: Mapping[str, Sequence[Any]] | None = None,
        expand: Sequence[tuple[Any, Any]] | None = None,
        at: Any = None,
    ) -> None:
        """Adds and drops attributes, adds enumerations, expands the current domain. An enumeration that is
        there already is extended: all of its labels, and the new ones behind.
        """
        self._written_to()
        known = {e["name"]: e for e in self.schema._json.get("enumerations", [])}
        bounds = None if expand is None else self._bounds(expand)
        self._ctx.core.evolve(
            self._uri,
            [json.dumps(attr._json()) for attr in _each(add, Attr)],
            [drop] if isinstance(drop, str) else list(drop),
            [json.dumps(enumeration(n, v, like=known.get(n))) for n, v in (enumerations or {}).items()],
            bounds,
            _time.moment(at),
        )
        self._forget()

    def consolidate(
        self,
        mode: str = "fragments",
        *,
        fragments: Sequence[str] = (),
        max_fragment_size: int | None = None,
        purge_deleted: bool = False,
        memory: int | None = None,
        progress: Progress = None,
    ) -> list[dict]:
        """Makes few fragments (or commits, footers, key-value files) of many.

        ``progress``: ``True`` shows how far it has come; a function gets what is counted, how many
        are done, and how many there are.
        """
        done = observed(self._ctx, progress).consolidate(
            self._uri, mode, list(fragments), max_fragment_size, purge_deleted, memory
        )
        self._refresh()
        return done

    def vacuum(
        self, mode: str = "fragments", *, dry_run: bool = False, progress: Progress = None
    ) -> tuple[list[str], int]:
        """Removes what consolidations have replaced: the paths, and their bytes."""
        done = observed(self._ctx, progress).vacuum(self._uri, mode, dry_run)
        self._refresh()
        return done

    def check(self, deep: bool = False, *, progress: Progress = None) -> list[tuple[str, str, str]]:
        """Verifies the array: severity, path and description of each finding."""
        return observed(self._ctx, progress).check(self._uri, deep)


def _stretched(name: str, box: Box, values: np.ndarray, whole: tuple[int, ...]) -> np.ndarray:
    """Values as often as a box has room for them, by numpy's rules."""
    try:
        return np.broadcast_to(box.unsqueezed(values, len(whole)), whole)
    except ValueError:
        raise ValueError(f"{name!r}: values of the shape {values.shape} do not fill cells of the shape {whole}") from None


def _shape(values: Any) -> tuple[int, ...]:
    try:
        return np.shape(values)
    except ValueError:
        # Cells of any number of values, which numpy makes no array of.
        return given(values)[0].shape


def _complete(names: Iterable[str], given: Mapping[str, Any]) -> None:
    names = list(names)
    unknown, missing = set(given) - set(names), set(names) - set(given)
    if unknown or missing:
        raise ValueError(
            f"a write takes the columns {names}; missing: {sorted(missing)}; not in the schema: {sorted(unknown, key=str)}"
        )


def _ticks(value: Any) -> int:
    return int(value.view(np.int64)) if isinstance(value, (np.datetime64, np.timedelta64)) else int(value)


def _indexed(
    schema: Schema, field: dict, values: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as the indices that are stored."""
    name = field.get("enumeration")
    if not name:
        return values, mask
    labels = schema.enumerations[name]
    if values.dtype.kind in "iu" and not all(isinstance(label, (int, float)) for label in labels):
        if values.size and not 0 <= int(values.min()) <= int(values.max()) < len(labels):
            raise ValueError(f"the enumeration {name!r} has {len(labels)} labels: {values.min()} to {values.max()} are no indices of them")
        return values, mask
    # Of times Python's own objects are others than the labels, which are numpy's.
    flat = list(values.reshape(-1)) if values.dtype.kind in "mM" else values.reshape(-1).tolist()
    null = np.fromiter(map(is_null, flat), bool, len(flat)).reshape(values.shape)
    null = null if mask is None else null | mask
    places = {label: i for i, label in enumerate(labels)}
    try:
        index = [0 if n else places[v] for v, n in zip(flat, null.reshape(-1))]
    except (KeyError, TypeError) as missing:
        raise ValueError(f"the enumeration {name!r} has no label {missing.args[0]!r}") from None
    found = np.array(index, dtype=dtype_of(field["datatype"])).reshape(values.shape)
    return found, null if null.any() else None
