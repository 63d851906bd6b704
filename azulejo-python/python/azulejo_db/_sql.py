"""SQL over arrays, by an engine that is installed beside this package: DataFusion's or DuckDB's."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from ._array import Array
from ._group import Group
from ._query import Query


def sql(statement: str, /, *, engine: str | None = None, **tables: Any) -> Any:
    """The answer to a SQL query, as a ``pyarrow.Table``.

    ``tables`` names what the statement may read: arrays, their URIs or queries, and all that the
    engine takes besides, such as tables of Arrow's and data frames. Dimensions and attributes are
    columns. Only columns that the statement names are read, and of these the rows that its
    comparisons with constants select.

    ``engine`` is ``"datafusion"`` or ``"duckdb"``: the first of them that is installed, if none is
    named. The package brings neither (``pip install azulejo-db[sql]``).
    """
    names = list(_ENGINES) if engine is None else [engine]
    if engine is not None and engine not in _ENGINES:
        raise ValueError(f"engine is {' or '.join(map(repr, _ENGINES))}, not {engine!r}")
    for name in names:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return _ENGINES[name](module, statement, {name: _table(one) for name, one in tables.items()})
    raise ModuleNotFoundError(f"SQL is answered by {' or '.join(names)}, which is not installed: pip install {names[0]}")


def _table(given: Any) -> Any:
    """Arrays as what engines scan; all else as it is."""
    if isinstance(given, (str, os.PathLike)):
        given = Array(os.fspath(given))
    if isinstance(given, Group):
        raise TypeError(f"{given.uri} is a group: name one of its arrays, {', '.join(given)}")
    if isinstance(given, Array):
        return given.dataset()
    return given.to_arrow() if isinstance(given, Query) else given


def _datafusion(module: Any, statement: str, tables: Mapping[str, Any]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as pads

    session = module.SessionContext()
    for name, table in tables.items():
        if isinstance(table, pads.Dataset):
            session.register_dataset(name, table)
        else:
            session.from_arrow(pa.table(table), name)
    return session.sql(statement).to_arrow_table()


def _duckdb(module: Any, statement: str, tables: Mapping[str, Any]) -> Any:
    with module.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        answer = connection.sql(statement)
        if answer is None:
            raise ValueError("a query is wanted, which has an answer")
        return answer.to_arrow_table()


#: The engines, and how each is asked.
_ENGINES: dict[str, Callable[[Any, str, Mapping[str, Any]], Any]] = {
    "datafusion": _datafusion, "duckdb": _duckdb,
}
