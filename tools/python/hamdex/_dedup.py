"""Deduplication of tables and data frames."""

from . import _data, _hamdex


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
        """A row for every document removed: id, kept_id, distance, similarity, cluster."""
        return self._form.like(self._duplicates)

    @property
    def clusters(self):
        """A row for every group, the largest first: cluster, size, kept_id, ids, diameter."""
        return self._form.like(self._clusters)

    @property
    def rejects(self):
        """Rows that are no documents and are not kept: row, counted from 0, and reason."""
        return self._form.like(self._rejects)

    def __repr__(self):
        counts = ", ".join(f"{name}={self.report[name]}" for name in ("documents", "kept", "removed"))
        return f"DedupResult({counts})"


def dedup(
    data,
    text=_data.TEXT,
    id=None,
    *,
    distance=None,
    verify=None,
    pipeline=None,
    keep="first",
    bits=64,
    verify_chain=False,
    against=None,
    tmp=None,
):
    """Removes near-duplicates from a table, keeping one row of every group.

    The rows are those that `hamdex dedup` keeps of the same data, and so are the settings: what
    is left open is chosen by a look at the texts (`report["advice"]` says what and why), and
    `distance` without `verify` means Hamming distance and nothing else.

    data: a table or data frame of pyarrow, pandas, Polars or datasets, anything with
        `__arrow_c_stream__`, or a list of texts.
    text: column of texts: string, large_string, string_view or a dictionary of them. Rows
        without text are not kept; `rejects` names them.
    id: column of ids, strings or integers. Without it a column named "id", or else the rows'
        numbers from 0. A second row of an id is not kept either.
    distance: bits that near-duplicates may differ in, 0 to a quarter of `bits`.
    verify: check of pairs within the distance: "none", "jaccard:T", "zhou:K,T" or "edit:T".
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    keep: which row of a group: "first", "longest" or "newest:COLUMN", the one with the largest
        value there.
    bits: width of the fingerprints: 32, 64 or 128.
    verify_chain: remove also what only a chain of pairs connects with the kept row.
    against: an `Index` or the path of one: what is near a document of it is removed too, and
        `duplicates` has a column `stored_id`.
    tmp: directory for temporary files, which hold the texts while a verification needs them.

    The GIL is free meanwhile; Ctrl-C ends the call within a moment.

    >>> import hamdex
    >>> posts = ["severe flooding closes the main road into town this morning",
    ...          "just finished reading a wonderful book about the deep sea",
    ...          "severe flooding closes the main road into town this evening"]
    >>> hamdex.dedup(posts).kept == posts[:2]
    True
    """
    form = _data.form(data)
    id = _data.id_column(form, id)
    newest = keep.removeprefix("newest:") if keep.startswith("newest:") else None
    table = _data.columns(form, text, id, newest or None)
    given = {
        "text": text,
        "id": id,
        "distance": distance,
        "verify": verify,
        "pipeline": pipeline,
        "keep": keep,
        "bits": bits,
        "verify_chain": verify_chain,
        "tmp": tmp,
    }
    if against is None or isinstance(against, _hamdex.Index):
        return DedupResult(form, _hamdex.dedup(table, against=against, **given))
    with _hamdex.Index.open(against, read_only=True) as index:
        return DedupResult(form, _hamdex.dedup(table, against=index, **given))
