"""Deduplication: of every group of near-duplicates one row is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, StructField, StructType

from .. import _dedup, _hamdex
from .._errors import UsageError
from . import _batches, _checks
from .clusters import members
from .fingerprints import _descriptor, documents
from .links import LINKS_LIMIT


@dataclass(frozen=True)
class Dedup:
    """What was kept, what was removed and why."""

    #: The rows to keep, with all their columns.
    kept: DataFrame
    #: A row for every document removed: id, kept_id, distance, and similarity where it was
    #: verified.
    duplicates: DataFrame
    #: A row for every document: id and fingerprint.
    documents: DataFrame


def dedup(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    distance: int,
    *,
    verify: str = "none",
    keep: str = "first",
    fingerprint_column: str | None = None,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
    limit: int = LINKS_LIMIT,
    counts: dict[str, int] | None = None,
) -> Dedup:
    """Removes near-duplicates from a frame, keeping one row of every group.

    Row for row these are the decisions of `hamdex dedup -k DISTANCE --verify VERIFY` over the same
    documents in the order of their ids: a frame has no order of its own, so the first row of a
    group is the one with the smallest id. Rows without an id or text, or with a text in which
    nothing is a feature, are not kept.

    df: a frame of documents. Ids have to be unique and of a type that has an order.
    text_column: texts; None where `fingerprint_column` names fingerprints instead.
    distance: bits that near-duplicates differ in at most, 0 to a quarter of `bits`.
    verify: check of pairs within the distance: "none", "jaccard:T", "zhou:K,T" or "edit:T". The
        documents that chains of pairs connect are then decided on by one task together, so the
        largest such group has to fit its memory.
    keep: which row of a group: "first", "longest" or "newest:COLUMN", the one with the largest
        value there; of equals the one with the smallest id.
    pipeline, bits: how texts become fingerprints, as in `fingerprints`.
    limit, counts: as in `links`.

        result = hamdex.spark.dedup(pages, "text", "url", 12, verify="edit:0.88", pipeline="page")
        result.kept.write.parquet("hdfs:///pages-kept")
    """
    _checks.require_distance(distance, bits)
    rank = _rank(df, keep, text_column)
    if verify != "none" and text_column is None:
        raise UsageError(f'verify="{verify}" compares texts: name a text_column')
    made = documents(df, text_column, id_column, fingerprint_column, pipeline, bits)
    grouped = members(made, distance, bits, limit, counts)
    if rank is not None:
        ranks = df.select(F.col(f"`{id_column}`").alias("id"), rank.alias("rank"))
        grouped = grouped.join(ranks, "id")
    if verify == "none":
        duplicates = _by_chains(grouped, bits, rank is not None)
    else:
        texts = df.select(F.col(f"`{id_column}`").alias("id"), F.col(f"`{text_column}`").alias("text"))
        settings = {
            "distance": distance,
            "verify": verify,
            "pipeline": _descriptor(pipeline),
            "bits": bits,
        }
        duplicates = _verified(grouped.join(texts, "id"), settings, rank is not None)
    duplicates = _checks.checkpointed(duplicates)
    kept = made.join(duplicates.select("id"), "id", "left_anti").select(
        F.col("id").alias(id_column)
    )
    return Dedup(df.join(kept, id_column, "left_semi"), duplicates, made)


def _rank(df: DataFrame, keep: str, text_column: str | None) -> Column | None:
    """What rows of a group are kept by, the largest first; None for the smallest id alone."""
    if keep == "first":
        return None
    if keep == "longest":
        if text_column is None:
            raise UsageError('keep="longest" needs a text_column')
        return F.length(F.col(f"`{text_column}`"))
    newest = keep.removeprefix("newest:")
    if newest == keep or not newest:
        raise UsageError(f'keep is "{keep}"; supported are first, longest and newest:COLUMN')
    _checks.require_columns(df, newest)
    return F.col(f"`{newest}`")


def _by_chains(grouped: DataFrame, bits: int, ranked: bool) -> DataFrame:
    """Every other member of a cluster is a duplicate of the one that is kept."""
    if ranked:
        order = Window.partitionBy("cluster").orderBy(F.col("rank").desc_nulls_last(), "id")
        best = grouped.withColumn("place", F.row_number().over(order)).filter("place = 1")
    else:
        best = grouped.filter("id = cluster")
    best = best.select(
        "cluster", F.col("id").alias("kept_id"), F.col("fingerprint").alias("kept_fingerprint")
    )
    others = grouped.join(best, "cluster").filter("id <> kept_id")
    others = others.select("id", "kept_id", "fingerprint", "kept_fingerprint")
    columns = ("fingerprint", "kept_fingerprint")
    measured = _batches.with_column(
        others, "distance", IntegerType(), lambda: _batches.distances(*columns, bits)
    )
    return measured.select("id", "kept_id", "distance")


def _verified(grouped: DataFrame, settings: dict, ranked: bool) -> DataFrame:
    """Each cluster is decided on by the engine of one machine.

    What passes the verification is within the distance, so no link leads out of a cluster.
    """
    kind = grouped.schema["id"].dataType
    schema = StructType(
        [
            StructField("id", kind),
            StructField("kept_id", kind),
            StructField("distance", IntegerType()),
            StructField("similarity", DoubleType()),
        ]
    )
    columns = ["cluster", "id", "text", *(["rank"] if ranked else [])]
    return grouped.select(*columns).groupBy("cluster").applyInArrow(_decide(settings, ranked), schema)


def _decide(settings: dict, ranked: bool) -> Callable[[pa.Table], pa.Table]:
    def decide(cluster: pa.Table) -> pa.Table:
        cluster = cluster.sort_by("id")
        ids = cluster.column("id")
        asked = cluster.select(["text", "rank"] if ranked else ["text"])
        keep = "newest:rank" if ranked else "first"
        found = _dedup.dedup(asked, keep=keep, **settings).duplicates
        return pa.table(
            {
                "id": ids.take(found.column("id")),
                "kept_id": ids.take(found.column("kept_id")),
                "distance": found.column("distance").cast(pa.int32()),
                "similarity": found.column("similarity").cast(pa.float64()),
            }
        )

    return decide
