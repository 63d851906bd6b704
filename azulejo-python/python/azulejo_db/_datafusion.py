"""Arrays as tables of the wheel ``datafusion``, which is another library with a DataFusion of its own.

Only builds with the feature ``datafusion`` have what this needs: the wheels of a release do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._time import U64_MAX

if TYPE_CHECKING:
    from ._array import Array

#: Whether this build can show its arrays there.
AVAILABLE = hasattr(_core, "datafusion_table")


def table_provider(array: Array, session: Any) -> Any:
    """The capsule that ``SessionContext.register_table`` takes."""
    from importlib.metadata import version  # takes longer than all else here

    if array._attr is not None:
        raise TypeError("a table has all attributes: register the array and not one of them")
    wanted, found = _core.datafusion_version(), version("datafusion")
    if found.split(".")[0] != str(wanted):
        raise RuntimeError(f"this build's tables are for datafusion {wanted}, not {found}")
    # A schema hands over its codec, a session what has one.
    codec = getattr(session, "__datafusion_logical_extension_codec__", None)
    live = array._mode == "w" and array._pin is None and array._asked == (0, U64_MAX)
    return _core.datafusion_table(array.core, session if codec is None else codec(), live)
