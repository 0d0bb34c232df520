"""Deduplication of tables and data frames."""

import warnings

from . import _data, _hamdex
from ._errors import DataWarning


class DedupResult:
    """What was kept, what was removed and why."""

    __slots__ = ("_form", "_mask", "_kept", "_duplicates", "_clusters", "_rejects", "report")

    def __init__(self, form, answer):
        self._form = form
        self._mask, self._duplicates, self._clusters, self._rejects, self.report = answer
        self._kept = None

    @property
    def kept(self):
        """The rows to keep, unchanged, in their order and of the type that came in."""
        if self._kept is None:
            self._kept = self._form.chosen(self._mask)
        return self._kept

    @property
    def mask(self):
        """A byte for every row that came in: 1 for the rows to keep."""
        return self._mask

    @property
    def duplicates(self):
        """A row for every near-duplicate that was removed, in the order of the rows.

        The columns are id, row, kept_id, kept_row, distance, similarity and cluster; rows are
        counted from 0. With `against` there is stored_id as well. Rows that `unique_by` removed are
        only counted.
        """
        return self._form.like(self._duplicates)

    @property
    def clusters(self):
        """A row for every group, the largest first: cluster, size, kept_id, ids, diameter."""
        return self._form.like(self._clusters)

    @property
    def rejects(self):
        """Rows that `drop_empty` dropped: row, counted from 0, and reason."""
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
    """Removes near-duplicates from a table, keeping one row of every group.

    The rows are those that `hamdex dedup` keeps of the same data, and so are the settings: what
    is left open is chosen by a look at the texts (`report["advice"]` has the choice, its reason and
    warnings). Every row is kept or removed or, with `drop_empty`, rejected. Rows with nothing to
    compare are kept: `report["not_compared"]` counts them by reason.

    data: a table or data frame of pyarrow, pandas, Polars or datasets, anything with
        `__arrow_c_stream__`, or a list of texts.
    text: column of texts: string, large_string, string_view or a dictionary of them. A path such
        as "meta.body" leads into structs; "title,body" joins columns by a line end. Default: text,
        content, body, raw_content, document, markdown or article, the first that exists.
    id: column of labels for `duplicates` and `clusters`, of any type; they may repeat or be null.
        Without it a column named "id", or else the numbers of the rows from 0.
    distance: bits that near-duplicates may differ in, 0 to a quarter of `bits`. The verification
        stays on.
    verify: check of pairs within the distance: "jaccard:T", "zhou:K,T", "edit:T", "contains:T", or
        "none" to compare fingerprints alone. "contains:0.9" removes a text only if nine tenths of
        its phrases of three words occur in the kept one, which is the longer one whatever `keep`
        says. Default: the check that suits the texts.
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    keep: which row of a group: "first", "longest", "newest:COLUMN" or "best:COLUMN", the one with
        the largest value there, such as a date or a score. Numbers, dates and timestamps are
        compared as such, also if they are written as texts; nulls are below everything. With
        "contains:T" it decides between equally long texts.
    unique_by: column whose values must not repeat: of rows with equal values, only the one that
        `keep` prefers stays, before near-duplicates are looked for. Nulls are not equal.
    source_field: column by whose values `report["sources"]` counts rows: documents, kept and
        removed ones, the largest group and the farthest pair of each, those first that lost the
        largest share. A source that loses most of its rows is a `DataWarning`, and in
        `report["warnings"]`.
    drop_empty: drop rows with nothing to compare; `rejects` names them.
    bits: width of the fingerprints: 32, 64 or 128.
    verify_chain: remove also rows that only a chain of pairs connects with the kept row.
    against: an `Index` or the path of one: what is near a document of it is removed too, and
        `duplicates` has a column `stored_id`.
    tmp: directory for temporary files, which hold the texts while a verification needs them.
    simplified, stop_words, dictionary, weights, idf, seed_file: as `Pipeline` takes them, and
        idf="learn" to learn the rarity of words from these texts.

    Raises `DataError` if no row has a text to compare, or none a value in `source_field`. The GIL is free meanwhile; Ctrl-C stops the
    call within a moment.

    >>> import hamdex
    >>> posts = ["severe flooding closes the main road into town this morning",
    ...          "just finished reading a wonderful book about the deep sea",
    ...          "severe flooding closes the main road into town this evening"]
    >>> hamdex.dedup(posts).kept == posts[:2]
    True
    >>> result = hamdex.dedup(["It will rain tomorrow", None, "it will rain tomorrow!"])
    >>> result.kept, result.report["not_compared"]
    (['It will rain tomorrow', None], {'null text': 1})
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
