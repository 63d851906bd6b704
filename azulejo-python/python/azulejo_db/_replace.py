"""A dataset in the place of another, which readers see until the new one is whole.

The new arrays lie beside the old ones, in folders whose names end in the *generation* of the write
that made them. One edit of the group then swaps its members, and only after that the old arrays are
deleted. Attributes of a dataset are another file than its members, so they say which generation
they belong to: a reader between the two looks again.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ._context import Context
from ._group import Group, whole
from ._job import Job
from ._metadata import encoded
from .errors import AzulejoError, NotFoundError

#: The key of a group that names the generation of its attributes.
GENERATION = "__azulejo_generation"
_ENDING = re.compile(r"\.([0-9a-f]{16})/?$")
#: Seconds between looks at a group whose two halves do not match: one of them is being written.
_PAUSES = (0.001, 0.004, 0.016, 0.064)


def generation() -> str:
    """The name of a new generation."""
    return secrets.token_hex(8)


def folder(member: str, generation: str | None) -> str:
    """The folder of a member; ``None`` is the generation of what replaces nothing."""
    return f"{member}.{generation}" if generation else member


def _generations(group: Group) -> set[str]:
    found = (_ENDING.search(group.location(name)) for name in group)
    return {match[1] for match in found if match}


def _own(group: Group) -> str | None:
    stored = group._metadata.get(GENERATION)
    return stored[1].decode("ascii", "replace") if stored else None


def _is_whole(group: Group) -> bool:
    """Whether members and attributes are of one write."""
    there, own = _generations(group), _own(group)
    return len(group) == 0 or (own in there if own else not there)


def opened(uri: str, mode: str, at: Any, ctx: Context) -> Group:
    """A group whose members and attributes belong together. What a crash has left between the two
    is taken as it is.
    """
    group = Group(uri, mode, at=at, ctx=ctx)
    for pause in _PAUSES:
        if at is not None or _is_whole(group):
            break
        time.sleep(pause)
        group = Group(uri, mode, ctx=ctx)
    return group


def is_replaced(group: Group | None) -> bool:
    """Whether a group has other members by now than when it was opened."""
    if group is None:
        return False
    with contextlib.suppress(AzulejoError):
        return Group(group.uri, ctx=group._ctx)._members != group._members
    return False


def has_left(group: str, location: str, ctx: Context) -> bool:
    """Whether an array that was a member of a group is none any more."""
    with contextlib.suppress(AzulejoError):
        now = Group(group, ctx=ctx)
        return location not in {now.location(name) for name in now}
    return False


def place(root: str, group: str | None, ctx: Context, at: Any = None) -> str:
    """Where the group of a path below another lies, or would lie."""
    path = root
    for name in filter(None, (group or "").split("/")):
        path = step(path, name, ctx, at)
    return path


def step(above: str, name: str, ctx: Context, at: Any = None) -> str:
    """Where a member of a group lies, or would lie."""
    with contextlib.suppress(NotFoundError):
        members = Group(above, at=at, ctx=ctx)
        if name in members:
            return members.location(name)
    return above.rstrip("/") + "/" + name


def swap(
    ctx: Context,
    uri: str,
    members: Sequence[tuple[str, str]],
    attrs: Mapping[str, Any],
    generation: str | None,
    job: Job,
) -> None:
    """Makes these (folder, name) the members of a group and these its attributes, and deletes the
    arrays and groups that were its members until then, if they lie in its folder.
    """
    if generation:
        attrs = {**attrs, GENERATION: generation}
        job.undo(partial(_restore, ctx, uri, dict(Group(uri, ctx=ctx)._metadata), generation))
    stored = {key: encoded(value) for key, value in attrs.items()}
    _put(ctx, uri, stored)
    gone = ctx.core.replace_members(uri, list(members))
    job.keep()
    _settle(ctx, uri, stored, generation)
    for location in gone:
        if _lies_in(location, uri):
            # What cannot be deleted is no part of the dataset any more.
            with contextlib.suppress(AzulejoError):
                ctx.core.delete(location, True)


def _settle(
    ctx: Context, uri: str, stored: Mapping[str, tuple[str, bytes]], generation: str | None
) -> None:
    """Sees to it that members of this generation have its attributes.

    Another write may have put its attributes there just before these members. It is about to put
    its own members there too, so it is waited for. One that has died will not: then the attributes
    are put there again. Should the other one have come just then, with its members, what it had
    put there is put back.
    """

    def is_ours(group: Group) -> bool:
        return (generation or "") in (_generations(group) or {""})

    for pause in (0, *_PAUSES):
        time.sleep(pause)
        group = Group(uri, ctx=ctx)
        if _is_whole(group) or not is_ours(group):
            return
    others = dict(group._metadata)
    _put(ctx, uri, stored)
    group = Group(uri, ctx=ctx)
    if not _is_whole(group) and not is_ours(group):
        _put(ctx, uri, others)


def _lies_in(location: str, uri: str) -> bool:
    """Whether a place is below a folder. One with a way back (``folder/../other``) may be anywhere."""
    place = whole(location)
    return place.startswith(whole(uri) + "/") and ".." not in place.split("/")


def _put(ctx: Context, uri: str, stored: Mapping[str, tuple[str, bytes]]) -> None:
    """Makes these all the key-values of a group."""
    now = Group(uri, ctx=ctx)._metadata
    changes: list[tuple[str, tuple[str, bytes] | None]] = [(key, None) for key in now if key not in stored]
    changes += [(key, value) for key, value in stored.items() if now.get(key) != value]
    if changes:
        ctx.core.change_metadata(uri, True, changes)


def _restore(ctx: Context, uri: str, before: Mapping[str, tuple[str, bytes]], generation: str) -> None:
    """Gives a group its attributes back whose members were not replaced in the end."""
    if _own(Group(uri, ctx=ctx)) == generation:
        _put(ctx, uri, before)


def drop_group(ctx: Context, uri: str) -> None:
    """Takes back the making of a group, unless another one has begun to use it."""
    if not len(Group(uri, ctx=ctx)):
        ctx.core.delete(uri, False)
