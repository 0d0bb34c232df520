"""Deduplication: of every group of near-duplicates one row is kept."""

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

#: Column of the numbers by which rows are known, whatever their ids.
ROW = "__hamdex_row"

#: Rows of whole clusters that one call of the engine decides on.
TOGETHER = 1 << 14


@dataclass(frozen=True)
class Dedup:
    """What was kept, what was removed and why."""

    #: The rows to keep, with all their columns.
    kept: DataFrame
    #: A row for every document removed: id, kept_id, distance, and similarity if it was verified.
    duplicates: DataFrame
    #: A row for every document that could be compared: id and fingerprint.
    documents: DataFrame
    #: What became of every source, those first that lost the largest share; empty without
    #: `source_field`.
    sources: list[dict[str, Any]]
    #: Sentences about sources that lost most of their documents.
    warnings: list[str]
    #: All rows, with their numbers.
    _rows: DataFrame = field(repr=False)
    #: The documents removed and the ones kept for them, by row and id.
    _removed: DataFrame = field(repr=False)
    #: The documents that have a fingerprint: row, id and fingerprint.
    _made: DataFrame = field(repr=False)
    #: The rows removed because another one has an equal value, by their numbers.
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
    """Removes near-duplicates from a frame, keeping one row of every group.

    Row for row these are the decisions of `hamdex dedup -k DISTANCE --verify VERIFY` over the same
    documents in the order of their ids: a frame has no order of its own, so the first row of a
    group is the one with the smallest id, of equal ones the first that Spark numbers. Rows with
    nothing to compare are kept: those without a text or with a text without features. The frame
    with all its columns is written to the checkpoint directory once, with a number for each row.

    df: a frame of documents.
    text_column: texts; None if `fingerprint_column` names fingerprints instead. A path such as
        "meta.body" leads into structs, "title,body" joins columns by a line end.
    id_column: labels of a type that has an order; they may repeat and be null.
    distance: bits that near-duplicates differ in at most, 0 to a quarter of `bits`.
    verify: check of pairs within the distance: "jaccard:T", "zhou:K,T", "edit:T", "contains:T", or
        "none" to compare fingerprints alone. "contains:0.9" removes a text only if nine tenths of
        its phrases of three words occur in the kept one, which is the longer one whatever `keep`
        says. Default: the check that suits the pipeline ("edit:0.88" for
        "page"), and none for fingerprints. The documents that chains of pairs connect are decided
        on by one task together, so the largest such group has to fit its memory.
    keep: which row of a group: "first", "longest", "newest:COLUMN" or "best:COLUMN", the one with
        the largest value there; of equals the first one. Numbers, dates and timestamps are compared
        as such, also if they are written as texts; nulls are below everything. With "contains:T" it
        decides between equally long texts.
    unique_by: column whose values must not repeat: of rows with equal values, only the one that
        `keep` prefers stays, before near-duplicates are looked for. Nulls are not equal.
    source_field: column by whose values `sources` of the result counts rows, as report.json of
        `hamdex dedup --source-field` does: documents, kept and removed ones, the largest group and
        the farthest pair of each. A source that loses most of its rows is a `DataWarning`, and in
        `warnings`. The tasks count; a row for each source comes back, of 100,000 at most.
    drop_empty: drop rows with nothing to compare.
    pipeline, bits: how texts become fingerprints, as in `fingerprints`.
    limit, counts: as in `links`.

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
    # The numbers of a frame that is computed again may be others.
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
    told: list[str] = []
    if source_field is not None:
        named = sources.names(some, source_field, ROW, id_column)
        counted, told = sources.account(named, removed, gone.withColumnRenamed(ROW, "row"))
        for warning in told:
            warnings.warn(warning, DataWarning, stacklevel=2)
    kept = some.join(gone, ROW, "left_anti").drop(ROW)
    duplicates = removed.drop("row", "kept_row")
    prints = compared.select("id", "fingerprint")
    return Dedup(
        kept, duplicates, prints, counted, told, rows, removed, made, repeats, drop_empty
    )


def _none_has(rows: DataFrame, value: Column) -> bool:
    """Whether there are rows, and none of them has a value."""
    blank = F.trim(value.cast("string")) == ""
    return not rows.isEmpty() and rows.filter(value.isNotNull() & ~blank).isEmpty()


def _repeated(
    rows: DataFrame, column: str | None, id_column: str, rank: Column | None, stamped: bool
) -> DataFrame:
    """The numbers of the rows whose value another row has that is preferred."""
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
    """Replaces the values of "rank" by keys whose order is that of dates, numbers and texts."""
    prepare = lambda: _batches.stamps("rank")
    return _batches.with_column(rows, "rank", BinaryType(), prepare, drop="rank")


def _preferred(ranked: bool) -> list[Column]:
    """The order of rows of which the first is kept."""
    order = [F.col("id").asc_nulls_last(), F.col("row")]
    return [F.col("rank").desc_nulls_last(), *order] if ranked else order


def verification(
    verify: str | None, text_column: str | None, pipeline: str | _hamdex.Pipeline, bits: int
) -> str:
    """The check that is asked for, else the one that suits the pipeline."""
    if verify is None:
        return "none" if text_column is None else pipeline_of(pipeline)._verification(bits)
    if verify != "none" and text_column is None:
        raise UsageError(f'verify="{verify}" compares texts: name a text_column')
    return verify


def _rank(df: DataFrame, keep: str, text_column: str | None) -> Column | None:
    """What rows of a group are kept by, the largest first; None for the smallest id alone."""
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
    """Every other member of a cluster is a duplicate of the one that is kept."""
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
    """Clusters are decided on by the engine of one machine, many of them in one call.

    What passes the verification is within the distance, so no link leads out of a cluster.
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
    """Cuts sorted rows between clusters, into tables of some thousand rows."""
    held: list[pa.RecordBatch] = []
    rows, wanted = 0, TOGETHER
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
        # A cluster of many batches is not put together again for each of them.
        wanted = max(TOGETHER, 2 * rows)
    if rows:
        yield pa.Table.from_batches(held)


def _decided(clusters: pa.Table, settings: dict, ranked: bool) -> pa.Table:
    """What is removed of whole clusters."""
    rows, ids = clusters.column("row"), clusters.column("id")
    asked = clusters.select(["text", "rank"] if ranked else ["text"])
    keep = "first"
    # A column without any value has nothing to order rows by.
    if ranked and asked.column("rank").null_count < len(asked):
        keep = "newest:rank"
    found = _dedup.dedup(asked, "text", keep=keep, **settings).duplicates
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
