"""What ``azulejo_db_as_tiledb.pth`` imports as Python starts, where ``AZULEJO_AS_TILEDB=1``: whoever
imports one of the packages that ask for libtiledb gets ``azulejo_db.as_tiledb`` before it.

Nothing else is imported yet, numpy least of all: the program may still say where its packages lie.
"""

import sys

#: Those of :data:`azulejo_db.as_tiledb.PACKAGES`, which is not to be imported for this.
PACKAGES = ("tiledb", "tiledbsoma")


class After:
    """Loads a package as its own loader does, once the engine has taken its library's place."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def exec_module(self, module):
        # Not where it is looked for: whoever looks for a module keeps all others from looking for
        # theirs, and would wait for one who is about to import the engine, or numpy.
        import azulejo_db.as_tiledb  # noqa: F401

        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)


class Before:
    """Finds what the others find, and sees to it that the packages are loaded :class:`After` the engine."""

    def find_spec(self, name, path=None, target=None):
        """A package's own description with such a loader; nothing, if it is none of them."""
        if name not in PACKAGES:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = After(spec.loader)
                return spec
        return None


sys.meta_path.insert(0, Before())
