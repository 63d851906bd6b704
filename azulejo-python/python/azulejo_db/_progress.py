"""How far long pieces of work have come."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ._context import Context

#: ``True`` for a line on the terminal, or a function of unit, done and total.
Progress = bool | Callable[[str, int, int], None] | None


def observed(ctx: Context, progress: Progress):
    """The engine's context, whose work tells how far it has come."""
    if not progress:
        return ctx.core
    return ctx.core.observed(_line if progress is True else progress)


def _line(unit: str, done: int, total: int) -> None:
    end = "\n" if done >= total else ""
    print(f"\r{done:,} of {total:,} {unit}", end=end, file=sys.stderr, flush=True)
