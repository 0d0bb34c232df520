"""Evaluation of settings against labelled pairs."""

from . import _data, _hamdex


def evaluate(
    data,
    pairs,
    text=_data.TEXT,
    id=None,
    *,
    distance=None,
    verify=None,
    pipeline=None,
    bits=64,
    similarity=None,
    min_similarity=None,
    ignore_above=None,
    tmp=None,
):
    """Measures precision, recall and F1 of settings on documents whose near-duplicates are known.

    data, text, id, pipeline, bits, tmp: as `dedup` takes them.
    pairs: the near-duplicates: a list of pairs of ids, or of triples with a similarity, or a
        table whose first two columns are ids. Every pair that is not in it counts as none.
    distance: the largest distance to measure; alone, without `verify`, distances alone count.
        Without it, a quarter of `bits`.
    verify: check to measure beside plain distances; without it, the one that `dedup` would take.
    similarity: column of the table of pairs that says how like they are.
    min_similarity: pairs count as near-duplicates from this similarity on.
    ignore_above: pairs below `min_similarity` and from this one on count as neither.

    Returns a dict: `curve` and `verified` are lists of figures by distance (distance,
    verification, found, correct, precision, recall, f1), `settings` is the figure of what `dedup`
    would take, `positives` counts the labelled pairs and `unknown` those that name no document.

    >>> import hamdex
    >>> posts = ["severe flooding closes the main road into town this morning",
    ...          "just finished reading a wonderful book about the deep sea",
    ...          "severe flooding closes the main road into town this evening"]
    >>> hamdex.evaluate(posts, [(0, 2)])["settings"]["f1"]
    1.0
    """
    form = _data.form(data)
    id = _data.id_column(form, id)
    table = _data.columns(form, text, id)
    return _hamdex.evaluate(
        table,
        _data.pairs(pairs, similarity),
        text=text,
        id=id,
        distance=distance,
        verify=verify,
        pipeline=pipeline,
        bits=bits,
        min_similarity=min_similarity,
        ignore_above=ignore_above,
        tmp=tmp,
    )
