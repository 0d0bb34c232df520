"""Batches: passes the Arrow data of Spark's tasks through the library and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from .. import _data, _hamdex
from . import _checks

#: Kinds of result rows of groups, as the library numbers them.
PAIR, SKEWED, COUNT = 0, 1, 2

#: Counts in the library's order, and how the counts of many tasks are combined.
COUNTS: tuple[tuple[str, Callable[[Iterable[int]], int]], ...] = (
    ("rows", sum),
    ("groups", sum),
    ("largest", max),
    ("pairs", sum),
    ("heavy", sum),
)


def fingerprint_type(bits: int) -> DataType:
    """Returns the column type of fingerprints; Spark has no unsigned and no 128-bit integers."""
    return BinaryType() if bits == 128 else LongType()


#: A pipeline contains its tables already.
NO_TABLES = _data.tables(False, None, None, None, None, None)

#: Computes a column of a batch.
Make = Callable[[pa.RecordBatch], pa.Array]


def with_column(
    frame: DataFrame, name: str, kind: DataType, prepare: Callable[[], Make], *, drop: str = ""
) -> DataFrame:
    """Adds a column that is computed batch by batch; each task calls `prepare` once.

    The column `drop` is sent to the tasks and not returned.
    """
    kept = [field for field in frame.schema.fields if field.name != drop]
    names = [field.name for field in kept]
    schema = StructType([*kept, StructField(name, kind)])
    threads = threads_of(frame)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_threads(threads)
        make = prepare()
        for batch in batches:
            columns = [*batch.select(names).columns, make(batch)]
            yield pa.RecordBatch.from_arrays(columns, names=[*names, name])

    return frame.mapInArrow(task, schema)


def fingerprints(column: str, pipeline: _hamdex.Pipeline, bits: int) -> Make:
    """Computes the fingerprints of a column of texts, null for a text without features."""

    def make(batch: pa.RecordBatch) -> pa.Array:
        table = _hamdex.Table(batch.select([column]))
        made = _hamdex.fingerprint(table, column, pipeline=pipeline, bits=bits, tables=NO_TABLES)
        made = pa.table(made)
        made = made.column(0).combine_chunks()
        if bits == 64:
            return made.view(pa.int64())
        return made.cast(pa.int64() if bits == 32 else pa.binary())

    return make


def expanded(rows: DataFrame, spread: tuple[int, int, int]) -> DataFrame:
    """Returns a row for each key of each fingerprint, or for each key below a row's key."""
    fields = [StructField("key", LongType()), StructField("fingerprint", fingerprint_type(spread[0]))]
    if "second" in rows.columns:
        fields.append(StructField("second", BooleanType()))
    below = "key" in rows.columns
    threads = threads_of(rows)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_threads(threads)
        keys = _hamdex._Keys(*spread)
        expand = keys.below if below else keys.first
        for batch in batches:
            yield from to_batches(expand(_hamdex.Table(batch)))

    return rows.mapInArrow(task, StructType(fields))


def matched(rows: DataFrame, spread: tuple[int, int, int], wanted: str, limit: int) -> DataFrame:
    """Compares the groups of each partition, whose rows are sorted by key."""
    kind = fingerprint_type(spread[0])
    fields = [
        StructField("kind", ByteType()),
        StructField("key", LongType()),
        StructField("a", kind),
        StructField("b", kind),
        StructField("distance", IntegerType()),
    ]
    threads = threads_of(rows)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_threads(threads)
        groups = _hamdex._Keys(*spread).groups(wanted, limit)
        for batch in batches:
            yield from to_batches(groups.push(_hamdex.Table(batch)))
        yield from to_batches(groups.finish())

    return rows.mapInArrow(task, StructType(fields))


def distances(a: str, b: str, bits: int) -> Make:
    """Computes the distances between two columns of fingerprints."""

    def make(batch: pa.RecordBatch) -> pa.Array:
        table = _hamdex.Table(batch.select([a, b]))
        return pa.table(_hamdex._distances(table, a, b, bits)).column(0).combine_chunks()

    return make


def stamps(column: str) -> Make:
    """Computes binary keys that sort like the dates, numbers or texts of a column."""

    def make(batch: pa.RecordBatch) -> pa.Array:
        table = _hamdex.Table(batch.select([column]))
        return pa.table(_hamdex._stamps(table, column)).column(0).combine_chunks()

    return make


def source_values(column: str) -> Make:
    """Computes the names of sources of a column, as the command line reads its values."""

    def make(batch: pa.RecordBatch) -> pa.Array:
        table = _hamdex.Table(batch.select([column]))
        return pa.table(_hamdex._source_values(table, column)).column(0).combine_chunks()

    return make


def to_batches(table: _hamdex.Table) -> Iterator[pa.RecordBatch]:
    """Splits a table of the library into batches of a size that suits Spark."""
    return (batch for batch in pa.table(table).to_batches(max_chunksize=1 << 16) if batch.num_rows)


def use_threads(threads: str) -> None:
    """Limits the threads of this worker; call it before the library starts them."""
    os.environ.setdefault("RAYON_NUM_THREADS", threads)


def threads_of(frame: DataFrame) -> str:
    """Returns the number of threads that a task may use."""
    return _checks.context(frame.sparkSession).getConf().get("spark.task.cpus", "1")
