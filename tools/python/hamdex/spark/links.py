"""Links: connects near fingerprints that share a key."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import _batches, _checks

#: Rows of one group that one task compares: 4 million take a few hundred megabytes.
LINKS_LIMIT = 1 << 22


def links(
    prints: DataFrame,
    distance: int,
    *,
    bits: int = 64,
    limit: int = LINKS_LIMIT,
    counts: dict[str, int] | None = None,
) -> DataFrame:
    """Returns links "a", "b" with the same connected components as all near pairs.

    Each group of a common key returns only a spanning forest, so n fingerprints have at most n
    links per table of the plan. The ends of a link may be further apart than the distance. Equal
    fingerprints are one node. A link may occur several times.

    Pass the links to `components` to get groups.

    prints: a frame with a column "fingerprint", as `fingerprints` returns it.
    distance: maximum number of differing bits, up to a quarter of `bits`.
    limit: rows of one group that one task holds in memory; larger groups are split.
    counts: a dictionary that receives counts: rows shuffled, groups compared, members of the
        largest group, pairs or links found, skewed groups split ("heavy"), and levels of splitting.
    """
    _checks.require_checkpoints(prints)
    _checks.require_fingerprints(prints, "fingerprint", bits)
    distinct = prints.select("fingerprint").distinct()
    return near(distinct, "links", distance, bits, limit, counts).select("a", "b")


def near(
    prints: DataFrame,
    wanted: str,
    distance: int,
    bits: int,
    limit: int,
    counts: dict[str, int] | None,
) -> DataFrame:
    """Returns "a", "b" and "distance" of the links or pairs among distinct fingerprints."""
    _checks.require_distance(distance, bits)
    prints = _checks.checkpointed(prints)
    spread = (bits, distance, prints.count())
    partitions = int(prints.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    total = {name: 0 for name, _ in _batches.COUNTS} | {"levels": 0}
    found = []
    rows = prints
    while True:
        rows = _batches.expanded(rows, spread)
        rows = rows.repartition(partitions, "key").sortWithinPartitions("key")
        level = _checks.checkpointed(_batches.matched(rows, spread, wanted, limit))
        found.append(level.filter(F.col("kind") == _batches.PAIR).select("a", "b", "distance"))
        skewed = _add(total, level)
        if not skewed:
            break
        rows = level.filter(F.col("kind") == _batches.SKEWED)
        columns = [F.col("key"), F.col("a").alias("fingerprint")]
        if wanted == "across":
            columns.append((F.col("distance") == 1).alias("second"))
        rows = rows.select(*columns)
    if counts is not None:
        counts.update(total)
    return reduce(DataFrame.unionAll, found)


def _add(total: dict[str, int], level: DataFrame) -> int:
    """Adds the counts of a level to the total and returns the number of groups to split."""
    rows = level.filter(F.col("kind") == _batches.COUNT).select("distance", "key").collect()
    skewed = 0
    for number, (name, join) in enumerate(_batches.COUNTS):
        counted = join([0, *(row.key for row in rows if row.distance == number)])
        total[name] = join((total[name], counted))
        skewed = counted if name == "heavy" else skewed
    total["levels"] += 1
    return skewed
