"""Writes of many tasks, in many processes, that count together.

Each task writes a fragment that does not count yet and hands on its name. Once all are there, one
file an array makes its fragments count, and then arrays grow. Where a task fails, nothing of the
job is ever seen; where one is done twice, because its worker was lost, the names of one run count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._context import Context
from ._index import Box
from .errors import AzulejoError, ConflictError

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
        # Behind the dimensions come the values of a cell, where there are several.
        shape = next(iter(named.values())).shape[: len(low)]
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
    #: What the domain is to be, of what is added behind the end of an array.
    grown: Pairs | None = None
    #: Where the array ended when the place of these cells was chosen.
    end: Any = None
    #: Whether the cells count, or may, as nobody has waited for the answer: then they are not taken back.
    sent: bool = False

    def open(self) -> Array:
        return Array(self.place.uri, "w", ctx=self.place.ctx)

    def grow(self, array: Array, hold: Any) -> None:
        now = [(dim.low, dim.high) for dim in array.schema.axes]
        wanted = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(now, self.grown or now, strict=True)]
        if wanted != now:
            hold.expand(array._bounds(wanted))


class Holds:
    """Arrays that nobody else appends to, or changes in any other way but by writing, until they are
    released. Who holds several takes them in one order: no two wait for each other.
    """

    def __init__(self, ctx: Context, uris: Iterable[str]):
        self._held: dict[str, Any] = {}
        try:
            for uri in sorted(set(uris)):
                self._held[uri] = ctx.core.hold(uri)
        except BaseException:
            self.release()
            raise

    def __contains__(self, uri: str) -> bool:
        return uri in self._held

    def __getitem__(self, uri: str) -> Any:
        return self._held[uri]

    def release(self) -> None:
        """Lets others go on."""
        held, self._held = self._held, {}
        for hold in held.values():
            hold.release()


def _commit(parts: list[_Part], found: list[list[list[str]]], holds: Holds | None = None) -> None:
    """Makes all cells count.

    Raises :class:`ConflictError` where others have appended to these arrays meanwhile: then none count.
    """
    names = [[*part.names, *itertools.chain.from_iterable(more)] for part, more in zip(parts, found, strict=True)]
    behind = [part for part in parts if part.grown is not None]
    held = holds
    if behind and (held is None or any(part.place.uri not in held for part in behind)):
        if held is not None:
            # The dataset has changed meanwhile. More are not taken while some are held.
            held.release()
        held = Holds(behind[0].place.ctx, (part.place.uri for part in behind))
    try:
        now = [part.open() if part.grown is not None else None for part in parts]
        for part, array in zip(parts, now):
            same = holds is not None and part.place.uri in holds
            if array is not None and not same and array._extent() != part.end:
                raise ConflictError(
                    f"another program has appended to {part.place.uri} meanwhile; nothing was written: append again",
                    part.place.uri,
                )
        # First all cells, then all sizes: a dataset is as long as the shortest of its arrays.
        for part, array, own in zip(parts, now, names):
            part.sent = True
            try:
                if array is None or held is None:
                    part.place.ctx.core.commit_fragments(part.place.uri, own)
                else:
                    held[part.place.uri].commit_fragments(own)
            except AzulejoError:
                # The engine has answered, and keeps what may be seen all the same.
                part.sent = False
                raise
        for part, array in zip(parts, now):
            if array is not None and held is not None:
                part.grow(array, held[part.place.uri])
    except ConflictError:
        if held is not None:
            held.release()
        for part, own in zip(parts, names):
            if part.sent:
                continue
            with contextlib.suppress(AzulejoError):
                part.place.ctx.core.discard_fragments(part.place.uri, own)
        raise
    finally:
        if held is not None and held is not holds:
            held.release()


class Job:
    """Writes to any number of arrays, made visible by :meth:`finish`."""

    def __init__(self, ctx: Context, at: int | None = None, holds: Holds | None = None):
        self._ctx, self._at, self._holds = ctx, at, holds
        self._parts: dict[str, _Part] = {}
        self._after: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []
        #: Arrays to which cells are added behind the end.
        self.behind: set[str] = set()

    def write(
        self,
        uri: str,
        low: Sequence[int],
        named: Mapping[str, Any],
        grown: Pairs | None = None,
        end: Any = None,
    ) -> None:
        """Writes the box of these values that begins at ``low``: numpy arrays now, dask arrays when
        the job is computed, one fragment a chunk. ``grown``: what the array's domain is to be, if
        they are behind its ``end``, as it was seen.
        """
        part = self._part(uri)
        if grown is not None:
            part.grown, part.end = grown, end
            self.behind.add(uri)
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
                _commit(parts, found, self._holds)
            except BaseException:
                self.discard()
                raise
        else:
            _commit([part for part in parts if not part.tasks], [[] for p in parts if not p.tasks], self._holds)
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
        if self._holds is not None:
            # What removes fragments waits for who holds their array.
            self._holds.release()
        parts, undo = list(self._parts.values()), self._undo[::-1]
        self._parts, self._undo = {}, []
        drops = [
            functools.partial(self._ctx.core.discard_fragments, p.place.uri, p.names) for p in parts if not p.sent
        ]
        for step in (*drops, *undo):
            try:
                step()
            except Exception:  # noqa: BLE001, S110 - the error that led here is the one to report
                pass


def done(
    ctx: Context, fill: Callable[[Job], None], compute: bool = True, *, at: int | None = None
) -> Any:
    """Does a job, of which ``fill`` says what it writes. Where others have appended to the same arrays
    meanwhile it is done once more, behind theirs, and now they wait.
    """
    holds = None
    try:
        while True:
            job = Job(ctx, at, holds)
            try:
                fill(job)
                return job.finish(compute)
            except ConflictError:
                job.discard()
                if not job.behind:
                    raise
                if holds is not None:
                    holds.release()
                holds = None
                holds = Holds(ctx, job.behind)
            except BaseException:
                job.discard()
                raise
    finally:
        if holds is not None:
            holds.release()


def _tasks(place: Place, low: Sequence[int], named: Mapping[str, Any]) -> Iterator[Any]:
    import dask
    import dask.array as da

    names, ndim = list(named), len(low)
    arrays = [v if is_dask(v) else da.from_array(_plain(v)) for v in named.values()]
    # A cell is written whole, however many values it has.
    arrays = [a if a.ndim == ndim else a.rechunk(dict.fromkeys(range(ndim, a.ndim), -1)) for a in arrays]
    if len(arrays) > 1:
        axes = [(*range(ndim), *((k, i) for i in range(ndim, a.ndim))) for k, a in enumerate(arrays)]
        arrays = da.core.unify_chunks(*itertools.chain.from_iterable(zip(arrays, axes)))[1]
    write = dask.delayed(_write, pure=False)
    blocks = [array.to_delayed(optimize_graph=False) for array in arrays]
    starts = [np.cumsum([0, *sizes[:-1]]).tolist() for sizes in arrays[0].chunks[:ndim]]
    for index in np.ndindex(*arrays[0].numblocks[:ndim]):
        first = [start + axis[i] for start, axis, i in zip(low, starts, index, strict=True)]
        yield write(place, first, names, *(block[(*index, *(0,) * (block.ndim - ndim))] for block in blocks))
