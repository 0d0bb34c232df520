"""Exact near-duplicate detection and deduplication, by SimHash fingerprints.

`dedup` keeps one row of every group of near-duplicates in a table or data frame, `dedup_file` does so
from file to file. `Index` holds documents on disk and finds every one near a text, and no other.
`fingerprint` makes fingerprints, `evaluate` measures settings on labelled pairs.

Tables come and go as Arrow data, without being copied: those of pyarrow, pandas, Polars and
datasets, and anything else with `__arrow_c_stream__`.
"""

from ._dedup import DedupResult, dedup
from ._errors import (
    DamageError,
    DataError,
    DataWarning,
    HamdexError,
    StorageError,
    UsageError,
)
from ._evaluate import evaluate
from ._files import dedup_file
from ._fingerprint import fingerprint
from ._hamdex import Index, Match, Pipeline, Snapshot, Table, __version__

__all__ = [
    "DamageError",
    "DataError",
    "DataWarning",
    "DedupResult",
    "HamdexError",
    "Index",
    "Match",
    "Pipeline",
    "Snapshot",
    "StorageError",
    "Table",
    "UsageError",
    "__version__",
    "dedup",
    "dedup_file",
    "evaluate",
    "fingerprint",
]
