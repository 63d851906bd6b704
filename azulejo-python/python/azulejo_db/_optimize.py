"""Filters chosen by what they make of some cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from . import _core
from ._cells import numpy_to_column
from ._changing import _indexed
from ._given import as_array, for_dims, given, is_column, is_frame, tabled
from ._schema import Schema
from ._types import dtype_of

if TYPE_CHECKING:
    from ._context import Context

GOALS = ("size", "balanced", "speed")


def optimized(schema: Schema, data: Any, goal: str = "balanced", *, ctx: Context | None = None) -> Schema:
    """The schema with the filters that suit these cells: columns, a data frame or an Arrow table as
    :meth:`Array.write` takes them, arrays that fill a dense array from where its domain begins.

    ``goal``: ``"size"`` for the fewest bytes, ``"speed"`` for quick reads of what lies in memory,
    ``"balanced"`` for both. All filters of the schema are chosen anew; the same cells choose the same.
    """
    from ._context import shared

    if goal not in GOALS:
        raise ValueError(f"the goal is one of {', '.join(GOALS)}, not {goal!r}")
    core, text = (ctx or shared()).core, schema.to_json()
    if is_frame(data):
        data = tabled(for_dims(data, schema.dim_names))
    elif isinstance(data, (list, tuple, range)) or (not schema.sparse and is_column(data)):
        data = as_array(data)
    if not isinstance(data, (Mapping, np.ndarray)):
        return Schema.from_json(core.optimized_arrow(text, goal, data.__arrow_c_stream__()))
    named = data if isinstance(data, Mapping) else {schema.attr_names[0]: data}
    fields = {field["name"]: field for field in (*schema.dims, *schema.attrs)}
    unknown = [name for name in named if name not in fields]
    if unknown:
        raise KeyError(f"the schema has no fields {unknown}; it has {list(fields)}")
    cells = {name: _indexed(schema, fields[name], *given(values)) for name, values in named.items()}
    if any(not np.size(values) for values, _ in cells.values()):
        return schema
    bounds = None
    if not schema.sparse:
        shape = next(iter(cells.values()))[0].shape[: len(schema.dims)]
        bounds = [_bounds(dim, length) for dim, length in zip(schema.dims, shape, strict=True)]
        cells = {name: (_flat(values, shape), None if mask is None else mask.reshape(-1)) for name, (values, mask) in cells.items()}
    columns = [numpy_to_column(name, fields[name], values, mask) for name, (values, mask) in cells.items()]
    return Schema.from_json(core.optimized(text, goal, columns, bounds))


def _flat(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Cells in row-major order, one after another."""
    return np.ascontiguousarray(values).reshape((-1, *values.shape[len(shape):]))


def _bounds(dim: Mapping[str, Any], length: int) -> tuple[bytes, bytes]:
    """The first coordinates of a dimension, so many."""
    kind = dtype_of(dim["datatype"])
    kind = np.dtype("int64") if kind.kind in "mM" else kind
    low = int(dim["domain"][0])
    first, last = np.array([low, low + length - 1], kind)
    return first.tobytes(), last.tobytes()
