"""Near-duplicates among more documents than one machine holds, on Apache Spark.

`dedup` returns exactly the result of `hamdex dedup` on one machine, for data frames of any size.
`clusters`, `pairs` and `search` return the results of `hamdex clusters`, `pairs` and `query` with
`--verify none`. `dedup_file` reads and writes Parquet files and can write an HTML report.
`build_index` writes the files of an index in parallel, for `hamdex build --from-shards`.

    from pyspark.sql import SparkSession
    import hamdex.spark

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setCheckpointDir("hdfs:///tmp/checkpoints")
    pages = spark.read.parquet("hdfs:///pages")
    result = hamdex.spark.dedup(pages, "text", "url", 3, pipeline="page")
    result.kept.write.parquet("hdfs:///pages-kept")

Each function first computes the fingerprints of the texts, or reads them from a column
(`fingerprint_column`). Equal fingerprints are processed as one. Each distinct fingerprint becomes
one row per table of a plan, with its prefix in the table as the key. A shuffle groups equal keys,
and tasks read their rows in key order and compare each group with the library's join. Groups above
`limit` rows are shuffled again with longer keys and never truncated.

The result of each step is stored in Spark's checkpoint directory, so losing a worker costs at most
the work of one step. With `spark.cleaner.referenceTracking.cleanCheckpoints` Spark deletes what is
no longer referenced.

Every worker needs this package in the same version, and pyarrow. Tasks use `spark.task.cpus`
threads.
"""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("hamdex.spark needs pyspark: pip install 'pyspark>=4,<5'") from error

from .clusters import clusters
from .components import components
from .dedup import Dedup, dedup
from .files import dedup_file
from .fingerprints import fingerprints
from .index import Shards, build_index
from .links import links
from .pairs import pairs
from .search import search

__all__ = [
    "Dedup",
    "Shards",
    "build_index",
    "clusters",
    "components",
    "dedup",
    "dedup_file",
    "fingerprints",
    "links",
    "pairs",
    "search",
]
