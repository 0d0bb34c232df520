import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

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

__version__: str

@type_check_only
class ArrowStream(Protocol):
    """Any object that provides Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

_Data = TypeVar("_Data")
_Column = TypeVar("_Column")
_Path = str | os.PathLike[str]
_Bits = Literal[32, 64, 128]
_Key = str | int | bytes
_Value = str | int

class HamdexError(Exception):
    """The base class of all exceptions of this package."""

class UsageError(HamdexError, ValueError):
    """The call is invalid; change the call."""

class DataError(HamdexError, ValueError):
    """The rows are unusable: none has a text, or too many are bad; change the data."""

class StorageError(HamdexError, OSError):
    """The disk, permissions or another process prevented it; try again later."""

class DataWarning(UserWarning):
    """The rows look unusual: a very large group, a source that loses most rows, or a grown file."""

class DamageError(HamdexError):
    """Stored bytes are not the bytes that were written; restore or rebuild."""

@type_check_only
class Settings(TypedDict):
    bits: int
    distance: int
    verification: str
    verified_with_kept: bool
    pipeline: str
    keep: str

@type_check_only
class TableSettings(Settings):
    text: str
    to: int | None
    unique_by: str | None

@type_check_only
class Advice(TypedDict):
    kind: str
    pipeline: str
    distance: int
    verification: str
    reason: str
    texts: int
    short_share: float
    median_length: int
    han_share: float
    html_share: float
    code_share: float
    median_features: int
    few_features_share: float
    warnings: list[str]

@type_check_only
class SourceCounts(TypedDict):
    name: str
    documents: int
    kept: int
    removed: int
    removed_share: float
    largest_group: dict[str, int] | None
    farthest: dict[str, Any] | None

@type_check_only
class Report(TypedDict):
    rows: int
    documents: int
    kept: int
    removed: int
    removed_unique_by: int
    removed_against_index: int
    not_compared: dict[str, int]
    clusters: int
    rejects: int
    seconds: float
    settings: TableSettings
    advice: Advice | None
    sources: list[SourceCounts]
    warnings: list[str]

class DedupResult(Generic[_Data]):
    """The kept rows, the removed rows, and why they were removed."""

    report: Report
    def __init__(self, form: Any, answer: Any) -> None: ...
    @property
    def kept(self) -> _Data:
        """The kept rows, unchanged, in input order and of the input's type."""
    @property
    def mask(self) -> bytes:
        """A byte for each input row: 1 to keep it."""
    @property
    def duplicates(self) -> Any:
        """A row for each removed near-duplicate, in input order."""
    @property
    def clusters(self) -> Any:
        """A row for each group, the largest first: cluster, size, kept_id, ids, diameter."""
    @property
    def rejects(self) -> Any:
        """Rows that `drop_empty` dropped: row, numbered from 0, and reason."""

def dedup(
    data: _Data,
    text: str | None = None,
    id: str | None = None,
    *,
    distance: int | None = None,
    verify: str | None = None,
    pipeline: str | Pipeline | None = None,
    keep: str = "first",
    to: int | float | str | None = None,
    unique_by: str | None = None,
    source_field: str | None = None,
    drop_empty: bool = False,
    bits: _Bits = 64,
    verify_chain: bool = False,
    against: Index | _Path | None = None,
    tmp: _Path | None = None,
    simplified: bool = False,
    stop_words: _Path | None = None,
    dictionary: _Path | None = None,
    weights: _Path | None = None,
    idf: _Path | None = None,
    seed_file: _Path | None = None,
) -> DedupResult[_Data]:
    """Removes near-duplicates from a table and keeps one row of each group."""

@type_check_only
class FileSettings(Settings):
    inputs: list[str]
    against: str | None

@type_check_only
class Group(TypedDict):
    cluster: int
    size: int
    kept_id: str | int

@type_check_only
class FileReport(TypedDict):
    documents: int
    kept: int
    removed: int
    removed_against_index: int
    clusters: int
    rejects: int
    skipped_binary: int
    skipped_status: int
    skipped_type: int
    seconds: float
    settings: FileSettings
    advice: Advice | None
    largest: list[Group]
    sources: list[SourceCounts]
    warnings: list[str]

def dedup_file(
    inputs: _Path | Iterable[_Path],
    output: _Path,
    text: str | None = None,
    id: str | None = None,
    *,
    report: _Path | None = None,
    distance: int | None = None,
    verify: str | None = None,
    pipeline: str | Pipeline | None = None,
    keep: str = "first",
    unique_by: str | None = None,
    source_field: str | None = None,
    drop_empty: bool = False,
    bits: _Bits | None = None,
    verify_chain: bool = False,
    against: Index | _Path | None = None,
    format: Literal["jsonl", "parquet", "csv", "tsv"] | None = None,
    rejects: _Path | None = None,
    max_bad: int | str | None = None,
    encoding: str | None = None,
    tmp: _Path | None = None,
    overwrite: bool = False,
    input_format: str | None = None,
    as_documents: bool = False,
    shards: bool = False,
    sample: int | None = None,
    to: int | float | str | None = None,
    unit: str | None = None,
    boilerplate: int | None = None,
    min_left: float | None = None,
    simplified: bool = False,
    stop_words: _Path | None = None,
    dictionary: _Path | None = None,
    weights: _Path | None = None,
    idf: _Path | None = None,
    seed_file: _Path | None = None,
) -> FileReport:
    """Removes near-duplicates from files, in memory that does not grow with the texts."""

@type_check_only
class Figure(TypedDict):
    distance: int
    verification: str
    found: int
    correct: int
    precision: float | None
    recall: float | None
    f1: float | None

@type_check_only
class Evaluation(TypedDict):
    documents: int
    rejects: int
    positives: int
    unknown: int
    curve: list[Figure]
    verified: list[Figure] | None
    settings: Figure | None
    pipeline: str
    advice: Advice | None

def evaluate(
    data: object,
    pairs: object,
    text: str | None = None,
    id: str | None = None,
    *,
    distance: int | None = None,
    verify: str | None = None,
    pipeline: str | Pipeline | None = None,
    bits: _Bits = 64,
    similarity: str | None = None,
    min_similarity: float | None = None,
    ignore_above: float | None = None,
    tmp: _Path | None = None,
    simplified: bool = False,
    stop_words: _Path | None = None,
    dictionary: _Path | None = None,
    weights: _Path | None = None,
    idf: _Path | None = None,
    seed_file: _Path | None = None,
) -> Evaluation:
    """Measures precision, recall and F1 of settings on documents with known near-duplicates."""

@overload
def fingerprint(
    texts: list[str] | list[str | None] | tuple[str | None, ...],
    *,
    pipeline: str | Pipeline = "auto",
    bits: _Bits = 64,
    simplified: bool = False,
    stop_words: _Path | None = None,
    dictionary: _Path | None = None,
    weights: _Path | None = None,
    idf: _Path | None = None,
    seed_file: _Path | None = None,
) -> list[int | None]: ...
@overload
def fingerprint(
    texts: _Column,
    *,
    pipeline: str | Pipeline = "auto",
    bits: _Bits = 64,
    simplified: bool = False,
    stop_words: _Path | None = None,
    dictionary: _Path | None = None,
    weights: _Path | None = None,
    idf: _Path | None = None,
    seed_file: _Path | None = None,
) -> _Column:
    """Returns the fingerprint of each text, None for a text without features."""

@overload
def groups(
    fingerprints: list[int] | list[int | None] | tuple[int | None, ...],
    *,
    distance: int,
    tmp: _Path | None = None,
) -> list[int | None]: ...
@overload
def groups(fingerprints: _Column, *, distance: int, tmp: _Path | None = None) -> _Column:
    """Returns the group of each fingerprint, None if no other one is near."""

@final
class Table:
    """Arrow data with `__arrow_c_stream__`, readable by any Arrow library."""

    def __new__(cls, data: ArrowStream) -> Table:
        """Reads an object that provides Arrow data."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def filter(self, mask: bytes) -> Table:
        """Returns the rows for which a byte of `mask` is not 0."""
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...

@final
class Pipeline:
    """The steps from a text to its fingerprint."""

    def __new__(
        cls,
        name: str = "auto",
        *,
        segment: str | None = None,
        ngram: int | None = None,
        weights: _Path | None = None,
        clean: str | None = None,
        sketch: str | None = None,
        html: bool = False,
        simplified: bool = False,
        stop_words: _Path | None = None,
        dictionary: _Path | None = None,
        idf: _Path | None = None,
        seed_file: _Path | None = None,
    ) -> Pipeline: ...
    @property
    def descriptor(self) -> str:
        """The text that names every step and version of the pipeline."""
    def fingerprint(self, text: str, *, bits: _Bits = 64) -> int | None:
        """Returns the fingerprint of a text; `None` if the text has no features."""
    def features(self, text: str) -> list[tuple[str, int]]:
        """Returns the features of a text and their weights."""
    def cleaned(self, text: str) -> str:
        """Returns the text as `edit:T` compares it."""

@final
class Match:
    """A document that a search found."""

    @property
    def key(self) -> _Key: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def distance(self) -> int: ...
    @property
    def similarity(self) -> float | None: ...

@type_check_only
class _Searched:
    def search(
        self,
        value: _Value,
        *,
        distance: int | None = None,
        limit: int | None = None,
        verify: str | None = None,
    ) -> list[Match]:
        """Returns the documents near a text or a fingerprint, nearest first."""
    def search_batch(
        self,
        values: Iterable[_Value],
        *,
        distance: int | None = None,
        limit: int | None = None,
        verify: str | None = None,
    ) -> list[list[Match]]:
        """Answers many queries together, on all threads."""
    def get(self, key: _Key) -> int | None:
        """Returns the fingerprint of a document; `None` if it is not stored."""
    def __contains__(self, key: _Key, /) -> bool: ...
    def __len__(self) -> int: ...

@final
class Snapshot(_Searched):
    """One state of an index, which later writes do not change."""

@type_check_only
class Built(TypedDict):
    rows: int
    documents: int
    distinct: int
    replaced: int
    repeated: int
    not_compared: dict[str, int]
    rejects: int
    bytes: int

@final
class Index(_Searched):
    """A durable index of documents, with the same files as that of the command line."""

    @staticmethod
    def create(
        path: _Path,
        *,
        pipeline: str | Pipeline | None = None,
        bits: _Bits = 64,
        distance: int | None = None,
        plan: str | None = None,
        keep_features: bool = False,
        memory: int | None = None,
        resident: int | None = None,
        simplified: bool = False,
        stop_words: _Path | None = None,
        dictionary: _Path | None = None,
        weights: _Path | None = None,
        idf: _Path | None = None,
        seed_file: _Path | None = None,
    ) -> Index:
        """Creates an index in a directory that does not exist or is empty."""
    @staticmethod
    def open(
        path: _Path,
        *,
        read_only: bool = False,
        memory: int | None = None,
        resident: int | None = None,
        seed_file: _Path | None = None,
    ) -> Index:
        """Opens an existing index."""
    @staticmethod
    def build(
        path: _Path,
        data: object,
        text: str | None = None,
        id: str | None = None,
        *,
        pipeline: str | Pipeline | None = None,
        bits: _Bits = 64,
        distance: int | None = None,
        plan: str | None = None,
        keep_features: bool = False,
        memory: int | None = None,
        tmp: _Path | None = None,
        on_repeat: Literal["first", "last"] | None = None,
        max_bad: int | str | None = None,
        simplified: bool = False,
        stop_words: _Path | None = None,
        dictionary: _Path | None = None,
        weights: _Path | None = None,
        idf: _Path | None = None,
        seed_file: _Path | None = None,
    ) -> Index:
        """Builds an index offline from a table, or merges the table into an existing index."""
    @overload
    def insert(self, keys: _Key, values: _Value, *, synced: bool = True) -> int: ...
    @overload
    def insert(
        self, keys: Sequence[_Key], values: Iterable[_Value], *, synced: bool = True
    ) -> int:
        """Inserts one or many documents; returns how many replaced a stored one."""
    @overload
    def insert_if_new(  # type: ignore[overload-overlap]  # a str is a sequence too
        self,
        keys: _Key,
        values: _Value,
        *,
        distance: int | None = None,
        verify: str | None = None,
        synced: bool = True,
    ) -> Match | None: ...
    @overload
    def insert_if_new(
        self,
        keys: Sequence[_Key],
        values: Iterable[_Value],
        *,
        distance: int | None = None,
        verify: str | None = None,
        synced: bool = True,
    ) -> list[Match | None]:
        """Inserts documents without near-duplicates; returns what rejected each other document."""
    def remove(self, keys: _Key | Iterable[_Key], *, synced: bool = True) -> int:
        """Removes one or many documents; returns how many were stored."""
    def snapshot(self) -> Snapshot:
        """Returns a snapshot of the index, which never changes."""
    def check(self) -> list[str]:
        """Checks the index for damage; returns a description of each problem."""
    def save_resident(self, budget: int) -> int:
        """Saves all fingerprints for processes that open the index with `resident`."""
    def flush(self) -> None:
        """Makes all writes survive a power loss."""
    def close(self) -> None:
        """Closes the files once all snapshots are freed."""
    def __enter__(self) -> Index: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    @property
    def bits(self) -> int: ...
    @property
    def distance(self) -> int: ...
    @property
    def plan(self) -> str: ...
    @property
    def keeps_features(self) -> bool: ...
    @property
    def pipeline(self) -> str | None: ...
    @property
    def built(self) -> Built | None:
        """Counts of `build`; `None` for an index that was opened or created."""
