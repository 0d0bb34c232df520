"""Sources: counts rows by a column, in the tasks.

The library decides on the order and the warnings.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from .. import _hamdex
from .._errors import DataError
from . import _batches, _checks, _fields

#: Bits of Spark's row numbers below those of the partition.
WITHIN_PARTITION = 33


def names(rows: DataFrame, field: str, row: str, id_column: str) -> DataFrame:
    """Returns row, id and source of each row; sources above the maximum are counted together."""
    named = rows.select(
        F.col(row).alias("row"),
        F.col(f"`{id_column}`").alias("id"),
        _fields.value(rows, field).alias("value"),
    )
    if named.filter("value is not null").isEmpty() and not named.isEmpty():
        raise DataError(f'source_field="{field}": no row has a value in that column')
    prepare = lambda: _batches.source_values("value")
    named = _batches.with_column(named, "source", StringType(), prepare, drop="value")
    named = _checks.checkpointed(named)
    others, most = _hamdex._OTHER_SOURCES
    first = named.groupBy("source").agg(F.min(place()).alias("first"))
    if first.count() > most:
        some = first.orderBy("first").limit(most).select("source", F.lit(True).alias("known"))
        named = named.join(some, "source", "left")
        named = named.withColumn("source", F.when(F.col("known"), F.col("source")).otherwise(others))
    return named.select("row", "id", "source")


def place(id: str = "id", row: str = "row") -> Column:
    """Returns the order of documents: by id, equal ids by Spark's row number."""
    parts = {"missing": F.col(id).isNull(), "id": F.col(id), "row": F.col(row)}
    return F.struct(*(part.alias(name) for name, part in parts.items()))


def groups(removed: DataFrame) -> DataFrame:
    """Returns every group by its kept document, with its size and the place of its first one."""
    kept = place("kept_id", "kept_row")
    found = removed.groupBy("kept_row", "kept_id").agg(
        (F.count(F.lit(1)) + 1).alias("size"), F.min(place()).alias("first")
    )
    first = F.when(F.col("first") < kept, F.col("first")).otherwise(kept)
    return found.withColumn("first", first)


def by_size() -> list[Column]:
    """Returns the order of groups, in which they are numbered from 1."""
    return [F.desc("size"), F.col("first")]


def account(
    named: DataFrame, removed: DataFrame, gone: DataFrame
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the counts of every source, sorted by removed share, and warnings.

    named: row, id and source of every counted row.
    removed: the removed documents and their kept ones.
    gone: the numbers of all removed rows.
    """
    lost = gone.select("row", F.lit(1).alias("gone"))
    counted = named.join(lost, "row", "left").groupBy("source").agg(
        F.count(F.lit(1)).alias("documents"),
        F.count("gone").alias("removed"),
        F.min(place()).alias("first"),
    )
    rows = counted.orderBy("first").collect()
    counts = {row["source"]: (row["documents"] - row["removed"], row["removed"]) for row in rows}
    order, shares, warnings = _hamdex._source_order(
        [(name, kept, gone) for name, (kept, gone) in counts.items()]
    )
    largest, farthest = _largest(named, removed), _farthest(named, removed)
    found = [
        {
            "name": name,
            "documents": sum(counts[name]),
            "kept": counts[name][0],
            "removed": counts[name][1],
            "removed_share": share,
            "largest_group": largest.get(name),
            "farthest": farthest.get(name),
        }
        for name, share in zip(order, shares)
    ]
    return found, warnings


def _largest(named: DataFrame, removed: DataFrame) -> dict[str, dict[str, int]]:
    """Returns the group with the most documents of each source; the lowest number of equals."""
    numbered = groups(removed).orderBy(*by_size())
    numbered = _checks.checkpointed(
        numbered.select("kept_row", F.monotonically_increasing_id().alias("place"))
    )
    kept = numbered.select("kept_row", F.col("kept_row").alias("row"))
    members = removed.select("kept_row", "row").unionAll(kept).join(named, "row")
    held = members.groupBy("source", "kept_row").count().join(numbered, "kept_row")
    best = F.max(F.struct(F.col("count"), (-F.col("place")).alias("place"))).alias("best")
    rows = held.groupBy("source").agg(best).collect()
    # Row numbers ascend with gaps between partitions; these bases make them consecutive.
    partition = F.shiftright("place", WITHIN_PARTITION).alias("partition")
    before, bases = 0, {}
    for row in numbered.groupBy(partition).count().orderBy("partition").collect():
        bases[row["partition"]] = before - (row["partition"] << WITHIN_PARTITION) + 1
        before += row["count"]

    def number(place: int) -> int:
        return place + bases[place >> WITHIN_PARTITION]

    return {
        row["source"]: {"cluster": number(-row["best"]["place"]), "documents": row["best"]["count"]}
        for row in rows
    }


def _farthest(named: DataFrame, removed: DataFrame) -> dict[str, dict[str, Any]]:
    """Returns the removed document of each source that is farthest from its kept one."""
    verified = "similarity" in removed.columns
    likest = [F.round("similarity", 4).alias("similarity")] if verified else []
    order = [*likest, (-F.col("distance")).alias("near"), place().alias("at")]
    far = F.min(F.struct(*order, "id", "kept_id")).alias("far")
    rows = removed.join(named.select("row", "source"), "row").groupBy("source").agg(far).collect()

    def pair(far: Any) -> dict[str, Any]:
        found = {"id": far["id"], "kept_id": far["kept_id"], "distance": -far["near"]}
        return found | ({"similarity": far["similarity"]} if verified else {})

    return {row["source"]: pair(row["far"]) for row in rows}
