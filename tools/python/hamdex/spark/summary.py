"""Summaries: the figures of a deduplication, counted by the tasks."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import _fields, sources
from .dedup import ROW, Dedup

#: Number of listed groups, the largest.
LARGEST = 10

#: Number of listed prefixes, and the minimum average of documents per prefix.
PREFIXES, EVEN = 12, 16

#: Number of histogram bins of the similarity, from 0 to 1.
STEPS = 50

#: Lower bounds of the histogram bins of lengths, two per doubling.
LENGTHS = sorted({math.ceil(2 ** (half / 2)) for half in range(61)})


def totals(result: Dedup, text: str) -> dict[str, Any]:
    """Returns counts of rows and groups, and the largest groups."""
    made, near, repeats = (
        frame.count() for frame in (result._made, result._removed, result._repeats)
    )
    rows, not_compared = _not_compared(result._rows, text, made)
    rejects = 0
    if result._drop_empty:
        rejects, not_compared = sum(not_compared.values()), {}
    removed = near + repeats
    groups = sources.groups(result._removed)
    largest = groups.orderBy(*sources.by_size()).limit(LARGEST).collect()
    return {
        "rows": rows,
        "documents": rows - rejects,
        "kept": rows - rejects - removed,
        "removed": removed,
        "removed_unique_by": repeats,
        "not_compared": not_compared,
        "clusters": groups.count(),
        "rejects": rejects,
        "largest": [
            {"cluster": number, "size": row["size"], "kept_id": row["kept_id"]}
            for number, row in enumerate(largest, 1)
        ],
        "sources": result.sources,
        "warnings": result.warnings,
    }


def _not_compared(rows: DataFrame, text: str, made: int) -> tuple[int, dict[str, int]]:
    """Returns the number of rows, and counts of those with nothing to compare, by reason."""
    found = rows.select(_fields.text(rows, text).alias("text")).agg(
        F.count(F.lit(1)).alias("all"),
        F.count_if(F.col("text").isNull()).alias("null"),
        F.count_if(F.col("text").rlike(r"(?U)^\s*$")).alias("empty"),
    )
    row = found.collect()[0]
    counts = {"null text": row["null"], "empty text": row["empty"]}
    counts["no features"] = row["all"] - sum(counts.values()) - made
    return row["all"], {reason: count for reason, count in counts.items() if count}


def figures(result: Dedup, text: str, bits: int, summary: dict[str, Any]) -> dict[str, Any]:
    """Returns the data of the charts, and the texts of the largest groups."""
    texts = result._rows.select(
        F.col(ROW).alias("row"), _fields.text(result._rows, text).alias("text")
    )
    return {
        "sizes": _counts(sources.groups(result._removed), F.col("size")),
        "distances": _counts(result._removed, F.col("distance")),
        "similarities": _similarities(result._removed),
        "lengths": _lengths(result, texts),
        "ones": _ones(result._made, bits),
        "prefixes": _prefixes(result._made, bits, summary),
        "groups": _shown(result, texts),
    }


def _counts(rows: DataFrame, by: Column) -> list[tuple[Any, int]]:
    counted = rows.groupBy(by.alias("value")).count().orderBy("value").collect()
    return [(row["value"], row["count"]) for row in counted]


def _similarities(duplicates: DataFrame) -> list[tuple[float, int]]:
    if "similarity" not in duplicates.columns:
        return []
    # The small term compensates rounding; similarity 1 belongs to the last bin.
    step = F.floor(F.round("similarity", 4) * STEPS + F.lit(1e-6))
    counted = _counts(duplicates, F.least(step, F.lit(STEPS - 1)))
    return [(int(step) / STEPS, count) for step, count in counted]


def _lengths(result: Dedup, texts: DataFrame) -> list[tuple[int, int, int]]:
    gone = result._removed.select("row").unionAll(result._repeats)
    removed = gone.withColumn("removed", F.lit(1))
    documents = result._made.select("row").join(removed, "row", "left")
    # The join reads lengths instead of texts.
    lengths = texts.select("row", F.greatest(F.length("text"), F.lit(1)).alias("length"))
    length = F.col("length")
    bins = F.filter(F.array(*map(F.lit, LENGTHS)), lambda shortest: shortest <= length)
    binned = documents.join(lengths, "row").groupBy(F.array_max(bins).alias("length"))
    counted = binned.agg(F.count("*").alias("all"), F.count("removed").alias("removed"))
    rows = counted.orderBy("length").collect()
    return [(row["length"], row["all"] - row["removed"], row["removed"]) for row in rows]


def _hexadecimal(bits: int) -> Column:
    """Returns all hexadecimal digits of a fingerprint, in lower case."""
    return F.lower(F.lpad(F.hex("fingerprint"), bits // 4, "0"))


def _ones(documents: DataFrame, bits: int) -> list[int]:
    digits, width = _hexadecimal(bits), min(bits, 64)
    words = [
        F.conv(F.substring(digits, 1 + first // 4, width // 4), 16, -10).cast("bigint")
        for first in range(0, bits, width)
    ]
    ones = [
        F.sum(F.getbit(word, F.lit(place)).cast("bigint"))
        for word in words
        for place in reversed(range(width))
    ]
    row = documents.agg(*ones).collect()[0]
    return [ones or 0 for ones in row]


def _prefixes(
    documents: DataFrame, bits: int, summary: dict[str, Any]
) -> list[tuple[str, int, int]]:
    count = summary["documents"] - sum(summary["not_compared"].values())
    digits = next((digits for digits in (4, 3, 2) if count >> (4 * digits) >= EVEN), 1)
    prefixes = documents.groupBy(F.substring(_hexadecimal(bits), 1, digits).alias("prefix"))
    counted = prefixes.agg(
        F.count("*").alias("documents"), F.count_distinct("fingerprint").alias("fingerprints")
    )
    rows = counted.orderBy(F.desc("documents"), "prefix").limit(PREFIXES).collect()
    return [(row["prefix"], row["documents"], row["fingerprints"]) for row in rows]


def _shown(result: Dedup, texts: DataFrame) -> list[dict[str, Any]]:
    """Returns the kept document of each group, and the first of the farthest ones."""
    groups = sources.groups(result._removed).orderBy(*sources.by_size()).limit(LARGEST).collect()
    kept = [group["kept_row"] for group in groups]
    first = F.struct((-F.col("distance")).alias("near"), "id", "row")
    members = result._removed.filter(F.col("kept_row").isin(kept)).groupBy("kept_row")
    far = {row["kept_row"]: row["far"] for row in members.agg(F.min(first).alias("far")).collect()}
    wanted = [*kept, *(row["row"] for row in far.values())]
    found = {row["row"]: row["text"] for row in texts.filter(F.col("row").isin(wanted)).collect()}

    def shown(group: Any) -> dict[str, Any]:
        other = far[group["kept_row"]]
        return {
            "size": group["size"],
            "distance": -other["near"],
            "kept": {"id": str(group["kept_id"]), "text": found.get(group["kept_row"])},
            "far": {"id": str(other["id"]), "text": found.get(other["row"])},
        }

    return [shown(group) for group in groups]
