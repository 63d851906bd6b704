"""Conditions as expressions: ``az.col("a") > 3``."""

from __future__ import annotations

import datetime as dt
from typing import Any, Iterable

import numpy as np

from ._dimension import as_time
from ._given import has_no_value


def _literal(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (np.timedelta64, dt.timedelta)):
        raise TypeError("a duration is compared as a whole number of the field's unit")
    if isinstance(value, (np.datetime64, dt.date, dt.datetime)):
        return f"'{_instant(as_time(value))}'"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (bytes, str)):
        return _quoted(value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"), '"')
    if hasattr(value, "__float__") and not isinstance(value, np.ndarray):
        return repr(float(value))
    raise TypeError(f"a field is compared with a number, a time, text or bytes, not {type(value).__name__}: {value!r}")


def _instant(value: np.datetime64) -> str:
    """A time so that no unit has several ticks of it. Text such as ``2024-05-01`` names a whole day; numpy's
    and pandas' values are one moment each.
    """
    unit = np.datetime_data(value.dtype)[0]
    whole = value.astype("datetime64[s]" if unit in ("Y", "M", "W", "D", "h", "m", "s") else f"datetime64[{unit}]")
    clock, _, fraction = str(whole).partition(".")
    # As far as the shortest unit there is.
    return f"{clock}.{fraction:0<18}"


def _quoted(raw: bytes, quote: str) -> str:
    kept = (32 <= b < 127 and chr(b) not in f"{quote}\\" for b in raw)
    return quote + "".join(chr(b) if k else f"\\x{b:02x}" for b, k in zip(raw, kept)) + quote


class Condition:
    """A condition on cells. Combine with ``&``, ``|`` and ``~``."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) and ({condition_text(other)})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.text}) or ({condition_text(other)})")

    def __invert__(self) -> Condition:
        return Condition(f"not ({self.text})")

    def __bool__(self) -> bool:
        raise TypeError("a condition has no truth of its own: write & for and, | for or, ~ for not")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<condition {self.text}>"


class Column:
    """A field, to be compared: what :func:`col` gives."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = _quoted(name.encode(), "`")

    def _compare(self, op: str, value: Any) -> Condition:
        if has_no_value(value):
            if op in ("=", "!="):
                return Condition(f"{self._name} is {'not ' if op == '!=' else ''}null")
            raise TypeError(f"{value!r} is neither less nor greater than anything")
        return Condition(f"{self._name} {op} {_literal(value)}")

    def __eq__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("=", value)

    def __ne__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: Any) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Condition:
        return self._compare(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[Any]) -> Condition:
        """Whether it is one of these; ``None`` among them stands for null."""
        several = list(values)
        known = [v for v in several if not has_no_value(v)]
        found = Condition(f"{self._name} in ({', '.join(map(_literal, known))})")
        numbers = (int, float, np.integer, np.floating)
        if any(isinstance(v, numbers) and not isinstance(v, bool) and v == 0 for v in known):
            # A list is looked through bit by bit, and misses the other zero of reals.
            found |= self == 0
        return found if len(known) == len(several) else found | self.is_null()

    def between(self, low: Any, high: Any) -> Condition:
        """Whether it lies between these, both included."""
        return (self >= low) & (self <= high)

    def is_null(self) -> Condition:
        """Whether it is null."""
        return Condition(f"{self._name} is null")

    def not_null(self) -> Condition:
        """Whether it is not null."""
        return Condition(f"{self._name} is not null")


def col(name: str) -> Column:
    """A field, to be compared with values."""
    return Column(name)


def condition_text(condition: Condition | str | None) -> str | None:
    """The text of a condition."""
    if condition is not None and not isinstance(condition, (str, Condition)):
        raise TypeError(f"a condition is text, or made of az.col(..), not {condition!r}")
    return None if condition is None else str(condition)
