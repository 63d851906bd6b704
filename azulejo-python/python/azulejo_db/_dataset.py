"""An array as a dataset of Arrow's, which query engines scan: they say which columns they want and
which rows, and no others are read.

A filter of Arrow's becomes a condition that holds for every row for which the filter does, and for as
few others as can be; Arrow's own scanner leaves those out. So what is not understood of a filter costs
time and nothing else.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs

from ._expr import Condition, col
from ._query import Query, without_no_times
from ._types import cell_type, dtype_of, is_bytes, is_text
from .errors import UnsupportedError

if TYPE_CHECKING:
    from ._array import Array

#: A comparison, and what is its negation and its mirror image.
_COMPARISONS = {
    "equal": ("not_equal", "equal"), "not_equal": ("equal", "not_equal"),
    "less": ("greater_equal", "greater"), "less_equal": ("greater", "greater_equal"),
    "greater": ("less_equal", "less"), "greater_equal": ("less", "less_equal"),
}
_OPERATORS = {
    "equal": "__eq__", "not_equal": "__ne__", "less": "__lt__", "less_equal": "__le__",
    "greater": "__gt__", "greater_equal": "__ge__",
}
#: What an attribute without a name is called.
_VALUE = "value"
_LINE = re.compile(r"(call|end|field_ref|literal|options): '(.*)'")


class ArrayDataset(pads.FileSystemDataset):
    """The cells of an array as a dataset: what ``Array.dataset()`` gives.

    To Arrow's C++, which knows nothing of arrays, it is a file that is not there: what asks neither its scanner nor
    its table, but that, is told so.
    """

    def __init__(self, array: Array, _filter: Any = None):
        self._array = array
        #: What its rows are restricted to.
        self._filter = _filter
        # Nothing is read for it.
        self._schema = _named(pa.schema(array.query()))
        kind, place = pads.IpcFileFormat(), pa.fs.LocalFileSystem()
        nowhere = kind.make_fragment(f"/nowhere/array read by a dataset's to_table() only: {array.uri}", place)
        super().__init__([nowhere], self._schema, kind, place)

    @property
    def schema(self) -> pa.Schema:
        """The columns: the dimensions, then the attributes."""
        return self._schema

    @property
    def partition_expression(self) -> Any:
        """What holds for all rows: nothing that is known."""
        return pads.Expression._scalar(True)

    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> pads.Scanner:
        """Reads these columns of the rows for which ``filter`` holds, batch after batch."""
        names = self._schema.names
        if self._filter is not None:
            filter = self._filter if filter is None else self._filter & filter
        asked = names if columns is None else list(columns)
        needed = set(asked) if not isinstance(columns, dict) else _fields(*columns.values())
        needed |= _fields(filter)
        # Rows have to be counted even where no column is wanted.
        wanted = [field for field, name in zip(self._fields(), names) if name in needed]
        condition, bounds = _asked(filter, self._array)
        query = self._array.query(condition, wanted or [self._narrowest()])
        reader = _rows(query.box(**bounds) if bounds else query)
        known = {k: v for k, v in options.items() if k in ("batch_size", "use_threads", "memory_pool")}
        return pads.Scanner.from_batches(reader, columns=columns, filter=filter, **known)

    def _fields(self) -> list[str]:
        return self._array.schema.dim_names + self._array._fields()

    def _narrowest(self) -> str:
        known = {field["name"]: field for field in (*self._array.schema.dims, *self._array.schema.attrs)}
        return min(self._fields(), key=lambda name: _width(known[name]))

    def get_fragments(self, filter: Any = None) -> Iterator[_Whole]:
        """What is read one after another: all of it at once, as the engine has threads of its own."""
        yield _Whole(self)

    def to_table(self, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:
        """The rows as a table."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(self, columns: Any = None, filter: Any = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows, batch after batch."""
        return self.scanner(columns, filter, **options).to_batches()

    def head(self, num_rows: int, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:
        """The first rows that are found."""
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: Any = None, **options: Any) -> pa.Table:
        """Rows by their numbers among those that are found."""
        return self.scanner(columns, filter, **options).take(indices)

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """How many rows there are."""
        return self.scanner([], filter, **options).count_rows()

    # What Arrow's own datasets do in its C++, which knows nothing of this one.

    def filter(self, expression: Any) -> ArrayDataset:
        """The rows for which an expression holds."""
        return ArrayDataset(self._array, expression if self._filter is None else self._filter & expression)

    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:
        """The rows in another order, in memory."""
        return _in_memory(self).sort_by(sorting, **options)

    def join(self, right_dataset: Any, *keys: Any, **options: Any) -> pads.InMemoryDataset:
        """The rows beside those of another dataset, in memory."""
        return _in_memory(self).join(_in_memory(right_dataset), *keys, **options)

    def join_asof(self, right_dataset: Any, *keys: Any, **options: Any) -> pads.InMemoryDataset:
        """The rows beside the nearest ones of another dataset, in memory."""
        return _in_memory(self).join_asof(_in_memory(right_dataset), *keys, **options)

    def replace_schema(self, schema: Any) -> Any:
        """Refused: an array has the schema that it has."""
        raise UnsupportedError(f"{self._array.uri}: the schema of an array's dataset is not replaced; cast what was read")

    def __reduce__(self):
        return (ArrayDataset, (self._array, self._filter))

    def __repr__(self) -> str:
        return f"<azulejo_db dataset of {self._array.uri!r}>"


def _in_memory(dataset: Any) -> Any:
    """The rows of an array's dataset as one of Arrow's own; any other as it is."""
    return pads.dataset(dataset.to_table()) if isinstance(dataset, ArrayDataset) else dataset


class _Whole:
    """All of a dataset, as DataFusion takes it: part by part."""

    def __init__(self, dataset: ArrayDataset):
        self._dataset = dataset
        self.partition_expression = dataset.partition_expression

    @property
    def physical_schema(self) -> pa.Schema:
        return self._dataset.schema

    def scanner(self, schema: Any = None, **options: Any) -> pads.Scanner:
        return self._dataset.scanner(**options)

    def to_batches(self, schema: Any = None, **options: Any) -> Iterator[pa.RecordBatch]:
        return self._dataset.to_batches(**options)

    def to_table(self, schema: Any = None, **options: Any) -> pa.Table:
        return self._dataset.to_table(**options)

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        return self._dataset.head(num_rows, **options)

    def take(self, indices: Any, **options: Any) -> pa.Table:
        return self._dataset.take(indices, **options)

    def count_rows(self, **options: Any) -> int:
        return self._dataset.count_rows(**options)


def _named(schema: pa.Schema) -> pa.Schema:
    """A schema whose columns all have names, so that they can be asked for. Times may be none (NaT), which
    is null here.
    """
    fields = [field.with_name(field.name or _VALUE) for field in schema]
    return pa.schema([f.with_nullable(True) if _is_time(f.type) else f for f in fields], schema.metadata)


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def _rows(query: Query) -> pa.RecordBatchReader:
    """The rows of a query, under such names."""
    reader = pa.RecordBatchReader.from_stream(query)
    schema = _named(reader.schema)
    if schema.names == reader.schema.names and not any(map(_is_time, schema.types)):
        return reader
    batches = (
        pa.RecordBatch.from_arrays(list(map(without_no_times, batch.columns)), schema=schema) for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _width(field: dict) -> int:
    values = field["cell_val_num"]
    return 64 if values == "var" else values * dtype_of(field["datatype"]).itemsize


# -- filters ----------------------------------------------------------------------------------

#: A call (its name and what it is given), a field's name, a literal, or what none of these is.
_Node = tuple[str, Any, list["_Node"]]


def _tree(expression: Any) -> _Node:
    """What an expression consists of. Arrow offers this as bytes only: a file of its own format
    whose metadata are the nodes, in Polish notation, and whose columns the values that they name.
    """
    file = pa.ipc.open_file(expression.__reduce__()[1][0])
    values = file.get_batch(0)
    shown = file.schema.to_string(truncate_metadata=False, show_field_metadata=False)
    lines = shown.partition("-- schema metadata --\n")[2].split("\n")
    steps = [found.groups() for found in map(_LINE.fullmatch, lines) if found]
    if len(steps) != len(lines):
        return ("unknown", None, [])

    def node(at: int) -> tuple[_Node, int]:
        kind, text = steps[at]
        if kind == "literal":
            return (kind, values.column(int(text))[0], []), at + 1
        if kind != "call":
            return (kind, text, []), at + 1
        below: list[_Node] = []
        at += 1
        options = None
        while steps[at] != ("end", text):
            if steps[at][0] == "options":
                options, at = values.column(int(steps[at][1]))[0], at + 1
            else:
                one, at = node(at)
                below.append(one)
        return (text, options, below), at + 1

    return node(0)[0]


def _fields(*expressions: Any) -> set[str]:
    """The fields that expressions name."""
    found: set[str] = set()

    def walk(node: _Node) -> None:
        if node[0] == "field_ref":
            found.add(node[1])
        for one in node[2]:
            walk(one)

    for expression in expressions:
        if expression is not None:
            tree = _tree(expression)
            if tree[0] == "unknown":
                raise ValueError(f"a filter of simple fields is wanted, not {expression}")
            walk(tree)
    return found


def _asked(expression: Any, array: Array) -> tuple[Condition | None, dict[str, tuple[Any, Any]]]:
    """A condition that holds wherever the expression does (``None``: any row may), and first and last
    coordinates between which all such rows lie.
    """
    if expression is None:
        return None, {}
    tree, translator = _tree(expression), _Translator(array)
    bounds: dict[str, tuple[Any, Any]] = {}
    for name, operator, value in translator.compared_dimensions(tree):
        low, high = bounds.get(name, (None, None))
        if operator != "less" and operator != "less_equal":
            low = value if low is None else max(low, value)
        if operator != "greater" and operator != "greater_equal":
            high = value if high is None else min(high, value)
        bounds[name] = (low, high)
    return translator.holds(tree), bounds


class _Translator:
    def __init__(self, array: Array):
        schema = array.schema
        # A field without a name cannot stand in a condition.
        self._kinds = {field["name"]: field for field in (*schema.dims, *schema.attrs) if field["name"]}
        self._labels = schema.enumerations
        #: Dimensions along which what is compared is a range.
        self._counted = {dim.name for dim in schema.axes if dim.countable or dim.dtype.kind == "f"}

    def compared_dimensions(self, node: _Node) -> Iterator[tuple[str, str, Any]]:
        """Comparisons of dimensions with constants, all of which must hold."""
        name, _, below = node
        if name in ("and_kleene", "and"):
            for one in below:
                yield from self.compared_dimensions(one)
        elif name in _COMPARISONS and name != "not_equal" and (found := self._comparison(name, below)):
            name, field, value = found
            if field["name"] in self._counted:
                yield field["name"], name, value

    def holds(self, node: _Node, negated: bool = False) -> Condition | None:
        """A condition that holds wherever the node is true (``negated``: false)."""
        name, options, below = node
        if name == "invert":
            return self.holds(below[0], not negated)
        if name in ("and_kleene", "and", "or_kleene", "or"):
            sides = [self.holds(one, negated) for one in below]
            if name.startswith("and") != negated:
                known = [side for side in sides if side is not None]
                return None if not known else known[0] if len(known) == 1 else known[0] & known[1]
            return None if None in sides else sides[0] | sides[1]
        if name == "if_else" and not negated and below[2][0] == "literal" and not below[2][1].is_valid:
            return self.holds(below[1])
        if name in _COMPARISONS:
            found = self._comparison(_COMPARISONS[name][0] if negated else name, below)
            if found is None or (_is_real(found[1]) and (negated or name == "not_equal")):
                # What is not a number is not less than one, nor equal to it.
                return None
            name, field, value = found
            return getattr(col(field["name"]), _OPERATORS[name])(value)
        field = self._kinds.get(below[0][1]) if below and below[0][0] == "field_ref" else None
        if field is None:
            return None
        if name == "is_in":
            return self._member(field, options, negated)
        if name in ("is_null", "is_valid") and field.get("nullable"):
            if options is not None and options.as_py().get("nan_is_null"):
                return None
            column, wants_nulls = col(field["name"]), (name == "is_null") != negated
            if wants_nulls and dtype_of(field["datatype"]).kind in "mM":
                # So is what is no time, which the engine does not take for null.
                return None
            return column.is_null() if wants_nulls else column.not_null()
        return None

    def _comparison(self, name: str, below: list[_Node]) -> tuple[str, dict, Any] | None:
        """How which field is compared with which value of its type, if that is what a call does."""
        if below[0][0] == "literal":
            name, below = _COMPARISONS[name][1], below[::-1]
        field = self._kinds.get(below[0][1]) if below[0][0] == "field_ref" else None
        if field is None or below[1][0] != "literal":
            return None
        if field.get("enumeration") and name not in ("equal", "not_equal"):
            # The engine compares the positions of labels, an expression the labels.
            return None
        known, value = self._value(field, below[1][1])
        return (name, field, value) if known else None

    def _member(self, field: dict, options: Any, negated: bool) -> Condition | None:
        if _is_real(field) or negated:
            return None
        found = [self._value(field, value) for value in options["value_set"].values]
        if not found or not all(known for known, _ in found):
            return None
        return col(field["name"]).isin([value for _, value in found])

    def _value(self, field: dict, literal: pa.Scalar) -> tuple[bool, Any]:
        """A literal as the field's type has it, if it has just that value."""
        value, datatype = literal.as_py() if literal.is_valid else None, field["datatype"]
        if value is None or isinstance(literal, pa.DictionaryScalar):
            return False, None
        if field.get("enumeration"):
            labels = self._labels.get(field["enumeration"], [])
            return isinstance(value, str) and value in labels, value
        if field["cell_val_num"] == "var" and is_text(datatype):
            return isinstance(value, str) and "\0" not in value, value
        if field["cell_val_num"] == "var" and is_bytes(datatype):
            return isinstance(value, bytes), value
        if field["cell_val_num"] != 1 or is_text(datatype) or is_bytes(datatype):
            return False, None
        dtype = cell_type(datatype, 1)[0]
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return type(value) is int and info.min <= value <= info.max, value
        if dtype.kind == "f":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            with np.errstate(over="ignore"):
                return fits and float(dtype.type(value)) == value, value
        if dtype.kind == "M" and getattr(literal.type, "tz", None) is None:
            return _moment(literal, value, dtype)
        return False, None


def _is_real(field: dict) -> bool:
    return dtype_of(field["datatype"]).kind == "f"


def _moment(literal: pa.Scalar, value: Any, dtype: np.dtype) -> tuple[bool, Any]:
    """A time in the unit of a field, if it is a whole number of these."""
    if pa.types.is_timestamp(literal.type):
        stated = np.datetime64(literal.cast(pa.int64()).as_py(), literal.type.unit)
    elif isinstance(value, dt.date):
        stated = np.datetime64(value, "D")
    else:
        return False, None
    made = stated.astype(dtype)
    there = np.isnat(made) or made.astype(stated.dtype) != stated
    return not there, made
