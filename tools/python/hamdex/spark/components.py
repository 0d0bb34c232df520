"""Connected components by large-star and small-star.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii: Connected components in MapReduce and beyond.
SOCC 2014. Both steps keep the components; they alternate until every edge connects a member
directly with the smallest member of its component.
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .._errors import UsageError
from . import _checks


def components(edges: DataFrame, *, graphframes: bool | None = None) -> DataFrame:
    """Returns "node" and "component", the smallest node of its component, for all nodes of edges.

    Nodes can be of any ordered type. A round takes a few shuffles of the edges. The number of
    rounds is at most the square of the logarithm of the longest chain, usually three to six.

    edges: a frame with columns "a" and "b", in any direction; edges may repeat.
    graphframes: whether to use GraphFrames, which needs its jar and its Python package. Default: if
        both are installed.

        found = hamdex.spark.components(hamdex.spark.links(prints, 3))
    """
    _checks.require_checkpoints(edges)
    _checks.require_columns(edges, "a", "b")
    missing = None if graphframes is False else _missing(edges.sparkSession)
    if graphframes and missing is not None:
        raise UsageError(f"GraphFrames cannot be used: {missing}")
    if graphframes is not False and missing is None:
        return _by_graphframes(edges)
    stars = edges.filter("a <> b").select(
        F.greatest("a", "b").alias("high"), F.least("a", "b").alias("low")
    )
    stars = _checks.checkpointed(stars.distinct())
    while not _converged(stars):
        stars = _checks.checkpointed(_small_star(_large_star(stars)))
    roots = stars.select(F.col("low").alias("node"), F.col("low").alias("component")).distinct()
    members = stars.select(F.col("high").alias("node"), F.col("low").alias("component"))
    return members.unionAll(roots)


def _missing(spark: SparkSession) -> str | None:
    """Returns what GraphFrames lacks, if anything; its Python package needs its jar."""
    try:
        import graphframes  # noqa: F401
    except ImportError:
        return "the Python package graphframes is not installed"
    loader = _checks.jvm(spark).Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass("org.graphframes.GraphFrame")
    except Py4JJavaError:
        return "its jar is not on the class path (spark.jars.packages)"
    return None


def _by_graphframes(edges: DataFrame) -> DataFrame:
    """Computes components with GraphFrames and renames their numeric labels."""
    from graphframes import GraphFrame

    links = edges.filter("a <> b").select(F.col("a").alias("src"), F.col("b").alias("dst"))
    nodes = links.select(F.col("src").alias("id")).unionAll(links.select(F.col("dst").alias("id")))
    labelled = GraphFrame(nodes.distinct(), links).connectedComponents()
    names = labelled.groupBy("component").agg(F.min("id").alias("name"))
    named = labelled.join(names, "component")
    return named.select(F.col("id").alias("node"), F.col("name").alias("component"))


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


def _converged(edges: DataFrame) -> bool:
    """Returns true if every node has one smaller neighbour, which has none itself."""
    one = edges.select(F.col("high").alias("node"), F.lit(1).alias("up"), F.lit(0).alias("down"))
    other = edges.select(F.col("low").alias("node"), F.lit(0).alias("up"), F.lit(1).alias("down"))
    by_node = one.unionAll(other).groupBy("node")
    nodes = by_node.agg(F.sum("up").alias("up"), F.max("down").alias("down"))
    return nodes.filter("up > 1 or (up = 1 and down = 1)").isEmpty()
