"""Evaluation of settings with labelled pairs."""

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
    """Measures precision, recall and F1 of settings on documents with known near-duplicates.

    data, text, id, pipeline, bits, tmp and the tables from simplified on: as for `dedup`. A second
        row with the same id is skipped, since a pair could not identify it.
    pairs: the near-duplicates: a list of pairs of ids, or of triples with a similarity, or a table
        whose first two columns are ids. All other pairs are not near-duplicates.
    distance: the largest distance to measure; without `verify`, only distances are measured.
        Default: a quarter of `bits`.
    verify: verification to measure in addition to plain distances. Default: the one that `dedup`
        would choose.
    similarity: column of the table of pairs with the similarity.
    min_similarity: minimum similarity of near-duplicates.
    ignore_above: pairs below `min_similarity` with at least this similarity are ignored.

    Returns a dict. `curve` and `verified` are lists of figures by distance (distance, verification,
    found, correct, precision, recall, f1). `settings` is the figure of the settings that `dedup`
    would choose. `positives` is the number of labelled pairs, and `unknown` of those with an
    unknown id.

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
