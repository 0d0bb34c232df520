"""Exceptions, by who has to act."""

__all__ = ["DamageError", "DataError", "DataWarning", "HamdexError", "StorageError", "UsageError"]


class HamdexError(Exception):
    """The base class of all exceptions of this package."""


class UsageError(HamdexError, ValueError):
    """The call is invalid; change the call."""


class DataError(HamdexError, ValueError):
    """The rows are unusable: none has a text, or too many are bad; change the data."""


class StorageError(HamdexError, OSError):
    """The disk, permissions or another process prevented it; try again later."""


class DamageError(HamdexError):
    """Stored bytes are not the bytes that were written; restore or rebuild."""


class DataWarning(UserWarning):
    """The rows look unusual: a very large group, a source that loses most rows, or a grown file."""


for _class in (HamdexError, UsageError, DataError, StorageError, DamageError, DataWarning):
    _class.__module__ = "hamdex"
del _class
