"""Connected components by large-star and small-star.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: Connected components in MapReduce and beyond.
SOCC 2014. Both steps keep what is connected connected and nothing else; they are alternated until
every edge leads from a member straight to the smallest one of its component.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import _checks


def components(edges: DataFrame) -> DataFrame:
    """Returns "node" and "component", the smallest node of its component, for all nodes of edges.

    Nodes are of any type that has an order. Work is a few shuffles of the edges for each round, and
    rounds are few: the square of the logarithm of the longest chain at most, mostly three to six.

    edges: a frame with columns "a" and "b", in any direction, repeated or not.

        found = hamdex.spark.components(hamdex.spark.links(prints, 3))
    """
    _checks.require_checkpoints(edges)
    _checks.require_columns(edges, "a", "b")
    stars = edges.filter("a <> b").select(
        F.greatest("a", "b").alias("high"), F.least("a", "b").alias("low")
    )
    stars = _checks.checkpointed(stars.distinct())
    while not _settled(stars):
        stars = _checks.checkpointed(_small_star(_large_star(stars)))
    roots = stars.select(F.col("low").alias("node"), F.col("low").alias("component")).distinct()
    members = stars.select(F.col("high").alias("node"), F.col("low").alias("component"))
    return members.unionAll(roots)


def _large_star(edges: DataFrame) -> DataFrame:
    """Links every larger neighbour of a node with the smallest of the node and its neighbours."""
    near = edges.select(F.col("high").alias("node"), F.col("low").alias("other")).unionAll(
        edges.select(F.col("low").alias("node"), F.col("high").alias("other"))
    )
    smallest = near.groupBy("node").agg(F.min("other").alias("smallest"))
    smallest = smallest.select("node", F.least("node", "smallest").alias("smallest"))
    linked = near.filter("other > node").join(smallest, "node")
    return linked.select(F.col("other").alias("high"), F.col("smallest").alias("low")).distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Links a node and its smaller neighbours with the smallest of them."""
    smallest = edges.groupBy("high").agg(F.min("low").alias("smallest"))
    others = edges.join(smallest, "high").filter("low > smallest")
    others = others.select(F.col("low").alias("high"), F.col("smallest").alias("low"))
    return others.unionAll(smallest.toDF("high", "low")).distinct()


def _settled(edges: DataFrame) -> bool:
    """Tells whether every node has one smaller neighbour, which has none itself."""
    one = edges.select(F.col("high").alias("node"), F.lit(1).alias("up"), F.lit(0).alias("down"))
    other = edges.select(F.col("low").alias("node"), F.lit(0).alias("up"), F.lit(1).alias("down"))
    nodes = one.unionAll(other).groupBy("node")
    nodes = nodes.agg(F.sum("up").alias("up"), F.max("down").alias("down"))
    return nodes.filter("up > 1 or (up = 1 and down = 1)").isEmpty()
