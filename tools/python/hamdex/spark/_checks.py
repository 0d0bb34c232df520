"""Checks: rejects invalid calls before a job starts."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegralType

from .. import _hamdex
from .._errors import UsageError


def require_columns(frame: DataFrame, *names: str) -> None:
    """Rejects columns that the frame does not have."""
    for name in names:
        if name not in frame.columns:
            raise UsageError(f'there is no column "{name}" among {", ".join(frame.columns)}')


def require_distance(distance: int, bits: int) -> None:
    """Rejects a width or distance that the library would reject in the first task."""
    _hamdex._Keys(bits, distance, 0)


def require_fingerprints(frame: DataFrame, name: str, bits: int) -> None:
    """Rejects a column that cannot hold fingerprints of the width."""
    require_columns(frame, name)
    kind = frame.schema[name].dataType
    if not isinstance(kind, BinaryType if bits == 128 else IntegralType):
        wanted = "binary, 16 bytes each," if bits == 128 else "bigint"
        raise UsageError(
            f'column "{name}" is {kind.simpleString()}; fingerprints of {bits} bits are {wanted}'
        )


def context(spark: SparkSession) -> SparkContext:
    """Returns the context of a session; rejects Spark Connect, which has none."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "hamdex.spark does not run on Spark Connect, which has no checkpoint directory; use a "
            'classic session, such as SparkSession.builder.master("spark://...")'
        )
    return spark.sparkContext


def jvm(spark: SparkSession) -> Any:
    """Returns the Java classes of Spark's process."""
    return context(spark)._jvm


def require_absent(spark: SparkSession, path: str) -> None:
    """Rejects an existing output directory before the work starts."""
    place = jvm(spark).org.apache.hadoop.fs.Path(path)
    if place.getFileSystem(context(spark)._jsc.hadoopConfiguration()).exists(place):
        raise UsageError(f"{path} already exists; name a new directory")


def require_checkpoints(frame: DataFrame) -> None:
    """Rejects a session without a checkpoint directory."""
    if context(frame.sparkSession).getCheckpointDir() is None:
        raise UsageError(
            "there is no checkpoint directory; set one that all workers reach, with "
            'spark.sparkContext.setCheckpointDir("hdfs:///...")'
        )


def checkpointed(frame: DataFrame) -> DataFrame:
    """Computes a frame once and then reads it from the checkpoint directory."""
    return frame.checkpoint(eager=True)
