"""What can go wrong: one base class, and subclasses by what the caller can do."""

from __future__ import annotations


class AzulejoError(Exception):
    """Anything that the engine refuses or cannot do."""

    uri: str | None

    def __init__(self, message: str = "", uri: str | None = None) -> None:
        super().__init__(message)
        self.uri = uri

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self):
        return (type(self), (str(self), self.uri))


class NotFoundError(AzulejoError, FileNotFoundError):
    """Nothing of the expected kind lies there."""


class ExistsError(AzulejoError, FileExistsError):
    """Something lies there already."""


class ArgumentError(AzulejoError, ValueError):
    """Something that makes no sense for this array."""


class SchemaError(AzulejoError, ValueError):
    """A field, dimension or type that the array's schema does not have."""


class ConflictError(AzulejoError):
    """Another program was faster: nothing was changed, and doing the same again makes sense."""


class CorruptError(AzulejoError):
    """Damaged files."""


class UnsupportedError(AzulejoError, NotImplementedError):
    """What this format version or this build cannot do."""


class EncryptionError(AzulejoError, PermissionError):
    """A missing, wrong or unneeded key."""


class BudgetError(AzulejoError, MemoryError):
    """It does not fit in the memory allowed."""


class StorageError(AzulejoError, OSError):
    """The disk or object store failed."""


class CancelledError(AzulejoError):
    """Somebody has cancelled it."""
