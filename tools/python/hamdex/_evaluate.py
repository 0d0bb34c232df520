"""Evaluation of settings against labelled pairs."""

from . import _data, _hamdex


def evaluate(
    data,
    pairs,
    text=None,
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
    simplified=False,
    stop_words=None,
    dictionary=None,
    weights=None,
    idf=None,
    seed_file=None,
):
    """Measures precision, recall and F1 of settings on documents whose near-duplicates are known.

    data, text, id, pipeline, bits, tmp and the tables from simplified on: as `dedup` takes them. A
        second row of an id is left out, for a pair could not name it.
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
    _, table, text, id, odd = _data.for_call(data, text, id)
    return _hamdex.evaluate(
        table,
        _data.pairs(pairs, similarity),
        text=text,
        id=id,
        odd=odd,
        distance=distance,
        verify=verify,
        pipeline=pipeline,
        tables=_data.tables(simplified, stop_words, dictionary, weights, idf, seed_file),
        bits=bits,
        min_similarity=min_similarity,
        ignore_above=ignore_above,
        tmp=tmp,
    )
