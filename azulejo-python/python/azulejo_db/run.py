"""``python -m azulejo_db.run script.py``: runs a program that uses ``tiledb`` on this engine.

Its children do the same. ``-m module`` runs a module, as Python's own option does.
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    """Runs what the command line names."""
    words = sys.argv[1:]
    module = words[:1] == ["-m"]
    if not words[module:]:
        sys.exit("usage: python -m azulejo_db.run script.py [ARGUMENT ...]\n"
                 "       python -m azulejo_db.run -m module [ARGUMENT ...]")
    os.environ["AZULEJO_AS_TILEDB"] = "1"
    import azulejo_db.as_tiledb  # noqa: F401

    if module:
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
