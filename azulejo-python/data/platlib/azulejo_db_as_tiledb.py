"""What ``azulejo_db_as_tiledb.pth`` imports as Python starts, where ``AZULEJO_AS_TILEDB=1``: whoever
imports one of the packages that ask for libtiledb gets ``azulejo_db.as_tiledb`` before it.

Nothing else is imported yet, numpy least of all: the program may still say where its packages lie.
"""

import sys
import threading

#: Those of :data:`azulejo_db.as_tiledb.PACKAGES`, which is not to be imported for this.
PACKAGES = ("tiledb", "tiledbsoma")


class Before:
    """Finds nothing, and sees what is looked for."""

    def __init__(self):
        self._lock, self._done = threading.RLock(), False

    def find_spec(self, name, path=None, target=None):
        """Nothing; but before one of the packages is found, the engine takes its library's place."""
        if name in PACKAGES:
            # Another thread that imports one of them waits until it is done.
            with self._lock:
                if not self._done:
                    # It looks for the packages itself.
                    self._done = True
                    try:
                        import azulejo_db.as_tiledb  # noqa: F401
                    except BaseException:
                        self._done = False
                        raise
        return None


sys.meta_path.insert(0, Before())
