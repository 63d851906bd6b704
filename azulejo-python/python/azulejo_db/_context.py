"""Settings, threads and a key, shared by whatever is opened with them."""

from __future__ import annotations

import os
import re
from typing import Any, Mapping

from . import _core

_SECRETS = ("secret", "token", "key", "password", "credential")
_shared: dict[tuple, Context] = {}
#: What has the threads of all contexts with as many, by the process and their number.
_threads: dict[tuple[int, str | None], _core.Context] = {}
_COUNT = "sm.compute_concurrency_level"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Context:
    """What queries share: settings, threads, the key of encrypted arrays.

    ``config`` has TileDB's names (``{"vfs.s3.region": "eu-west-1"}``). One context for each set of
    settings is enough, and is what :func:`azulejo_db.open` makes when it gets none.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, key: bytes | str | None = None):
        self.config = {name: _text(value) for name, value in (config or {}).items()}
        for name in self.config:
            if not _core.knows_setting(name):
                import difflib

                near = difflib.get_close_matches(name, _core.setting_names(), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise KeyError(f"there is no setting {name!r}{hint}")
        self._key = key.encode() if isinstance(key, str) else key
        self._pid = -1
        self._made: _core.Context | None = None

    @property
    def core(self) -> _core.Context:
        """The engine's context of this process: a fork gets another, with threads of its own."""
        if self._made is None or self._pid != os.getpid():
            self._made = _core.Context(list(self.config.items()), self._key, _running(self.config.get(_COUNT)))
            self._pid = os.getpid()
        return self._made

    def __reduce__(self):
        # Secrets stay in the process that has them: the other one finds its own.
        public = {k: v for k, v in self.config.items() if not any(s in k for s in _SECRETS)}
        return (shared, (public, None))


def _running(count: str | None) -> _core.Context:
    """A context whose threads others use too: programs make any number of contexts, with a token each, say."""
    place = os.getpid(), count
    found = _threads.get(place)
    if found is None:
        found = _threads[place] = _core.Context([] if count is None else [(_COUNT, count)])
    return found


def rooted(uri: str | os.PathLike) -> str:
    """A place by a name that stands for it whatever becomes of the current folder, and in other
    processes too: what is opened, or to be written later, is where it was when it was named.
    """
    text = os.fspath(uri)
    if not isinstance(text, str) or not text or os.path.isabs(text) or _SCHEME.match(text):
        return text
    try:
        return os.path.join(os.getcwd(), text)
    except OSError:
        # The current folder is gone, which the engine says.
        return text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shared(config: Mapping[str, Any] | None = None, key: bytes | str | None = None) -> Context:
    """The context of these settings, made when first asked for."""
    names = tuple(sorted((k, _text(v)) for k, v in (config or {}).items()))
    found = _shared.get((names, key))
    if found is None:
        found = _shared[names, key] = Context(config, key)
    return found
