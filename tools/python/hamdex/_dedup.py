"""Deduplication of tables and data frames."""

import warnings

from . import _data, _hamdex
from ._errors import DataWarning


class DedupResult:
    """The kept rows, the removed rows, and why they were removed."""

    __slots__ = ("_form", "_mask", "_kept", "_duplicates", "_clusters", "_rejects", "report")

    def __init__(self, form, answer):
        self._form = form
        self._mask, self._duplicates, self._clusters, self._rejects, self.report = answer
        self._kept = None

    @property
    def kept(self):
        """The kept rows, unchanged, in input order and of the input's type."""
        if self._kept is None:
            self._kept = self._form.chosen(self._mask)
        return self._kept

    @property
    def mask(self):
        """A byte for each input row: 1 to keep it."""
        return self._mask

    @property
    def duplicates(self):
        """A row for each removed near-duplicate, in input order.

        The columns are id, row, kept_id, kept_row, distance, similarity and cluster, and stored_id
        with `against`. Rows are numbered from 0. Rows that `unique_by` removed are only counted.
        """
        return self._form.like(self._duplicates)

    @property
    def clusters(self):
        """A row for each group, the largest first: cluster, size, kept_id, ids, diameter."""
        return self._form.like(self._clusters)

    @property
    def rejects(self):
        """Rows that `drop_empty` dropped: row, numbered from 0, and reason."""
        return self._form.like(self._rejects)

    def __repr__(self):
        counts = ", ".join(f"{name}={self.report[name]}" for name in ("documents", "kept", "removed"))
        return f"DedupResult({counts})"


def dedup(
    data,
    text=None,
    id=None,
    *,
    distance=None,
    verify=None,
    pipeline=None,
    keep="first",
    to=None,
    unique_by=None,
    source_field=None,
    drop_empty=False,
    bits=64,
    verify_chain=False,
    against=None,
    tmp=None,
    simplified=False,
    stop_words=None,
    dictionary=None,
    weights=None,
    idf=None,
    seed_file=None,
):
    """Removes near-duplicates from a table and keeps one row of each group.

    Keeps the same rows as `hamdex dedup` on the same data, with the same settings: those that you
    do not pass are chosen from a sample of the texts. `report["advice"]` contains the choice, its
    reason and warnings. Every row is kept, removed or, with `drop_empty`, rejected. Rows with
    nothing to compare are kept; `report["not_compared"]` counts them by reason.

    data: a table or data frame of pyarrow, pandas, Polars, datasets, Daft or Ray, any object with
        `__arrow_c_stream__`, or a list of texts. A streaming dataset is read once here and once by
        `kept`; frames of Daft and lazy frames of Polars are collected; of a Ray dataset only the
        columns that are compared.
    text: column of texts: string, large_string, string_view or a dictionary of them. A path such as
        "meta.body" selects a field of a struct; "title,body" joins columns by a line end. The texts
        of a list are joined too: "messages.content" is a whole conversation, also if messages are
        lists of parts, some of which have a field "text". Default: the first that exists of text,
        content, body, raw_content, document, markdown, article, 正文, 内容, 文本, 本文,
        messages.content and conversations.value, in capitals too.
    id: column of labels for `duplicates` and `clusters`, of any type; labels may repeat or be null.
        Default: a column named "id", also in capitals, else row numbers from 0.
    distance: maximum number of differing bits, up to a quarter of `bits`. The verification stays
        on.
    verify: verification of near pairs: "jaccard:T", "zhou:K,T", "edit:T", "contains:T", or "none"
        to compare only fingerprints. "contains:0.9" removes a text only if 90 % of its three-word
        phrases occur in the kept one, which is then the longest one for every `keep`. Default: the
        recommended one for the texts.
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    keep: which row of a group to keep: "first", "longest", "newest:COLUMN" or "best:COLUMN", the
        row with the largest value, such as a date or a score. Numbers, dates and timestamps are
        compared as such, also if they are texts; nulls come last. With "contains:T" it decides
        between equally long texts.
    to: rows to leave, or a share of them such as 0.8 or "80%": only the closest duplicates are
        removed. If the settings leave more rows, a `DataWarning` says so.
    unique_by: column whose values must be unique: of rows with equal values, only the one that
        `keep` prefers remains, before near-duplicates are searched. Nulls are never equal.
    source_field: column whose values are the sources in `report["sources"]`: documents, kept and
        removed, largest group and farthest pair of each, sorted by removed share. A source that
        loses most of its rows causes a `DataWarning`, which is also in `report["warnings"]`.
    drop_empty: drop rows with nothing to compare; `rejects` lists them.
    bits: width of the fingerprints: 32, 64 or 128.
    verify_chain: also remove rows linked to the kept one only through other duplicates.
    against: an `Index` or the path of one: rows near a stored document are removed too, and
        `duplicates` has a column `stored_id`.
    tmp: directory for temporary files, which contain the texts while a verification needs them.
    simplified, stop_words, dictionary, weights, idf, seed_file: as for `Pipeline`; idf="learn"
        learns the inverse document frequency from these texts.

    Raises `DataError` if no row has a text to compare, or no row has a value in `source_field`.
    Releases the GIL; Ctrl-C stops the call within a moment.

    >>> import hamdex
    >>> posts = ["severe flooding closes the main road into town this morning",
    ...          "just finished reading a wonderful book about the deep sea",
    ...          "severe flooding closes the main road into town this evening"]
    >>> hamdex.dedup(posts).kept == posts[:2]
    True
    >>> result = hamdex.dedup(["It will rain tomorrow", None, "it will rain tomorrow!"])
    >>> result.kept, result.report["not_compared"]
    (['It will rain tomorrow', None], {'null text': 1})
    >>> len(hamdex.dedup(posts + posts, to=5).kept)
    5
    >>> import pyarrow
    >>> hosts = pyarrow.table({"text": posts, "host": ["a.org", "a.org", "b.org"]})
    >>> sources = hamdex.dedup(hosts, source_field="host").report["sources"]
    >>> [(source["name"], source["documents"], source["kept"]) for source in sources]
    [('b.org', 1, 0), ('a.org', 2, 2)]
    """
    word, _, ranked_by = keep.partition(":")
    ranked_by = ranked_by if word in ("newest", "best") and ranked_by else None
    form, table, text, id, odd = _data.for_call(data, text, id, ranked_by, unique_by, source_field)
    wanted = {
        "text": text,
        "id": id,
        "odd": odd,
        "distance": distance,
        "verify": verify,
        "keep": keep,
        "to": None if to is None else str(to),
        "unique_by": unique_by,
        "source_field": source_field,
        "drop_empty": drop_empty,
        "bits": bits,
        "verify_chain": verify_chain,
        "tmp": tmp,
    }
    given = {
        "pipeline": pipeline,
        "tables": _data.tables(simplified, stop_words, dictionary, weights, idf, seed_file),
    }
    if against is None or isinstance(against, _hamdex.Index):
        result = DedupResult(form, _hamdex.dedup(table, wanted, against=against, **given))
    else:
        with _hamdex.Index.open(against, read_only=True, seed_file=seed_file) as index:
            result = DedupResult(form, _hamdex.dedup(table, wanted, against=index, **given))
    for warning in result.report["warnings"]:
        warnings.warn(warning, DataWarning, stacklevel=2)
    return result
