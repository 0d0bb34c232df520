"""Deduplication: keeps one row of each group of near-duplicates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DoubleType, IntegerType, LongType, StructField, StructType

from .. import _dedup, _hamdex
from .._errors import DataError, DataWarning, UsageError
from . import _batches, _checks, _fields, sources
from .clusters import members
from .fingerprints import documents, pipeline_of
from .links import LINKS_LIMIT

#: Column of the row numbers, which identify rows with any ids.
ROW = "__hamdex_row"

#: Rows of whole clusters that one call of the engine processes.
ROWS_PER_CALL = 1 << 14


@dataclass(frozen=True)
class Dedup:
    """The kept rows, the removed rows, and why they were removed."""

    #: The kept rows, with all their columns.
    kept: DataFrame
    #: A row for each removed document: id, kept_id, distance, and similarity if it was verified.
    duplicates: DataFrame
    #: A row for each document that was compared: id and fingerprint.
    documents: DataFrame
    #: Counts of each source, sorted by removed share; empty without `source_field`.
    sources: list[dict[str, Any]]
    #: Warnings about sources that lost most of their documents.
    warnings: list[str]
    #: All rows, with their numbers.
    _rows: DataFrame = field(repr=False)
    #: The removed documents and their kept ones, by row and id.
    _removed: DataFrame = field(repr=False)
    #: The documents with a fingerprint: row, id and fingerprint.
    _made: DataFrame = field(repr=False)
    #: Numbers of the rows that were removed because another row has an equal value.
    _repeats: DataFrame = field(repr=False)
    #: Whether rows with nothing to compare were dropped.
    _drop_empty: bool = field(repr=False)


def dedup(
    df: DataFrame,
    text_column: str | None,
    id_column: str,
    distance: int,
    *,
    verify: str | None = None,
    keep: str = "first",
    unique_by: str | None = None,
    source_field: str | None = None,
    drop_empty: bool = False,
    fingerprint_column: str | None = None,
    pipeline: str | _hamdex.Pipeline = "auto",
    bits: int = 64,
    limit: int = LINKS_LIMIT,
    counts: dict[str, int] | None = None,
) -> Dedup:
    """Removes near-duplicates from a frame and keeps one row of each group.

    Makes exactly the decisions of `hamdex dedup -k DISTANCE --verify VERIFY` on the same documents
    in id order. A frame has no order, so the first row of a group is the one with the smallest id;
    equal ids are ordered by Spark's row numbers. Rows with nothing to compare are kept: those
    without a text, or with a text without features. The frame with all its columns is written to
    the checkpoint directory once, with row numbers.

    df: a frame of documents.
    text_column: texts; None if `fingerprint_column` contains fingerprints. A path such as
        "meta.body" selects a field of a struct; "title,body" joins columns by a line end, and so
        are the texts of an array: "messages.content".
    id_column: labels of an ordered type; they may repeat and be null.
    distance: maximum number of differing bits, up to a quarter of `bits`.
    verify: verification of near pairs: "jaccard:T", "zhou:K,T", "edit:T", "contains:T", or "none"
        to compare only fingerprints. "contains:0.9" removes a text only if 90 % of its three-word
        phrases occur in the kept one, which is then the longest one for every `keep`. Default: the
        recommended one for the pipeline ("edit:0.88" for "page"), and "none" for fingerprints. One
        task processes each connected group of near pairs, so the largest one must fit its memory.
    keep: which row of a group to keep: "first", "longest", "newest:COLUMN" or "best:COLUMN", the
        row with the largest value; the first one of equals. Numbers, dates and timestamps are
        compared as such, also if they are texts; nulls come last. With "contains:T" it decides
        between equally long texts.
    unique_by: column whose values must be unique: of rows with equal values, only the one that
        `keep` prefers remains, before near-duplicates are searched. Nulls are never equal.
    source_field: column whose values are the `sources` of the result, counted as in report.json of
        `hamdex dedup --source-field`: documents, kept and removed, largest group and farthest pair
        of each. A source that loses most of its rows causes a `DataWarning`, which is also in
        `warnings`. The tasks count; the driver collects one row per source, at most 100,000.
    drop_empty: drop rows with nothing to compare.
    pipeline, bits: how fingerprints are computed, as for `fingerprints`.
    limit, counts: as for `links`.

        result = hamdex.spark.dedup(pages, "text", "url", 12, pipeline="page")
        result.kept.write.parquet("hdfs:///pages-kept")
    """
    _checks.require_checkpoints(df)
    _checks.require_distance(distance, bits)
    _rank(df, keep, text_column)
    if unique_by is not None:
        _fields.value(df, unique_by)
    if source_field is not None:
        _fields.value(df, source_field)
    verify = verification(verify, text_column, pipeline, bits)
    # Spark may compute a frame again with other row numbers.
    rows = _checks.checkpointed(df.withColumn(ROW, F.monotonically_increasing_id()))
    rank = _rank(rows, keep, text_column)
    stamped = keep not in ("first", "longest")
    if stamped and rank is not None and _none_has(rows, rank):
        raise DataError(f'keep="{keep}": no row has a value in that column')
    made = documents(
        rows, text_column, id_column, fingerprint_column, pipeline, bits, row_column=ROW
    )
    some = rows.join(made.select(F.col("row").alias(ROW)), ROW, "left_semi") if drop_empty else rows
    repeats = _repeated(some, unique_by, id_column, rank, stamped)
    compared = made if unique_by is None else made.join(repeats, "row", "left_anti")
    grouped = members(compared, distance, bits, limit, counts)
    more = [] if rank is None else [rank.alias("rank")]
    if verify != "none" and text_column is not None:
        more.append(_fields.text(rows, text_column).alias("text"))
    if more:
        grouped = grouped.join(rows.select(F.col(ROW).alias("row"), *more), "row")
    if verify == "none":
        if stamped:
            grouped = _by_stamp(grouped)
        removed = _by_chains(grouped, bits, rank is not None)
    else:
        settings = {
            "distance": distance,
            "verify": verify,
            "pipeline": pipeline_of(pipeline),
            "bits": bits,
        }
        removed = _verified(grouped, settings, rank is not None)
    removed = _checks.checkpointed(removed)
    gone = removed.select(F.col("row").alias(ROW))
    if unique_by is not None:
        gone = gone.unionAll(repeats.select(F.col("row").alias(ROW)))
    counted: list[dict[str, Any]] = []
    messages: list[str] = []
    if source_field is not None:
        named = sources.names(some, source_field, ROW, id_column)
        counted, messages = sources.account(named, removed, gone.withColumnRenamed(ROW, "row"))
        for warning in messages:
            warnings.warn(warning, DataWarning, stacklevel=2)
    kept = some.join(gone, ROW, "left_anti").drop(ROW)
    duplicates = removed.drop("row", "kept_row")
    prints = compared.select("id", "fingerprint")
    return Dedup(
        kept, duplicates, prints, counted, messages, rows, removed, made, repeats, drop_empty
    )


def _none_has(rows: DataFrame, value: Column) -> bool:
    """Returns true if there are rows and none of them has a value."""
    blank = F.trim(value.cast("string")) == ""
    return not rows.isEmpty() and rows.filter(value.isNotNull() & ~blank).isEmpty()


def _repeated(
    rows: DataFrame, column: str | None, id_column: str, rank: Column | None, stamped: bool
) -> DataFrame:
    """Returns the numbers of the rows whose value a preferred row has."""
    if column is None:
        return rows.select(F.col(ROW).alias("row")).limit(0)
    chosen = rows.select(
        F.col(ROW).alias("row"),
        F.col(f"`{id_column}`").alias("id"),
        _fields.value(rows, column).alias("value"),
        *([] if rank is None else [rank.alias("rank")]),
    ).filter("value is not null")
    if stamped:
        chosen = _by_stamp(chosen)
    by_value = Window.partitionBy("value").orderBy(*_preferred(rank is not None))
    placed = chosen.withColumn("place", F.row_number().over(by_value))
    return _checks.checkpointed(placed.filter("place > 1").select("row"))


def _by_stamp(rows: DataFrame) -> DataFrame:
    """Replaces the values of "rank" by binary keys that sort like dates, numbers and texts."""
    prepare = lambda: _batches.stamps("rank")
    return _batches.with_column(rows, "rank", BinaryType(), prepare, drop="rank")


def _preferred(ranked: bool) -> list[Column]:
    """Returns the order of the rows of a group, the row to keep first."""
    order = [F.col("id").asc_nulls_last(), F.col("row")]
    return [F.col("rank").desc_nulls_last(), *order] if ranked else order


def verification(
    verify: str | None, text_column: str | None, pipeline: str | _hamdex.Pipeline, bits: int
) -> str:
    """Returns the requested verification, else the recommended one for the pipeline."""
    if verify is None:
        return "none" if text_column is None else pipeline_of(pipeline)._verification(bits)
    if verify != "none" and text_column is None:
        raise UsageError(f'verify="{verify}" compares texts; pass a text_column')
    return verify


def _rank(df: DataFrame, keep: str, text_column: str | None) -> Column | None:
    """Returns the value that rows are kept by, largest first; None to keep the smallest id."""
    if keep == "first":
        return None
    if keep == "longest":
        if text_column is None:
            raise UsageError('keep="longest" needs a text_column')
        return F.length(_fields.text(df, text_column))
    word, _, column = keep.partition(":")
    if word not in ("newest", "best") or not column:
        raise UsageError(
            f'keep is "{keep}"; supported are first, longest, newest:COLUMN and best:COLUMN'
        )
    return _fields.value(df, column)


def _by_chains(grouped: DataFrame, bits: int, ranked: bool) -> DataFrame:
    """Marks every other member of a cluster as a duplicate of the kept one."""
    by_rank = Window.partitionBy("component").orderBy(*_preferred(ranked))
    best = grouped.withColumn("place", F.row_number().over(by_rank)).filter("place = 1")
    best = best.select(
        "component",
        F.col("row").alias("kept_row"),
        F.col("id").alias("kept_id"),
        F.col("fingerprint").alias("kept_fingerprint"),
    )
    others = grouped.join(best, "component").filter("row <> kept_row")
    columns = ("fingerprint", "kept_fingerprint")
    others = others.select("row", "id", "kept_row", "kept_id", *columns)
    measured = _batches.with_column(
        others, "distance", IntegerType(), lambda: _batches.distances(*columns, bits)
    )
    return measured.drop(*columns)


def _verified(grouped: DataFrame, settings: dict, ranked: bool) -> DataFrame:
    """Decides on clusters with the engine of one machine, many clusters per call.

    Every pair that passes the verification is near, so no link leaves a cluster.
    """
    kind = grouped.schema["id"].dataType
    schema = StructType(
        [
            StructField("row", LongType()),
            StructField("id", kind),
            StructField("kept_row", LongType()),
            StructField("kept_id", kind),
            StructField("distance", IntegerType()),
            StructField("similarity", DoubleType()),
        ]
    )
    columns = ["component", "row", "id", "text", *(["rank"] if ranked else [])]
    order = [F.col("component"), F.col("id").asc_nulls_last(), F.col("row")]
    sorted_rows = grouped.select(*columns).repartition("component").sortWithinPartitions(*order)
    threads = _batches.threads_of(grouped)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _batches.use_threads(threads)
        for clusters in _whole(batches):
            yield from _decided(clusters, settings, ranked).to_batches()

    return sorted_rows.mapInArrow(task, schema)


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Splits sorted rows between clusters, into tables of a few thousand rows."""
    held: list[pa.RecordBatch] = []
    rows, wanted = 0, ROWS_PER_CALL
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < wanted:
            continue
        table = pa.Table.from_batches(held)
        components = table.column("component")
        open_rows = pc.sum(pc.equal(components, components[-1])).as_py()
        if rows > open_rows:
            yield table.slice(0, rows - open_rows)
        held, rows = table.slice(rows - open_rows).to_batches(), open_rows
        # Doubling avoids joining a cluster of many batches again for each of them.
        wanted = max(ROWS_PER_CALL, 2 * rows)
    if rows:
        yield pa.Table.from_batches(held)


def _decided(clusters: pa.Table, settings: dict, ranked: bool) -> pa.Table:
    """Returns the removed documents of whole clusters."""
    rows, ids = clusters.column("row"), clusters.column("id")
    columns = clusters.select(["text", "rank"] if ranked else ["text"])
    keep = "first"
    # A column without any value cannot order rows.
    if ranked and columns.column("rank").null_count < len(columns):
        keep = "newest:rank"
    found = _dedup.dedup(columns, "text", keep=keep, **settings).duplicates
    removed, kept = found.column("row"), found.column("kept_row")
    return pa.table(
        {
            "row": rows.take(removed),
            "id": ids.take(removed),
            "kept_row": rows.take(kept),
            "kept_id": ids.take(kept),
            "distance": found.column("distance").cast(pa.int32()),
            "similarity": found.column("similarity").cast(pa.float64()),
        }
    )
