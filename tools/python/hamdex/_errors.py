"""Exceptions, by whose fault it is."""

__all__ = ["DamageError", "DataError", "DataWarning", "HamdexError", "StorageError", "UsageError"]


class HamdexError(Exception):
    """The base of all exceptions of this package."""


class UsageError(HamdexError, ValueError):
    """The call asked for something that cannot be; change the call."""


class DataError(HamdexError, ValueError):
    """The rows cannot be used: none has a text, or too many are bad; change the data."""


class StorageError(HamdexError, OSError):
    """Disk, permissions or another process stood in the way; try again later."""


class DamageError(HamdexError):
    """Stored bytes are not what was written; restore or rebuild."""


class DataWarning(UserWarning):
    """The rows look odd: one group takes many of them, a source loses most, or a file grew."""


for _class in (HamdexError, UsageError, DataError, StorageError, DamageError, DataWarning):
    _class.__module__ = "hamdex"
del _class
