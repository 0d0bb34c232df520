"""Checks: what cannot work is refused before a job is started."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegralType

from .. import _hamdex
from .._errors import UsageError


def require_columns(frame: DataFrame, *names: str) -> None:
    """Refuses columns that the frame does not have."""
    for name in names:
        if name not in frame.columns:
            raise UsageError(f'there is no column "{name}" among {", ".join(frame.columns)}')


def require_distance(distance: int, bits: int) -> None:
    """Refuses what the library would refuse in the first task."""
    _hamdex._Keys(bits, distance, 0)


def require_fingerprints(frame: DataFrame, name: str, bits: int) -> None:
    """Refuses a column that holds no fingerprints of the width."""
    require_columns(frame, name)
    kind = frame.schema[name].dataType
    if not isinstance(kind, BinaryType if bits == 128 else IntegralType):
        wanted = "binary, 16 bytes each," if bits == 128 else "bigint"
        raise UsageError(
            f'column "{name}" is {kind.simpleString()}; fingerprints of {bits} bits are {wanted}'
        )


def context(spark: SparkSession) -> SparkContext:
    """The context of a session; a session of Spark Connect has none and is refused."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "hamdex.spark does not run on Spark Connect, which has no checkpoint directory: use a "
            'classic session, as SparkSession.builder.master("spark://...") makes one'
        )
    return spark.sparkContext


def jvm(spark: SparkSession) -> Any:
    """The classes of Spark's own process, by their names."""
    return context(spark)._jvm


def require_absent(spark: SparkSession, path: str) -> None:
    """Refuses to begin what would end with a directory that cannot be written."""
    place = jvm(spark).org.apache.hadoop.fs.Path(path)
    if place.getFileSystem(context(spark)._jsc.hadoopConfiguration()).exists(place):
        raise UsageError(f"{path} is there already; name a directory to be")


def require_checkpoints(frame: DataFrame) -> None:
    """Refuses to begin where there is no place for what one step hands to the next."""
    if context(frame.sparkSession).getCheckpointDir() is None:
        raise UsageError(
            "there is no checkpoint directory: name one that all workers reach, by "
            'spark.sparkContext.setCheckpointDir("hdfs:///...")'
        )


def checkpointed(frame: DataFrame) -> DataFrame:
    """Computes a frame once and reads it from the checkpoint directory from then on."""
    return frame.checkpoint(eager=True)
