"""Summaries: what there is to tell of a deduplication, counted where the rows are."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .dedup import Dedup

#: Groups that are told of, the largest.
LARGEST = 10

#: Prefixes that are told of, and how many documents each has if all have as many, at least.
PREFIXES, EVEN = 12, 16

#: Steps of similarity from 0 to 1.
STEPS = 50

#: Lengths at which a bin begins, two for each doubling.
LENGTHS = sorted({math.ceil(2 ** (half / 2)) for half in range(61)})


def totals(result: Dedup, rows: DataFrame) -> dict[str, Any]:
    """Counts of documents and groups, and the largest groups."""
    documents, removed = result.documents.count(), result.duplicates.count()
    groups = _groups(result)
    largest = groups.orderBy(F.desc("size"), "kept_id").limit(LARGEST).collect()
    return {
        "documents": documents,
        "kept": documents - removed,
        "removed": removed,
        "clusters": groups.count(),
        "rejects": rows.count() - documents,
        "largest": [
            {"cluster": number, "size": row["size"], "kept_id": row["kept_id"]}
            for number, row in enumerate(largest, 1)
        ],
    }


def figures(
    result: Dedup, rows: DataFrame, text: str, id: str, bits: int, told: dict[str, Any]
) -> dict[str, Any]:
    """What the charts of a report show, and the texts of the largest groups."""
    texts = rows.select(F.col(f"`{id}`").alias("id"), F.col(f"`{text}`").alias("text"))
    return {
        "sizes": _counts(_groups(result), F.col("size")),
        "distances": _counts(result.duplicates, F.col("distance")),
        "similarities": _similarities(result.duplicates),
        "lengths": _lengths(result, texts),
        "ones": _ones(result.documents, bits),
        "prefixes": _prefixes(result.documents, bits, told["documents"]),
        "groups": _shown(result.duplicates, texts, told["largest"]),
    }


def _groups(result: Dedup) -> DataFrame:
    others = result.duplicates.groupBy("kept_id").count()
    return others.select("kept_id", (F.col("count") + 1).alias("size"))


def _counts(rows: DataFrame, by: Column) -> list[tuple[Any, int]]:
    counted = rows.groupBy(by.alias("value")).count().orderBy("value").collect()
    return [(row["value"], row["count"]) for row in counted]


def _similarities(duplicates: DataFrame) -> list[tuple[float, int]]:
    if "similarity" not in duplicates.columns:
        return []
    # The small term undoes what rounding took; 1 itself belongs to the last step.
    step = F.floor(F.round("similarity", 4) * STEPS + F.lit(1e-6))
    counted = _counts(duplicates, F.least(step, F.lit(STEPS - 1)))
    return [(int(step) / STEPS, count) for step, count in counted]


def _lengths(result: Dedup, texts: DataFrame) -> list[tuple[int, int, int]]:
    removed = result.duplicates.select("id", F.lit(1).alias("removed"))
    documents = result.documents.select("id").join(removed, "id", "left")
    length = F.greatest(F.length("text"), F.lit(1))
    bins = F.filter(F.array(*map(F.lit, LENGTHS)), lambda shortest: shortest <= length)
    lengths = documents.join(texts, "id").groupBy(F.array_max(bins).alias("length"))
    counted = lengths.agg(F.count("*").alias("all"), F.count("removed").alias("removed"))
    rows = counted.orderBy("length").collect()
    return [(row["length"], row["all"] - row["removed"], row["removed"]) for row in rows]


def _hexadecimal(bits: int) -> Column:
    """A fingerprint's digits in small letters, all of them."""
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


def _prefixes(documents: DataFrame, bits: int, count: int) -> list[tuple[str, int, int]]:
    digits = next((digits for digits in (4, 3, 2) if count >> (4 * digits) >= EVEN), 1)
    prefixes = documents.groupBy(F.substring(_hexadecimal(bits), 1, digits).alias("prefix"))
    counted = prefixes.agg(
        F.count("*").alias("documents"), F.count_distinct("fingerprint").alias("fingerprints")
    )
    rows = counted.orderBy(F.desc("documents"), "prefix").limit(PREFIXES).collect()
    return [(row["prefix"], row["documents"], row["fingerprints"]) for row in rows]


def _shown(
    duplicates: DataFrame, texts: DataFrame, largest: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Of each group the kept document, and the first of those that are farthest from it."""
    kept = [group["kept_id"] for group in largest]
    farthest = F.min(F.struct((-F.col("distance")).alias("near"), "id")).alias("far")
    members = duplicates.filter(F.col("kept_id").isin(kept)).groupBy("kept_id").agg(farthest)
    far = {row["kept_id"]: row["far"] for row in members.collect()}
    wanted = {*kept, *(row["id"] for row in far.values())}
    found = {row["id"]: row["text"] for row in texts.filter(F.col("id").isin(list(wanted))).collect()}

    def member(id: Any) -> dict[str, Any]:
        return {"id": str(id), "text": found.get(id)}

    return [
        {
            "size": group["size"],
            "distance": -far[group["kept_id"]]["near"],
            "kept": member(group["kept_id"]),
            "far": member(far[group["kept_id"]]["id"]),
        }
        for group in largest
    ]
