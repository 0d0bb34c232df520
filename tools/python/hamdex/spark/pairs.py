"""Pairs: all pairs of documents within a distance."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import _hamdex
from . import _checks
from .fingerprints import documents
from .links import near

#: Rows of one group that one task compares; all pairs of the group are held in memory.
PAIRS_LIMIT = 1 << 14


def pairs(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    distance: int,
    *,
    fingerprint_column: str | None = None,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
    limit: int = PAIRS_LIMIT,
    counts: dict[str, int] | None = None,
) -> DataFrame:
    """Returns "id_a", "id_b" and "distance" for each near pair of documents, once.

    Returns exactly the pairs of `hamdex pairs --verify none`; `id_a` is the smaller id. Documents
    with equal fingerprints are pairs at distance 0, so a million copies of one text are half a
    trillion pairs. If groups suffice, `clusters` is cheap for any number of copies.

    The options are those of `clusters`.

        hamdex.spark.pairs(pages, "text", "url", 3).filter("distance > 0").show()
    """
    _checks.require_distance(distance, bits)
    made = documents(df, text_column, id_column, fingerprint_column, pipeline, bits)
    found = near(made.select("fingerprint").distinct(), "pairs", distance, bits, limit, counts)
    a = made.select(F.col("fingerprint").alias("a"), F.col("id").alias("one"))
    b = made.select(F.col("fingerprint").alias("b"), F.col("id").alias("other"))
    apart = found.join(a, "a").join(b, "b").select(
        F.least("one", "other").alias("id_a"), F.greatest("one", "other").alias("id_b"), "distance"
    )
    equal = a.join(b, F.col("a") == F.col("b")).filter("one < other")
    equal = equal.select(
        F.col("one").alias("id_a"), F.col("other").alias("id_b"), F.lit(0).alias("distance")
    )
    return apart.unionAll(equal)
