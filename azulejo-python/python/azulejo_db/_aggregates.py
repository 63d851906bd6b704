"""Aggregates, in the types of the fields that they are of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

import numpy as np

from ._cells import column_to_numpy
from ._expr import Condition, col
from ._query import request
from ._types import dtype_of, from_bytes

if TYPE_CHECKING:
    from ._array import Array

#: The tick of what is no time.
_NO_TIME = -(2**63)


class _Asked(NamedTuple):
    """An aggregate of a field; one of all cells, or of a field that there is not, has none."""

    text: str
    function: str
    field: dict | None

    @property
    def dtype(self) -> np.dtype | None:
        return None if self.field is None else dtype_of(self.field["datatype"])

    @property
    def weighs_times(self) -> bool:
        """Whether what is no time would count as the least of all."""
        return self.dtype is not None and self.dtype.kind in "mM" and self.function in ("sum", "mean", "min", "max")

    @property
    def is_label(self) -> bool:
        """Whether it is a label, of which the engine knows where it stands."""
        return self.field is not None and bool(self.field.get("enumeration")) and self.function in ("min", "max")

    def check(self) -> None:
        """Refuses sums of what cannot be added up."""
        if self.field is None or self.function not in ("sum", "mean"):
            return
        if self.field.get("enumeration"):
            raise TypeError(f"{self.text}: {self.field['name']!r} holds labels, which have no sum")
        if self.function == "sum" and dtype_of(self.field["datatype"]).kind == "M":
            raise TypeError(f"{self.text}: {self.field['name']!r} holds times, which have no sum")

    def value(self, found: Any) -> Any:
        """What the engine has found, as numpy has it."""
        if isinstance(found, tuple):
            return from_bytes(found[1], found[0])
        if found is None or not self.weighs_times:
            return found
        # A mean is rounded as the program does.
        ticks = found if isinstance(found, int) else int(math.copysign(math.floor(abs(found) + 0.5), found))
        return np.int64(ticks).view(self.dtype)


def aggregated(array: Array, texts: Sequence[str], condition: str | None) -> list:
    """What was asked, such as ``mean:t``, of the cells that meet a condition."""
    fields = {field["name"]: field for field in (*array.schema.dims, *array.schema.attrs)}
    asked = []
    for text in texts:
        function, of, name = text.partition(":")
        asked.append(_Asked(text, function, fields.get(name) if of else None))
        asked[-1].check()
    answers = {a.text: _label(array, a, condition) for a in asked if a.is_label}
    others = [a for a in asked if not a.is_label]
    times = {a.field["name"]: a for a in others if a.field is not None and a.weighs_times}
    found = _computed(array, [*(a.text for a in others), *(f"min:{name}" for name in times)], condition)
    answers |= {a.text: a.value(value) for a, value in zip(others, found)}
    for (name, one), least in zip(times.items(), found[len(others) :]):
        if least is None or not np.isnat(one.value(least)):
            continue
        again = [a for a in others if a.field is one.field and a.weighs_times]
        some = col(name) > _NO_TIME
        some = some if condition is None else some & Condition(condition)
        answers |= {a.text: a.value(v) for a, v in zip(again, _computed(array, [a.text for a in again], some.text))}
    return [answers[text] for text in texts]


def _computed(array: Array, texts: list[str], condition: str | None) -> list:
    # Domains have at least one coordinate; that there is none yet a key-value says.
    nowhere = [[] for _ in array.schema.dims] if array._empty_dims() else None
    return array.core.aggregate(texts, request([], ranges=nowhere, condition=condition)) if texts else []


def _label(array: Array, asked: _Asked, condition: str | None) -> Any:
    """The least or greatest of the labels that cells have, in their order."""
    name, enumeration = asked.field["name"], asked.field["enumeration"]
    labels = array.schema.enumerations[enumeration]
    there = np.zeros(len(labels), bool)
    for batch in array.query(condition, [name])._columns():
        index = np.ma.MaskedArray(column_to_numpy(batch[name])).compressed()
        # Cells that nobody wrote have no label.
        there[index[(index >= 0) & (index < len(labels))]] = True
    found = [label for label, is_there in zip(labels, there) if is_there]
    if not found:
        return None
    if any(e["name"] == enumeration and e["ordered"] for e in array.schema._json["enumerations"]):
        return found[0 if asked.function == "min" else -1]
    return min(found) if asked.function == "min" else max(found)
