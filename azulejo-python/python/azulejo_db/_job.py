"""Writes of many tasks, in many processes, that count together.

Each task writes a fragment that does not count yet and hands on its name. Once all are there, one
file an array makes its fragments count, and then arrays grow. Where a task fails, nothing of the
job is ever seen; where one is done twice, because its worker was lost, the names of one run count.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._context import Context
from ._index import Box

#: First and last tick of each dimension.
Pairs = list[tuple[int, int]]


def is_dask(values: Any) -> bool:
    """Whether values are yet to be computed, in chunks."""
    return hasattr(values, "dask") and hasattr(values, "chunks")


@dataclasses.dataclass(frozen=True)
class Place:
    """An array as tasks know it: what they need travels with them."""

    uri: str
    ctx: Context
    at: int

    def write(self, low: Sequence[int], named: Mapping[str, np.ndarray]) -> list[str]:
        """Writes a box that begins at ``low``; its fragments do not count yet."""
        shape = next(iter(named.values())).shape
        if 0 in shape:
            return []
        array = Array(self.uri, "w", ctx=self.ctx)
        pairs = [(int(start), int(start) + n - 1) for start, n in zip(low, shape, strict=True)]
        return array._write_box(Box.of_pairs(array, pairs), named, self.at, uncommitted=True)


def _write(place: Place, low: Sequence[int], names: Sequence[str], *blocks: Any) -> list[str]:
    """What one task does."""
    return place.write(low, {name: _plain(block) for name, block in zip(names, blocks)})


def _plain(block: Any) -> np.ndarray:
    return block if isinstance(block, np.ma.MaskedArray) else np.asarray(block)


@dataclasses.dataclass
class _Part:
    """What is written to one array."""

    place: Place
    names: list[str] = dataclasses.field(default_factory=list)
    tasks: list[Any] = dataclasses.field(default_factory=list)
    grown: Pairs | None = None

    def commit(self, names: Sequence[str]) -> None:
        self.place.ctx.core.commit_fragments(self.place.uri, list(names))

    def grow(self) -> None:
        if self.grown is None:
            return
        array = Array(self.place.uri, "w", ctx=self.place.ctx)
        now = [(int(low), int(high)) for low, high in array.domain]
        wanted = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(now, self.grown, strict=True)]
        if wanted != now:
            array.evolve(expand=wanted)


def _commit(parts: list[_Part], found: list[list[list[str]]]) -> None:
    # First all cells, then all sizes: a dataset is as long as the shortest of its arrays.
    for part, names in zip(parts, found, strict=True):
        part.commit([*part.names, *itertools.chain.from_iterable(names)])
    for part in parts:
        part.grow()


class Job:
    """Writes to any number of arrays, made visible by :meth:`finish`."""

    def __init__(self, ctx: Context, at: int | None = None):
        self._ctx, self._at = ctx, at
        self._parts: dict[str, _Part] = {}
        self._after: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []

    def write(
        self, uri: str, low: Sequence[int], named: Mapping[str, Any], grown: Pairs | None = None
    ) -> None:
        """Writes the box of these values that begins at ``low``: numpy arrays now, dask arrays when
        the job is computed, one fragment a chunk. ``grown``: what the array's domain is to be.
        """
        part = self._part(uri)
        part.grown = grown or part.grown
        if any(is_dask(values) for values in named.values()):
            part.tasks.extend(_tasks(part.place, low, named))
        else:
            part.names.extend(part.place.write(low, {n: _plain(v) for n, v in named.items()}))

    def add(self, uri: str, tasks: Callable[[Place], list[Any]]) -> None:
        """Tasks that write to an array, each of which comes to the names of its fragments."""
        part = self._part(uri)
        part.tasks.extend(tasks(part.place))

    def _part(self, uri: str) -> _Part:
        part = self._parts.get(uri)
        if part is None:
            # Later than the array itself, which may have been made a moment ago.
            at = _core.next_timestamp() if self._at is None else self._at
            part = self._parts[uri] = _Part(Place(uri, self._ctx, at))
        return part

    def after(self, step: Callable[[], None]) -> None:
        """Does something once all cells are there."""
        self._after.append(step)

    def undo(self, step: Callable[[], None]) -> None:
        """What takes back a step that was done already, if the job does not come to its end."""
        self._undo.append(step)

    def keep(self) -> None:
        """From here on what was done stays, whatever comes."""
        self._undo = []

    def finish(self, compute: bool = True) -> Any:
        """Makes everything count. Without ``compute``, what dask has yet to compute counts once
        the returned ``Delayed`` is computed, and the rest now.
        """
        parts = list(self._parts.values())
        later = [part for part in parts if part.tasks]
        if compute:
            found: list[list[list[str]]] = [[] for _ in parts]
            try:
                if later:
                    import dask

                    done = iter(dask.compute(*(part.tasks for part in later)))
                    found = [list(next(done)) if part.tasks else [] for part in parts]
                _commit(parts, found)
            except BaseException:
                self.discard()
                raise
        else:
            _commit([part for part in parts if not part.tasks], [[] for p in parts if not p.tasks])
        # What counts is not taken back.
        self._parts = {}
        for step in self._after:
            step()
        if compute:
            return None
        import dask

        tasks = [part.tasks for part in later]
        plain = [dataclasses.replace(part, tasks=[]) for part in later]
        return dask.delayed(_commit, pure=False)(plain, tasks)

    def discard(self) -> None:
        """Removes what this process has written, last things first; what workers have written stays
        unseen.
        """
        parts, undo = list(self._parts.values()), self._undo[::-1]
        self._parts, self._undo = {}, []
        drops = [functools.partial(self._ctx.core.discard_fragments, p.place.uri, p.names) for p in parts]
        for step in (*drops, *undo):
            try:
                step()
            except Exception:  # noqa: BLE001, S110 - the error that led here is the one to report
                pass


def _tasks(place: Place, low: Sequence[int], named: Mapping[str, Any]) -> Iterator[Any]:
    import dask
    import dask.array as da

    names = list(named)
    arrays = [v if is_dask(v) else da.from_array(_plain(v)) for v in named.values()]
    if len(arrays) > 1:
        axes = tuple(range(arrays[0].ndim))
        arrays = da.core.unify_chunks(*itertools.chain.from_iterable((a, axes) for a in arrays))[1]
    write = dask.delayed(_write, pure=False)
    blocks = [array.to_delayed(optimize_graph=False) for array in arrays]
    starts = [np.cumsum([0, *sizes[:-1]]).tolist() for sizes in arrays[0].chunks]
    for index in np.ndindex(*arrays[0].numblocks):
        first = [start + axis[i] for start, axis, i in zip(low, starts, index, strict=True)]
        yield write(place, first, names, *(block[index] for block in blocks))
