"""Near-duplicates of more documents than one machine holds, on Apache Spark.

`dedup` gives what `hamdex dedup` gives on one machine, exactly, out of data frames of any size;
`clusters`, `pairs` and `search` what `hamdex clusters`, `pairs` and `query` give with
`--verify none`; `dedup_file` goes from Parquet files to Parquet files and a page about it;
`build_index` writes the files of an index in parallel, which `hamdex build --from-shards` takes
over.

    from pyspark.sql import SparkSession
    import hamdex.spark

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setCheckpointDir("hdfs:///tmp/checkpoints")
    pages = spark.read.parquet("hdfs:///pages")
    result = hamdex.spark.dedup(pages, "text", "url", 3, pipeline="page")
    result.kept.write.parquet("hdfs:///pages-kept")

Each function makes fingerprints of the texts first, or takes those of a column that has them
(`fingerprint_column`). Equal fingerprints are one from then on. Every distinct one becomes a row
for each table of a plan, with the table's prefix as its key; a shuffle brings equal keys together;
tasks read their rows in the order of the keys and compare each group with the library's own join.
Groups above `limit` rows are shuffled again under longer keys, never cut short.

What one step hands to the next goes to Spark's checkpoint directory, so that a worker that is lost
costs the work of one step at most. `spark.cleaner.referenceTracking.cleanCheckpoints` lets Spark
delete what is no longer referred to.

Every worker needs this package, of the same version, and pyarrow. Tasks use as many threads as
`spark.task.cpus` says.
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
