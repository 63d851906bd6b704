"""Groups: folders that name arrays and other groups, wherever these lie."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, MutableMapping
from typing import Any

from . import _time
from ._array import Array
from ._context import Context, rooted, shared
from ._metadata import Metadata
from .errors import NotFoundError

_NOTHING: Any = object()
#: Other names of the services of object stores, and those that locations of members have.
_SCHEMES = {"s3a": "s3", "gcs": "gs", "az": "azure", "abfs": "abfss"}


class Group(MutableMapping[str, Any]):
    """A group as a dict of its members; what they are is opened when asked for."""

    def __init__(
        self,
        uri: str,
        mode: str = "r",
        *,
        at: Any = None,
        ctx: Context | None = None,
        _range: tuple[int, int] | None = None,
    ):
        self._uri, self._mode, self._ctx = rooted(str(uri)), mode, ctx or shared()
        self._range = _range or (0, _time.last(at))
        self._load()

    def _load(self) -> None:
        members, self._metadata = self._ctx.core.group(self._uri, *self._range)
        self._members = {key: (location, kind) for key, location, kind in members}
        self._attrs = Metadata(
            lambda: self._metadata,
            self._change_key_values,
        )

    def _written_to(self) -> None:
        if self._mode == "r":
            raise io.UnsupportedOperation(f"{self._uri} was opened to be read: open it with the mode 'w' to write")

    def _change_key_values(self, changes: list) -> None:
        self._written_to()
        self._ctx.core.change_metadata(self._uri, True, changes)

    @property
    def uri(self) -> str:
        """Where it lies: of local files the whole path."""
        return self._uri

    @property
    def attrs(self) -> Metadata:
        """The group's key-values."""
        return self._attrs

    def __getitem__(self, key: str) -> Array | Group:
        if key not in self._members and "/" in key:
            head, _, rest = key.partition("/")
            below = self[head]
            if isinstance(below, Group):
                return below[rest]
        location, kind = self._members[key]
        kind = kind or self._ctx.core.object_type(location)
        if kind == "group":
            return Group(location, self._mode, ctx=self._ctx, _range=self._range)
        return Array(location, self._mode, ctx=self._ctx, _range=self._range)

    def _arrays(self, restored: Collection[str] = ()) -> dict[str, Array]:
        """All arrays among the members, opened several at once with what they are made of and their
        key-values; nobody has looked at their cells. Members that are ``restored`` may be gone.
        """
        names = [name for name in self if self.kind(name) == "array"]
        places = [self.location(name) for name in names]
        try:
            opened = self._ctx.core.open_each(places, *self._range)
        except NotFoundError as error:
            there = [self._ctx.core.object_type(place) is not None for place in places]
            gone = [name for name, found in zip(names, there) if not found and name not in restored]
            if gone:
                raise NotFoundError(
                    f"{self._uri}: {', '.join(map(repr, gone))}: a member, but there is no array (its folder was "
                    "deleted?); a dataset with such variables is written again with mode='a', or they are taken "
                    f"off by az.Group({self._uri!r}, 'w').remove({gone[0]!r})",
                    error.uri,
                ) from error
            if all(there):
                raise
            names = [name for name, found in zip(names, there) if found]
            places = [self.location(name) for name in names]
            opened = self._ctx.core.open_each(places, *self._range)
        return {
            name: Array(place, self._mode, ctx=self._ctx, _range=self._range, _opened=core)
            for name, place, core in zip(names, places, opened)
        }

    def location(self, key: str) -> str:
        """Where a member lies."""
        return self._members[key][0]

    def kind(self, key: str) -> str | None:
        """``array`` or ``group``."""
        location, kind = self._members[key]
        return kind or self._ctx.core.object_type(location)

    def __contains__(self, key: object) -> bool:
        # A member is one though its folder is gone; and nothing is opened to say so.
        if key in self._members or not isinstance(key, str):
            return key in self._members
        head, _, rest = key.partition("/")
        return bool(rest) and head in self._members and self.kind(head) == "group" and rest in self[head]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __setitem__(self, key: str, member: str | os.PathLike[str] | Array | Group) -> None:
        """Adds a member, in the place of the one of this name if there is one."""
        self._change([self._named(member, key, None)], [key] if key in self._members else [])

    def __delitem__(self, key: str) -> None:
        if key not in self._members:
            raise KeyError(key)
        self.remove(key)

    def pop(self, key: str, default: Any = _NOTHING) -> Any:
        """Removes a member and opens it; of one whose folder is gone there is nothing to open: ``None``."""
        if key not in self._members and default is not _NOTHING:
            return default
        try:
            member = self[key]
        except NotFoundError:
            member = None
        del self[key]
        return member

    def popitem(self) -> tuple[str, Any]:
        """Removes some member and opens it, as :meth:`pop` does."""
        for key in self:
            return key, self.pop(key)
        raise KeyError(f"{self._uri} has no members")

    def clear(self) -> None:
        """Removes all members in one step; the members themselves stay. None is opened: they may be gone."""
        self._change([], list(self._members))

    def add(
        self, member: str | os.PathLike[str] | Array | Group, name: str | None = None, *, relative: bool | None = None
    ) -> None:
        """Adds a member. One that lies in the group's folder is named relative to it."""
        self._change([self._named(member, name, relative)], [])

    def remove(self, name: str) -> None:
        """Removes a member from the group; the member itself stays."""
        self._change([], [name])

    def _named(self, member: Any, name: str | None, relative: bool | None) -> tuple[str, bool, str | None]:
        if not isinstance(member, (str, os.PathLike, Array, Group)):
            raise TypeError(f"a member is an array, a group or a URI, not {member!r}")
        opened = isinstance(member, (Array, Group))
        uri = member.uri if opened else os.fspath(member)
        if relative and not opened and not os.path.isabs(uri) and "://" not in uri:
            # A name in the group, whatever the current folder.
            return uri, True, name
        base, place = whole(self._uri) + "/", whole(uri)
        if relative is not False and place.startswith(base):
            return place[len(base):], True, name
        return uri, bool(relative), name

    def _change(self, added: list[tuple[str, bool, str | None]], removed: list[str]) -> None:
        """All at once, or nothing."""
        self._written_to()
        self._ctx.core.edit_group(self._uri, added, removed)
        self._load()

    def tree(self) -> str:
        """The members and theirs, as an indented text."""
        return "\n".join(self._tree(0, {self._uri}))

    def _tree(self, depth: int, seen: set[str]) -> Iterator[str]:
        for key in self:
            yield "  " * depth + key + ("/" if self.kind(key) == "group" else "")
            if self.kind(key) == "group" and self.location(key) not in seen:
                below = self[key]
                yield from below._tree(depth + 1, seen | {below.uri})

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __reduce__(self):
        return (_reopened, (self._uri, self._mode, self._ctx, self._range))

    def __repr__(self) -> str:
        return f"<azulejo_db.Group {self._uri!r}: {', '.join(self)}>"


def whole(uri: str) -> str:
    """A place by one name, however it is given: from the current folder, or as a URI."""
    path = uri.removeprefix("file://").rstrip("/")
    scheme, is_uri, rest = path.partition("://")
    if is_uri:
        return f"{_SCHEMES.get(scheme.lower(), scheme.lower())}://{rest}"
    # Where a way back leads through a link, only the file system knows.
    if ".." in path.split("/"):
        return path
    found = os.path.abspath(path).replace(os.sep, "/")
    # Two slashes are one here, as for the engine; on Windows they begin a host's name.
    return f"/{found.lstrip('/')}" if os.sep == "/" else found


def _reopened(uri: str, mode: str, ctx: Context, time_range: tuple[int, int]) -> Group:
    return Group(uri, mode, ctx=ctx, _range=time_range)
