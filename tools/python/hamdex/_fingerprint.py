"""Fingerprints of texts, in the form in which the texts come."""

from . import _data, _hamdex


def fingerprint(texts, *, pipeline="auto", bits=64):
    """Returns the fingerprint of every text, None for a text in which nothing is a feature.

    texts: a list, a pyarrow Array or ChunkedArray, a pandas or Polars Series. The answer is of
        the same kind; as Arrow data, fingerprints of 128 bits are 16 bytes each, big-endian.
    pipeline: "auto", "post", "page", "code", a descriptor or a `Pipeline`.
    bits: width of the fingerprints: 32, 64 or 128.

    >>> import hamdex
    >>> a, b = hamdex.fingerprint(["the quick brown fox", "The quick, brown fox!"])
    >>> (a ^ b).bit_count()
    0
    """
    given = {"pipeline": pipeline, "bits": bits}
    if isinstance(texts, (list, tuple)):
        return _hamdex.fingerprint(list(texts), _data.TEXT, **given)
    column = _data.series(texts)
    return column.like(_hamdex.fingerprint(column.table(), _data.TEXT, **given))
