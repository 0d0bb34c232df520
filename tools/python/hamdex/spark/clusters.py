"""Clusters: connected groups of near documents."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .. import _hamdex
from . import _checks
from .components import components
from .fingerprints import documents
from .links import LINKS_LIMIT, links


def clusters(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    distance: int,
    *,
    fingerprint_column: str | None = None,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
    limit: int = LINKS_LIMIT,
    counts: dict[str, int] | None = None,
) -> DataFrame:
    """Returns "id", "cluster" and "size" for each document that has a near-duplicate.

    Returns exactly the groups of `hamdex clusters -k DISTANCE --verify none` with the same
    pipeline. The name of a cluster is its smallest id. Documents without near-duplicates are
    omitted.

    df: a frame of documents. Ids must be of an ordered type.
    text_column: texts; None if `fingerprint_column` contains fingerprints.
    distance: maximum number of differing bits, up to a quarter of `bits`.
    pipeline, bits: how fingerprints are computed, as for `fingerprints`.
    limit, counts: as for `links`.

        near = hamdex.spark.clusters(pages, "text", "url", 3, pipeline="page")
        near.groupBy("cluster").count().orderBy("count", ascending=False).show()
    """
    _checks.require_distance(distance, bits)
    made = documents(df, text_column, id_column, fingerprint_column, pipeline, bits)
    grouped = members(made, distance, bits, limit, counts)
    # Windows shuffle the rows once; a join with the aggregates shuffles them once more.
    cluster = Window.partitionBy("component")
    return grouped.select(
        "id",
        F.min("id").over(cluster).alias("cluster"),
        F.count(F.lit(1)).over(cluster).alias("size"),
    )


def members(
    documents: DataFrame, distance: int, bits: int, limit: int, counts: dict[str, int] | None
) -> DataFrame:
    """Returns the documents of clusters, checkpointed: all their columns, and "component".

    A component is one of the fingerprints of its cluster.
    """
    repeated = documents.groupBy("fingerprint").count().filter("count > 1").select("fingerprint")
    found = components(links(documents, distance, bits=bits, limit=limit, counts=counts))
    found = found.withColumnRenamed("node", "fingerprint")
    # A fingerprint that is in neither frame has no near-duplicate.
    named = repeated.join(found, "fingerprint", "full_outer").select(
        "fingerprint", F.coalesce("component", "fingerprint").alias("component")
    )
    return _checks.checkpointed(documents.join(named, "fingerprint"))
