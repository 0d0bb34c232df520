"""Fingerprints of texts, and groups of near ones, returned in the same kind of container."""

import array
import json
import sys
import tempfile
from pathlib import Path

from . import _data, _hamdex
from ._errors import UsageError


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


def groups(fingerprints, *, distance, tmp=None):
    """Returns the group of each fingerprint, None if no other one is near.

    Groups are numbered from 1, the largest first. Two fingerprints within the distance are in one
    group, and so are those that a chain of such pairs connects. Rows without a group have no
    near-duplicate. So many workers can compute fingerprints, one process finds the groups, and only
    texts of groups have to be compared: `dedup` of these rows removes what `dedup` of all rows
    removes, with the same settings.

    fingerprints: numbers of 32 or 64 bits, or None: a list, a pyarrow Array or ChunkedArray, a
        pandas or Polars Series. Returns the same kind.
    distance: maximum number of differing bits, up to 16.
    tmp: directory for temporary files, 8 bytes per fingerprint.

    >>> import hamdex
    >>> hamdex.groups([0b1111, 1 << 40, None, 0b1110, 0b1100], distance=1)
    [1, None, None, 1, 1]
    """
    column = None
    if not isinstance(fingerprints, (list, tuple)):
        column = _data.series(fingerprints, "fingerprints")
        fingerprints = column.values()
    rows = [row for row, value in enumerate(fingerprints) if value is not None]
    found = [None] * len(fingerprints)
    try:
        numbers = array.array("Q", (fingerprints[row] for row in rows))
    except (OverflowError, TypeError):
        raise UsageError("fingerprints are numbers of 32 or 64 bits, or None") from None
    if rows:
        with tempfile.TemporaryDirectory(prefix="hamdex-", dir=tmp) as place:
            source, results = Path(place, "prints.u64"), Path(place, "groups")
            if sys.byteorder == "big":
                numbers.byteswap()
            source.write_bytes(numbers)
            options = {"output": results, "distance": distance, "verify": "none", "tmp": place}
            words = [f"--{name}={value}" for name, value in options.items()]
            # Its warnings are about rows and files, which the caller does not have.
            _hamdex.dedup_file([*words, "--", str(source)])
            with open(results / "clusters.jsonl", encoding="utf-8") as lines:
                for line in lines:
                    group = json.loads(line)
                    for id in group["ids"]:
                        found[rows[id]] = group["cluster"]
    return found if column is None else column.numbers(found)
