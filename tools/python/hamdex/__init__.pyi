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
]

__version__: str

@type_check_only
class ArrowStream(Protocol):
    """Anything that offers Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

_Data = TypeVar("_Data")
_Column = TypeVar("_Column")
_Path = str | os.PathLike[str]
_Bits = Literal[32, 64, 128]
_Key = str | int | bytes
_Value = str | int

class HamdexError(Exception):
    """The base of all exceptions of this package."""

class UsageError(HamdexError, ValueError):
    """The call asked for something that cannot be; change the call."""

class DataError(HamdexError, ValueError):
    """The rows cannot be used: none has a text, or too many are bad; change the data."""

class StorageError(HamdexError, OSError):
    """Disk, permissions or another process stood in the way; try again later."""

class DataWarning(UserWarning):
    """The rows look odd: one group takes many of them, a source loses most, or a file grew."""

class DamageError(HamdexError):
    """Stored bytes are not what was written; restore or rebuild."""

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
    """What was kept, what was removed and why."""

    report: Report
    def __init__(self, form: Any, answer: Any) -> None: ...
    @property
    def kept(self) -> _Data:
        """The rows to keep, unchanged, in their order and of the type that came in."""
    @property
    def mask(self) -> bytes:
        """A byte for every row that came in: 1 for the rows to keep."""
    @property
    def duplicates(self) -> Any:
        """A row for every near-duplicate that was removed, in the order of the rows."""
    @property
    def clusters(self) -> Any:
        """A row for every group, the largest first: cluster, size, kept_id, ids, diameter."""
    @property
    def rejects(self) -> Any:
        """Rows that `drop_empty` dropped: row, counted from 0, and reason."""

def dedup(
    data: _Data,
    text: str | None = None,
    id: str | None = None,
    *,
    distance: int | None = None,
    verify: str | None = None,
    pipeline: str | Pipeline | None = None,
    keep: str = "first",
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
    """Removes near-duplicates from a table, keeping one row of every group."""

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
    id: str = "id",
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
    """Measures precision, recall and F1 of settings on documents whose near-duplicates are known."""

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
    """Returns the fingerprint of every text, None for a text without features."""

@final
class Table:
    """Arrow data with `__arrow_c_stream__`, for whatever library reads it."""

    def __new__(cls, data: ArrowStream) -> Table:
        """Reads all of an object that offers Arrow data."""
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
    """How a text becomes a fingerprint."""

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
        """The line that names all the fingerprints depend on."""
    def fingerprint(self, text: str, *, bits: _Bits = 64) -> int | None:
        """Returns the fingerprint of a text; `None` when nothing in it is a feature."""
    def features(self, text: str) -> list[tuple[str, int]]:
        """Returns the features of a text and their weights."""
    def cleaned(self, text: str) -> str:
        """Returns a text as `edit:T` compares it."""

@final
class Match:
    """A document that a search has found."""

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
        """Finds documents near a text or a fingerprint, the nearest first."""
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
        """Returns the fingerprint of a document; `None` when it is not stored."""
    def __contains__(self, key: _Key, /) -> bool: ...
    def __len__(self) -> int: ...

@final
class Snapshot(_Searched):
    """One state of an index, which later changes do not touch."""

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
    """A durable index of documents by fingerprint."""

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
        """Makes an index in an empty or absent directory."""
    @staticmethod
    def open(
        path: _Path,
        *,
        read_only: bool = False,
        memory: int | None = None,
        resident: int | None = None,
        seed_file: _Path | None = None,
    ) -> Index:
        """Opens an index that is there."""
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
        """Builds an index offline from a table, or merges the table into one."""
    @overload
    def insert(self, keys: _Key, values: _Value, *, synced: bool = True) -> int: ...
    @overload
    def insert(
        self, keys: Sequence[_Key], values: Iterable[_Value], *, synced: bool = True
    ) -> int:
        """Stores a document, or many; returns how many took the place of another one."""
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
        """Stores what has no near-duplicate yet; returns what kept each of the others out."""
    def remove(self, keys: _Key | Iterable[_Key], *, synced: bool = True) -> int:
        """Removes a document, or many; returns how many were stored."""
    def snapshot(self) -> Snapshot:
        """Returns one state of the index that stays as it is."""
    def check(self) -> list[str]:
        """Compares all that is stored with itself; returns what does not fit together."""
    def flush(self) -> None:
        """Makes all that was written survive a loss of power."""
    def close(self) -> None:
        """Lets go of the files, once snapshots are gone too."""
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
        """What `build` has done; `None` for an index that was opened or created."""
