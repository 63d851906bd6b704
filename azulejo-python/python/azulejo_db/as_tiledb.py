"""``import azulejo_db.as_tiledb`` before ``tiledb``, ``tiledbsoma`` or ``tiledb.vector_search``:
these packages, as they come from PyPI, then run on this engine. No file of theirs is touched.

>>> import azulejo_db.as_tiledb    # doctest: +SKIP
>>> import tiledb                  # doctest: +SKIP

Programs that cannot be edited are started with ``python -m azulejo_db.run script.py``, or with
``AZULEJO_AS_TILEDB=1`` in the environment, which their children inherit.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
from collections.abc import Iterable

from . import _core, _elf

#: Packages whose extensions ask for libtiledb.
PACKAGES = ("tiledb", "tiledbsoma")
_LIBRARY = re.compile(r"libtiledb(-[0-9a-f]{8})?\.so(\.[0-9.]+)?")


def _loaded() -> str | None:
    """The file of a libtiledb that this process has loaded already."""
    for line in pathlib.Path("/proc/self/maps").read_text(errors="replace").splitlines():
        path = line.partition("/")[2]
        if path and "memfd:" not in line and _LIBRARY.fullmatch(path.rpartition("/")[2]):
            return "/" + path
    return None


def _names(packages: Iterable[str]) -> set[str]:
    """The names under which the extensions of installed packages ask for libtiledb."""
    names: set[str] = set()
    for package in packages:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folder = pathlib.Path(place)
            bundled = folder.with_name(folder.name + ".libs")
            for file in [*folder.rglob("*.so*"), *bundled.glob("*.so*")]:
                # The bundled library itself asks for others.
                if not _LIBRARY.fullmatch(file.name):
                    names.update(name for name in _elf.needed(file) if _LIBRARY.fullmatch(name))
    return names


def install(packages: Iterable[str] = PACKAGES) -> list[str]:
    """Lets installed packages find this engine where they ask for libtiledb; returns the names
    that they ask by. Importing this module has done it for :data:`PACKAGES`.
    """
    if refusal := _elf.refusal():
        raise ImportError(f"azulejo_db.as_tiledb: {refusal}")
    if there := _loaded():
        raise ImportError(f"azulejo_db.as_tiledb: {there} is loaded already; import this first")
    library = os.path.realpath(_core.__file__)
    names = sorted(_names(packages))
    for name in names:
        _elf.load_as(name, library)
    return names


#: The names that stand for this engine.
names = install()
