"""Search: compares many queries with many documents."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import _hamdex
from . import _checks
from .fingerprints import documents
from .links import near
from .pairs import PAIRS_LIMIT


def search(
    df: DataFrame,
    queries: DataFrame,
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
    """Returns "query", "id" and "distance" for each document within the distance of a query.

    Returns exactly the matches of `hamdex query`, each once, with exact distances. For repeated
    searches with few queries an index is faster; see `build_index`.

    df, queries: frames with the same column names; `id_column` of `queries` identifies the query.

    The other options are those of `clusters`.

        hamdex.spark.search(pages, new_pages, "text", "url", 3).groupBy("query").count().show()
    """
    _checks.require_distance(distance, bits)
    stored = documents(df, text_column, id_column, fingerprint_column, pipeline, bits)
    wanted = documents(queries, text_column, id_column, fingerprint_column, pipeline, bits)
    first = stored.select("fingerprint").distinct().withColumn("second", F.lit(False))
    second = wanted.select("fingerprint").distinct().withColumn("second", F.lit(True))
    found = near(first.unionAll(second), "across", distance, bits, limit, counts)
    stored = stored.select(F.col("fingerprint").alias("a"), "id")
    wanted = wanted.select(F.col("fingerprint").alias("b"), F.col("id").alias("query"))
    return found.join(stored, "a").join(wanted, "b").select("query", "id", "distance")
