"""Fingerprints of texts, returned in the same kind of container."""

from . import _data, _hamdex


def fingerprint(
    texts,
    *,
    pipeline="auto",
    bits=64,
    simplified=False,
    stop_words=None,
    dictionary=None,
    weights=None,
    idf=None,
    seed_file=None,
):
    """Returns the fingerprint of each text, None for a text without features.

    texts: a list, a pyarrow Array or ChunkedArray, a pandas or Polars Series. Returns the same
        kind; in Arrow data, 128-bit fingerprints are 16 bytes each, big-endian.
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    bits: width of the fingerprints: 32, 64 or 128.
    simplified, stop_words, dictionary, weights, idf, seed_file: as for `Pipeline`; idf="learn"
        learns the inverse document frequency from these texts.

    >>> import hamdex
    >>> a, b = hamdex.fingerprint(["the quick brown fox", "The quick, brown fox!"])
    >>> (a ^ b).bit_count()
    0
    """
    tables = _data.tables(simplified, stop_words, dictionary, weights, idf, seed_file)
    given = {"pipeline": pipeline, "bits": bits, "tables": tables}
    if isinstance(texts, (list, tuple)):
        return _hamdex.fingerprint(list(texts), _data.TEXT, **given)
    column = _data.series(texts)
    return column.like(_hamdex.fingerprint(column.table(), _data.TEXT, **given))
