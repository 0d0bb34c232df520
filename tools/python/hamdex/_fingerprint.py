"""Fingerprints of texts, in the form in which the texts come."""

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
    """Returns the fingerprint of every text, None for a text without features.

    texts: a list, a pyarrow Array or ChunkedArray, a pandas or Polars Series. The result is of
        the same kind; as Arrow data, fingerprints of 128 bits are 16 bytes each, big-endian.
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    bits: width of the fingerprints: 32, 64 or 128.
    simplified, stop_words, dictionary, weights, idf, seed_file: as `Pipeline` takes them, and
        idf="learn" to learn the rarity of words from these texts.

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
