"""Exceptions, by whose fault it is."""

__all__ = ["DamageError", "HamdexError", "StorageError", "UsageError"]


class HamdexError(Exception):
    """Anything that this package raises of its own."""


class UsageError(HamdexError, ValueError):
    """The call asked for something that cannot be; change the call."""


class StorageError(HamdexError, OSError):
    """Disk, permissions or another process stood in the way; try again later."""


class DamageError(HamdexError):
    """Stored bytes are not what was written; restore or rebuild."""


for _class in (HamdexError, UsageError, StorageError, DamageError):
    _class.__module__ = "hamdex"
del _class
