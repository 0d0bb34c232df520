"""Exact near-duplicate detection and deduplication, by SimHash fingerprints.

`dedup` keeps one row of each group of near-duplicates in a table or data frame; `dedup_file` does
the same from file to file. `Index` stores documents on disk and returns every one near a text, and
no other. `fingerprint` computes fingerprints, and `groups` finds those that are near; `evaluate`
measures settings on labelled pairs.

Tables are exchanged as Arrow data, without copying: those of pyarrow, pandas, Polars and datasets,
and any object with `__arrow_c_stream__`. `hamdex.polars` has expressions of Polars, and
`hamdex.spark` works on a cluster.
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
from ._fingerprint import fingerprint, groups
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
    "groups",
]
