"""Work off the event loop's thread, whose reads end when the task is cancelled."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _Flight:
    """The reads of one piece of work."""

    def __init__(self) -> None:
        self._lock, self._cancelled = threading.Lock(), False
        self._readers: list[Any] = []

    def add(self, reader: Any) -> None:
        with self._lock:
            self._readers.append(reader)
            if self._cancelled:
                reader.cancel()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for reader in self._readers:
                reader.cancel()


_flight: contextvars.ContextVar[_Flight | None] = contextvars.ContextVar("flight", default=None)


def watched(reader: Any) -> Any:
    """A reader that was just begun; the piece of work that it belongs to may end it."""
    flight = _flight.get()
    if flight is not None:
        flight.add(reader)
    return reader


def read_all(core: Any, query: dict) -> dict[str, tuple]:
    """All columns of a query, whose read may be ended as :func:`watched` says."""
    if _flight.get() is None:
        return core.read_all(query)[1]
    return watched(core.read(query)).read_all()[1]


async def run(work: Callable[..., T], *args: Any, **options: Any) -> T:
    """Does blocking work on another thread. Cancelling the task ends the reads of that work."""
    # Half of what the package would take to be imported.
    import asyncio

    flight = _Flight()
    token = _flight.set(flight)
    try:
        # The thread gets a copy of this context.
        return await asyncio.to_thread(work, *args, **options)
    except asyncio.CancelledError:
        flight.cancel()
        raise
    finally:
        _flight.reset(token)
